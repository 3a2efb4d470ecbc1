"""Results have the event time that was asked, and leave in its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.operators.aggregate.interval_words import Everything, Rows
from slackwater.runtime.operators.aggregate.window_step import WindowStep
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.registry.operators import make_operator
from tests.contract.test_operators import AGGREGATE, ROWS, SESSIONS, VALUES
from tests.operators.literal import Segment, reads_of, run, streams
from tests.support.chance import chance
from tests.support.flows import simulated

STEPS = [
    replace(AGGREGATE, window=Window(7, 7, 3)),
    replace(AGGREGATE, window=Window(12, 5)),
    SESSIONS,
    replace(SESSIONS, window=Everything()),
]


def time_of(leaf: Sequence[str], segments: list[Segment], which: str, step: WindowStep) -> int:
    """Return the time of a result by the rows of its window."""
    key, start, end = leaf[2], int(leaf[3]), int(leaf[4])
    last = end - 1 if isinstance(step.window, Window) else end
    times = [
        row.time
        for segment in segments
        for row in segment.rows
        if repr(row.values[1]) == key and start <= row.time <= last
    ]
    return {"start": start, "first": min(times), "last": max(times)}[which]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.window))
@given(
    segments=streams([VALUES], late=False),
    which=st.sampled_from(["start", "first", "last"]),
    cut=chance,
)
def test_results_have_that_time_and_leave_in_its_order(
    step: Any, segments: list[Segment], which: Any, cut: Random
) -> None:
    leaves = run(make_operator(step), reads_of(segments, [ROWS]))
    expected = [(repr(time_of(leaf, segments, which, step)), *leaf[1:]) for leaf in leaves]
    machine = make_operator(replace(step, result_time=which))
    assert run(machine, reads_of(segments, [ROWS], cut)) == sorted(
        expected, key=lambda leaf: int(leaf[0])
    )


def source(flow: sw.Dataflow, name: str = "rows") -> sw.Stream:
    table = pa.table({"t": [1, 3, 8], "k": [1, 1, 2], "x": [4, 5, 6]})
    return flow.source(name, sw.table(table), event_time="t", time_unit="s")


@pytest.mark.parametrize("replicas", [None, 1, 2])
def test_totals_with_the_time_of_the_last_row_can_be_joined(replicas: int | None) -> None:
    flow = sw.Dataflow("f")
    rows = source(flow)
    totals = rows.aggregate(
        by="k", window=sw.everything(), total=sw.sum("x"), time="last", replicas=replicas
    )
    rows.join(totals, on="k", within="1ns").select("k", "x", "total").sink("out", sw.collect_sink())
    job, report = simulated(flow)
    assert report.ledger.is_balanced
    assert job.result("out").to_pylist() == [
        {"k": 1, "x": 5, "total": 9},
        {"k": 2, "x": 6, "total": 6},
    ]


def test_a_join_of_rows_with_totals_of_the_end_is_refused_with_a_way_out() -> None:
    flow = sw.Dataflow("f")
    rows = source(flow)
    totals = rows.aggregate(by="k", window=sw.everything(), n=sw.count(), name="totals")
    some = totals.filter(sw.col("n") > 1)
    for left, right in ((rows, some), (some, rows)):
        with pytest.raises(FlowError, match=r"results of 'totals' leave at the end.*time='last'"):
            left.join(right, on="k", within="1d")
    with pytest.raises(FlowError, match="no row of the other input is near"):
        rows.asof(totals, on="k")
    some.join(totals, on="k", within="1d", name="both")
    totals.asof(rows, on="k", name="newest")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"late": "correct"}, "omit time='last', or late="),
        ({"close": sw.closing.ignore()}, "or close="),
        ({"drift": "5ms"}, "or drift="),
        ({"empty": "1h"}, "write time='start'"),
    ],
)
def test_times_of_rows_are_refused_with_other_options(options: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        source(sw.Dataflow("f")).aggregate(
            window=sw.tumbling("5s"), n=sw.count(), time="last", **options
        )


def test_windows_of_rows_leave_by_the_time_of_their_first_rows() -> None:
    step = replace(SESSIONS, window=Rows(3, 3), result_time="first")
    assert step.traits.summaries[0].promise_ns(10**9) < 0
