"""Where a search may put stages, what is said of that, and predictions that a job is made from."""

from __future__ import annotations

from dataclasses import replace

import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.chosen.placements import better_of
from slackwater.runtime.foresight.chosen.plan_choice import Considered
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.placement.placement_text import placement_lines
from slackwater.sampling import sample_flow
from tests.support.known_work import MS, WorkClock, sampled, times

RATES = {"a": 225, "b": 75, "c": 75}
"""0.9, 0.3 and 0.3 of a core: the simple rule puts two of them together."""


def three(clock: WorkClock) -> sw.Dataflow:
    """Three sources, each with work of its own."""
    flow = sw.Dataflow("three", deadline="20s")
    for name in "abc":
        rows = flow.source(name, sw.table(times(1_000)), event_time="ts")
        gate = rows.merge(name=f"gate-{name}", slack="0s")
        work = gate.map_batches(clock.work, schema={"n": "int64"}, name=f"work-{name}")
        work.sink(f"out-{name}", sw.collect_sink())
    return flow


@pytest.fixture(scope="module")
def known() -> tuple[sw.Dataflow, FlowSample]:
    clock = WorkClock(4 * MS)
    flow = three(clock)
    return flow, sample_flow(flow, clock_ns=clock)


class PartlyTaken(sw.Simulation):
    """Nodes of which some CPUs are held by others."""

    def __init__(self, nodes: int, free: dict[str, int], *, cores: int = 1) -> None:
        super().__init__(nodes, cores=cores)
        self._free = free


