from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from slackwater.report.report_file import load_report, save_report
from slackwater.runtime.errors import SinkError, SlackwaterError
from tests.support.reports import city_report, with_clocks


def test_a_report_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    report = with_clocks(city_report())
    save_report(report, tmp_path / "run" / "report.json")
    loaded = load_report(tmp_path / "run" / "report.json")
    assert loaded.to_json() == report.to_json()
    assert loaded.clocks == report.clocks
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["report.json"]


def test_a_report_of_before_clocks_were_compared_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    save_report(city_report(), path)
    plain = json.loads(path.read_text())
    del plain["clocks"], plain["sinks"][0]["error_ns"]
    for channel in plain["channels"]:
        del channel["error_ns"]
    path.write_text(json.dumps(plain))
    loaded = load_report(path)
    assert loaded.to_json() == city_report().to_json()
    assert loaded.clocks == []


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    report = city_report()
    report.stages[0].rows_in = np.int64(1_000)  # type: ignore[assignment]
    save_report(report, tmp_path / "report.json")
    assert load_report(tmp_path / "report.json").stages[0].rows_in == 1_000


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "not a report of ours"),
        ('{"format": 1}', "not a report of ours"),
        ('{"format": 99}', "has format 99"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(SlackwaterError, match=told):
        load_report(tmp_path / "report.json")


def test_a_folder_that_is_a_file_gives_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(SinkError, match=r"could not be written.*--out"):
        save_report(city_report(), tmp_path / "out" / "report.json")
