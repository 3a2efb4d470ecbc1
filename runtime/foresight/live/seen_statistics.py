"""What rows have cost and brought of late, beside what was predicted with.

```
predicted   0.2 ms a row, 0.95 out for a row in
of late     0.3 ms a row, 0.95                      ─▶   factors 1.5 and 1.0
```

Factors carry over to curves as they do to lines. Source: [mace] §III-B, statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.curves import ScaledCurve
from slackwater.runtime.foresight.query_graph import (
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.measure.samples import StageSample

__all__ = ["WINDOW_S", "Seen", "SeenStatistics", "as_seen"]

WINDOW_S = 10.0
"""What counts as "of late"; of a stage with windows at least two of them."""
LONG_S = 60.0
"""The same for results, of which some come now and then."""
BUSY = 0.5
"""What rows cost is taken of intervals in which their slot was so busy: slices of an idle one are
short, and a row in them costs more than one of a backlog will. That is a bound: where it is lower
than what was predicted with, it counts."""
LEAST_ROWS, LEAST_BUSY_S = 100, 0.2
"""Of a stage: what fewer rows have cost in less time is left to chance."""

Interval = Mapping[str, StageSample]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of a stage by now.

    Attributes:
        cores: CPU seconds a second that it needs for what comes to it.
        cost: what a row costs over what was predicted with; None: too little was seen, or nothing
            was predicted.
        results: how many come of a row, likewise.
        cost_s: what a row has cost; 0: too little was seen.
        was_cost_s: what was predicted with.
        selectivity: rows out for a row in.
        was_selectivity: as it was predicted with.
    """

    cores: float = 0.0
    cost: float | None = None
    results: float | None = None
    cost_s: float = 0.0
    was_cost_s: float = 0.0
    selectivity: float = 0.0
    was_selectivity: float = 0.0


