"""An estimate that goes along with a run, fed by hand: what it keeps, and what it survives."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.control import FlowGraph, StageNode
from runtime.estimate import QueryGraph, QueryOperator
from runtime.estimate.live import JobDeciders, LiveEstimate
from runtime.estimate.query_graph import arrivals_of
from runtime.measure.prediction import MOST_SPANS, PredictionReport
from runtime.measure.samples import StageSample
from runtime.model import NS_PER_SECOND
from runtime.plan.expected import ExpectedLatency, RateRange

GRAPH = FlowGraph(
    flow="two",
    stages=(
        StageNode(name="in", slot="a"),
        StageNode(name="work", slot="b", inputs=("in",), is_sink=True),
    ),
)
COSTS = QueryGraph(
    (arrivals_of("in"),),
    (
        QueryOperator(name="in", inputs=(arrivals_of("in"),), cost_s=(0.0,), selectivity=(1.0,)),
        QueryOperator(name="work", inputs=("in",), cost_s=(0.01,), selectivity=(1.0,)),
    ),
)
EXPECTED = ExpectedLatency(
    graph=COSTS,
    rates={"in": RateRange(80, 80, 80)},
    width_s=0.1,
    latency_s=(0.0,) * 600,
    worst_s=0.0,
    p99_s=0.0,
    mean_s=0.0,
    is_unbounded=False,
    cores={"b": 0.8},
)


def second(number: int, *, rows: int, busy_s: float) -> dict[str, StageSample]:
    """A second in which so many rows arrived, and `work` was so busy with as many."""
    return {
        "in": StageSample(
            stage="in",
            second=number,
            rows=rows,
            handed=rows,
            arrived=((number, rows),) * (rows > 0),
        ),
        "work": StageSample(
            stage="work",
            second=number,
            rows=rows,
            came=rows,
            handed=rows,
            busy_ns=round(busy_s * 1e9),
        ),
    }


def test_the_excess_of_what_arrived_is_what_it_says() -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    for number, rows in enumerate([150, 150, 50, 50, 0]):
        one.decide(number, second(number, rows=rows, busy_s=rows * 0.01))
    spans = one.report().spans
    assert [span.events for span in spans] == [150, 150, 50, 50]
    # Work of 1.5 s a second is half a second behind after the first, one after the second.
    assert [(span.estimated_ns or 0) / 1e9 for span in spans] == pytest.approx([0.5, 1.0, 1.0, 0.5])
    assert {span.planned_ns for span in spans} == {0}


def test_what_one_knew_the_next_goes_on_with() -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    for number in range(20):
        one.decide(number, second(number, rows=80, busy_s=1.2))
    told = one.report()
    assert [(shift.of, shift.what) for shift in told.shifts] == [("work", "cost")]
    next_one = LiveEstimate(GRAPH, EXPECTED, resumed=told)
    for number in range(20, 25):
        next_one.decide(number, second(number, rows=80, busy_s=1.2))
    again = next_one.report()
    assert again.shifts == told.shifts
    assert again.spans[:20] == told.spans
    assert [span.start_ns // NS_PER_SECOND for span in again.spans] == list(range(25))


def test_a_run_of_any_length_has_as_many_spans_as_fit_and_no_event_is_lost() -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 60, 2_000)
    for number, rows in enumerate(counts):
        one.decide(number, second(number, rows=int(rows), busy_s=rows * 0.01))
    spans = one.report().spans
    assert len(spans) <= MOST_SPANS
    assert sum(span.events for span in spans) == counts.sum()
    assert len({span.width_ns for span in spans}) == 1


def test_an_idle_slot_of_dear_rows_is_no_shift_and_neither_is_a_source_that_ended() -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    for number in range(20):
        one.decide(number, second(number, rows=80, busy_s=0.4))  # half as dear: slot half idle
    for number in range(20, 60):
        one.decide(number, second(number, rows=0, busy_s=0.0))
    assert one.report().shifts == []


def test_an_estimate_that_goes_wrong_is_counted_and_takes_nobody_down() -> None:
    deciders = JobDeciders([], GRAPH, expected=EXPECTED)
    bad = second(0, rows=10, busy_s=0.1)
    bad["in"] = StageSample(stage="in", second=0, rows=10, arrived=((0, -5),))
    assert deciders.begin() == []
    assert deciders.decide(0, bad) == []
    made = deciders.prediction()
    assert isinstance(made, PredictionReport)
    assert made.errors == 1
    assert "arrivals are one finite count >= 0" in (made.last_error or "")
    assert deciders.take_traces()
    assert JobDeciders([], GRAPH).prediction() is None
