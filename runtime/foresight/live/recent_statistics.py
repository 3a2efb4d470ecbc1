"""Recent statistics of stages, beside those of the prediction.

```
predicted   0.2 ms a row, 0.95 out for a row in
recent      0.3 ms a row, 0.95                      ─▶   factors 1.5 and 1.0
```

Factors apply to curves as they do to linear operators. Source: [mace] §III-B, statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.curves import ScaledCurve
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.query_graph import (
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.foresight.recorded import observed_samples
from slackwater.runtime.measure.samples import StageSample

__all__ = ["WINDOW_S", "RecentStatistics", "StageStatistics", "with_statistics"]

WINDOW_S = 10.0
"""Length of the recent time; for a stage with windows at least two windows."""
LONG_S = 60.0
"""The same for results, which may be rare."""
BUSY = 0.5
"""Least load of a slot in an interval that shows the cost of rows. Slices of an idle slot are
short, and a row in them costs more than a row of a backlog. That is a bound: it counts if it is
lower than the predicted cost."""
LEAST_ROWS, LEAST_BUSY_S = 100, 0.2
"""Least rows or busy time of a stage that show its cost; less is left to chance."""

Interval = Mapping[str, StageSample]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatistics:
    """Statistics of a stage so far.

    Attributes:
        cores: CPU seconds a second that its arrivals need.
        cost: cost of a row over the predicted one; None if few rows ran, or the predicted cost
            is 0.
        results: results of a row over the predicted ones; None as for `cost`.
        cost_s: cost of a row; 0: too few rows ran.
        was_cost_s: the predicted cost.
        selectivity: rows out for a row in.
        was_selectivity: the predicted selectivity.
    """

    cores: float = 0.0
    cost: float | None = None
    results: float | None = None
    cost_s: float = 0.0
    was_cost_s: float = 0.0
    selectivity: float = 0.0
    was_selectivity: float = 0.0


class RecentStatistics:
    """Statistics of the last intervals of every stage.

    Samples arrive in any order, and some never do.

    Args:
        graph: the graph of the prediction.
        slots: {stage: slot of the stage}.
        interval_s: length of an interval.
        windows_s: {stage: time for which rows stay in its state}.
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
        longest_s = max([LONG_S, *(2 * window_s for window_s in windows_s.values())])
        self._keeps = self._intervals(longest_s)
        self._sources = {arrivals_of(name): name for name in graph.names}
        self._samples: dict[int, dict[str, StageSample]] = {}

    def moved(self, shares: Mapping[str, float]) -> None:
        """Note the stages whose rows may wait for a link.

        Args:
            shares: {stage: share of its inputs' output rows that reach it}, of those stages: their
                arrivals in an interval differ from the rows sent in it.
        """
        self._shares = shares

    def add(self, sample: StageSample) -> None:
        """Take the sample of a stage in an interval."""
        self._samples.setdefault(sample.second, {})[sample.stage] = sample
        while len(self._samples) > self._keeps:
            del self._samples[min(self._samples)]

    def of_stage(self, stage: str) -> StageStatistics:
        """Return the statistics of a stage."""
        (operator,) = (each for each in self._graph.operators if each.name == stage)
        window_s = 2 * self._windows_s.get(stage, 0.0)
        recent = self._whole(operator, max(WINDOW_S, window_s))
        span_s = max(len(recent) * self._interval_s, 1e-9)
        known = StageStatistics(cores=_needed_s(self._table(operator, recent)) / span_s)
        busy = [each for each in recent if self._is_busy(self._slots[stage], each)]
        with_cost = self._with_cost(operator, known, busy)
        if not with_cost.cost_s:
            # A row costs an idle slot more than in a backlog: a bound, if it is lower.
            idle = self._with_cost(operator, known, recent)
            if idle.cost is not None and idle.cost < 1:
                with_cost = idle
        return self._with_results(operator, with_cost, max(LONG_S, window_s))

    def _table(self, operator: QueryOperator, over: Sequence[Interval]) -> StageObservations:
        """Return the observations of a stage in these intervals."""
        inputs = tuple(name for name in operator.inputs if name not in self._sources)
        return observed_samples(operator.name, inputs, [each[operator.name] for each in over])

    def _with_cost(
        self, operator: QueryOperator, known: StageStatistics, over: Sequence[Interval]
    ) -> StageStatistics:
        """Return the statistics with the cost of rows over intervals, if they show it."""
        table = self._table(operator, over)
        if sum(table.rows) < LEAST_ROWS and table.whole_s < LEAST_BUSY_S:
            return known
        planned_s = float(operator.load(self._fed(operator, over), self._interval_s).sum())
        return replace(
            known,
            cost=_needed_s(table) / planned_s if planned_s > 0 else None,
            cost_s=table.whole_s / max(sum(table.rows), 1),
            was_cost_s=planned_s / max(table.rows_in, 1),
        )

    def _with_results(
        self, operator: QueryOperator, known: StageStatistics, long_s: float
    ) -> StageStatistics:
        long = self._whole(operator, long_s)
        table = self._table(operator, long)
        worked, came = sum(table.rows), table.rows_in
        if len(long) < self._intervals(long_s) or worked < LEAST_ROWS:
            return known  # open windows have no results yet
        planned = float(operator.output(self._fed(operator, long), self._interval_s).sum())
        return replace(
            known,
            results=table.rows_out * came / worked / planned if planned > 0 else None,
            selectivity=table.rows_out / worked,
            was_selectivity=planned / came,
        )

    def _is_busy(self, slot: str, interval: Interval) -> bool:
        here = [each.busy_ns for each in interval.values() if self._slots[each.stage] == slot]
        return sum(here) / 1e9 >= BUSY * self._interval_s

    def _intervals(self, seconds: float) -> int:
        return max(round(seconds / self._interval_s), 1)

    def _whole(self, operator: QueryOperator, seconds: float) -> list[Interval]:
        """Return the latest intervals with samples of a stage and of its feeders."""
        needed = {operator.name, *(self._feeder(name) for name in operator.inputs)}
        latest = sorted(self._samples)[-self._intervals(seconds) :]
        return [self._samples[n] for n in latest if needed <= self._samples[n].keys()]

    def _feeder(self, name: str) -> str:
        return self._sources.get(name, name)

    def _fed(self, operator: QueryOperator, over: Sequence[Interval]) -> FloatArray:
        """Return the rows that each input sent in each interval, shape (inputs, intervals).

        If they wait for a link: the rows that arrived, split among inputs in constant parts.
        """
        fed = [
            [each[self._sources[name]].rows for each in over]
            if name in self._sources
            else [each[name].handed for each in over]
            for name in operator.inputs
        ]
        sent = np.array(fed, dtype=np.float64)
        share = self._shares.get(operator.name, 0.0)
        if share <= 0 or not sent.any():
            return sent
        came = np.array([each[operator.name].came for each in over], dtype=np.float64)
        return np.outer(sent.sum(axis=1) / sent.sum(), came / share)


def _needed_s(table: StageObservations) -> float:
    """Return the work on all arrivals; waiting rows cost as much as processed ones."""
    return table.mean_row_s * table.rows_in


def with_statistics(operator: QueryOperator, by: StageStatistics) -> QueryOperator:
    """Return an operator with recent statistics in place of the predicted ones."""
    cost = 1.0 if by.cost is None else by.cost
    results = 1.0 if by.results is None else by.results
    planned = any(operator.cost_s) or operator.curve is not None
    # A predicted cost of 0 cannot be scaled: the recent cost replaces it.
    new_s = by.cost_s if not planned else 0.0
    return QueryOperator(
        name=operator.name,
        inputs=operator.inputs,
        cost_s=tuple(cost_s * cost + new_s for cost_s in operator.cost_s),
        selectivity=tuple(rows * results for rows in operator.selectivity),
        curve=None if operator.curve is None else ScaledCurve(operator.curve, cost, results),
        alone_s=operator.alone_s * cost,
    )
