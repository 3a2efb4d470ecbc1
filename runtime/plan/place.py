"""Which slot each stage runs in: the simple rule, and the user's own word.

Prediction and search (Mace) come in a later issue and replace `default_slots`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence

from runtime.errors import FlowError
from runtime.plan.plan import Plan, Stage


def place(
    flow: str,
    stages: Sequence[Stage],
    slots: Sequence[str],
    *,
    placement: Mapping[str, str] | None = None,
    deadline_ns: int | None = None,
) -> Plan:
    """Return the plan: every stage in a slot.

    Args:
        flow: the flow's name.
        stages: in topological order.
        slots: names of the slots there are, `node-1` or `node-1/2`, in order.
        placement: {stage: slot or node}, the user's word for some stages, or {"*": slot}. The
            name of a step with replicas means its gate and all of them.
        deadline_ns: of the flow.

    Raises:
        FlowError: a stage or slot that is not there.
    """
    chosen = default_slots(stages, slots)
    said = _by_stage(placement or {}, chosen)
    for stage, slot in said.items():
        if stage != "*" and stage not in chosen:
            raise FlowError(_unknown("stage", stage, list(chosen)))
        found = (
            slot if slot in slots else next((s for s in slots if s.startswith(f"{slot}/")), None)
        )
        if found is None:
            raise FlowError(_unknown("node", slot, list(slots)))
        for name in chosen if stage == "*" else [stage]:
            if stage != "*" or name not in said:
                chosen[name] = found
    channels = tuple(channel for stage in stages for channel in stage.outputs)
    return Plan(flow, tuple(stages), channels, chosen, deadline_ns)


def _by_stage(placement: Mapping[str, str], stages: Collection[str]) -> dict[str, str]:
    """Return a placement that names stages only; what is said of one part of a step prevails."""
    found: dict[str, str] = {}
    for name, slot in placement.items():
        if name not in stages and f"{name}.gate" in stages:
            number, parts = 1, [f"{name}.gate"]
            while (replica := f"{name}.{number}") in stages:
                parts.append(replica)
                number += 1
            found |= {part: placement.get(part, slot) for part in parts}
        else:
            found[name] = slot
    return found


def default_slots(stages: Sequence[Stage], slots: Sequence[str]) -> dict[str, str]:
    """Return {stage: slot}: work is spread, and no event changes slots more often than it must.

    Sources take the slots from the first on in turn, operators from the last on backwards;
    stateless stages and sinks stay with what feeds them. With two sources, a join and a sink
    on three slots each source has one to itself, and an event goes from slot to slot once.
    """
    last = len(slots) - 1
    chosen: dict[str, str] = {}
    sources = operators = 0
    for stage in stages:
        if stage.kind == "source":
            chosen[stage.name] = slots[sources % max(last, 1)]
            sources += 1
        elif stage.kind in ("sink", "stateless"):
            chosen[stage.name] = chosen[stage.inputs[0].source]
        else:
            chosen[stage.name] = slots[last - operators % (last + 1)]
            operators += 1
    return chosen


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return (
        f"placement names {what} {name!r}, which is not there{hint} There are: {', '.join(known)}"
    )
