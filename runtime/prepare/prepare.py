"""Prepare a flow's plan, for the cluster and the simulator.

```
flow ─ inputs fixed, checked ─▶ stages ─ placed ─▶ plan
     ─ settings ─▶ fingerprints, tuning ─▶ verdict ─▶ admit
```

A fault in the flow, its placement or its settings is an error here. A plan that is correct and yet
must not run has a verdict that says so: it can still be inspected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.errors import FlowError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.placement.place import open_slots, place
from slackwater.runtime.plan.after_failure import guarantees
from slackwater.runtime.plan.beginning import beginnings, far_note
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.steps import SourceStep, sources_among
from slackwater.runtime.plan.unpaced import unpaced_note
from slackwater.runtime.plan.verdict import Verdict
from slackwater.runtime.schedule.orders import check_order
from slackwater.runtime.tune import HOP_NS, chosen_tuning, deadline_refusal, with_closing_shares


def prepare(
    flow: Dataflow,
    slots: Sequence[SlotPlace | str],
    *,
    placement: Mapping[str, str] | None = None,
    free: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    tuning: Tuning | None = None,
    hop_ns: int = HOP_NS,
) -> Plan:
    """Return the plan of a flow, with its settings and the verdict on it.

    Args:
        flow: checked here once more.
        slots: all slots, node by node, at least one.
        placement: {stage: slot or node} for some stages, or {"*": slot or node} for all.
        free: {node: free CPUs}; None if all are free.
        limits: bounds of memory and slices; the default if None.
        tuning: how the deadline of the flow is kept; the default if None.
        hop_ns: least time of a message between two slots.

    Raises:
        FlowError: the flow or the placement is wrong.
        SettingError: `tuning` is wrong, the flow has no deadline for it, there is no slot, or
            priorities name no step of the flow.
        IngestError: files of an input are gone.
    """
    limits = limits or Limits()
    slots_open = len(open_slots(slots, placement=placement, free=free))
    count_of, known = flow.division.stages, flow.division.partitions
    steps = {n: _planned(step, count_of.get(n, slots_open)) for n, step in flow.steps.items()}
    begins = beginnings(steps)
    parts = {
        step.name: step.parts(count_of.get(step.name, slots_open), known.get(step.name, ()))
        for step in sources_among(steps.values())
    }
    graph = replace(flow.graph, steps=steps)
    stages = [
        replace(stage, beginning=begins.get(stage.subject.step))
        for stage in plan_stages(graph, fuse=limits.fuse, source_parts=parts)
    ]
    check_order(limits.order, (stage.subject for stage in stages))
    placed = place(
        flow.name, stages, slots, placement=placement, deadline_ns=flow.deadline_ns, free=free
    )
    plan = replace(
        placed,
        limits=limits,
        fingerprints=flow_fingerprints(steps),
        guarantees=tuple(guarantees(steps)),
    )
    plan = replace(plan, tuning=chosen_tuning(plan, tuning))
    plan, notes = with_closing_shares(plan, hop_ns=hop_ns)
    return replace(plan, verdict=_verdict(plan, notes, hop_ns=hop_ns))


def _planned(step: Step, slots: int) -> Step:
    """Return a step as the plan fixes it: its input, or its number of replicas."""
    if isinstance(step, SourceStep):
        return step.planned()
    return step.for_slots(slots) if isinstance(step, GatedStep) else step


def admit(plan: Plan) -> Plan:
    """Return a plan that may run.

    Raises:
        FlowError: the plan must not run, as no slack can keep its deadline.
    """
    if plan.verdict.refusal is not None:
        raise FlowError(plan.verdict.refusal)
    return plan


def _verdict(plan: Plan, notes: list[str], *, hop_ns: int) -> Verdict:
    steps = plan.sources
    sources = {step.name: step.source for step in steps}
    known = [unpaced_note(plan.deadline_ns, sources), far_note(plan.beginnings)]
    of_inputs = dict.fromkeys(note for step in steps for note in step.notes())
    texts = [note for note in [*known, *notes, *of_inputs] if note is not None]
    return Verdict(deadline_refusal(plan, hop_ns=hop_ns), tuple(texts))