def test_a_search_takes_no_slot_whose_cpu_others_hold(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    free = {"node-1": 1, "node-2": 1, "node-3": 0}
    made = PartlyTaken(3, free).predict(flow, RATES, sample=sample)
    assert "search" in made.considered
    assert set(made.plan.slots.values()) == {"node-1", "node-2"}
    roomy = sw.Simulation(3).predict(flow, RATES, sample=sample)
    assert "node-3" in roomy.plan.slots.values()


def test_a_search_stays_on_the_node_that_all_stages_are_placed_on(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    place = sw.Simulation(2, cores=2)
    made = place.predict(flow, RATES, sample=sample, placement={"*": "node-2"})
    assert set(made.plan.slots.values()) == {"node-2/1", "node-2/2"}
    assert made.estimate.worst_s < 1


def test_explain_says_that_a_search_has_put_a_stage_there(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    by_hand = {"gate-a": "node-1"}
    plan = sw.Simulation(2).plan(flow, rates=RATES, sample=sample, placement=by_hand)
    assert plan.placed_by["gate-a"] == "placement"
    assert plan.placed_by["gate-b"] == plan.placed_by["gate-c"] == "search"
    assert any("so the search found the least latency" in line for line in placement_lines(plan))


def test_a_job_is_made_from_a_prediction_as_it_was_made(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    place = sw.Simulation(2)
    made = place.predict(flow, RATES, sample=sample, horizon="30s", width="50ms")
    plan = place.plan(flow, rates=made, admission="reject")
    assert plan.slots == made.plan.slots
    assert plan.placed_by == made.plan.placed_by
    assert plan.expected is not None
    assert (plan.expected.width_s, len(plan.expected.latency_s)) == (0.05, 600)
    assert plan.verdict.refusal is None
    slot = made.plan.slots["gate-a"]
    other = next(name for name in ("node-1", "node-2") if name != slot)
    with pytest.raises(SettingError, match="placement= moves gate-a away"):
        place.plan(flow, rates=made, placement={"gate-a": other})
    strange, _ = sampled(MS, times(100))
    with pytest.raises(SettingError, match=r"of another version of flow 'works'|not there"):
        place.plan(strange, rates=made)


def test_a_flow_that_falls_behind_is_told_the_highest_rates_that_it_keeps_up_with(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    refusal = (
        sw.Simulation(1).plan(flow, rates=RATES, sample=sample, admission="reject").verdict.refusal
    )
    assert refusal is not None
    assert "the highest rates that it keeps up with are a 150/s, b 50/s, c 50/s" in refusal


def test_work_that_the_sample_never_saw_is_said_at_submit() -> None:
    flow, sample = sampled(MS, times(100))
    operators = [
        replace(one, cost_s=(0.0,)) if one.name == "out" else one for one in sample.graph.operators
    ]
    unseen = replace(sample, graph=QueryGraph(sample.graph.sources, tuple(operators)))
    (note,) = sw.Simulation(1).plan(flow, rates=10, sample=unseen).verdict.notes
    assert note.startswith("the sample shows no work of out, so it counts as none")


def test_a_placement_in_which_no_gate_holds_rows_is_better_unless_it_falls_behind(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    slow = sw.Simulation(3).predict(flow, RATES, sample=sample)
    behind = sw.Simulation(1).predict(flow, RATES, sample=sample)
    held = replace(
        slow, estimate=replace(slow.estimate, held_up_s=slow.estimate.held_up_s / 2, is_held=True)
    )
    for rule, search, better in ((held, slow, slow), (slow, held, slow), (behind, held, held)):
        chosen = better_of(rule, search)
        assert chosen.estimate is better.estimate
        assert (chosen.considered["search"] == float("inf")) is (search is held)
    assert Considered((), flow, held).worst_s == float("inf")


def joined(**gate: str | int) -> sw.Dataflow:
    """Two sources of 200 rows a second, their pairs, and a sink."""
    flow = sw.Dataflow("joined")
    table = times(2_000, every_ns=5 * MS)
    a, b = (
        flow.source(name, sw.table(table), event_time="ts", arrival="ts", speed=1.0)
        for name in ("a", "b")
    )
    pairs = a.join(b, on="n", within="200ms", name="pairs", **gate)
    pairs.sink("out", sw.collect_sink())
    return flow


def test_a_flow_with_gates_that_falls_far_behind_is_told_as_such() -> None:
    made = sw.Simulation(3).predict(joined(slack="1s"), 400, costs={"a": 0.02})
    assert made.is_unbounded
    assert "is overloaded" in made.text()


def test_rows_of_replicas_behind_a_gate_go_over_links() -> None:
    link = sw.testing.LinkModel(bytes_per_s=1e5)
    made = sw.Simulation(3, link=link).predict(joined(slack="1s", replicas=2), 400)
    assert made.gates is not None
    assert made.estimate.worst_s < 1.6


def test_a_trace_that_keeps_its_deadline_to_its_end_is_let_in(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    """1.2 of a core for 60 s is 12 s behind at the end, of a deadline of 20 s."""
    flow, sample = known
    trace = [30.0] * 600  # of each 100 ms: 300 a second, at 4 ms
    rates = {"a": trace, "b": [0.0] * 600, "c": [0.0] * 600}
    place = sw.Simulation(4)
    made = place.predict(flow, rates, sample=sample)
    assert made.keeps_deadline
    plan = place.plan(flow, rates=rates, sample=sample, admission="reject")
    assert plan.verdict.refusal is None
    forever = {"a": 300, "b": 1, "c": 1}
    refused = place.plan(flow, rates=forever, sample=sample, admission="reject").verdict.refusal
    assert refused is not None


def test_long_ways_are_no_backlog_and_need_no_relief(
    known: tuple[sw.Dataflow, FlowSample],
) -> None:
    flow, sample = known
    far = sw.testing.LinkModel(delay_ns=200 * MS)
    made = sw.Simulation(3, link=far).predict(
        flow, 10, sample=sample, placement={"out-a": "node-1", "gate-a": "node-2"}
    )
    assert made.estimate.worst_s >= 0.2
    assert not made.has_backlog
    assert made.relief.startswith("none is needed")


def test_a_prediction_of_other_gates_or_another_deadline_is_refused() -> None:
    place = sw.Simulation(2)
    made = place.predict(joined(slack="100ms"), 400)
    with pytest.raises(SettingError, match=r"another version of flow 'joined'.*pairs"):
        place.plan(joined(slack="300s"), rates=made)
