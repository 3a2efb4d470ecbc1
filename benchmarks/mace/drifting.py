"""Selectivity by stretches of time: what a sample spread over the data shows of their drift.

```
stretch   20 rows  20 rows  20 rows …      of a sample, each of which stands for a stretch of time
left      18       17       9       …  ─▶  σ = 0.88, 0.86, 0.45, …: drift, with chance taken out
```

A host samples a few long stretches, which show no drift; so this is of `mace-*` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.observations import StageObservations, share_of
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, arrivals_of

STEPS = (0.0, *np.geomspace(1e-4, 1.0, 13).tolist())
"""Steps of selectivity from one stretch to the next: variances, relative to all that varies."""


@dataclass(frozen=True)
class Stretches:
    """Stretches of a source's sample: ranges of its rows stand for stretches of time.

    Attributes:
        rows: number of rows of the sample before each stretch; the first is 0.
        from_s: start of each stretch in the predicted time, seconds from its start.
    """

    rows: Sequence[int]
    from_s: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class DriftCurve:
    """Curve of an operator whose selectivity changes with time, as the data drift.

    Attributes:
        from_s: start of each stretch of time, seconds from the start, ascending; times before the
            first belong to it.
        selectivity: events out for each event in, of each stretch.
        cost_s: CPU seconds of an event.
    """

    from_s: tuple[float, ...]
    selectivity: tuple[float, ...]
    cost_s: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work in each subinterval, shape (d,)."""
        del width_s
        return np.asarray(self.cost_s * arrivals.sum(axis=0))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the events that leave in each subinterval, shape (d,)."""
        middle_s = (np.arange(arrivals.shape[1]) + 0.5) * width_s
        stretch = np.searchsorted(self.from_s, middle_s, side="right") - 1
        return np.asarray(
            np.asarray(self.selectivity)[np.maximum(stretch, 0)] * arrivals.sum(axis=0)
        )

    def at_speed(self, speed: float) -> DriftCurve:
        """Return the curve for event time that is `speed` times faster than the clock."""
        return replace(self, from_s=tuple(at_s / speed for at_s in self.from_s))


def with_drift(
    graph: QueryGraph, stages: Sequence[StageObservations], stretches: Mapping[str, Stretches]
) -> QueryGraph:
    """Return a sample's graph with selectivities by stretches of time.

    Operators with a curve, with rows of several sources, or out of order stay as they are.

    Args:
        graph: graph of the sample.
        stages: samples of its stages, in topological order.
        stretches: {source: stretches of its sample}.
    """
    bounds = {arrivals_of(name): each.rows for name, each in stretches.items()}
    from_s = {arrivals_of(name): tuple(each.from_s) for name, each in stretches.items()}
    operators = []
    for stage, operator in zip(stages, graph.operators, strict=True):
        operators.append(operator)
        feeder = operator.inputs[0]
        is_known = operator.curve is None and len(operator.inputs) == 1 and feeder in bounds
        if not is_known or not len(stage.released):
            continue
        came, left = _full_rows(stage)
        if (came[-1], left[-1]) != (stage.rows_in, stage.rows_out):
            continue  # its slices do not show which rows made which results
        ends = np.append(bounds[feeder], came[-1])
        out = np.interp(ends, came, left)
        bounds[stage.name], from_s[stage.name] = out[:-1].tolist(), from_s[feeder]
        selectivity = share_of(stage, stages) * steadied(np.diff(ends), np.diff(out))
        if np.ptp(selectivity) > 0:
            curve = DriftCurve(
                from_s=from_s[feeder],
                selectivity=tuple(selectivity.tolist()),
                cost_s=operator.cost_s[0],
            )
            operators[-1] = replace(operator, curve=curve)
    return QueryGraph(graph.sources, tuple(operators))


def _full_rows(stage: StageObservations) -> FloatArray:
    """Return the rows in and out until each slice's end: shape (2, slices + 1)."""
    each = np.array([stage.released, stage.out], dtype=np.float64).reshape(2, -1)
    return np.concatenate([np.zeros((2, 1)), np.cumsum(each, axis=1)], axis=1)


def steadied(rows: FloatArray, results: FloatArray) -> FloatArray:
    """Return the selectivity of each stretch without chance: shape (stretches,).

    A stretch has few rows of the sample, so its selectivity is part drift, part chance. Selectivity
    is modelled as a random walk, seen through the noise of that many rows. Its step is the one that
    makes all observations the likeliest; the Kalman smoother then gives its course.
    """
    total = float(rows.sum())
    mean = float(results.sum()) / total if total else 0.0
    has = rows > 0
    each = np.divide(results, rows, out=np.full(len(rows), mean), where=has)
    varies = float(np.var(each[has])) if has.any() else 0.0
    if varies == 0:
        return np.full(len(rows), mean)
    # The variance of a filter; of an operator with several results, that of chance.
    spread = mean * (1 - mean) if mean < 1 else mean
    chance = np.divide(spread, rows, out=np.full(len(rows), np.inf), where=has)
    walks = [_Walk(each, chance, mean, varies, varies * part) for part in STEPS]
    return max(walks, key=lambda walk: walk.likelihood).course()


class _Walk:
    """Random walk seen through noise: filter by Kalman, smoother by Rauch, Tung and Striebel.

    Attributes:
        likelihood: its logarithm, without a constant.
    """

    def __init__(
        self, each: FloatArray, chance: FloatArray, level: float, variance: float, step: float
    ) -> None:
        self._step, self.likelihood = step, 0.0
        self._levels: list[float] = []  # the level after each stretch
        self._variances: list[float] = []  # the variance of that level
        for seen, noise in zip(each.tolist(), chance.tolist(), strict=True):
            if noise < float("inf"):
                off, total = seen - level, variance + noise
                self.likelihood -= (math.log(total) + off * off / total) / 2
                level += variance / total * off
                variance *= noise / total
            self._levels.append(level)
            self._variances.append(variance)
            variance += step

    def course(self) -> FloatArray:
        """Return the likeliest level of each stretch."""
        course, step = self._levels[:], self._step
        for n in range(len(course) - 2, -1, -1):
            variance = self._variances[n]
            gain = variance / (variance + step) if variance else 0.0
            course[n] += gain * (course[n + 1] - course[n])
        return np.asarray(course)
