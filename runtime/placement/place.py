"""Placement of stages in slots: the simple rule, and the user's `placement=`.

```
two nodes of two cores     node-1/1  a               sources: the first core of each node, then the
a, b, pairs (2 replicas),  node-1/2  pairs.1, out    second, and so on, the last slot left out;
out                        node-2/1  b, pairs.2      operators: from the last node backwards,
                           node-2/2  pairs.gate      in the slots with the fewest stages
```

Where rates are known, a search for the least latency replaces the rule: `slackwater/flow_host.py`.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.placement.key_shares import with_key_groups
from slackwater.runtime.plan.parts import parts_named
from slackwater.runtime.plan.plan import PlacedBy, Plan, Stage
from slackwater.runtime.plan.slots import SlotPlace, places_by_name
from slackwater.runtime.plan.steps import SinkStep

ALL = "*"
"""Key of a placement for all stages that it does not name."""


def place(
    flow: str,
    stages: Sequence[Stage],
    slots: Sequence[SlotPlace | str],
    *,
    placement: Mapping[str, str] | None = None,
    deadline_ns: int | None = None,
    free: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan: every stage in a slot.

    Args:
        flow: name of the flow.
        stages: stages of the flow, in topological order.
        slots: all slots, node by node, at least one; a plain name is a node with one core.
        placement: {stage: slot or node} for some stages, or {"*": slot or node}. The name of a step
            with replicas means its gate and all replicas. On a node of several cores the rule
            chooses among its slots.
        deadline_ns: deadline of the flow.
        free: {node: free CPUs}. Slots beyond that are not used, unless `placement` names them or no
            CPU is free at all. None if all are free.

    Raises:
        FlowError: a stage, slot or node does not exist.
        SettingError: there is no slot, or two have one name.
    """
    there = SlotsThere(list(places_by_name(slots).values()), free)
    wishes = by_stage(placement or {}, stages)
    everything = there.named(wishes.pop(ALL)) if ALL in wishes else there.usable
    chosen = default_slots(stages, everything)
    is_stated = len(everything) == 1 and ALL in (placement or {})
    placed_by: dict[str, PlacedBy] = {
        stage.name: "placement" if is_stated else "feed" if _stays(stage) else "rule"
        for stage in stages
    }
    own = {stage: there.named(wish) for stage, wish in wishes.items()}
    for stage in stages:
        if stage.name in own:
            chosen[stage.name] = _of_these(stage, own[stage.name], chosen, stages)
            placed_by[stage.name] = "placement"
        elif isinstance(stage.step, SinkStep) and stage.step.writer is not None:
            chosen[stage.name] = chosen[stage.inputs[0].source]  # beside its replica
    used = {slot.name: slot for slot in chosen.values()}
    slot_of = {stage: slot.name for stage, slot in chosen.items()}
    placed = with_key_groups(stages, slot_of)
    return Plan(
        flow,
        placed,
        tuple(channel for stage in placed for channel in stage.outputs),
        slot_of,
        used,
        deadline_ns,
        placed_by=placed_by,
        offered=len(everything),
    )


def open_slots(
    slots: Sequence[SlotPlace | str],
    *,
    placement: Mapping[str, str] | None = None,
    free: Mapping[str, int] | None = None,
) -> list[SlotPlace]:
    """Return the slots that are open to a stage that `placement` does not name.

    Args:
        slots: all slots of the cluster.
        placement: placement as of `place`; with {"*": …} only the slots of "*" are open.
        free: free CPUs as of `place`.

    Raises:
        FlowError: "*" names a slot or node that does not exist.
    """
    there = SlotsThere(list(places_by_name(slots).values()), free)
    return list(there.named(placement[ALL]) if placement and ALL in placement else there.usable)


