"""An estimate that goes along with a run, fed by hand: what it keeps, and what it survives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slackwater.runtime.control.graph import FlowGraph, StepNode
from slackwater.runtime.foresight import QueryGraph, QueryOperator, circles
from slackwater.runtime.foresight.held_up import HeldUp, held_up
from slackwater.runtime.foresight.layout import Network, Way
from slackwater.runtime.foresight.live import LiveEstimate
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.measure.prediction import MOST_SPANS, PredictionReport
from slackwater.runtime.measure.samples import PARTS, StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.expected import ExpectedLatency, RateRange
from slackwater.runtime.tune import JobDeciders
from tests.support.graphs import node

GRAPH = FlowGraph(
    flow="two",
    steps=(
        node("in", "a"),
        node("work", "b", inputs=("in",), is_sink=True),
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


def deciders_of(graph: FlowGraph = GRAPH, **known: Any) -> JobDeciders:
    """Return the deciders of a job without policies, with the live estimate."""
    return JobDeciders([], graph, estimator=LiveEstimate, **known)


def second(
    number: int, *, rows: int, busy_s: float, stimulus: int | None = None
) -> list[StageSample]:
    """A second in which so many rows arrived, and `work` was so busy with as many."""
    at = number if stimulus is None else stimulus
    arrived = ((at * PARTS, rows - rows // 3), (at * PARTS + 9, rows // 3)) if rows else ()
    return [
        StageSample(subject=Subject("in"), second=number, rows=rows, handed=rows, arrived=arrived),
        worked(number, rows=rows, came=rows, busy_s=busy_s),
    ]


def on_node(step: StepNode, name: str) -> StepNode:
    return replace(step, parts=tuple(part._replace(node=name) for part in step.parts))


def worked(number: int, *, rows: int, came: int, busy_s: float) -> StageSample:
    busy_ns = round(busy_s * 1e9)
    return StageSample(
        subject=Subject("work"), second=number, rows=rows, came=came, handed=rows, busy_ns=busy_ns
    )


def fed(
    one: LiveEstimate, seconds: Iterable[list[StageSample]], *, every: int = 1
) -> PredictionReport:
    """Tell it of seconds; have it reckon behind each, or behind one of so many and the last."""
    for number, samples in enumerate(seconds):
        one.heard(samples)
        if number % every == 0:
            one.refresh()
    one.refresh()
    return one.report


def estimated_s(report: PredictionReport) -> list[float]:
    return [(span.estimated_ns or 0) / 1e9 for span in report.spans]


def shifts_of(report: PredictionReport) -> list[tuple[str, str]]:
    return [(shift.of, shift.what) for shift in report.shifts]


def test_the_excess_of_what_arrived_is_what_it_says() -> None:
    counts = [150, 150, 50, 50, 0]
    report = fed(
        LiveEstimate(GRAPH, EXPECTED),
        (second(n, rows=rows, busy_s=rows * 0.01) for n, rows in enumerate(counts)),
    )
    assert [span.events for span in report.spans] == counts[:4]
    # Work of 1.5 s a second is half a second behind after the first, one after the second.
    assert estimated_s(report) == pytest.approx([0.5, 1.0, 1.0, 0.5])
    assert {span.planned_ns for span in report.spans} == {0}


def test_where_ways_come_back_work_is_laid_out_once_a_refresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts of a subinterval are for bounds, of which it tells none."""
    back = node("back", "a", inputs=("work",), is_sink=True)
    graph = replace(GRAPH, steps=(GRAPH.steps[0], replace(GRAPH.steps[1], is_sink=False), back))
    work = replace(COSTS.operators[1], name="back", inputs=("work",), cost_s=(0.0,))
    costs = QueryGraph(COSTS.sources, (*COSTS.operators, work))
    passes = list[float]()

    def counted(*args: Any, **named: Any) -> HeldUp:
        passes.append(args[1].width_s)
        return held_up(*args, **named)

    monkeypatch.setattr(circles, "held_up", counted)
    one = LiveEstimate(graph, replace(EXPECTED, graph=costs))
    for n in range(3):
        idle = StageSample(
            subject=Subject("back"), second=n, rows=150, came=150, handed=150, busy_ns=0
        )
        one.heard([*second(n, rows=150, busy_s=1.5), idle])
    one.refresh()
    assert max(estimated_s(one.report)) >= 1.0
    assert passes == [1.0]


