"""Placement of a plan as text, for `explain`: slots, and why stages share them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.nearest import listed
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import shown

__all__ = ["placement_lines"]


_TEXTS = {
    "placement": "placement= says so",
    "search": "so the search found the least latency",
}


def placement_lines(plan: Plan) -> Iterator[str]:
    """Yield a line for each stage: its slot, earlier stages in it, and why.

    `  jams  node-1/2  with congestion: stays with what feeds it`
    """
    name_width = max(len(stage.name) for stage in plan.stages)
    slot_width = max(len(slot) for slot in plan.slot_names)
    before: dict[str, list[Stage]] = {}
    for stage in plan.stages:
        slot = plan.slots[stage.name]
        others = before.setdefault(slot, [])
        line = f"  {stage.name:<{name_width}}  {slot:<{slot_width}}"
        if others:
            names = listed([other.name for other in others])
            line += f"  with {names}: {_reason(plan, stage, others)}"
        yield line.rstrip() + _groups_text(plan, stage)
        others.append(stage)


def _groups_text(plan: Plan, stage: Stage) -> str:
    """Return how many keys a replica owns, and why, if not all own as many."""
    of_step = {c.owned.groups for c in stage.inputs if c.owned is not None}
    if not of_step or max(of := of_step.pop()) - min(of) <= 1:
        return ""
    balance = plan.balances.get(stage.whole)
    shares = of if balance is None else balance.shares
    own = plan.key_groups[stage.name]
    text = f"; owns {own} of {KEY_GROUPS} key groups" if own else "; owns no keys"
    here = plan.stages_of(plan.slots[stage.name])
    if max(shares) - min(shares) > 1 and any(other.kind == "source" for other in here):
        text += ", as its slot reads a source"
    if own and balance is not None:
        text += f", by the keys of {count_of(balance.rows, 'row')}"
    return text


def _reason(plan: Plan, stage: Stage, others: Sequence[Stage]) -> str:
    by = {other.name: plan.placed_by.get(other.name) for other in (stage, *others)}
    if (text := _TEXTS.get(by[stage.name] or "rule")) is not None:
        return text
    if by[stage.name] == "feed":
        feed = stage.inputs[0].source
        if feed in by:
            return "stays with what feeds it"
        return f"stays where {shown(feed)} would be, which placement= has moved"
    moved = [other.name for other in others if by[other.name] == "placement"]
    if moved and not any(by[other.name] == "rule" for other in others):
        return f"placement= has put {listed(moved)} here"
    spread = [other for other in plan.stages if plan.placed_by.get(other.name) != "feed"]
    sources = sum(other.kind == "source" for other in spread)
    slots = count_of(plan.offered, "slot")
    if len(spread) <= plan.offered:  # sources share the slots except the one left to operators
        return f"{sources} sources leave the last of {slots} to the operators"
    return f"{len(spread)} sources and operators for {slots}"