def default_slots(stages: Sequence[Stage], slots: Sequence[SlotPlace]) -> dict[str, SlotPlace]:
    """Return {stage: slot}: work is spread, and events rarely change slots.

    Each source, operator, gate and replica takes the slot with the fewest stages of its kind; among
    these the slot with the fewest of both kinds. Among these, sources take the first slot from the
    first node on, operators the first from the last node backwards, nodes before cores. Sources
    leave the last slot to the operators, unless the stages of one step take all; stateless stages
    and sinks stay with the stage that feeds them. With two sources, a join and a sink on three
    nodes of one core, each source has its own node, and an event goes from slot to slot once.
    """
    number = {node: n for n, node in enumerate(dict.fromkeys(slot.node for slot in slots))}
    forward = sorted(slots, key=lambda slot: (slot.core, number[slot.node]))
    backward = sorted(slots, key=lambda slot: (slot.core, -number[slot.node]))
    parts = Counter(stage.subject.step for stage in stages if not stage.shares_gate)
    fills_all = max(parts.values()) >= len(forward)
    of_sources = forward if fills_all else forward[:-1] or forward
    chosen: dict[str, SlotPlace] = {}
    sources: Counter[str] = Counter()  # {slot: number of sources}
    operators: Counter[str] = Counter()
    for stage in stages:
        if _stays(stage):
            chosen[stage.name] = chosen[stage.inputs[0].source]
        elif stage.kind == "source":
            slot = min(of_sources, key=_fewest(sources, operators))
            chosen[stage.name] = slot
            sources[slot.name] += 1
        else:
            slot = min(backward, key=_fewest(operators, sources))
            chosen[stage.name] = slot
            operators[slot.name] += 1
    return chosen


def _stays(stage: Stage) -> bool:
    return stage.kind in ("sink", "stateless")


def _fewest(
    own: Mapping[str, int], others: Mapping[str, int]
) -> Callable[[SlotPlace], tuple[int, int]]:
    return lambda slot: (own[slot.name], own[slot.name] + others[slot.name])


def _of_these(
    stage: Stage,
    slots: Sequence[SlotPlace],
    chosen: Mapping[str, SlotPlace],
    stages: Sequence[Stage],
) -> SlotPlace:
    """Return the slot that a stage takes among those that its placement leaves open."""
    feeding = [chosen[stage.inputs[0].source]] if _stays(stage) else []
    for here in (*feeding, chosen[stage.name]):
        if here in slots:
            return here
    counts = Counter(
        chosen[other.name].name for other in stages if other is not stage and not _stays(other)
    )
    return min(slots, key=lambda slot: counts[slot.name])


class SlotsThere:
    """Slots of a cluster, and those with a free CPU.

    Attributes:
        usable: slots that the rule may use, at least one.
    """

    def __init__(self, slots: Sequence[SlotPlace], free: Mapping[str, int] | None) -> None:
        if not slots:
            raise SettingError(
                "there is no slot to place stages in, as no node has a free CPU; end other jobs, "
                "or add a node"
            )
        self._slots, self._free = slots, free
        self.usable = self._with_room(slots)

    def _with_room(self, slots: Sequence[SlotPlace]) -> Sequence[SlotPlace]:
        free = self._free
        if free is None:
            return slots
        # Without a free CPU the job waits a moment for one, or is refused with the node's name.
        return [slot for slot in slots if slot.core <= free.get(slot.node, 0)] or slots

    def named(self, wish: str) -> Sequence[SlotPlace]:
        """Return the slot of this name, or the slots of the node of this name.

        Raises:
            FlowError: neither exists.
        """
        own = [slot for slot in self._slots if slot.name == wish]
        if own:
            return own
        on_node = [slot for slot in self._slots if slot.node == wish]
        if on_node:
            return self._with_room(on_node)
        of_node: dict[str, list[str]] = {}
        for slot in self._slots:
            of_node.setdefault(slot.node, []).append(slot.name)
        names = list(of_node)
        listed = [
            own[0] if len(own) == 1 else f"{node} ({own[0]} to {own[-1]})"
            for node, own in of_node.items()
        ]
        what = "node" if len(names) == len(self._slots) else "slot or node"
        raise FlowError(
            _unknown(what, wish, [*names, *(slot.name for slot in self._slots)], listed)
        )


def by_stage(placement: Mapping[str, str], stages: Sequence[Stage]) -> dict[str, str]:
    """Return a placement by stage names; the name of a part prevails over its step.

    Raises:
        FlowError: a name is neither a stage nor a step with parts.
    """
    names = [stage.name for stage in stages]
    placed: dict[str, str] = {}
    for name, wish in placement.items():
        if name == ALL:
            placed[name] = wish
            continue
        parts = [stage.name for stage in parts_named(name, stages)]
        if not parts:
            steps = dict.fromkeys(stage.subject.step for stage in stages)
            raise FlowError(_unknown("stage", name, [*names, *steps], names))
        placed |= {part: placement.get(part, wish) for part in parts}
    return placed


def _unknown(what: str, name: str, known: Sequence[str], listed: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return (
        f"placement names {what} {name!r}, which is not there{hint} There are: {', '.join(listed)}"
    )
