"""Check whether any slack can meet a deadline, before the flow runs.

It counts certain times only: until a source looks, and the least time of each hop between slots.
The cost of work is for Mace ([mace] §VI-C): a deadline that passes here may still be broken, and
the report says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.runtime.model import format_ns

if TYPE_CHECKING:
    from slackwater.runtime.plan.plan import Plan

HOP_NS = 200_000
"""Least time of a message between slots: 0.2 ms, measured with batches of ten rows."""


def deadline_refusal(plan: Plan, *, hop_ns: int = HOP_NS) -> str | None:
    """Return why no slack can meet a deadline; None if one may.

    Args:
        plan: placed, with its limits; without a deadline the result is None.
        hop_ns: least time of a message between two slots.
    """
    if plan.deadline_ns is None:
        return None
    slots, source_gap_ns = plan.slots, plan.limits.source_gap_ns
    hops: dict[str, int] = {}  # {stage: most hops on a path to it}
    for stage in plan.stages:
        ways = (
            hops[target.source] + (slots[target.source] != slots[target.target])
            for target in stage.inputs
        )
        hops[stage.name] = max(ways, default=0)
    most = max(hops.values(), default=0)
    least_ns = source_gap_ns + most * hop_ns
    if plan.deadline_ns >= least_ns:
        return None
    return (
        f"dataflow {plan.flow!r} cannot keep its deadline of {format_ns(plan.deadline_ns)}, "
        f"whatever the slack: an event takes at least {format_ns(least_ns)} here, "
        f"{format_ns(source_gap_ns)} until its source looks (Limits.source_gap_ns), "
        f"{_hops(most, hop_ns=hop_ns)}, even if nothing waits; ask for more"
        f"{', or place the stages together' if most else ''}"
    )


def _hops(most: int, *, hop_ns: int) -> str:
    if most == 0:
        return "and no hop between slots"
    hops = "the hop" if most == 1 else f"each of {most} hops"
    return f"and {format_ns(hop_ns)} for {hops} between slots"
