"""Rows without a time, with one that cannot be, or with one that is far ahead."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import OrderError, SchemaError, SettingError
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.state import restore, save
from tests.support.sources import Stuttering, block, drain, machine, take, times

FAR, NEAR = datetime(9999, 12, 31, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {
    "ns": (pa.timestamp("ns"), [datetime(2200, 1, 1, tzinfo=UTC), NEAR]),
    "us": (pa.timestamp("us"), [FAR, NEAR]),
    "s, a zone": (pa.timestamp("s", tz="UTC"), [FAR, NEAR]),
    "date32": (pa.date32(), [date(9999, 1, 1), date(2026, 1, 1)]),
    "date64": (pa.date64(), [date(1, 1, 1), date(2026, 1, 1)]),
    "int64": (pa.int64(), [2**63 - 1, 1_767_225_600 * NS_PER_SECOND]),
    "uint64": (pa.uint64(), [2**64 - 1, 1_767_225_600 * NS_PER_SECOND]),
    "words": (pa.dictionary(pa.int32(), pa.timestamp("us")), [FAR, NEAR]),
}


@pytest.mark.parametrize(("kind", "values"), KINDS.values(), ids=KINDS.keys())
def test_rows_without_a_time_that_can_be_are_left_out_and_counted(
    kind: pa.DataType, values: list[Any]
) -> None:
    far, near = values
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array([near, None, far, near, None], plain)
    table = pa.table({"t": column.dictionary_encode() if plain != kind else column})
    source = machine(table, on_bad="skip")
    assert len(times(drain(source))) == 2
    assert (source.bad_times, source.rows_in, source.held) == (3, 5, 0)
    for rows, place in ((table, 1), (table.slice(2, 2), 0)):
        with pytest.raises(SchemaError, match=rf"row {place} \(.*on_bad='skip'"):
            drain(machine(rows))


@given(
    st.lists(st.sampled_from([None, 2**63 - 1, -(2**63), 5, 6, 7, 7]), max_size=12),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from(["plain", "arrival", "numbers", "ahead", "writers"]),
)
def test_however_rows_are_cut_the_others_leave_as_if_the_bad_ones_were_not_there(
    given_times: list[int | None], cuts: list[int], kind: str
) -> None:
    settings: dict[str, Any] = {
        "plain": {"out_of_order": "late", "disorder_ns": 1},
        "arrival": {"out_of_order": "late", "arrival": "a", "speed": 1e9},
        "numbers": {"out_of_order": "sequence", "sequence": "n", "arrival": "a"},
        "ahead": {"out_of_order": "late", "ahead_ns": 1, "arrival": "a"},
        "writers": {"out_of_order": "late", "writer": "w"},
    }[kind]
    rows = len(given_times)
    data = {
        "t": pa.array(given_times, pa.int64()),
        "a": pa.array([time and 5 for time in given_times], pa.int64()),
        "n": pa.array(range(rows), pa.int64()),
        "w": pa.array(["a" if row % 3 else "b" for row in range(rows)], pa.string()),
    }
    table = pa.table(data)
    good = [time is not None and abs(time) < 10 for time in given_times]
    expected = machine(table.filter(pa.array(good, pa.bool_())), **settings)
    cut, start = [], 0
    while start < rows:
        size = cuts[len(cut) % len(cuts)]
        cut += table.slice(start, size).combine_chunks().to_batches()
        start += size
    source = machine(Blocks(table.schema, cut), on_bad="skip", **settings)
    assert times(drain(source, max_rows=2)) == times(drain(expected))
    assert source.bad_times == rows - sum(good)
    assert source.rows_in == rows
    assert source.late_dropped == expected.late_dropped
    assert source.held == 0


def test_a_row_that_is_refused_behind_bad_ones_is_named_by_its_place() -> None:
    data = pa.table({"t": pa.array([None, 7, None, 5], pa.int64())})
    source = machine(data, on_bad="skip")
    with pytest.raises(OrderError, match=r"row 3 \(counted from 0\) has event time"):
        drain(source)


def test_a_restart_passes_over_bad_rows_and_keeps_their_number() -> None:
    data = pa.table({"t": pa.array([None, 1, 2, None, 3, None, 4], pa.int64())})
    source = machine(data, on_bad="skip")
    first = times([take(source, 1, max_rows=2)])
    later = machine(data, on_bad="skip")
    restore(later, save(source))
    assert [*first, *times(drain(later))] == [1, 2, 3, 4]
    assert (later.bad_times, later.rows_in) == (3, 7)


def test_the_ledger_of_a_job_has_bad_times_by_name() -> None:
    flow = sw.Dataflow("f")
    table = pa.table({"t": pa.array([1, None, 2, 2**63 - 1], pa.int64()), "v": [1, 2, 3, 4]})
    rows = flow.source("s", sw.table(table), event_time="t", time_unit="ns", on_bad="skip")
    rows.sink("out", sw.collect_sink())
    assert "rows with bad times omitted" in flow.explain()
    job = sw.Simulation().submit(flow)
    report = job.wait()
    assert job.result("out")["v"].to_pylist() == [1, 3]
    assert report.ledger.is_balanced
    assert report.to_json()["ledger"]["bad_time"] == 2
    assert "2 with bad times" in str(report.ledger)


def test_a_live_row_that_is_a_day_ahead_of_the_clock_is_held_back_and_blames_nobody() -> None:
    day = 86_400 * NS_PER_SECOND
    rows = [block(t=[10]), block(t=[20 + day]), block(t=[12, 13])]
    source = machine(Stuttering(*rows), ahead_ns=5)
    assert times([take(source, now) for now in (10, 12)]) == [10, 12, 13]
    assert (source.early, source.early_held, source.late_dropped) == (1, 1, 0)
    assert times(drain(source, now_ns=20)) == [20 + day]
    with pytest.raises(OrderError, match="If a row before it is to blame, by a clock"):
        drain(machine(Stuttering(*rows)))


ALONE = [10, 11, 99, 12, 13, 70, 71, 14, 72, 200]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
@pytest.mark.parametrize("speed", [None, 1.0])
def test_in_a_table_a_row_that_is_alone_far_ahead_is_held_back(
    batch_rows: int, speed: float | None
) -> None:
    table = sw.table(pa.table({"t": ALONE}), batch_rows=batch_rows)
    source = machine(table, ahead_ns=5, out_of_order="late", speed=speed)
    assert times(drain(source, max_rows=2)) == [10, 11, 12, 13, 70, 71, 72, 99, 200]
    assert (source.early, source.late_dropped, source.held) == (3, 1, 0)
    half = machine(table, ahead_ns=5, out_of_order="late", speed=speed)
    first = times([take(half, 1_000, max_rows=2)])
    later = machine(table, ahead_ns=5, out_of_order="late", speed=speed)
    restore(later, save(half))
    assert [*first, *times(drain(later))] == [10, 11, 12, 13, 70, 71, 72, 99, 200]


def test_a_writer_that_is_ahead_does_not_bear_itself_out() -> None:
    data = {"t": [10, 99, 11, 100, 12, 101], "w": [*"abacab"]}
    source = machine({"t": [10, 99, 99, 11, 12], "w": [*"abbaa"]}, writer="w", ahead_ns=5)
    assert times(drain(source)) == [10, 11, 12, 99, 99]
    source = machine(data, writer="w", ahead_ns=5)
    assert times(drain(source, max_rows=1))[:3] == [10, 11, 99], "another writer bears 99 out"


def test_one_row_a_day_ahead_makes_no_other_an_error() -> None:
    day = 86_400 * NS_PER_SECOND
    data = [*range(50), 50 + day, *range(51, 100)]
    with pytest.raises(OrderError, match=r"row 51 .*If a row before it is to blame"):
        drain(machine({"t": data}, time_unit="ns"))
    source = machine({"t": data}, time_unit="ns", ahead_ns=NS_PER_SECOND)
    assert times(drain(source)) == [*range(50), *range(51, 100), 50 + day]


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(SettingError, match="on_bad='drop' must be 'error' or 'skip'"):
        machine({"t": [1]}, on_bad="drop")


class Blocks(Stuttering):
    """An input of these blocks."""

    is_history = True

    def __init__(self, schema: pa.Schema, blocks: list[pa.RecordBatch]) -> None:
        super().__init__(*blocks)
        self._schema = schema

    def schema(self) -> pa.Schema:
        return self._schema
