"""Paths of arrivals: the sources that tell arrivals, and the steps that use them.

```
buses ─▶ filter ─┐                                     arrivals travel from sources through
                 merge ─▶ counts (closes in time)      steps that pass rows on, and no further
loops ───────────┘
```

Paths are worked out before stages are made. A step that uses arrivals says so in its traits
(`Closes`). Downstream of a join or an aggregate rows are new events, which arrived nowhere. There
windows close by the clock, and no row says where it is from, even if a source feeds the same step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY, ByDeadline
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SourceStep, sources_among
from slackwater.runtime.plan.traits import Role

WORDS_PER_SLIDE = 10
"""Number of times in a slide of its windows that a step hears of arrivals, if no rows come. So a
window closes at most a tenth of a slide too late by the clock."""


@dataclass(frozen=True)
class ArrivalSettings:
    """Settings of a source that tells arrivals.

    Attributes:
        every_ns: how far arrivals may go on, in arrival time, before the source tells them. None:
            it tells nothing, and its rows only say where they are from.
    """

    every_ns: int | None


def _way(steps: Mapping[str, Step], inputs: tuple[str, ...]) -> list[Step]:
    """Return the steps whose rows reach these inputs as the events that they are."""
    names = list(dict.fromkeys(inputs))
    for name in names:  # grows while we go
        if _passes_on(steps[name]):
            names += [feeder for feeder in steps[name].inputs if feeder not in names]
    return [steps[name] for name in names]


def _passes_on(step: Step) -> bool:
    return step.traits.passes_on and step.traits.role is not Role.SIDE_ROWS


def _has_arrivals(step: Step) -> bool:
    return isinstance(step, SourceStep) or _passes_on(step)


def goes_by_clock(steps: Mapping[str, Step], inputs: tuple[str, ...]) -> list[str]:
    """Return the steps for which arrivals of these inputs are unknown; empty: they are known.

    Returns:
        The names of sources without an arrival column, and of steps whose rows are new events.
    """
    return [
        step.name
        for step in _way(steps, inputs)
        if (step.source.arrival is None if isinstance(step, SourceStep) else not _passes_on(step))
    ]


def sources_upstream(steps: Mapping[str, Step], inputs: Iterable[str]) -> list[SourceStep]:
    """Return the sources upstream of these inputs, through all steps."""
    names = list(dict.fromkeys(inputs))
    for name in names:  # grows while we go
        names += [feeder for feeder in steps[name].inputs if feeder not in names]
    return sources_among(steps[name] for name in names)


def sources_of(steps: Mapping[str, Step], inputs: tuple[str, ...]) -> list[SourceStep]:
    """Return the sources whose rows reach these inputs as they are."""
    return sources_among(_way(steps, inputs))


@dataclass(frozen=True)
class ArrivalWays:
    """Paths of arrivals in a flow.

    Attributes:
        takers: the steps into which all channels carry arrivals.
        sources: {source: how often it tells arrivals}.
        uneven: the takers that some rows reach through a gate that waits for event time; such a
            gate may wait for rows that reach the taker directly.
    """

    takers: frozenset[str]
    sources: Mapping[str, ArrivalSettings]
    uneven: frozenset[str]

    @classmethod
    def of(cls, steps: Mapping[str, Step]) -> ArrivalWays:
        """Return the paths of arrivals among a flow's steps."""
        takers: set[str] = set()
        sources: dict[str, ArrivalSettings] = {}
        for step in steps.values():
            close = step.traits.close
            way = _way(steps, step.inputs)
            if close is None or not all(map(_has_arrivals, way)):
                continue
            takers.add(step.name)
            for feeder in way:
                if isinstance(feeder, SourceStep):
                    every_ns = None if close.by_clock else close.every_ns
                    sources[feeder.name] = _more_often(sources.get(feeder.name), every_ns)
                elif _passes_on(feeder):
                    takers.add(feeder.name)
        uneven = {
            name
            for name in takers
            if any(
                feeder.traits.has_gate
                and _passes_on(feeder)
                and feeder.traits.release != ON_ARRIVAL
                for feeder in _way(steps, steps[name].inputs)
            )
        }
        return cls(frozenset(takers), sources, frozenset(uneven))


def _more_often(known: ArrivalSettings | None, every_ns: int | None) -> ArrivalSettings:
    both = [ns for ns in (every_ns, known.every_ns if known else None) if ns is not None]
    return ArrivalSettings(min(both, default=None))


def opened(steps: Mapping[str, Step]) -> dict[str, Step]:
    """Return the steps with gates open that lead only to windows that close in time.

    A merge before such windows would wait for its slowest input, and the windows with it. A merge
    keeps a slack that the user wrote. It also keeps its gate if it feeds other steps, which need
    its order.
    """
    changed = dict(steps)
    for step in reversed(list(steps.values())):
        if not step.traits.has_gate or not step.traits.passes_on or step.traits.reach_ns:
            continue
        release = step.traits.release
        if release != READY_ONLY and not isinstance(release, ByDeadline):
            continue
        if _leads_only_there(step, changed):
            own: dict[str, Any] = {"release": ON_ARRIVAL}
            changed[step.name] = replace(step, **own)
    return changed


def _leads_only_there(step: Step, steps: Mapping[str, Step]) -> bool:
    """Whether a step's rows reach only steps that close in time."""
    followers = [other for other in steps.values() if step.name in other.inputs]
    return bool(followers) and all(
        follower.traits.close is not None
        or (
            _passes_on(follower)
            and (not follower.traits.has_gate or follower.traits.release == ON_ARRIVAL)
            and _leads_only_there(follower, steps)
        )
        for follower in followers
    )
