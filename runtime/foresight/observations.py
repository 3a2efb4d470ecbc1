"""Table of observations: rows, results and service time of each stage, by interval.

```
stage     rows   released   out   pairs   slices     busy
falling     50         50    20       0        1    11 ms     a sample: an interval is a slice
pairs      600                540                60   150 ms     a job: an interval of its loop
```

Slots work in slices, each with a fixed part and a part for each row. If latency matters there is a
backlog, and slices are full: an event then costs its share of a full slice. Source: [mace] §VI-B,
"operator cycles/event", scheduling included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from slackwater.runtime.config import Limits
from slackwater.runtime.foresight.curves import fit_nonnegative, fit_slices
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.slice_time import time_of_rows

if TYPE_CHECKING:  # a tuner needs no plan
    from slackwater.runtime.plan.plan import Stage

__all__ = [
    "Spans",
    "StageCost",
    "StageObservations",
    "share_of",
    "spans_of",
]

ALIKE = 0.2
"""Least relative difference in rows per slice that separates the cost of a slice from its rows."""
EARLY = 0.05
"""Share of a sample's rows that first fill the windows of a stage that looks back."""
LEAST_ROWS, MOST_ROWS = Limits.min_slice_rows, Limits.max_slice_rows
LONGEST_S = Limits.longest_slice_ns / NS_PER_SECOND


