"""What one slot needs of a plan: its stages, and the settings that count there."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.runtime.config import Limits
from slackwater.runtime.plan.plan import Plan, Stage

__all__ = ["SlotPlan", "slot_plan"]


@dataclass(frozen=True, kw_only=True)
class SlotPlan:
    """One slot's part of a plan; small enough to be sent: no other slot's inputs and functions.

    Attributes:
        name: of the slot.
        node: the name of its node.
        stages: that run in it, in topological order.
        limits: of the job.
        deadline_ns: of the flow; None: none.
        interval_ns: how long the samples are that it takes; None: it takes none.
        weighs: whether it counts the bytes of the rows that each of its channels is given, those
            within it, too; else a host counts what it sends.
    """

    name: str
    node: str
    stages: tuple[Stage, ...]
    limits: Limits = field(default_factory=Limits)
    deadline_ns: int | None = None
    interval_ns: int | None = None
    weighs: bool = False


def slot_plan(plan: Plan, slot: str) -> SlotPlan:
    """Return a slot's part of a plan; samples are taken where somebody is shown them."""
    return SlotPlan(
        name=slot,
        node=plan.places[slot].node,
        stages=plan.stages_of(slot),
        limits=plan.limits,
        deadline_ns=plan.deadline_ns,
        interval_ns=plan.interval_ns if plan.is_sampled else None,
    )
