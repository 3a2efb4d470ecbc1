"""Folders of runs: ignored by git, and the oldest removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slackwater.report.report_file import save_report
from slackwater.report.run_folders import KEPT, new_run_folder
from tests.support.reports import city_report


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_git_ignores_the_folder_of_a_run_and_nothing_else() -> None:
    made = new_run_folder("city")
    ignored = made / ".gitignore"
    assert ignored.read_text() == "*\n"
    assert (made.stat().st_mode & 0o777, ignored.stat().st_mode & 0o777) == (0o700, 0o600)
    assert not Path("out/.gitignore").exists()  # sinks of users may write beside it


def ended(name: str) -> Path:
    made = Path("out") / name
    save_report(city_report(), made / "report.json")
    save_report(city_report(), made / "status.json")
    (made / ".gitignore").write_text("*\n")
    return made


def test_the_oldest_runs_of_the_flow_are_removed() -> None:
    runs = [ended(f"city-20260101-0000{n:02}") for n in range(KEPT + 5)]
    others = [ended("town-20260101-000000"), ended("city-hall-20260101-000000"), ended("city")]
    made = new_run_folder("city")
    assert [run.exists() for run in runs] == [False] * 6 + [True] * (KEPT - 1)
    assert made.exists()
    assert all(other.exists() for other in others)


def test_a_folder_of_other_files_and_one_that_may_run_stay() -> None:
    kept = ended("city-20260101-000000")
    (kept / "notes.txt").write_text("mine")
    runs = ended("city-20260101-000001")
    (runs / "report.json").unlink()
    tracked = ended("city-20260101-000002")
    (tracked / ".gitignore").unlink()
    died = ended("city-20260101-000003")
    (died / "report.json").unlink()
    os.utime(died / "status.json", (1_000_000, 1_000_000))
    for n in range(KEPT):
        ended(f"city-20260102-0000{n:02}")
    new_run_folder("city")
    assert [one.exists() for one in (kept, runs, tracked, died)] == [True, True, True, False]
    assert (kept / "notes.txt").read_text() == "mine"