@dataclass(frozen=True)
class StageCost:
    """Costs of a slice, a row, and a pair or result, in CPU seconds."""

    fixed_s: float
    row_s: float
    more_s: float = 0.0

    def in_full_slices(self, slice_s: float) -> StageCost:
        """Return the cost of rows in full slices, with their share of the fixed part.

        A slice has at least the rows that take as long as its fixed part, up to `min_slice_rows`
        (`runtime/schedule/slice_size.py`), and at least one row, however long that takes.
        """
        fixed_s, row_s = self.fixed_s, self.row_s
        rows_s = time_of_rows(fixed_s, usual=slice_s, longest=max(slice_s, LONGEST_S))
        if row_s <= 0:  # the most rows, unless the fixed part alone is too long
            return StageCost(0.0, fixed_s / (MOST_ROWS if rows_s else LEAST_ROWS), self.more_s)
        fit = max(rows_s, min(fixed_s, LEAST_ROWS * row_s)) / row_s
        more = fixed_s / (max(round(min(fit, MOST_ROWS)), 1) * row_s)
        return StageCost(0.0, row_s * (1 + more), self.more_s * (1 + more))


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Spans of event time by which a stage makes its results.

    Attributes:
        window_s: size and slide of its windows; None if it has no windows.
        within_s: longest distance of partners of its join; None if it does not join.
    """

    window_s: tuple[float, float] | None = None
    within_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class StageObservations:
    """Observations of a stage: a value for each interval, in order.

    Attributes:
        name: name of the stage.
        inputs: the stages that feed it; empty: it is a source.
        rows_in: rows that arrived in all; of a source, rows that it read.
        rows_out: rows that left in all.
        rows: rows that its slices took; in a slice a message without rows counts as a row.
        busy_s: CPU seconds of its work.
        slices: number of its slices; empty: each interval is a slice.
        released: rows that its operator got; empty: unknown.
        out: rows that left; empty: unknown.
        pairs: pairs that its join compared; empty: unknown.
        window_s: size and slide of its windows, seconds of event time; None if it has no windows.
        within_s: longest distance of partners of its join; None if it does not join.
        least_fixed_s: least time of any slice by the clock; 0 by a model of costs.
    """

    name: str
    inputs: tuple[str, ...]
    rows_in: int
    rows_out: int
    rows: Sequence[int]
    busy_s: Sequence[float]
    slices: Sequence[int] = ()
    released: Sequence[int] = ()
    out: Sequence[int] = ()
    pairs: Sequence[int] = ()
    window_s: tuple[float, float] | None = None
    within_s: float | None = None
    least_fixed_s: float = 0.0

    @property
    def selectivity(self) -> float:
        """σ: rows out for each row in."""
        return self.rows_out / self.rows_in if self.rows_in else 0.0

    @property
    def more(self) -> Sequence[int]:
        """Counts that cost beside rows: results of windows, pairs of a join; else empty."""
        if self.window_s is not None:
            return self.out
        return self.pairs if self.within_s is not None else ()

    @property
    def whole_s(self) -> float:
        """CPU seconds of all its work."""
        return math.fsum(self.busy_s)

    @property
    def mean_row_s(self) -> float:
        """Mean cost of a row, with its share of its slice; 0 without rows."""
        rows = sum(self.rows)
        return self.whole_s / rows if rows else 0.0

    def full_cost(self, slice_s: float, more: Sequence[int] = ()) -> StageCost:
        """Return the cost of rows in full slices; a job's is at most its mean.

        Args:
            slice_s: duration of a full slice (`Limits.slice_ns`).
            more: counts that may cost, too, as for `cost`.
        """
        full = self.cost(more).in_full_slices(slice_s)
        return replace(full, row_s=min(full.row_s, self.mean_row_s)) if len(self.slices) else full

    def cost(self, more: Sequence[int] = ()) -> StageCost:
        """Return the cost of a slice and of each row; 0 without slices.

        The first slices, in which code is loaded and windows fill, are omitted if there are enough
        others.

        Args:
            more: pairs or results of each slice, which may cost, too; empty: rows alone.
        """
        count = len(self.rows)
        if not count:
            return StageCost(0.0, 0.0)
        if len(self.slices):
            return self._cost_of_sums()
        rows, seconds = np.asarray(self.rows, float), np.asarray(self.busy_s, float)
        released = np.asarray(self.released if len(self.released) else np.zeros(count), float)
        others = np.asarray(more if len(more) else np.zeros(count), float)
        features = np.stack([np.ones(count), rows, released, others], axis=1)
        if count > 8:
            looks_back = self.window_s is not None or self.within_s is not None
            early = EARLY if looks_back or any(self.pairs) else 0.0
            at_first = int((np.cumsum(rows) < early * rows.sum()).sum()) + 1
            begin = min(max(at_first, 2), count // 2)
            features, seconds = features[begin:], seconds[begin:]
        if any(np.ptp(each) == 0 and each.any() for each in features[:, 1:3].T):
            features[:, 0] = 0.0  # all slices have equal rows: the whole cost is the rows'
        costs = _fitted(features, seconds, self.least_fixed_s)
        # An interruption makes a slice longer, never shorter. One or two slices that are far off
        # are omitted if they are little of the whole: else the work itself varies.
        off = seconds - features @ costs
        odd = off > 10 * np.median(np.abs(off)) + 1e-12
        if 0 < odd.sum() <= 2 and len(off) > 8 and off[odd].sum() <= 0.02 * seconds.sum():
            costs = _fitted(features[~odd], seconds[~odd], self.least_fixed_s)
        # A row costs on arrival and on release, and each row has both.
        return StageCost(float(costs[0]), float(costs[1] + costs[2]), float(costs[3]))

    def _cost_of_sums(self) -> StageCost:
        """Return the cost by intervals of several slices: sums have no outliers."""
        mean = StageCost(0.0, self.mean_row_s)
        rows, slices = np.asarray(self.rows, float), np.asarray(self.slices, float)
        known = (rows > 0) & (slices > 0)
        each = rows[known] / slices[known]
        if len(each) < 2 or np.ptp(each) <= ALIKE * each.mean():
            return mean
        features = np.stack([slices, rows], axis=1)
        fixed_s, row_s = fit_nonnegative(features, np.asarray(self.busy_s, float))
        return StageCost(float(fixed_s), float(row_s)) if row_s > 0 else mean


def _fitted(features: FloatArray, seconds: FloatArray, least_fixed_s: float) -> FloatArray:
    """Return the costs of a slice, an arrival, a release, and a pair or result.

    Messages without rows do not reach the operator, so they do not show its fixed part.
    """
    if features[:, 2].any():
        has_rows = (features[:, 1] > 1) | (features[:, 2] > 0)
        features, seconds = features[has_rows], seconds[has_rows]
    worked = features[:, 2] > 0 if features[:, 2].any() else np.ones(len(seconds), bool)
    rows = features[:, 1:3].max(axis=1)
    most_fixed_s = float(seconds[worked].min())
    return fit_slices(
        features, seconds, rows, most_fixed_s=most_fixed_s, least_fixed_s=least_fixed_s
    )


def spans_of(stage: Stage) -> Spans:
    """Return the spans of event time by which a stage makes its results."""
    traits = stage.step.traits
    windows_ns, reach_ns = traits.windows_ns, traits.reach_ns
    return Spans(
        window_s=None
        if windows_ns is None
        else (windows_ns[0] / NS_PER_SECOND, windows_ns[1] / NS_PER_SECOND),
        within_s=reach_ns / NS_PER_SECOND if traits.makes == "pairs" and reach_ns else None,
    )


def share_of(stage: StageObservations, stages: Sequence[StageObservations]) -> float:
    """Return the share of its inputs' output rows that reach a stage.

    It is below 1 for a replica, and for the stage of late rows; 2 if one stage feeds both sides of
    a join.
    """
    if not stage.inputs:
        return 1.0
    handed = sum(feeder.rows_out for feeder in stages if feeder.name in stage.inputs)
    return stage.rows_in / handed if handed else 0.0
