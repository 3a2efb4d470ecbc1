"""Operators whose load and output are no line: joins, windows, data that drift. [mace] §VI-C."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import CostCurve, FloatArray

__all__ = [
    "USUAL_S",
    "DriftCurve",
    "JoinCurve",
    "ScaledCurve",
    "WindowCurve",
    "fit_nonnegative",
    "fit_slices",
]

SPREADS = (0.0, *np.geomspace(1.0, 65_536.0, 9).tolist())
"""Cost that chance adds to a slice, in rows."""
USUAL_S = 1e-4
"""Fixed cost of a slice on most machines: as much is expected."""
SHORTEST = 1.3
"""How many times the shortest of some slices a usual one is, by chance."""


@dataclass(frozen=True, kw_only=True)
class JoinCurve:
    """A join of two inputs within an interval: work and results go with the pairs in reach.

    An event meets those of the other side that came no longer ago than `within_s`. That is so where
    both sides share keys that stay the same; where each event has one partner and no other,
    results go with events, and this says too many of a stream that becomes denser.

    Attributes:
        within_s: how far apart two partners may be.
        row_s: CPU seconds of an event of each input.
        pair_s: CPU seconds of a pair in reach.
        result: results of a pair in reach.
        share: of the events that its inputs put out, those that come to it: a replica gets a part.
    """

    within_s: float
    row_s: tuple[float, float]
    pair_s: float
    result: float
    share: float = 1.0

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work in each subinterval, shape (d,)."""
        pairs = self.pairs(arrivals, width_s)
        rows = np.asarray(self.row_s) @ self._sides(arrivals)
        return np.asarray(rows + self.pair_s * pairs)

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the results in each subinterval, shape (d,)."""
        return np.asarray(self.result * self.pairs(arrivals, width_s))

    def pairs(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return how many pairs come into reach in each subinterval, shape (d,)."""
        left, right = self._sides(arrivals)
        met = left * _before(right, self.within_s, width_s)
        return np.asarray(met + right * _before(left, self.within_s, width_s))

    def results_of_one(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return how many results an event of each input has as it comes, shape (inputs, d)."""
        left, right = (_before(side, self.within_s, width_s) for side in self._sides(arrivals))
        met = np.stack([right, left]) if len(arrivals) == 2 else right[None]
        return np.asarray(self.share * self.result * met)

    def at_speed(self, speed: float) -> JoinCurve:
        """Return the same where event time goes so many times faster than the clock."""
        return replace(self, within_s=self.within_s / speed)

    def _sides(self, arrivals: FloatArray) -> FloatArray:
        """Return both sides, shape (2, d); what comes by one way is half of each."""
        both = arrivals if len(arrivals) == 2 else np.tile(arrivals.sum(axis=0) / 2, (2, 1))
        return np.asarray(self.share * both)


@dataclass(frozen=True, kw_only=True)
class WindowCurve:
    """An aggregate over windows: results go with windows and keys, not with events.

    Attributes:
        size_s: length of a window.
        slide_s: from the start of one to the next.
        keys: how many there are; of n events drawn alike, keys · (1 − e^(−n / keys)) are met.
        row_s: CPU seconds of an event.
        result_s: CPU seconds of a result.
        share: of the events that its inputs put out, those that come to it: a replica gets a part.
    """

    size_s: float
    slide_s: float
    keys: float
    row_s: float
    result_s: float
    share: float = 1.0

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work in each subinterval, shape (d,)."""
        out = self.events_out(arrivals, width_s)
        return np.asarray(self.row_s * self.share * arrivals.sum(axis=0) + self.result_s * out)

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the results in each subinterval, shape (d,): all of a window where it ends."""
        inside = _recent(self.share * arrivals.sum(axis=0), self.size_s, width_s)
        met = self.keys * -np.expm1(-inside / self.keys)
        edges_s = np.arange(arrivals.shape[1] + 1) * width_s
        ended = np.floor(edges_s / self.slide_s + 1e-9)  # windows end at multiples of the slide
        return np.asarray(met * np.diff(ended))

    def at_speed(self, speed: float) -> WindowCurve:
        """Return the same where event time goes so many times faster than the clock."""
        return replace(self, size_s=self.size_s / speed, slide_s=self.slide_s / speed)


@dataclass(frozen=True, kw_only=True)
class DriftCurve:
    """An operator of which selectivity changes with time, as the data drift.

    Attributes:
        from_s: when each stretch of time begins, seconds from the start, ascending; what is before
            the first belongs to it.
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
        """Return how many events leave in each subinterval, shape (d,)."""
        middle_s = (np.arange(arrivals.shape[1]) + 0.5) * width_s
        stretch = np.searchsorted(self.from_s, middle_s, side="right") - 1
        return np.asarray(
            np.asarray(self.selectivity)[np.maximum(stretch, 0)] * arrivals.sum(axis=0)
        )

    def at_speed(self, speed: float) -> DriftCurve:
        """Return the same where event time goes so many times faster than the clock."""
        return replace(self, from_s=tuple(at_s / speed for at_s in self.from_s))


@dataclass(frozen=True)
class ScaledCurve:
    """A curve times factors.

    Attributes:
        curve: which.
        cost: how many times its work.
        results: how many times its events out.
    """

    curve: CostCurve
    cost: float
    results: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work in each subinterval, shape (d,)."""
        return np.asarray(self.curve.load_s(arrivals, width_s) * self.cost)

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return how many events leave in each subinterval, shape (d,)."""
        return np.asarray(self.curve.events_out(arrivals, width_s) * self.results)

    def at_speed(self, speed: float) -> ScaledCurve:
        """Return the same where event time goes so many times faster than the clock."""
        return replace(self, curve=self.curve.at_speed(speed))


def fit_nonnegative(
    features: FloatArray, seconds: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return the costs >= 0 that explain measured times best, by least squares.

    Args:
        features: shape (n, k), what was counted in each of n slices, such as rows and pairs.
        seconds: shape (n,), how long they took.
        weights: shape (n,), how much each error counts; None: all alike.

    Raises:
        SettingError: nothing was measured.
    """
    if not len(features):
        raise SettingError("no slice was measured, so there is nothing to fit costs to")
    if weights is not None:
        features, seconds = features * weights[:, None], seconds * weights
    scale = np.maximum(np.abs(features).max(axis=0), 1e-300)
    free = list(range(features.shape[1]))
    found = np.zeros(features.shape[1])
    while free:  # those that come out below zero are none; drop the worst, and fit again
        part, *_ = np.linalg.lstsq(features[:, free] / scale[free], seconds, rcond=None)
        if (part >= 0).all():
            found[free] = part / scale[free]
            break
        free.pop(int(np.argmin(part)))
    return found


def fit_slices(
    features: FloatArray,
    seconds: FloatArray,
    rows: FloatArray,
    *,
    most_fixed_s: float,
    least_fixed_s: float = 0.0,
) -> FloatArray:
    """Return the costs >= 0 of slices whose rows each vary, and the slices besides.

    The spread of a slice's time is taken to be s · (g + rows): of rows alone where g is 0, of
    slices alone where it is large. The g of `SPREADS` under which all times are likeliest counts.
    So a row that takes long by chance does not become a fixed part.

    Args:
        features: shape (n, k), the first being 1 for each slice, or 0 where there is no fixed part.
        seconds: shape (n,), how long they took.
        rows: shape (n,), how many rows each had.
        most_fixed_s: of the shortest slice, which had the fixed part, too.
        least_fixed_s: what any slice has, where chance does not tell that from nothing.

    Raises:
        SettingError: nothing was measured.
    """
    best, likeliest, weights = np.zeros(features.shape[1]), -np.inf, np.ones(len(seconds))
    for spread in SPREADS:
        variance = spread + np.maximum(rows, 1.0)
        found = fit_nonnegative(features, seconds, variance**-0.5)
        off = (seconds - features @ found) ** 2 / variance
        scale = max(float(off.mean()), 1e-30)
        likely = -(len(seconds) * np.log(scale) + np.log(variance).sum()) / 2
        if likely > likeliest + 1e-9:
            best, likeliest, weights = found, likely, (scale * variance) ** -0.5
    fixed_s = float(best[0])
    if fixed_s * features[:, 0].sum() < (features[:, 1:] @ best[1:]).sum():
        # Rows took most, so that it may be chance: what is usual, if it is within the error.
        error_s = _error(features, weights, best)
        least_s = min(least_fixed_s, fixed_s + error_s)
        fixed_s = max(least_s, fixed_s - error_s, min(fixed_s, USUAL_S))
    fixed_s = min(fixed_s, most_fixed_s * SHORTEST)
    if fixed_s == best[0]:
        return best
    left_s = seconds - fixed_s * features[:, 0]
    rest = fit_nonnegative(features[:, 1:], left_s, weights)
    told_s = float((features[:, 1:] @ rest).sum())
    return np.concatenate([[fixed_s], rest * (left_s.sum() / told_s if told_s > 0 else 1.0)])


def _error(features: FloatArray, weights: FloatArray, found: FloatArray) -> float:
    """Return the standard error of the first cost; 0 where there is none."""
    if not features[:, 0].any():
        return 0.0
    features = features[:, (found > 0) | (np.arange(len(found)) == 0)]
    scale = np.abs(features).max(axis=0)
    known = features / scale * weights[:, None]
    return float(np.sqrt(np.linalg.pinv(known.T @ known)[0, 0]) / scale[0])


def _before(events: FloatArray, within_s: float, width_s: float) -> FloatArray:
    """Return how many an event of each subinterval finds of the other side, on average."""
    if within_s < width_s:
        return events * within_s / width_s
    return _recent(events, within_s + width_s / 2, width_s) - events / 2


def _recent(events: FloatArray, within_s: float, width_s: float) -> FloatArray:
    """Return the sum over the last `within_s` up to the end of each subinterval, shape (d,)."""
    total = np.concatenate([[0.0], np.cumsum(events)])
    ends = np.arange(1, len(events) + 1, dtype=np.float64)
    starts = np.maximum(ends - within_s / width_s, 0.0)
    return np.asarray(total[1:] - np.interp(starts, np.arange(len(total)), total))
