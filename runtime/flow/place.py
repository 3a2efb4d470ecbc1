"""Which slot each stage runs in: the simple rule, and the user's own word.

Prediction and search (Mace) come in a later issue and replace `default_slots`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from runtime.errors import FlowError
from runtime.flow.plan import Plan, Stage


def place(
    flow: str,
    stages: Sequence[Stage],
    slots: Sequence[str],
    *,
    placement: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan: every stage in a slot.

    Args:
        flow: the flow's name.
        stages: in topological order.
        slots: names of the slots there are, `node-1` or `node-1/2`, in order.
        placement: {stage: slot or node}, the user's word for some stages, or {"*": slot}.

    Raises:
        FlowError: a stage or slot that is not there.
    """
    chosen = default_slots(stages, slots)
    for stage, slot in (placement or {}).items():
        if stage != "*" and stage not in chosen:
            raise FlowError(_unknown("stage", stage, list(chosen)))
        found = (
            slot if slot in slots else next((s for s in slots if s.startswith(f"{slot}/")), None)
        )
        if found is None:
            raise FlowError(_unknown("node", slot, list(slots)))
        for name in chosen if stage == "*" else [stage]:
            if stage != "*" or name not in (placement or {}):
                chosen[name] = found
    channels = tuple(channel for stage in stages for channel in stage.outputs)
    return Plan(flow, tuple(stages), channels, chosen)


def default_slots(stages: Sequence[Stage], slots: Sequence[str]) -> dict[str, str]:
    """Return {stage: slot}: sources in the first slot, sinks in the last, operators between.

    With four slots or more, operators take the slots between in turn; stateless stages stay
    with what feeds them.
    """
    middle = list(slots[1:-1]) or [slots[-1]]
    chosen: dict[str, str] = {}
    turn = 0
    for stage in stages:
        if stage.kind == "source":
            chosen[stage.name] = slots[0]
        elif stage.kind == "sink":
            chosen[stage.name] = slots[-1]
        elif stage.kind == "stateless":
            chosen[stage.name] = chosen[stage.inputs[0].source]
        else:
            chosen[stage.name] = middle[turn % len(middle)]
            turn += 1
    return chosen


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return (
        f"placement names {what} {name!r}, which is not there{hint} There are: {', '.join(known)}"
    )
