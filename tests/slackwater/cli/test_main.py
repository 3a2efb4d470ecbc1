from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

import slackwater
from slackwater.cli import follow, main
from slackwater.report.report_file import load_report, save_report
from slackwater.runtime.errors import ClusterError, OperatorError, SinkError
from slackwater.runtime.measure.checkpoints import CheckpointReport
from slackwater.runtime.measure.report import JobReport
from tests.support.fake_host import FakeHost, FakeJob, call
from tests.support.reports import city_report, with_lost_rows


def test_a_run_shows_progress_and_report_and_leaves_its_files(host: FakeHost) -> None:
    done = call("run", "city.py", "--out", "here")
    assert done.exit_code == 0, done.output
    assert host.submitted == ["city"]
    assert host.closed
    assert host.asked["nodes"] == 3
    assert "starting node 1 of 3" in done.stderr
    assert "events/s" in done.stderr
    assert "balanced" in done.stdout
    assert "alerts: " in done.stdout
    assert sorted(os.listdir("here")) == ["latency.png", "report.json", "status.json"]
    assert load_report(Path("here/report.json")).to_json() == city_report().to_json()


def test_a_run_without_out_gets_a_folder_of_its_own(host: FakeHost) -> None:
    assert call("run", "city.py").exit_code == 0
    assert call("run", "city.py").exit_code == 0
    runs = list(Path("out").iterdir())
    assert len(runs) == 2
    assert all(run.name.startswith("city-") for run in runs)


def test_json_is_one_object_and_nothing_else(host: FakeHost) -> None:
    done = call("run", "city.py", "--json", "--out", "here")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["ledger"]["balanced"] is True
    assert found["out"] == "here"


@pytest.mark.parametrize("command", ["run", "explain"])
def test_what_the_users_file_prints_is_not_in_the_json(host: FakeHost, command: str) -> None:
    flow = Path("city.py")
    flow.write_text(f"print('loading')\n{flow.read_text()}")
    host.meanwhile = lambda: typer.echo("in a function")
    done = call(command, "city.py", "--json")
    assert isinstance(json.loads(done.stdout), dict)
    said = ["loading"] if command == "explain" else ["loading", "in a function"]
    assert done.stderr.splitlines() == said


def test_quiet_says_nothing_of_a_good_run(host: FakeHost) -> None:
    done = call("run", "city.py", "--quiet", "--out", "here")
    assert (done.exit_code, done.output) == (0, "")
    assert {path.name for path in Path("here").iterdir()} == {"report.json", "status.json"}


def test_the_status_file_is_there_while_the_job_runs(host: FakeHost) -> None:
    seen: list[str] = []

    class Watching(FakeJob):
        def wait(self, *, on_report: Callable[[JobReport], None] | None = None) -> JobReport:
            assert on_report is not None
            on_report(self.reports[0])
            seen.append(call("status", "--out", "here").stdout)
            return self.reports[-1]

    host.job = Watching(host.job.reports)
    assert call("run", "city.py", "--out", "here").exit_code == 0
    assert "city  running" in seen[0]
    assert "city  done" in call("status", "--out", "here").stdout


def test_a_run_that_starts_is_the_newest_and_not_the_run_before(host: FakeHost) -> None:
    save_report(city_report(), Path("out/city-1/status.json"))
    os.utime("out/city-1/status.json", (1_000_000, 1_000_000))
    seen: list[str] = []
    host.meanwhile = lambda: seen.append(call("status").stdout)
    assert call("run", "city.py").exit_code == 0
    assert "city  starting" in seen[0]
    assert "done" not in seen[0]
    assert "city  done" in call("status").stdout


