"""Pairs have the event time that was asked, and leave in its order."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.registry.operators import make_operator
from tests.contract.test_operators import JOIN, ROWS
from tests.operators.literal import Segment, any_row, reads_of, run, streams
from tests.support.chance import chance
from tests.support.flows import simulated

VALUES = any_row([1, 2], ["20", "26"], [0.5, 1.5])


def pairs_of(
    segments: list[Segment], before: int, after: int, port: int
) -> list[tuple[int, str, str, str, str]]:
    """Return the pairs of an inner join by area, with the times of the rows of a port."""
    rows = [row for segment in segments for row in segment.rows]
    made = []
    for left in (row for row in rows if row.port == 0):
        for right in (row for row in rows if row.port == 1):
            is_near = -before <= right.time - left.time <= after
            if left.values[0] == right.values[0] and is_near:
                area, line, delay = map(repr, left.values)
                time = (left, right)[port].time
                made.append((time, area, line, delay, repr(right.values[1])))
    return made


@given(
    segments=streams([VALUES, VALUES], late=False),
    between=st.tuples(st.integers(0, 7), st.integers(1, 7)),
    port=st.integers(0, 1),
    cut=chance,
)
def test_pairs_have_the_time_of_a_side_and_leave_in_its_order(
    segments: list[Segment], between: tuple[int, int], port: int, cut: Random
) -> None:
    side: Any = ("left", "right")[port]
    step = replace(JOIN, within_ns=max(between), between_ns=between, result_time=side)
    leaves = run(make_operator(step), reads_of(segments, [ROWS, ROWS], cut))
    made = [(int(time), *columns) for time, _, *columns in leaves]
    assert sorted(made) == sorted(pairs_of(segments, *between, port))
    assert [row[0] for row in made] == sorted(row[0] for row in made)
    assert run(make_operator(step), reads_of(segments, [ROWS, ROWS])) == leaves


@pytest.mark.parametrize("replicas", [None, 1, 2])
def test_windows_count_pairs_where_their_left_rows_are(replicas: int | None) -> None:
    flow = sw.Dataflow("f")
    orders, paid = (
        flow.source(
            name,
            sw.table(pa.table({"t": times, "k": [1, 2, 3]})),
            event_time="t",
            time_unit="s",
        )
        for name, times in (("orders", [1, 9, 12]), ("paid", [3, 11, 13]))
    )
    pairs = orders.join(paid, on="k", within="5s", time="left", replicas=replicas)
    pairs.aggregate(window=sw.tumbling("10s"), n=sw.count()).sink("out", sw.collect_sink())
    job, report = simulated(flow)
    assert report.ledger.is_balanced
    assert job.result("out")["n"].to_pylist() == [2, 1]
    assert "time     that of the left row" in flow.explain()


@pytest.mark.parametrize(
    "options", [{"how": "semi"}, {"how": "anti"}, {"drift": "1s"}, {"share": "all"}], ids=str
)
def test_times_of_a_side_are_refused_where_pairs_do_not_wait(options: Any) -> None:
    rows = sw.Dataflow("f").source("rows", sw.table({"t": [1], "k": [1]}), event_time="t")
    with pytest.raises(SettingError, match="makes pairs wait for older ones"):
        rows.join(rows, on="k", within="5s", time="left", **options)
