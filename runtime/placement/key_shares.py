"""Key groups of replicas: as many as give each its share of a step's rows.

```
slot  has              gets of one more unit     key groups
1     a source: 1      0                         0    reads, and sends all rows
2     nothing          1                         128  aggregates them
```

It costs about as much to read, divide and send the rows of a source as to aggregate them: each is a
unit of work. So a step's units are poured over the slots like water: the fullest stays as low as
possible. This is the rule where a flow does nothing else, and as fast as it can. Elsewhere all
replicas have equal shares, since what a row of a join costs is not known.

Groups have different numbers of rows. Where a sample of keys shows them, the groups of a replica
are those that have its share of rows:

```
rows     ▆▂▂▁▇▁▃▂▅▁▂▁▁▂▁▁     equal shares of two replicas
groups   [ 5 ][   11    ]     and not [  8   ][  8   ]
```

Replicas of a tuned flow own as many groups each: its history has no groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import ceil

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.plan.plan import Channel, Plan, RowBalance, Stage

__all__ = [
    "balanced",
    "balanced_groups",
    "group_weights",
    "key_groups_of",
    "poured",
    "with_groups",
    "with_key_groups",
]

FloatArray = npt.NDArray[np.float64]

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
    own = key_groups_of(plan)
    other = {name for name, counts in groups.items() if name in own and own[name] != counts}
    if not other:
        return plan
    stages = _with_groups(plan.stages, groups)
    channels = tuple(channel for stage in stages for channel in stage.outputs)
    changed = {stage.whole for stage in stages if stage.name in other}
    balances = {step: known for step, known in plan.balances.items() if step not in changed}
    return replace(plan, stages=stages, channels=channels, balances=balances)


def balanced(plan: Plan, key_rows: Mapping[str, FloatArray]) -> Plan:
    """Return a plan whose replicas get their shares of rows, as a sample shows them.

    Args:
        plan: plan whose numbers of key groups are shares of rows, as `place` returns it.
        key_rows: {step: shape (KEY_GROUPS,), rows of a sample in each group of keys}; other steps
            stay as they are.
    """
    if any(stage.is_tuned for stage in plan.stages):
        return plan
    groups: dict[str, tuple[int, ...]] = {}
    balances: dict[str, RowBalance] = {}
    shares, step_of = key_groups_of(plan), {stage.name: stage.whole for stage in plan.stages}
    of_steps = {step_of[name]: own for name, own in shares.items()}
    for step, own in of_steps.items():
        if step in key_rows:
            counts = balanced_groups(own, group_weights(key_rows[step]))
            if counts != own:
                groups |= {name: counts for name in shares if step_of[name] == step}
                balances[step] = RowBalance(round(float(key_rows[step].sum())), own)
    return replace(with_groups(plan, groups), balances=balances)


def balanced_groups(shares: tuple[int, ...], weights: FloatArray) -> tuple[int, ...]:
    """Return numbers of key groups that give replicas their shares of rows.

    A sample may be unlike the rest. So each owns at least half, and at most twice, as many groups
    as its share has; without a share, none. A replica that gets more than its share, as one key has
    that many rows, leaves the others less: they divide that evenly.

    Args:
        shares: share of each replica, in 128th.
        weights: shape (KEY_GROUPS,), the part of the rows in each group; their sum is 1.
    """
    least, most = [-(-share // 2) for share in shares], [2 * share for share in shares]
    before = np.concatenate([[0.0], np.cumsum(weights)])  # weight of the groups before each
    counts: list[int] = []
    for place, share in enumerate(shares):
        start, left = sum(counts), sum(shares[place:])
        wanted = before[start] + (before[-1] - before[start]) * share / left if left else 0.0
        nearest = int(np.abs(before - wanted).argmin()) - start
        rest = KEY_GROUPS - start
        fewest = max(least[place], rest - sum(most[place + 1 :]))
        largest = min(most[place], rest - sum(least[place + 1 :]))
        counts.append(min(max(nearest, fewest), largest))
    return tuple(counts)


def group_weights(rows: FloatArray) -> FloatArray:
    """Return the part of a step's rows in each group of keys.

    A few rows per group differ by chance. So as much of their differences counts as chance does
    not explain: all if their variance is far above that of a Poisson distribution, whose variance
    is its mean.

    Args:
        rows: shape (KEY_GROUPS,), the rows of the sample in each group.
    """
    even, mean, variance = np.full(len(rows), 1 / len(rows)), float(rows.mean()), float(rows.var())
    if mean <= 0 or variance <= mean:
        return even
    real = 1 - mean / variance
    return np.asarray(real * rows / rows.sum() + (1 - real) * even)


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
