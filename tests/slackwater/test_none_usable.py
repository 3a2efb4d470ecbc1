"""A source or function that could use none of its rows says so, at the end too."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw


def raises(_row: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("no")


def in_seconds(flow: sw.Dataflow, _folder: Path) -> sw.Stream:
    times = sw.table({"t": [1_700_000_000_000, 1_700_000_001_000]})  # milliseconds
    return flow.source("rows", times, event_time="t", time_unit="s", on_bad="skip")


def unreadable(flow: sw.Dataflow, folder: Path) -> sw.Stream:
    (folder / "a.csv").write_text("t\n1,2\n3,4\n")
    rows = sw.csv(folder / "a.csv", on_bad="skip", types={"t": "int64"})
    return flow.source("rows", rows, event_time="t", time_unit="s", on_bad="skip")


def failing(flow: sw.Dataflow, _folder: Path) -> sw.Stream:
    rows = flow.source("in", sw.table({"t": [1, 2]}), event_time="t", time_unit="s")
    return rows.map_rows(raises, {"t": "int64"}, on_error="skip", name="rows")


@pytest.mark.parametrize(
    ("make", "look_at"),
    [
        (in_seconds, "look at event_time= and time_unit="),
        (unreadable, "look at the form of its file"),
        (failing, "look at the error of its function"),
    ],
)
def test_where_every_row_is_bad_the_report_and_a_warning_say_so(
    make: Callable[[sw.Dataflow, Path], sw.Stream],
    look_at: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    flow = sw.Dataflow("all bad")
    make(flow, tmp_path).sink("out", sw.collect_sink())
    with caplog.at_level(logging.WARNING, "slackwater"):
        report = sw.Simulation(nodes=1).submit(flow).wait()
    (note,) = [note for note in report.notes if "could use none of its 2 rows" in note]
    assert look_at in note
    assert note in caplog.text


def test_where_one_row_is_good_nothing_is_said() -> None:
    flow = sw.Dataflow("one good")
    times = sw.table({"t": [1_700_000_000_000, 5]})
    rows = flow.source("rows", times, event_time="t", time_unit="s", on_bad="skip")
    rows.sink("out", sw.collect_sink())
    report = sw.Simulation(nodes=1).submit(flow).wait()
    assert not [note for note in report.notes if "could use none" in note]
