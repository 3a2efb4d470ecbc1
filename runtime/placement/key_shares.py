"""Key groups of replicas: a replica beside a source owns fewer.

```
slot  has              gets of one more unit     key groups
1     a source: 1      0                         0    reads, and sends all rows
2     nothing          1                         128  aggregates them
```

It costs about as much to read, divide and send the rows of a source as to aggregate them: each is a
unit of work. So a step's units are poured over the slots like water: the fullest stays as low as
possible. This is the rule where a flow does nothing else, and as fast as it can. Elsewhere all
replicas own as many groups, since what a row of a join costs is not known. So do those of a tuned
flow: its history has no groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import ceil

from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.plan.plan import Channel, Plan, Stage

__all__ = ["key_groups_of", "poured", "with_groups", "with_key_groups"]

_ROUNDING = 1e-6
"""Group that an inexact sum of shares must not add."""


def with_key_groups(stages: Sequence[Stage], slots: Mapping[str, str]) -> tuple[Stage, ...]:
    """Return the stages, whose channels to replicas know the key groups of each.

    Args:
        stages: stages of a flow, in topological order.
        slots: the slot of each stage, {stage: slot}.
    """
    if not all(stage.is_backlog and _is_light(stage) for stage in stages):
        return tuple(stages)
    if any(stage.is_tuned for stage in stages):
        return tuple(stages)
    by_name = {stage.name: stage for stage in stages}
    parts = Counter(stage.subject.step for stage in stages)
    work = dict.fromkeys(slots.values(), 0.0)  # {slot: units}
    of_steps: dict[str, list[Stage]] = {}
    for stage in stages:
        if stage.kind == "source":
            work[slots[stage.name]] += 1 / parts[stage.subject.step]
        elif stage.is_gated and stage.kind != "sink":
            of_steps.setdefault(stage.subject.step, []).append(stage)
    groups: dict[str, tuple[int, ...]] = {}  # {replica: those of each replica of its step}
    for replicas in of_steps.values():
        units = len(_sources_of(replicas[0], by_name))
        if units == 0:  # its rows are results, which are few
            continue
        places = [slots[stage.name] for stage in replicas]
        shares = poured({slot: work[slot] for slot in places}, units)
        for slot, share in shares.items():
            work[slot] += share
        counts = Counter(places)
        parts_of_all = [shares[slot] / counts[slot] / units for slot in places]
        stops = [
            ceil(KEY_GROUPS * stop - _ROUNDING) for stop in accumulate(parts_of_all, initial=0.0)
        ]  # as `even_groups` rounds
        own = tuple(stop - start for start, stop in pairwise(stops))
        groups |= dict.fromkeys((stage.name for stage in replicas), own)
    return _with_groups(stages, groups)


def key_groups_of(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Return {replica: numbers of key groups of its step}, by its channels."""
    return {
        channel.target: channel.owned.groups
        for channel in plan.channels
        if channel.owned is not None
    }


def with_groups(plan: Plan, groups: Mapping[str, tuple[int, ...]]) -> Plan:
    """Return a plan with other key groups, {replica: those of its step}."""
    stages = _with_groups(plan.stages, groups)
    channels = tuple(channel for stage in stages for channel in stage.outputs)
    return replace(plan, stages=stages, channels=channels)


def poured(work: Mapping[str, float], units: float) -> dict[str, float]:
    """Return shares of slots: the busiest has as little as possible.

    Args:
        work: {slot: units that it has}, at least one slot.
        units: units to be shared.
    """
    level, filled = 0.0, 0.0
    for number, has in enumerate(sorted(work.values()), start=1):
        if number > 1 and level <= has:
            break
        filled += has
        level = (filled + units) / number
    return {slot: max(level - has, 0.0) for slot, has in work.items()}


def _is_light(stage: Stage) -> bool:
    """Whether nothing in a stage is known to cost more than reading a row."""
    if stage.kind in ("source", "sink", "stateless"):
        return True
    users = any(step.traits.runs_users_code for step in stage.chain)
    return stage.step.traits.is_light and not users


def _sources_of(stage: Stage, by_name: Mapping[str, Stage]) -> set[str]:
    """Return the sources whose rows reach a stage; none if results do."""
    sources: set[str] = set()
    for channel in stage.inputs:
        feeder = by_name[channel.source]
        while feeder.kind == "stateless":
            feeder = by_name[feeder.inputs[0].source]
        if feeder.kind == "source":
            sources.add(feeder.subject.step)
    return sources


def _with_groups(
    stages: Sequence[Stage], groups: Mapping[str, tuple[int, ...]]
) -> tuple[Stage, ...]:
    return tuple(
        replace(
            stage,
            inputs=tuple(_owning(channel, groups) for channel in stage.inputs),
            outputs=tuple(_owning(channel, groups) for channel in stage.outputs),
        )
        for stage in stages
    )


def _owning(channel: Channel, groups: Mapping[str, tuple[int, ...]]) -> Channel:
    if channel.owned is None or channel.target not in groups:
        return channel
    return replace(channel, owned=channel.owned._replace(groups=groups[channel.target]))
