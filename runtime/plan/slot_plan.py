"""Part of a plan that one slot needs: its stages and their settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.runtime.config import Limits
from slackwater.runtime.plan.plan import Plan, Stage

__all__ = ["SlotPlan", "slot_plan"]


@dataclass(frozen=True, kw_only=True)
class SlotPlan:
    """Part of a plan for one slot, without other slots' inputs and functions.

    Attributes:
        name: name of the slot.
        node: name of its node.
        stages: stages that run in it, in topological order.
        flow: name of the flow.
        limits: limits of the job.
        deadline_ns: deadline of the flow; None if none exists.
        interval_ns: length of the samples that it takes; None if it takes no samples.
        weighs: whether it counts the bytes of rows on each of its channels, also within the slot;
            else a host counts the bytes that it sends.
        has_checkpoints: whether the job takes checkpoints.
        spools_to: folder for the rows of sources that are read once; None if they are not spooled.
        holds: sinks of the job whose rows wait for the checkpoint that contains them.
    """

    name: str
    node: str
    stages: tuple[Stage, ...]
    flow: str = ""
    limits: Limits = field(default_factory=Limits)
    deadline_ns: int | None = None
    interval_ns: int | None = None
    weighs: bool = False
    has_checkpoints: bool = False
    spools_to: str | None = None
    holds: frozenset[str] = frozenset()


def slot_plan(plan: Plan, slot: str) -> SlotPlan:
    """Return a slot's part of a plan; it samples if the plan does."""
    return SlotPlan(
        name=slot,
        node=plan.places[slot].node,
        stages=plan.stages_of(slot),
        flow=plan.flow,
        limits=plan.limits,
        deadline_ns=plan.deadline_ns,
        interval_ns=plan.interval_ns if plan.is_sampled else None,
        has_checkpoints=plan.has_checkpoints,
        spools_to=plan.spools_to,
        holds=plan.held_sinks,
    )
