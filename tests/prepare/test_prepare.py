"""One way from a flow to a plan: what it holds, and what is said of it, on both hosts alike."""

from __future__ import annotations

import pickle
from inspect import signature

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.jobs.job import RayJob
from slackwater.actors.slot.host import SlotHost
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.prepare.prepare import admit, prepare
from slackwater.runtime.simulate import Simulation
from slackwater.runtime.tune import HOP_NS

ROWS = pa.table({"ts": pa.array([1, 2], pa.int64()), "k": [1, 1]})
LIMITS, TUNING = sw.Limits(gate_rows=7), sw.Tuning(policy="500ms", interval="200ms")


def flow(deadline: str | None = "6s", *, speed: float | None = 1.0) -> sw.Dataflow:
    made = sw.Dataflow("two", deadline=deadline)
    one, other = (
        made.source(name, sw.table(ROWS), event_time="ts", speed=speed) for name in ("one", "other")
    )
    one.merge(other, name="both").sink("out", sw.collect_sink())
    return made


def test_settings_travel_in_the_plan_and_a_slot_gets_those_that_count_there() -> None:
    plan = pickle.loads(pickle.dumps(prepare(flow(), ["a", "b"], limits=LIMITS, tuning=TUNING)))  # noqa: S301 our own
    assert (plan.limits, plan.tuning, plan.interval_ns) == (LIMITS, TUNING, 200_000_000)
    assert FlowGraph.of(plan).interval_ns == 200_000_000
    part = slot_plan(plan, "b")
    assert (part.limits, part.interval_ns, part.deadline_ns) == (LIMITS, 200_000_000, 6 * 10**9)
    assert [stage.name for stage in part.stages] == ["both", "out"]
    bare = prepare(flow(None), ["a", "b"])
    assert (bare.limits, bare.tuning) == (sw.Limits(), None)
    assert slot_plan(bare, "a").interval_ns is None, "nobody asks for samples"


@pytest.mark.parametrize("host", [RayJob, SlotHost, Simulation])
def test_no_host_is_handed_settings_beside_a_plan(host: type) -> None:
    taken = signature(host).parameters
    assert "plan" in taken
    assert not {"limits", "tuning", "is_sampled", "deadline_ns", "interval_ns"} & {*taken}


def test_a_flow_with_a_deadline_and_a_gate_is_tuned_unless_told_otherwise() -> None:
    assert prepare(flow(), ["a"]).tuning == sw.Tuning()
    fixed = sw.Dataflow("fixed", deadline="6s")
    fixed.source("one", sw.table(ROWS), event_time="ts", speed=1.0).sink("out", sw.collect_sink())
    assert prepare(fixed, ["a"]).tuning is None, "it has no gate"


def test_what_cannot_run_can_be_looked_at_and_is_refused_with_the_words_of_its_verdict() -> None:
    hasty = flow("1us")
    plan = prepare(hasty, ["a", "b"])
    assert "'two' cannot keep its deadline of 1.00 µs" in (plan.verdict.refusal or "")
    with pytest.raises(FlowError) as refused:
        admit(plan)
    assert str(refused.value) == plan.verdict.refusal
    nodes = sw.Simulation(2)
    assert nodes.plan(hasty).verdict.refusal is not None
    said = nodes.explain(hasty)
    assert said.endswith(f"will be refused: {nodes.plan(hasty).verdict.refusal}")
    with pytest.raises(FlowError, match="cannot keep its deadline"):
        nodes.submit(hasty)
    assert "refused" not in nodes.explain(flow())
    assert admit(prepare(flow(), ["a"])).verdict.refusal is None


def test_the_verdict_goes_by_the_limits_and_by_what_a_hop_costs_there() -> None:
    near, far = sw.Simulation(2), sw.Simulation(2, link=sw.testing.LinkModel(delay_ns=10**10))
    assert near.plan(flow()).verdict.refusal is None
    assert "10.0 s for the hop" in (far.plan(flow()).verdict.refusal or "")
    assert f"{HOP_NS // 1_000} µs" in (prepare(flow("1us"), ["a", "b"]).verdict.refusal or "")
    slow = sw.Limits(source_gap_ns=7 * 10**9)
    assert "7.00 s until its source looks" in (near.plan(flow(), limits=slow).verdict.refusal or "")


def test_notes_are_in_the_plan_and_the_report_repeats_them() -> None:
    with sw.Simulation(1) as nodes:
        (note,) = nodes.plan(flow(speed=None)).verdict.notes
        assert "read as fast as possible" in note
        assert nodes.plan(flow()).verdict.notes == ()
        assert note in nodes.submit(flow(speed=None)).wait().notes


def test_wrong_settings_are_errors_of_plan_and_explain_too() -> None:
    nodes = sw.Simulation(1)
    for ask in (nodes.plan, nodes.explain, nodes.submit):
        with pytest.raises(SettingError, match="has no deadline, and tuning= says"):
            ask(flow(None), tuning=sw.Tuning())
