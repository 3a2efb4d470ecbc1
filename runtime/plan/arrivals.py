"""Who goes by arrivals, and who tells them of these: worked out before stages are made.

```
buses ─▶ filter ─┐                                     what is told goes from sources through
                 merge ─▶ counts (closes in time)      steps that pass rows on, and no further
loops ───────────┘
```

A step that uses arrivals says so in its traits (`Closes`). Downstream of a join or an aggregate
rows are new events, which arrived nowhere. There windows close by the clock, and no row says where
it is from, not even of those that come from a source as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY, ByDeadline
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.plan.traits import Role

WORDS_PER_SLIDE = 10
"""So often in a slide of its windows a step is told how far arrivals have come, if no rows come: a
tenth of a slide is what a window may then close too late by the clock."""


@dataclass(frozen=True)
class ToldArrivals:
    """What a source tells of arrivals.

    Attributes:
        every_ns: in arrival time; so far they may go on without a word. None: it tells nothing,
            and its rows only say where they are from.
    """

    every_ns: int | None


def _way(steps: Mapping[str, Step], inputs: tuple[str, ...]) -> list[Step]:
    """Return the steps whose rows come to these inputs as the events that they are."""
    names = list(dict.fromkeys(inputs))
    for name in names:  # grows while we go
        if _passes_on(steps[name]):
            names += [one for one in steps[name].inputs if one not in names]
    return [steps[name] for name in names]


def _passes_on(step: Step) -> bool:
    return step.traits.passes_on and step.traits.role is not Role.LATE_ROWS


def _has_arrivals(step: Step) -> bool:
    """Whether rows leave a step with the arrivals that they came with, or with their first."""
    return isinstance(step, SourceStep) or _passes_on(step)


def goes_by_clock(steps: Mapping[str, Step], inputs: tuple[str, ...]) -> list[str]:
    """Return why nobody can tell of the arrivals of these inputs; empty: they are told.

    Returns:
        The names of sources without an arrival column, and of steps whose rows are new events.
    """
    return [
        step.name
        for step in _way(steps, inputs)
        if (step.source.arrival is None if isinstance(step, SourceStep) else not _passes_on(step))
    ]


def sources_upstream(steps: Mapping[str, Step], inputs: Iterable[str]) -> list[SourceStep]:
    """Return the sources upstream of these inputs, whatever their rows have become."""
    names = list(dict.fromkeys(inputs))
    for name in names:  # grows while we go
        names += [one for one in steps[name].inputs if one not in names]
    return [step for name in names if isinstance(step := steps[name], SourceStep)]


def sources_of(steps: Mapping[str, Step], inputs: tuple[str, ...]) -> list[SourceStep]:
    """Return the sources whose rows come to these inputs as they are."""
    return [step for step in _way(steps, inputs) if isinstance(step, SourceStep)]


@dataclass(frozen=True)
class ArrivalWays:
    """Where arrivals travel in a flow.

    Attributes:
        takers: the steps into which all channels carry them.
        sources: {source: what it tells}.
        uneven: of the takers those that some rows reach through a gate which waits for event time,
            maybe a gate that waits for what comes here straight.
    """

    takers: frozenset[str]
    sources: Mapping[str, ToldArrivals]
    uneven: frozenset[str]

    @classmethod
    def of(cls, steps: Mapping[str, Step]) -> ArrivalWays:
        """Return those of a flow's steps."""
        takers: set[str] = set()
        sources: dict[str, ToldArrivals] = {}
        for step in steps.values():
            close = step.traits.close
            way = _way(steps, step.inputs)
            if close is None or not all(map(_has_arrivals, way)):
                continue
            takers.add(step.name)
            for one in way:
                if isinstance(one, SourceStep):
                    every_ns = None if close.by_clock else close.every_ns
                    sources[one.name] = _more_often(sources.get(one.name), every_ns)
                elif _passes_on(one):
                    takers.add(one.name)
        uneven = {
            name
            for name in takers
            if any(
                isinstance(one, GatedStep) and _passes_on(one) and one.traits.release != ON_ARRIVAL
                for one in _way(steps, steps[name].inputs)
            )
        }
        return cls(frozenset(takers), sources, frozenset(uneven))


def _more_often(known: ToldArrivals | None, every_ns: int | None) -> ToldArrivals:
    both = [ns for ns in (every_ns, known.every_ns if known else None) if ns is not None]
    return ToldArrivals(min(both, default=None))


def opened(steps: Mapping[str, Step]) -> dict[str, Step]:
    """Return the steps with the gates open that only lead to what closes in time.

    A merge in front of it would wait for its slowest input, and windows with it. One whose slack
    the user wrote keeps to it; so does one that feeds others, too: they count on its order.
    """
    found = dict(steps)
    for step in reversed(list(steps.values())):
        if not isinstance(step, GatedStep) or not step.traits.passes_on or step.traits.reach_ns:
            continue
        release = step.traits.release
        if release != READY_ONLY and not isinstance(release, ByDeadline):
            continue
        if _leads_only_there(step, found):
            own: dict[str, Any] = {"release": ON_ARRIVAL}
            found[step.name] = replace(step, **own)
    return found


def _leads_only_there(step: Step, steps: Mapping[str, Step]) -> bool:
    """Whether all that a step feeds closes in time, or passes rows on to what does."""
    behind = [one for one in steps.values() if step.name in one.inputs]
    return bool(behind) and all(
        one.traits.close is not None
        or (
            _passes_on(one)
            and (not isinstance(one, GatedStep) or one.traits.release == ON_ARRIVAL)
            and _leads_only_there(one, steps)
        )
        for one in behind
    )
