"""Snapshots of slots, put together for other slots: stages have moved.

```
node-1 {a}  node-2 {pairs, out}  ──▶  node-1 {a, pairs}  node-2 {out}
            channels a→pairs, pairs→out: the sender's counts and credit go where the source goes,
            the receiver's counts and what it owes where the target goes
```

Pure: what was on its way between two of these slots has arrived before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.plan.former_names import SAME_NAMES, FormerNames
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.relocation import Relocation

__all__ = [
    "bytes_of",
    "rearranged",
    "rearranged_results",
    "results_of_sinks",
    "state_of_stages",
    "values_of",
]

_SENDERS = ("rows_sent", "messages", "promises", "bytes_sent")
_RECEIVERS = ("rows_received", "link_ns", "least_link_ns")


def rearranged(
    snapshots: Mapping[str, Mapping[str, Any]], relocation: Relocation
) -> dict[str, dict[str, Any]]:
    """Return {slot: its snapshot}, of those that have stages in the new plan.

    Args:
        snapshots: {slot: `Slot.snapshot` of the stages that leave it}, of the slots that hold
            still and had stages in the old plan.
        relocation: relocation from one plan to another.
    """
    old, new = relocation.old, relocation.new
    made: dict[str, dict[str, Any]] = {}
    for slot in relocation.slots:
        was_in = {s.name: snapshots[old.slots[s.name]] for s in new.stages_of(slot)}
        if was_in:
            arriving = [name for name in was_in if old.slots[name] != slot]
            made[slot] = state_of_stages(new.stages_of(slot), was_in, arriving)
    return made


def state_of_stages(
    stages: Sequence[Stage],
    was_in: Mapping[str, Mapping[str, Any]],
    arriving: Sequence[str],
    names: FormerNames = SAME_NAMES,
) -> dict[str, Any]:
    """Return the snapshot of a slot, put together of those of its stages' former slots.

    Args:
        stages: stages of the slot, at least one.
        was_in: {stage: snapshot of its former slot}.
        arriving: stages whose own state is in it; the others go on as they are.
        names: names in the snapshots.
    """
    ins = {c.name: was_in[c.target] for stage in stages for c in stage.inputs}
    outs = {c.name: was_in[c.source] for stage in stages for c in stage.outputs}
    was = next(iter(was_in.values()))
    return {
        "version": was["version"],
        "stream": _stream(arriving, was_in, ins, outs, names),
        "measures": {
            "stages": {
                name: was_in[name]["measures"]["stages"][names.then(name)] for name in arriving
            },
            "channels": {
                name: _counts(names.then(name), outs.get(name), ins.get(name))
                for name in dict.fromkeys([*ins, *outs])
            },
            "slice_sizes": _own("measures", "slice_sizes", was_in, names),
            "idle": was["measures"]["idle"],
        },
    }


def rearranged_results(
    snapshots: Mapping[str, Mapping[str, Any]], relocation: Relocation
) -> dict[str, dict[str, Any]]:
    """Return the same of the states of `SlotResults`: each sink's goes where the sink goes."""
    old, new = relocation.old, relocation.new
    results: dict[str, dict[str, Any]] = {}
    for slot in relocation.slots:
        sinks = [stage.name for stage in new.stages_of(slot) if stage.kind == "sink"]
        results[slot] = results_of_sinks({sink: snapshots[old.slots[sink]] for sink in sinks})
    return results


def results_of_sinks(
    was_in: Mapping[str, Mapping[str, Any]], names: FormerNames = SAME_NAMES
) -> dict[str, Any]:
    """Return the state of a slot's `SlotResults`, put together of its sinks' former slots.

    Args:
        was_in: {sink: state of its former slot}.
        names: names in these states.
    """
    fields = ("meters", "open", "parts", "committed", "earlier", "held")
    return {field: values_of(was_in, field, names) for field in fields}


def values_of(
    was_in: Mapping[str, Mapping[str, Any]], field: str, names: FormerNames = SAME_NAMES
) -> dict[str, Any]:
    """Return a field that is by stage, channel or sink, of those that have it.

    Args:
        was_in: {stage, channel or sink: state that it was in}.
        field: name of the field.
        names: names in these states.
    """
    return {
        name: state[field][then]
        for name, state in was_in.items()
        if (then := names.then(name)) in state[field]
    }


def bytes_of(plain: Any) -> int:
    """Return about how much there is to carry of plain values."""
    match plain:
        case np.ndarray() | pa.Array():
            return int(plain.nbytes)
        case str() | bytes():
            return len(plain)
        case dict():
            return sum(bytes_of(key) + bytes_of(own) for key, own in plain.items())
        case list() | tuple():
            return sum(map(bytes_of, plain))
    return 8


_Snapshots = Mapping[str, Mapping[str, Any]]
"""{stage or channel: the snapshot of the slot that it was in}."""


def _own(part: str, field: str, was_in: _Snapshots, names: FormerNames) -> dict[str, Any]:
    """Return {stage or channel: value of a field in its snapshot's part}."""
    return values_of({name: state[part] for name, state in was_in.items()}, field, names)


def _stream(
    arriving: Sequence[str],
    was_in: _Snapshots,
    ins: _Snapshots,
    outs: _Snapshots,
    names: FormerNames,
) -> dict[str, Any]:
    """Return what the stages and channels of one slot need to go on."""
    return {
        "stages": _own("stream", "stages", {name: was_in[name] for name in arriving}, names),
        "sent": _own("stream", "sent", outs, names),
        "received": _own("stream", "received", ins, names),
        "credit": _own("stream", "credit", outs, names),
        "owed": _own("stream", "owed", ins, names),
        "granted": _own("stream", "granted", ins, names),
        "credited": _own("stream", "credited", outs, names),
        "ended": [n for n, state in ins.items() if names.then(n) in state["stream"]["ended"]],
        "marked": max(state["stream"]["marked"] for state in was_in.values()),
        "newest": {
            f"{subject.partition(' ')[0]} {name}": number
            for name, state in was_in.items()
            for subject, number in state["stream"]["newest"].items()
            if subject.partition(" ")[2] == names.then(name)
        },
        "turns": _own("stream", "turns", was_in, names),
        "looks": next(iter(was_in.values()))["stream"]["looks"],
    }


def _counts(
    name: str, sender: Mapping[str, Any] | None, receiver: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the counts of a channel in the slot of its source or target."""
    known: dict[str, Any] = {}
    for state, fields in ((sender, _SENDERS), (receiver, _RECEIVERS)):
        if state is not None:
            counted = state["measures"]["channels"][name]
            known |= {field: counted[field] for field in fields}
    return known