def test_a_run_that_never_began_is_told_as_failed(host: FakeHost) -> None:
    def refuse() -> None:
        raise ClusterError("no node answers")

    host.meanwhile = refuse
    assert call("run", "city.py", "--out", "here").exit_code == 1
    assert "no node answers" in call("status", "--out", "here").stdout
    assert load_report(Path("here/status.json")).state == "failed"


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["--nodes", "5"], {"nodes": 5, "address": None, "simulate": False}),
        (["--address", "auto"], {"nodes": 3, "address": "auto", "simulate": False}),
        (["--simulate"], {"nodes": 3, "address": None, "simulate": True}),
        (["--nodes", "1", "--cores", "8"], {"nodes": 1, "cores": 8, "address": None}),
        (["--simulate"], {"nodes": 3, "cores": 1}),
        (["--simulate", "--nodes", "9"], {"nodes": 9, "address": None, "simulate": True}),
    ],
)
def test_the_options_choose_the_host(
    host: FakeHost, arguments: list[str], asked: dict[str, Any]
) -> None:
    assert call("run", "city.py", "--quiet", *arguments).exit_code == 0
    assert {key: host.asked[key] for key in asked} == asked


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nowhere.py"],
        ["run", "city.py", "--nodes", "0"],
        ["run", "city.py", "--nodes", "2", "--address", "auto"],
        ["run", "city.py", "--address", "auto", "--simulate"],
        ["run", "city.py", "--address", "auto", "--cores", "2"],
        ["run", "city.py", "--cores", "0"],
        ["run"],
        ["explain", "nowhere.py:flow"],
        ["run", "city.py", "--simulate", "--checkpoint", "1s"],
        ["run", "city.py", "--renamed", "rides"],
        ["run", "city.py", "--simulate", "--renamed", "rides=trips"],
        ["frobnicate"],
    ],
)
def test_wrong_usage_exits_with_2(host: FakeHost, arguments: list[str]) -> None:
    done = call(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert not host.submitted


def test_an_error_of_ours_is_a_paragraph_and_the_report_is_kept(host: FakeHost) -> None:
    host.job.ends_with = OperatorError("step 'speed': ZeroDivisionError\n  line 3, in speed")
    done = call("run", "city.py", "--out", "here")
    assert done.exit_code == 1
    assert "slackwater: step 'speed': ZeroDivisionError\n  line 3, in speed" in done.stderr
    assert "Traceback" not in done.output
    assert host.closed
    kept = load_report(Path("here/report.json"))
    assert kept.error == "step 'speed': ZeroDivisionError\n  line 3, in speed"


def test_an_error_with_json_is_one_object_too(host: FakeHost) -> None:
    host.job.ends_with = OperatorError("step 'speed' raised")
    done = call("run", "city.py", "--json", "--out", "here")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"]["kind"] == "OperatorError"


def test_a_cluster_that_cannot_be_reached_is_told_plainly(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> FakeHost:
        raise ClusterError("no Ray cluster at 10.0.0.9:6379; start one or leave --address out")

    monkeypatch.setattr(main, "open_host", refuse)
    done = call("run", "city.py", "--address", "10.0.0.9:6379")
    assert done.exit_code == 1
    assert done.stderr == (
        "slackwater: no Ray cluster at 10.0.0.9:6379; start one or leave --address out\n"
    )


def test_a_report_that_failed_fails_the_command(host: FakeHost) -> None:
    host.job.reports.append(replace(city_report(state="failed"), error="worker node-2 died"))
    done = call("run", "city.py", "--json", "--out", "here")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["state"] == "failed"
    assert "worker node-2 died" in done.stderr


def test_a_ledger_that_does_not_balance_fails_the_command(host: FakeHost) -> None:
    host.job.reports.append(with_lost_rows(city_report(), rows=4))
    done = call("run", "city.py", "--quiet", "--out", "here")
    assert done.exit_code == 1
    assert "does not balance: stage 'jams'" in done.stderr


def test_ctrl_c_stops_the_job_and_exits_with_130(host: FakeHost) -> None:
    host.job.reports = host.job.reports[:1]
    host.job.ends_with = KeyboardInterrupt()
    done = call("run", "city.py", "--out", "here")
    assert done.exit_code == 130
    assert host.job.stopped
    assert host.closed
    kept = load_report(Path("here/report.json"))
    assert (kept.state, kept.error) == ("stopped", "interrupted")


KEPT = CheckpointReport(
    every_s=1.0, folder="kept", interval_s=1.0, number=7, age_s=0.1, took_s=0.01
)


def test_an_interrupt_of_a_job_with_checkpoints_says_how_to_go_on(host: FakeHost) -> None:
    report = replace(host.job.reports[0], checkpoint=KEPT)
    host.job.reports, host.job.ends_with = [report], KeyboardInterrupt()
    done = call("run", "city.py", "--checkpoint", "1s", "--checkpoint-folder", "kept")
    assert host.how == {"checkpoint": "1s", "checkpoint_folder": Path("kept")}
    assert done.exit_code == 130
    assert "the same `slackwater run` goes on from checkpoint 7 in kept" in done.stderr
    assert "checkpoint 7, begun 0.1 s ago" in call("status").stdout


def test_options_of_checkpoints_are_those_of_submit(host: FakeHost) -> None:
    call("run", "city.py", "--checkpoint", "none")
    assert host.how == {"checkpoint": None}
    call("run", "city.py", "--renamed", "rides=trips", "--renamed", "a=b")
    assert host.how == {"renamed": {"rides": "trips", "a": "b"}}


def test_a_run_begins_with_a_line_on_its_checkpoints(host: FakeHost) -> None:
    lines = call("run", "city.py").stderr.splitlines()
    assert host.job.checkpoints in lines[: 3 + 1], "after those of its nodes"


def test_a_disk_that_is_full_does_not_hide_what_ended_the_job(host: FakeHost) -> None:
    Path("here").write_text("a file where the folder should be")
    done = call("run", "city.py", "--out", "here")
    assert done.exit_code == 1
    assert "could not be written" in done.stderr


def test_explain_as_json_lists_the_steps(host: FakeHost) -> None:
    found = json.loads(call("explain", "city.py", "--json").stdout)
    assert found == {"flow": "city", "steps": [], "text": "graph of city"}


def test_report_shows_a_folder_a_file_or_the_newest_run(host: FakeHost) -> None:
    save_report(city_report(), Path("out/city-1/report.json"))
    texts = {
        call("report", *place).stdout
        for place in ([], ["out"], ["out/city-1"], ["out/city-1/report.json"])
    }
    assert len(texts) == 1
    assert "balanced" in texts.pop()
    assert json.loads(call("report", "--json").stdout)["flow"] == "city"


def test_report_and_status_without_a_run_say_how_to_make_one(host: FakeHost) -> None:
    for command in ("report", "status"):
        done = call(command)
        assert done.exit_code == 1
        assert "slackwater run FLOW.py" in done.stderr


def test_status_of_a_simulated_run_says_when_its_counts_are_written(host: FakeHost) -> None:
    for place, is_simulated in (("simulator", True), ("ray", False)):
        running = replace(city_report(state="starting"), host=place)
        save_report(running, Path("out/city-1/status.json"))
        assert ("counts at its end" in call("status").stdout) is is_simulated


def test_status_suspects_a_run_that_has_gone_silent(host: FakeHost) -> None:
    save_report(city_report(state="running"), Path("out/city-1/status.json"))
    assert "probably died" not in call("status").stdout
    os.utime("out/city-1/status.json", (1_000_000, 1_000_000))
    assert "probably died" in call("status").stdout
    assert json.loads(call("status", "--json").stdout)["age_s"] > 1_000


def test_version_names_what_we_stand_on(host: FakeHost) -> None:
    found = json.loads(call("version", "--json").stdout)
    assert list(found) == ["slackwater", "ray", "spark", "raydp", "python", "java"]
    assert found["python"] == sys.version.split()[0]
    assert "slackwater" in call("version").stdout


def test_an_option_prints_the_version_alone(host: FakeHost) -> None:
    assert call("--version").stdout == f"slackwater {slackwater.__version__}\n"


def test_ctrl_c_counts_also_where_a_shell_has_it_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "app", lambda: signal.raise_signal(signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt):
            main.main()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_status_that_cannot_be_written_ends_no_run(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, calls = follow.save_status, iter(range(9))

    def full_once(report: JobReport, folder: Path) -> None:
        if next(calls) == 1:  # the first says that the run starts
            raise SinkError("out/status.json could not be written: No space left on device")
        save(report, folder)

    monkeypatch.setattr(follow, "save_status", full_once)
    done = call("run", "city.py", "--out", "out")
    assert done.exit_code == 0, done.output
    last = load_report(Path("out/report.json"))
    assert last.state == "done"
    assert any("No space left" in note for note in last.notes)
