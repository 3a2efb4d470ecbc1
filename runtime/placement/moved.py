"""New placement of a running flow: the user moves some stages, all others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.runtime.errors import FlowError
from slackwater.runtime.placement.place import ALL, SlotsThere, by_stage
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.plan.steps import SinkStep, SourceStep

__all__ = ["moved_plan", "why_it_stays"]


def moved_plan(plan: Plan, placement: Mapping[str, str], slots: Sequence[SlotPlace]) -> Plan:
    """Return the plan with some stages in other slots.

    Args:
        plan: plan of the running flow.
        placement: {stage: slot or node}, or {"*": slot or node} for all stages that can move. The
            name of a step with replicas means its gate and all replicas. On a node of several cores
            a stage takes the slot with the fewest stages, or stays in its slot of that node.
        slots: all slots of the cluster.

    Raises:
        FlowError: a stage, slot or node does not exist, or a stage cannot move.
    """
    there = SlotsThere(slots, None)
    wishes = by_stage(placement, plan.stages)
    wish = wishes.pop(ALL, None)
    chosen = {**plan.slots}
    places = {**plan.places}
    for stage in plan.stages:
        stays = why_it_stays(stage)
        wanted = wishes.get(stage.name) or (wish if stays is None else None)
        if wanted is None:
            continue
        slot = _of_these(there.named(wanted), stage, chosen)
        if stays is not None and slot.name != plan.slots[stage.name]:
            raise FlowError(
                f"flow {plan.flow!r} runs, and its {stage.kind} {stage.name!r} cannot move from "
                f"slot {plan.slots[stage.name]!r} to {slot.name!r}: {stays}; leave it out of the "
                "placement, or stop the flow and submit it with this one"
            )
        chosen[stage.name], places[slot.name] = slot.name, slot
    used = set(chosen.values())
    moved = {name for name, slot in chosen.items() if slot != plan.slots[name]}
    return replace(
        plan,
        slots=chosen,
        places={name: place for name, place in places.items() if name in used},
        placed_by={**plan.placed_by, **dict.fromkeys(moved, "placement")},
    )


def why_it_stays(stage: Stage) -> str | None:
    """Return why a stage cannot move while it runs; None if it can.

    A source can move if its input can be opened again, from the start. A sink keeps its files open,
    or is custom: only a collect sink can hand over its rows.
    """
    if isinstance(stage.step, SourceStep):
        source = stage.step.source
        if not source.is_history:
            return f"it reads {source.input.describe()}, which cannot be opened a second time"
    if isinstance(stage.step, SinkStep):
        traits = stage.step.output.traits
        if traits.files is not None:
            return "it holds the lock and the open part of its files"
        if not traits.collects:
            return "its output is open in that slot, and only your code can hand it over"
    return None


def _of_these(slots: Sequence[SlotPlace], stage: Stage, chosen: Mapping[str, str]) -> SlotPlace:
    own = [slot for slot in slots if slot.name == chosen[stage.name]]
    counts = Counter(chosen.values())
    return own[0] if own else min(slots, key=lambda slot: counts[slot.name])
