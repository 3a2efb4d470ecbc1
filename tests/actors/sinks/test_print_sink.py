"""Rows on the terminal: a line each under the names of their columns, and a count of the rest."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from tests.contract.test_types import TYPES
from tests.contract.test_types import rows as rows_of_types
from tests.support.flows import simulated
from tests.support.sinks import Driven

BUSES = pa.table(
    {
        "ts": pa.array([1, 2_000_000_000, 3], pa.timestamp("ns")),
        "line": ["7", None, "a\n\x1b]0;owned\x07"],
        "delay": [1.5, -0.25, None],
    }
)


def printed(table: pa.Table, *, limit: int = 20, batch: int = 2, end: str = "close") -> list[str]:
    lines: list[str] = []
    sink = Driven(sw.print_sink(limit), table.schema, show=lines.append)
    for rows in table.to_batches(max_chunksize=batch):
        sink.write(rows)
    for _ in range(2):
        getattr(sink, end)("failed")
    return lines


def test_rows_stand_under_their_names_and_no_terminal_obeys_them() -> None:
    assert printed(BUSES, batch=3) == [
        "[out] ts                             line          delay",
        "[out] 1970-01-01T00:00:00.000000001  7               1.5",
        "[out] 1970-01-01T00:00:02.000000000  null          -0.25",
        "[out] 1970-01-01T00:00:00.000000003  a␊␛]0;owned␇   null",
    ]


@pytest.mark.parametrize("batch", [1, 2, 7, 100])
@pytest.mark.parametrize("end", ["close", "abort"])
def test_rows_beyond_the_limit_are_counted_at_the_end_however_it_came(batch: int, end: str) -> None:
    table = pa.table({"n": range(1_500)})
    lines = printed(table, limit=3, batch=batch, end=end)
    assert lines == ["[out] n", "[out] 0", "[out] 1", "[out] 2", "[out] … and 1,497 more"]
    assert printed(table.slice(0, 3), limit=3, batch=batch, end=end) == lines[:4]


def test_no_rows_are_said_and_a_long_value_is_cut() -> None:
    assert printed(BUSES.slice(0, 0)) == ["[out] no rows"]
    assert printed(pa.table({"t": ["x" * 41]})) == ["[out] t", f"[out] {'x' * 39}…"]


@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_each_type_is_printed(nulls: float) -> None:
    table = rows_of_types(5, nulls=nulls).select(list(TYPES))
    lines = printed(table, limit=1_000)
    assert len(lines) == 1 + len(table)
    assert lines[0].split()[1:] == list(TYPES)
    assert all("null" in line for line in lines[1:]) == bool(nulls)


def flow_to(output: Any, *, rows: int) -> sw.Dataflow:
    flow = sw.Dataflow("shown")
    numbers = flow.source("numbers", sw.table({"t": list(range(rows))}), event_time="t")
    numbers.sink("out", output)
    return flow


def test_the_simulator_prints_on_its_own_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    _, report = simulated(flow_to(sw.print_sink(2), rows=9))
    assert capsys.readouterr().out.splitlines() == [
        "[out] t",
        "[out] 0",
        "[out] 1",
        "[out] … and 7 more",
    ]
    assert (report.sinks[0].rows, report.ledger.is_balanced) == (9, True)


def test_another_sink_may_be_resumed_beside_a_print_sink(tmp_path: Any) -> None:
    for _ in range(2):
        flow = flow_to(sw.print_sink(), rows=3)
        more = flow.source("more", sw.table({"t": [1, 2]}), event_time="t")
        more.sink("kept", sw.jsonl_sink(tmp_path / "kept", resume=True))
        simulated(flow)
    assert len((tmp_path / "kept" / "part-00000001.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("limit", [0, -1, 1_001, 2.0, True, None])
def test_a_limit_out_of_range_is_refused(limit: Any) -> None:
    with pytest.raises(SettingError, match=r"limit=.* must be a whole number"):
        sw.print_sink(limit)