class SeenStatistics:
    """The last intervals of every stage; samples come in any order, and some never.

    Args:
        graph: as it was predicted with.
        slots: {stage: its slot}.
        interval_s: how long an interval is.
        windows_s: {stage: how long rows stay in its state}.
    """

    def __init__(
        self,
        graph: QueryGraph,
        slots: Mapping[str, str],
        *,
        interval_s: float,
        windows_s: Mapping[str, float],
    ) -> None:
        self._graph, self._slots, self._interval_s = graph, slots, interval_s
        self._shares: Mapping[str, float] = {}
        self._windows_s = windows_s
        longest_s = max([LONG_S, *(2 * one for one in windows_s.values())])
        self._keeps = self._intervals(longest_s)
        self._sources = {arrivals_of(name): name for name in graph.names}
        self._seen: dict[int, dict[str, StageSample]] = {}

    def moved(self, shares: Mapping[str, float]) -> None:
        """Take note of the stages whose rows may wait for a link.

        Args:
            shares: {stage: how many of the rows that its inputs put out come to it}, of those: what
                came there is not what was put out meanwhile.
        """
        self._shares = shares

    def add(self, sample: StageSample) -> None:
        """Take what a stage did in an interval."""
        self._seen.setdefault(sample.second, {})[sample.stage] = sample
        while len(self._seen) > self._keeps:
            del self._seen[min(self._seen)]

    def seen(self, stage: str) -> Seen:
        """Return what is known of a stage."""
        (operator,) = (one for one in self._graph.operators if one.name == stage)
        window_s = 2 * self._windows_s.get(stage, 0.0)
        late = self._whole(operator, max(WINDOW_S, window_s))
        found = Seen(cores=self._needed_s(operator, late) / max(len(late) * self._interval_s, 1e-9))
        busy = [one for one in late if self._is_busy(self._slots[stage], one)]
        with_cost = self._with_cost(operator, found, busy)
        if not with_cost.cost_s:
            # A row costs an idle slot more than it will in a backlog: a bound, if it is lower.
            idle = self._with_cost(operator, found, late)
            if idle.cost is not None and idle.cost < 1:
                with_cost = idle
        return self._with_results(operator, with_cost, max(LONG_S, window_s))

    def _with_cost(self, operator: QueryOperator, found: Seen, seen: Sequence[Interval]) -> Seen:
        """Return what is known of a stage with what rows cost in these intervals, if enough did."""
        worked, busy_s = _worked(operator.name, seen), _busy_s(operator.name, seen)
        if worked < LEAST_ROWS and busy_s < LEAST_BUSY_S:
            return found
        needed_s = self._needed_s(operator, seen)
        planned_s = float(operator.load(self._fed(operator, seen), self._interval_s).sum())
        return replace(
            found,
            cost=needed_s / planned_s if planned_s > 0 else None,
            cost_s=busy_s / max(worked, 1),
            was_cost_s=planned_s / max(self._came(operator, seen), 1),
        )

    def _with_results(self, operator: QueryOperator, found: Seen, long_s: float) -> Seen:
        long = self._whole(operator, long_s)
        worked, came = _worked(operator.name, long), self._came(operator, long)
        if len(long) < self._intervals(long_s) or worked < LEAST_ROWS:
            return found  # windows that are open yet bring nothing
        handed = sum(one[operator.name].handed for one in long)
        planned = float(operator.output(self._fed(operator, long), self._interval_s).sum())
        return replace(
            found,
            results=handed * came / worked / planned if planned > 0 else None,
            selectivity=handed / worked,
            was_selectivity=planned / came,
        )

    def _needed_s(self, operator: QueryOperator, seen: Sequence[Interval]) -> float:
        """Return the work on what came; what waits yet will cost as much as what was worked off."""
        worked = _worked(operator.name, seen)
        came = self._came(operator, seen)
        return _busy_s(operator.name, seen) * came / worked if worked else 0.0

    def _is_busy(self, slot: str, interval: Interval) -> bool:
        here = [one.busy_ns for one in interval.values() if self._slots[one.stage] == slot]
        return sum(here) / 1e9 >= BUSY * self._interval_s

    def _intervals(self, seconds: float) -> int:
        return max(round(seconds / self._interval_s), 1)

    def _whole(self, operator: QueryOperator, seconds: float) -> list[Interval]:
        """Return the latest intervals of which it is known what came to a stage and what it did."""
        needed = {operator.name, *(self._feeder(name) for name in operator.inputs)}
        latest = sorted(self._seen)[-self._intervals(seconds) :]
        return [self._seen[n] for n in latest if needed <= self._seen[n].keys()]

    def _feeder(self, name: str) -> str:
        return self._sources.get(name, name)

    def _fed(self, operator: QueryOperator, seen: Sequence[Interval]) -> FloatArray:
        """Return what each input has handed on in each interval, shape (inputs, intervals).

        Where that waits for a link: as much of it as came, in equal parts at any time.
        """
        fed = [
            [_arrived(one, self._sources[name]) for one in seen]
            if name in self._sources
            else [one[name].handed for one in seen]
            for name in operator.inputs
        ]
        found = np.array(fed, dtype=np.float64)
        share = self._shares.get(operator.name, 0.0)
        if share <= 0 or not found.any():
            return found
        came = np.array([one[operator.name].came for one in seen], dtype=np.float64)
        return np.outer(found.sum(axis=1) / found.sum(), came / share)

    def _came(self, operator: QueryOperator, seen: Sequence[Interval]) -> int:
        """Return how many rows came to a stage; a source works off what comes."""
        own = [one[operator.name] for one in seen]
        is_source = operator.inputs[0] in self._sources
        return sum(one.rows if is_source else one.came for one in own)


def _arrived(interval: Interval, source: str) -> int:
    return interval[source].rows


def _worked(stage: str, seen: Sequence[Interval]) -> int:
    return sum(one[stage].rows for one in seen)


def _busy_s(stage: str, seen: Sequence[Interval]) -> float:
    return sum(one[stage].busy_ns for one in seen) / 1e9


def as_seen(operator: QueryOperator, by: Seen) -> QueryOperator:
    """Return an operator with what is seen in place of what was predicted with."""
    cost = 1.0 if by.cost is None else by.cost
    results = 1.0 if by.results is None else by.results
    planned = any(operator.cost_s) or operator.curve is not None
    # Where nothing was planned there is nothing to multiply: what was seen stands by itself.
    seen_s = by.cost_s if not planned else 0.0
    return QueryOperator(
        name=operator.name,
        inputs=operator.inputs,
        cost_s=tuple(cost_s * cost + seen_s for cost_s in operator.cost_s),
        selectivity=tuple(rows * results for rows in operator.selectivity),
        curve=None if operator.curve is None else ScaledCurve(operator.curve, cost, results),
        alone_s=operator.alone_s * cost,
    )
