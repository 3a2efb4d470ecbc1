"""Signs of life of runs, from what their folders hold."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from slackwater.actors.kernel.process_identity import ProcessIdentity
from slackwater.report.report_file import save_report
from slackwater.report.run_status import (
    SILENT_S,
    find_report,
    find_status,
    load_status,
    save_status,
)
from slackwater.runtime.errors import SlackwaterError
from tests.support.fake_host import FakeHost, call, host
from tests.support.reports import city_report

__all__ = ["host"]

HERE = ProcessIdentity.here()


def of_process(folder: Path, state: str = "running", **changes: Any) -> Path:
    """Write a status file as of this process, save for these facts of it."""
    save_status(city_report(state=state), folder)
    path = folder / "status.json"
    plain = json.loads(path.read_text(encoding="utf-8"))
    plain["process"] |= changes
    path.write_text(json.dumps(plain), encoding="utf-8")
    return path


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        return ended.pid


@pytest.mark.parametrize("state", ["starting", "running"])
@pytest.mark.parametrize("changes", [{"pid": None}, {"start": 1}])
def test_a_run_whose_process_is_gone_is_lost_however_fresh_its_file(
    tmp_path: Path, state: str, changes: dict[str, Any]
) -> None:
    if "pid" in changes:
        changes = {"pid": dead_pid()}
    status = load_status(of_process(tmp_path, state, **changes))
    assert status.report.state == "lost"
    assert status.has_ended
    assert "is gone, as after kill -9" in str(status.report.error)
    assert status.report.ledger == city_report(state=state).ledger


def test_a_run_whose_process_lives_is_not_lost_however_old_its_file(tmp_path: Path) -> None:
    path = of_process(tmp_path)
    age(path, 10 * SILENT_S)
    assert load_status(path).report.state == "running"


@pytest.mark.parametrize("changes", [{"boot": "another"}, {"pid_space": "pid:[1]"}])
def test_a_run_of_another_host_is_lost_once_its_file_is_silent(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    path = of_process(tmp_path, host="far", **changes)
    age(path, SILENT_S / 2)
    assert load_status(path).report.state == "running"
    age(path, SILENT_S + 1)
    status = load_status(path)
    assert status.report.state == "lost"
    assert "host far has given no sign" in str(status.report.error)


@pytest.mark.parametrize("process", [None, [], {"pid": "x"}, {**asdict(HERE), "pid": 1}])
def test_a_process_that_makes_no_sense_counts_as_one_elsewhere(
    tmp_path: Path, process: object
) -> None:
    save_report(city_report(state="running"), tmp_path / "status.json", also={"process": process})
    assert load_status(tmp_path / "status.json").report.state == "running"
    age(tmp_path / "status.json", SILENT_S + 1)
    assert load_status(tmp_path / "status.json").report.state == "lost"


@pytest.mark.parametrize("state", ["done", "stopped", "failed"])
def test_a_run_that_has_ended_is_not_lost(tmp_path: Path, state: str) -> None:
    path = of_process(tmp_path, state, start=1)
    age(path, 10 * SILENT_S)
    assert load_status(path).report.state == state


def test_a_report_of_a_lost_run_is_what_its_status_has(tmp_path: Path) -> None:
    save_report(city_report(), tmp_path / "old" / "report.json")
    age(tmp_path / "old" / "report.json", 100)
    of_process(tmp_path / "new", start=1)
    for place in (tmp_path, tmp_path / "new", tmp_path / "new" / "status.json"):
        assert find_report(place).report.state == "lost"


def test_a_run_that_goes_on_is_no_report_unless_there_is_no_other(tmp_path: Path) -> None:
    of_process(tmp_path / "new")
    assert find_report(tmp_path).report.state == "running"
    save_report(city_report(), tmp_path / "old" / "report.json")
    age(tmp_path / "old" / "report.json", 100)
    assert find_report(tmp_path).report.state == "done"
    assert find_report(tmp_path / "new").report.state == "running"


@pytest.mark.parametrize(("state", "shown"), [("running", "lost"), ("done", "stopped")])
def test_a_folder_that_is_used_again_shows_its_later_run(
    tmp_path: Path, state: str, shown: str
) -> None:
    save_report(city_report(state="stopped"), tmp_path / "report.json")
    age(tmp_path / "report.json", 100)
    of_process(tmp_path, state, start=1)
    assert find_report(tmp_path).report.state == shown
    assert find_report(tmp_path / "report.json").report.state == "stopped"
    age(tmp_path / "status.json", 200)
    assert find_report(tmp_path).report.state == "stopped"


def test_a_folder_that_is_used_again_is_newest_by_its_later_run(tmp_path: Path) -> None:
    save_report(city_report(state="stopped"), tmp_path / "first" / "report.json")
    age(tmp_path / "first" / "report.json", 300)
    save_report(city_report(), tmp_path / "second" / "report.json")
    age(tmp_path / "second" / "report.json", 200)
    of_process(tmp_path / "second")
    age(tmp_path / "second" / "status.json", 200)
    of_process(tmp_path / "first", start=1)  # the same folder again, killed
    assert find_report(tmp_path).path.parent.name == "first"
    assert find_status(tmp_path).path.parent.name == "first"


def test_the_status_of_the_newest_run_is_found(tmp_path: Path) -> None:
    for age_s, run in enumerate(("newest", "older", "oldest")):
        age(of_process(tmp_path / run), age_s)
    assert find_status(tmp_path).path.parent.name == "newest"
    for place in (tmp_path / "older", tmp_path / "older" / "status.json"):
        assert find_status(place).path.parent.name == "older"
    with pytest.raises(SlackwaterError, match="slackwater run"):
        find_status(tmp_path / "nowhere")


@pytest.mark.parametrize("find", [find_report, find_status])
def test_a_place_that_no_system_can_look_at_is_an_error_in_words(tmp_path: Path, find: Any) -> None:
    with pytest.raises(SlackwaterError, match=r"aaa cannot be looked at: File name too long; name"):
        find(Path("a" * 5_000))
    with pytest.raises(SlackwaterError, match="cannot be looked at"):
        find(tmp_path / ("a" * 300))


def test_a_folder_without_runs_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SlackwaterError, match=r"slackwater run FLOW\.py"):
        find_report(tmp_path)


def test_status_and_report_say_that_a_run_is_lost(host: FakeHost) -> None:
    of_process(Path("out/city-1"), start=1)
    for command in ("status", "report"):
        done = call(command)
        assert done.exit_code == 0
        assert "city  lost" in done.stdout
        assert "kill -9" in done.stdout
        assert json.loads(call(command, "--json").stdout)["state"] == "lost"


@pytest.mark.parametrize("find", [find_report, find_status])
def test_a_run_that_is_not_ours_to_read_is_named_itself(
    tmp_path: Path, find: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_process(tmp_path / "old")
    of_process(tmp_path / "new")

    def files_in(folder: Path) -> list[Path]:
        if folder.name == "new":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder / "report.json"))
        return [path] if (path := folder / "status.json").is_file() else []

    monkeypatch.setattr("slackwater.report.run_status._files_in", files_in)
    with pytest.raises(SlackwaterError, match=r"new/report.json cannot be looked at: Permission"):
        find(tmp_path)
