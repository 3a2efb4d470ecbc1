"""A diverted row of a paced source leaves when its arrival is due, however the input is cut."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.model.schema import inside_schema
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.sources import Stuttering, handed

Row = tuple[int | None, int | None]
"""Its event time and its arrival."""
FAR_NS = 4_000_000_000 * 10**9
"""An arrival that can be, and is years after the others."""


def expected(rows: list[Row], first: int | None) -> list[int]:
    """Return the moment of each diverted row by the rule, with the start at 0."""
    moments, newest, waiting = [], None, list[int]()
    for time, arrival in rows:
        if time is not None and arrival is not None:
            first = arrival if first is None else first
            newest = arrival if newest is None else max(newest, arrival)
            moments += [max(min(one, newest) - first, 0) for one in waiting]
            waiting = []
        else:
            before = [one for one in (newest, arrival, *waiting[-1:]) if one is not None]
            waiting.append(max(before, default=0))
    return moments + [0 if first is None else max(one - first, 0) for one in waiting]


class Blocks(Stuttering):
    """An input of these blocks."""

    is_history = True

    def __init__(self, schema: pa.Schema, parts: list[pa.RecordBatch]) -> None:
        super().__init__(*parts)
        self._schema = schema

    def schema(self) -> pa.Schema:
        return self._schema


def table_of(rows: list[Row]) -> pa.Table:
    columns = {"t": [time for time, _ in rows], "a": [arrival for _, arrival in rows]}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def blocks(table: pa.Table, cuts: list[int]) -> Blocks:
    """Return an input of these rows in blocks of so many, again and again."""
    parts, at = list[pa.RecordBatch](), 0
    while at < len(table):
        size = cuts[len(parts) % len(cuts)]
        parts += table.slice(at, size).combine_chunks().to_batches()
        at += size
    return Blocks(table.schema, parts)


def source_of(given_input: Any, beginning: int | None = None, **spec: Any) -> SourceNode:
    settings = {"event_time": "t", "speed": 1.0, "on_bad": "divert", "out_of_order": "late", **spec}
    return SourceNode(
        "s",
        SourceSpec(input=given_input, **settings),
        inside_schema(given_input.schema()),
        writer_id=0,
        start_ns=0,
        beginning_ns=beginning,
    )


def step(source: SourceNode, now_ns: int) -> tuple[int, int]:
    """Do what is due next; return when, and how many diverted rows left."""
    if not source.is_unread:
        assert source.due_ns is not None, "nothing is due, and it is not over"
        now_ns = max(now_ns, source.due_ns)
    return now_ns, len(source.work(now_ns, max_rows=1).diverted)


ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, None, 7]),
        st.one_of(st.none(), st.integers(0, 30), st.just(FAR_NS)),
    ),
    max_size=12,
)
CUTS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(ROWS, CUTS, st.sampled_from([None, 3]), st.integers(0, 30))
def test_a_diverted_row_leaves_when_its_arrival_is_due(
    rows: list[Row], cuts: list[int], beginning: int | None, restarted: int
) -> None:
    table = table_of(rows)
    source = source_of(blocks(table, cuts), beginning, arrival="a")
    now_ns, moments, steps = 0, list[int](), 0
    while not source.is_over:
        now_ns, count = step(source, now_ns)
        moments += [now_ns] * count
        if (steps := steps + 1) == restarted:
            later = source_of(blocks(table, cuts[::-1]), beginning, arrival="a")
            restore(later, save(source))
            source = later
        assert steps < 100, "it goes on"
    assert moments == expected(rows, beginning)
    assert source.rows_in == len(rows)
    assert source.take_diverted(now_ns) == []


def test_a_row_whose_arrival_is_not_known_leaves_with_the_one_before() -> None:
    table = pa.table({"t": pa.array([None, 5, None, None, 9, None], pa.int64())})
    source = source_of(blocks(table, [100]))
    now_ns, moments = 0, list[int]()
    while not source.is_over:
        now_ns, count = step(source, now_ns)
        moments += [now_ns] * count
    assert moments == [0, 0, 0, 4]


def test_rows_that_came_too_late_to_leave_when_due_leave_in_order() -> None:
    rows: list[Row] = [(7, 0), (None, 1), (7, 2), (None, 3), (7, 4)]
    source = source_of(blocks(table_of(rows), [100]), arrival="a")
    assert [len(handed(source, 50, max_rows=1).diverted) for _ in range(3)] == [0, 1, 1]


def test_so_many_rows_wait_and_no_more_are_read() -> None:
    rows = 70_000
    table = pa.table({"t": pa.nulls(rows, pa.int64()), "a": range(1, rows + 1)})
    given_input = blocks(table, [65_536])
    source = source_of(given_input, 0, arrival="a")
    assert not source.read(0)
    assert not source.is_unread
    assert (len(source.work(0, max_rows=1).diverted), source.due_ns) == (0, 1)
    assert len(source.work(65_536, max_rows=1).diverted) == 65_536
    assert source.is_unread


def test_a_source_that_is_closed_counts_rows_that_wait_as_not_taken() -> None:
    source = source_of(blocks(table_of([(7, 0), (None, 5), (7, 6)]), [100]), arrival="a")
    assert handed(source, 0).rows is not None
    source.close()
    assert (source.untaken, source.rows_in, source.take_diverted(9)) == (2, 1, [])


@pytest.mark.parametrize("batch_rows", [1, 5, 65_536])
def test_no_cut_of_a_diverted_row_makes_rows_of_others_late(batch_rows: int) -> None:
    heard = list(range(1000, 3000, 100))
    times = [None if one == 2500 else one for one in heard]
    flow = sw.Dataflow("moments", slack="0s")
    read = sw.table({"t": times, "heard": heard}, batch_rows=batch_rows)
    settings: dict[str, Any] = {"event_time": "t", "time_unit": "ms", "speed": 1.0}
    one = flow.source("one", read, arrival="heard", on_bad="divert", **settings)
    other = flow.source("other", sw.table({"t": list(range(1050, 3000, 100))}), **settings)
    one.sink("good", sw.collect_sink())
    both = one.diverted().select(who="row").merge(other.select(who=sw.col("t").cast("string")))
    both.sink("both", sw.collect_sink())
    both.aggregate(window=sw.tumbling("500ms"), n=sw.count()).sink("n", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert " out + 0 late " in str(job.wait().ledger)
        order = job.result("both")["who"].to_pylist()
        counts = job.result("n")["n"].to_pylist()
    assert order.index('{"t": null, "heard": 2500}') == order.index("2450") + 1
    assert counts == [5, 5, 6, 5]