def test_rows_that_get_dearer_leave_what_was_before_as_it_was() -> None:
    """60 rows a second at 10 ms for 100 s, then at 20 ms: 0.2 s a second fall behind from there."""
    cheap = [second(n, rows=60, busy_s=0.6) for n in range(100)]
    dear = [
        [second(n, rows=60, busy_s=0.0)[0], worked(n, rows=50, came=60, busy_s=1.0)]
        for n in range(100, 150)
    ]
    found = estimated_s(fed(LiveEstimate(GRAPH, EXPECTED), [*cheap, *dear]))
    assert max(found[:100]) == 0
    # The window of ten seconds has to fill with dear rows first.
    assert found[-1] == pytest.approx(50 * 0.2, abs=2.0)


def test_a_flow_that_falls_behind_for_long_is_behind_by_all_of_it() -> None:
    """Twenty per cent too much for 1,000 s: 200 s behind, of which 256 s are kept one by one."""
    report = fed(
        LiveEstimate(GRAPH, EXPECTED),
        (second(n, rows=120, busy_s=1.2) for n in range(1_000)),
        every=10,
    )
    assert report.estimated_worst_ns == pytest.approx(200e9, rel=0.02)
    assert sum(span.events for span in report.spans) == 120_000


def test_of_two_sources_the_one_that_is_far_behind_is_counted_where_its_rows_belong() -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    for number in range(100):
        one.heard(second(number, rows=50, busy_s=0.5, stimulus=number // 10))
    one.refresh()
    assert [span.events for span in one.report.spans] == [500] * 10
    assert estimated_s(one.report) == pytest.approx([4.0 * n for n in range(1, 11)])
    ahead = (second(n, rows=50, busy_s=0.5, stimulus=n + 1_000) for n in range(100, 600))
    fed(one, ahead, every=10)
    late = second(600, rows=7, busy_s=0.07, stimulus=3)  # of before all that is kept
    report = fed(one, [late])
    assert sum(span.events for span in report.spans) == 5_000 + 25_000 + 7


@pytest.mark.parametrize("planned", [[0.0] * 600, [float(n) for n in range(600)]])
def test_what_one_knew_the_next_goes_on_with(planned: list[float]) -> None:
    """It begins with the samples of the one before it, and goes on as if it had been there."""
    expected = replace(EXPECTED, latency_s=tuple(planned))
    seconds = [second(n, rows=110, busy_s=1.1) for n in range(50)]
    whole = fed(LiveEstimate(GRAPH, expected), seconds)
    told = fed(LiveEstimate(GRAPH, expected), seconds[:30])
    known = [sample for each in seconds[:30] for sample in each]
    deciders = deciders_of(expected=expected, resumed=told, before=known)
    for each in seconds[30:]:
        deciders.heard(each)
    deciders.heard([], is_last=True)
    again = deciders.prediction()
    assert again is not None
    assert (again.errors, again.origin_ns) == (0, 0)
    assert [span.events for span in again.spans] == [span.events for span in whole.spans]
    assert [span.planned_ns for span in again.spans] == [span.planned_ns for span in whole.spans]
    assert again.estimated_worst_ns == pytest.approx(whole.estimated_worst_ns, rel=0.1)


def test_a_run_of_any_length_has_as_many_spans_as_fit_and_no_event_is_lost() -> None:
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 60, 1_500).tolist()
    one = LiveEstimate(GRAPH, EXPECTED)
    for number, rows in enumerate(counts):
        one.heard(second(number, rows=rows, busy_s=rows * 0.01))
        if number % 21 == 0:
            one.refresh()
    one.refresh()
    spans = one.report.spans
    assert len(spans) <= MOST_SPANS
    assert sum(span.events for span in spans) == sum(counts)
    assert len({span.width_ns for span in spans}) == 1


def test_rows_that_are_dear_where_the_slot_is_idle_are_no_shift_and_neither_is_an_end() -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    fed(one, (second(n, rows=80, busy_s=0.8) for n in range(30)))
    report = fed(one, (second(n, rows=10, busy_s=0.4) for n in range(30, 60)))  # 40 ms a row
    assert shifts_of(report) == [("in", "rate")]
    report = fed(one, (second(n, rows=0, busy_s=0.0) for n in range(60, 90)))
    assert shifts_of(report) == [("in", "rate")]


@pytest.mark.parametrize(("dearer", "found"), [(1.2, []), (1.4, [("work", "cost")])])
def test_a_cost_has_shifted_from_a_quarter_on(dearer: float, found: list[object]) -> None:
    one = LiveEstimate(GRAPH, EXPECTED)
    fed(one, (second(n, rows=80, busy_s=0.8) for n in range(20)))
    report = fed(one, (second(n, rows=80, busy_s=0.8 * dearer) for n in range(20, 40)))
    assert shifts_of(report) == found
    for shift in report.shifts:
        assert shift.was == pytest.approx(0.01)
        assert shift.now == pytest.approx(0.014)
        assert 20 < shift.at_s < shift.last_s == 40


def test_what_the_sample_never_saw_is_a_shift_and_counts_from_then_on() -> None:
    """`work` was planned to cost nothing, and takes one and a half cores."""
    unseen = replace(COSTS.operators[1], cost_s=(0.0,))
    costs = QueryGraph(COSTS.sources, (COSTS.operators[0], unseen))
    report = fed(
        LiveEstimate(GRAPH, replace(EXPECTED, graph=costs)),
        (second(n, rows=80, busy_s=1.5) for n in range(40)),
    )
    assert shifts_of(report) == [("work", "cost")]
    assert report.shifts[0].was == 0
    assert report.estimated_worst_ns == pytest.approx(40 * 0.5e9, rel=0.1)


def test_what_waits_goes_along_with_a_stage_that_moves_and_counts_there() -> None:
    """Half a second a second too much for 100 s; then to a slot of its own, at half the load."""
    one = LiveEstimate(GRAPH, EXPECTED)
    report = fed(one, (second(n, rows=150, busy_s=1.5) for n in range(100)))
    assert report.estimated_worst_ns == pytest.approx(50e9, rel=0.03)
    one.moved(replace(GRAPH, steps=(GRAPH.steps[0], node("work", "c", inputs=("in",)))))
    report = fed(one, (second(n, rows=50, busy_s=0.5) for n in range(100, 160)))
    assert [span.events for span in report.spans] == [150] * 100 + [50] * 60
    # What was behind is worked off at half a second a second.
    assert estimated_s(report)[100] == pytest.approx(50.0, rel=0.03)
    assert estimated_s(report)[159] == pytest.approx(20.0, rel=0.1)
    again = fed(one, (second(n, rows=50, busy_s=0.5) for n in range(160, 600)), every=10)
    assert estimated_s(again)[-1] == 0


def test_samples_that_come_late_or_never_change_nothing_of_what_rows_cost() -> None:
    """A slot that answers for nine seconds at once, and some seconds that nobody hears of."""
    one = LiveEstimate(GRAPH, EXPECTED)
    held_back: list[StageSample] = []
    for number in range(60):
        source, work = second(number, rows=80, busy_s=0.8)
        one.heard([source])
        if number % 20 != 5:
            held_back.append(work)
        if number % 9 == 0:
            one.heard(held_back)
            held_back = []
        one.refresh()
    assert shifts_of(one.report) == []
    assert one.report.estimated_worst_ns == 0


def test_windows_that_are_open_yet_are_no_shift() -> None:
    """A window of 30 s brings 10 rows when it closes, which cost the next stage a second each."""
    graph = FlowGraph(
        flow="windows",
        steps=(
            node("in", "a"),
            node("count", "b", inputs=("in",), window_ns=30 * NS_PER_SECOND),
            node("out", "b", inputs=("count",), is_sink=True),
        ),
    )
    costs = QueryGraph(
        COSTS.sources,
        (
            COSTS.operators[0],
            QueryOperator(name="count", inputs=("in",), cost_s=(0.005,), selectivity=(10 / 3_000,)),
            QueryOperator(name="out", inputs=("count",), cost_s=(1.0,), selectivity=(1.0,)),
        ),
    )
    expected = replace(EXPECTED, graph=costs, rates={"in": RateRange(100, 100, 100)})
    one = LiveEstimate(graph, expected)
    for number in range(200):
        rows = 10 * (number % 30 == 29)
        count = StageSample(
            subject=Subject("count"),
            second=number,
            rows=100,
            came=100,
            handed=rows,
            busy_ns=500_000_000,
        )
        out = StageSample(
            subject=Subject("out"),
            second=number,
            rows=rows,
            came=rows,
            handed=rows,
            busy_ns=10**9 * rows,
        )
        one.heard([second(number, rows=100, busy_s=0.0)[0], count, out])
        one.refresh()
    assert shifts_of(one.report) == []


def test_intervals_of_a_tenth_of_a_second_are_reckoned_in_seconds_too() -> None:
    graph = replace(GRAPH, interval_ns=NS_PER_SECOND // 10)
    deciders = deciders_of(graph, expected=EXPECTED)
    for number in range(300):
        deciders.heard(second(number, rows=12, busy_s=0.12))  # 1.2 s a second
    deciders.heard([], is_last=True)
    report = deciders.prediction()
    assert report is not None
    assert report.estimated_worst_ns == pytest.approx(30 * 0.2e9, rel=0.05)
    assert shifts_of(report) == [("in", "rate")]  # 120 a second, where 80 were given


def test_an_estimate_that_goes_wrong_is_counted_and_takes_nobody_down() -> None:
    deciders = deciders_of(expected=EXPECTED)
    bad = StageSample(subject=Subject("stranger"), second=0, rows=10, arrived=((0, 5),))
    assert deciders.begin() == []
    deciders.heard([bad])
    assert deciders.decide(0, {}) == []
    made = deciders.prediction()
    assert made is not None
    assert made.errors == 1
    assert "stranger" in (made.last_error or "")
    assert deciders.take_traces()
    assert JobDeciders([], GRAPH).prediction() is None
    unfit = deciders_of(expected=replace(EXPECTED, graph=None)).prediction()
    assert unfit is not None
    assert unfit.errors == 1


THIN = Network(
    usual=Way(least_s=0.2, most_s=0.3),
    between={("a", "b"): Way(least_s=0.2, most_s=0.3, bytes_per_s=1_000.0)},
    row_bytes={("in", "work"): 10.0},
)
LIGHT = QueryGraph(
    COSTS.sources, (COSTS.operators[0], replace(COSTS.operators[1], cost_s=(0.001,)))
)
FAR = replace(EXPECTED, graph=LIGHT, network=THIN)


def test_what_arrives_waits_for_a_link_as_it_was_predicted_to() -> None:
    """A link for 100 rows a second gets 150: a third of a second's rows are left behind in each."""
    seconds = [second(n, rows=150, busy_s=0.15) for n in range(20)]
    report = fed(LiveEstimate(GRAPH, FAR), seconds)
    assert estimated_s(report)[-1] == pytest.approx(20 * 0.5 + 0.3, abs=0.05)
    near = replace(GRAPH, steps=tuple(on_node(one, "same") for one in GRAPH.steps))
    report = fed(LiveEstimate(near, FAR), seconds)
    assert estimated_s(report)[-1] == pytest.approx(0.3), "of one node there is only the delay"


def test_a_stage_that_moves_takes_its_rows_off_the_link() -> None:
    one = LiveEstimate(GRAPH, FAR)
    report = fed(one, (second(n, rows=150, busy_s=0.15) for n in range(20)))
    assert estimated_s(report)[-1] == pytest.approx(10.3, abs=0.05)
    one.moved(replace(GRAPH, steps=(GRAPH.steps[0], node("work", "a", inputs=("in",)))))
    report = fed(one, (second(n, rows=150, busy_s=0.15) for n in range(20, 40)))
    assert estimated_s(report)[-1] == 0
    one.moved(GRAPH)
    report = fed(one, (second(n, rows=150, busy_s=0.15) for n in range(40, 60)))
    assert estimated_s(report)[-1] == pytest.approx(10.3, abs=0.05)


def test_what_waits_for_a_link_is_known_when_its_intervals_are_no_longer_kept() -> None:
    report = fed(
        LiveEstimate(GRAPH, FAR),
        (second(n, rows=120, busy_s=0.12) for n in range(400)),
    )
    assert report.estimated_worst_ns == pytest.approx(80.3e9, rel=0.02)
    assert report.seen_load == pytest.approx({"a": 0.0, "b": 0.12})


def test_rows_that_a_link_brings_late_are_no_dearer_and_no_fewer() -> None:
    """1,500 rows in ten seconds, of which a link brings 100 a second, in fifteen: at 8 ms each."""
    dear = QueryGraph(
        COSTS.sources, (COSTS.operators[0], replace(LIGHT.operators[1], cost_s=(0.008,)))
    )
    one = LiveEstimate(GRAPH, replace(FAR, graph=dear, shares={"in": 1.0, "work": 1.0}))
    for number in range(40):
        put = 150 if number < 10 else 5
        came = 100 if number < 15 else 5
        one.heard([second(number, rows=put, busy_s=0.0)[0]])
        one.heard([worked(number, rows=came, came=came, busy_s=0.008 * came)])
        one.refresh()
    assert shifts_of(one.report) == [("in", "rate")]
    assert one.report.estimated_worst_ns == pytest.approx(5.3e9, rel=0.02)
    assert estimated_s(one.report)[30:] == pytest.approx([0.3] * 10)
