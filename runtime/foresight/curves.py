"""Curves of nonlinear operators: joins and windows. Source: [mace] §VI-C."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import CostCurve, FloatArray

__all__ = [
    "USUAL_S",
    "JoinCurve",
    "PartCurve",
    "ScaledCurve",
    "WindowCurve",
    "fit_nonnegative",
    "fit_slices",
    "kind_of",
]

SPREADS = (0.0, *np.geomspace(1.0, 65_536.0, 9).tolist())
"""Cost that chance adds to a slice, in rows."""
USUAL_S = 1e-4
"""Fixed cost of a slice on most machines: the fit expects it."""
SHORTEST = 1.3
"""Ratio of a usual slice to the shortest of some slices, by chance."""


@dataclass(frozen=True, kw_only=True)
class JoinCurve:
    """Curve of a join within an interval: work and results grow with pairs in reach.

    An event meets the events of the other side that arrived no longer ago than `within_s`. That
    holds if both sides share keys that stay the same. If each event has exactly one partner,
    results grow with events, and this curve predicts too many in a denser stream.

    Attributes:
        within_s: longest distance of two partners.
        row_s: CPU seconds of an event of each input.
        pair_s: CPU seconds of a pair in reach.
        result: results of a pair in reach.
        share: share of its inputs' output events that reach it: a replica gets a part.
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
        """Return the number of new pairs in reach in each subinterval, shape (d,)."""
        left, right = self._sides(arrivals)
        met = left * _before(right, self.within_s, width_s)
        return np.asarray(met + right * _before(left, self.within_s, width_s))

    def results_of_one(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the results of an event of each input on arrival, shape (inputs, d)."""
        left, right = (_before(side, self.within_s, width_s) for side in self._sides(arrivals))
        met = np.stack([right, left]) if len(arrivals) == 2 else right[None]
        return np.asarray(self.share * self.result * met)

    def at_speed(self, speed: float) -> JoinCurve:
        """Return the curve for event time that is `speed` times faster than the clock."""
        return replace(self, within_s=self.within_s / speed)

    def _sides(self, arrivals: FloatArray) -> FloatArray:
        """Return both sides, shape (2, d); a single input is split in halves."""
        both = arrivals if len(arrivals) == 2 else np.tile(arrivals.sum(axis=0) / 2, (2, 1))
        return np.asarray(self.share * both)


@dataclass(frozen=True, kw_only=True)
class WindowCurve:
    """Curve of windows: results grow with windows and keys, not with events.

    Attributes:
        size_s: length of a window.
        slide_s: time from the start of one to the next.
        keys: number of keys; n events, drawn alike, meet keys · (1 − e^(−n / keys)) of them.
        row_s: CPU seconds of an event.
        result_s: CPU seconds of a result.
        share: share of its inputs' output events that reach it: a replica gets a part.
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
        """Return the results in each subinterval, shape (d,): all of a window at its end."""
        inside = _recent(self.share * arrivals.sum(axis=0), self.size_s, width_s)
        met = self.keys * -np.expm1(-inside / self.keys)
        edges_s = np.arange(arrivals.shape[1] + 1) * width_s
        ended = np.floor(edges_s / self.slide_s + 1e-9)  # windows end at multiples of the slide
        return np.asarray(met * np.diff(ended))

    def at_speed(self, speed: float) -> WindowCurve:
        """Return the curve for event time that is `speed` times faster than the clock."""
        return replace(self, size_s=self.size_s / speed, slide_s=self.slide_s / speed)


@dataclass(frozen=True)
class ScaledCurve:
    """Curve that is another curve times factors.

    Attributes:
        curve: the other curve.
        cost: factor of its work.
        results: factor of its events out.
    """

    curve: CostCurve
    cost: float
    results: float

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work in each subinterval, shape (d,)."""
        return np.asarray(self.curve.load_s(arrivals, width_s) * self.cost)

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the events that leave in each subinterval, shape (d,)."""
        return np.asarray(self.curve.events_out(arrivals, width_s) * self.results)

    def at_speed(self, speed: float) -> ScaledCurve:
        """Return the curve for event time that is `speed` times faster than the clock."""
        return replace(self, curve=self.curve.at_speed(speed))


@dataclass(frozen=True)
class PartCurve:
    """Curve of one part of a step: its share of the step's work and results.

    Attributes:
        curve: curve of the whole step.
        share: share of the part.
        inputs: the step's input that each input of the part belongs to: its feeders may have parts.
    """

    curve: CostCurve
    share: float
    inputs: tuple[int, ...]

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the work in each subinterval, shape (d,)."""
        return np.asarray(self.share * self.curve.load_s(self._whole(arrivals), width_s))

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the events that leave in each subinterval, shape (d,)."""
        return np.asarray(self.share * self.curve.events_out(self._whole(arrivals), width_s))

    def results_of_one(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        """Return the results of an event of each input on arrival, shape (inputs, d).

        Raises:
            TypeError: the step does not join.
        """
        if not isinstance(self.curve, JoinCurve):
            raise TypeError(f"{type(self.curve).__name__} is not the curve of a join")
        each = self.curve.results_of_one(self._whole(arrivals), width_s)
        return np.asarray(self.share * each[list(self.inputs)])

    def at_speed(self, speed: float) -> PartCurve:
        """Return the curve for event time that is `speed` times faster than the clock."""
        return replace(self, curve=self.curve.at_speed(speed))

    def _whole(self, arrivals: FloatArray) -> FloatArray:
        """Return the events of each input of the step, shape (inputs of the step, d)."""
        whole = np.zeros((max(self.inputs) + 1, arrivals.shape[1]))
        np.add.at(whole, list(self.inputs), arrivals)
        return whole


def kind_of(curve: CostCurve | None) -> CostCurve | None:
    """Return the curve of a part's whole step; else the curve itself."""
    return curve.curve if isinstance(curve, PartCurve) else curve


def fit_nonnegative(
    features: FloatArray, seconds: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return the costs >= 0 that explain measured times best, by least squares.

    Args:
        features: shape (n, k), counts of each of n slices, such as rows and pairs.
        seconds: shape (n,), their times.
        weights: shape (n,), weight of each error; None if all are equal.

    Raises:
        SettingError: no slice was measured.
    """
    if not len(features):
        raise SettingError("no slice was measured to fit costs to; take more rows of the sample")
    if weights is not None:
        features, seconds = features * weights[:, None], seconds * weights
    scale = np.maximum(np.abs(features).max(axis=0), 1e-300)
    free = list(range(features.shape[1]))
    costs = np.zeros(features.shape[1])
    while free:  # a negative cost is impossible: set the worst to zero, and fit again
        part, *_ = np.linalg.lstsq(features[:, free] / scale[free], seconds, rcond=None)
        if (part >= 0).all():
            costs[free] = part / scale[free]
            break
        free.pop(int(np.argmin(part)))
    return costs


def fit_slices(
    features: FloatArray,
    seconds: FloatArray,
    rows: FloatArray,
    *,
    most_fixed_s: float,
    least_fixed_s: float = 0.0,
) -> FloatArray:
    """Return the costs >= 0 of slices whose rows and fixed parts both vary.

    The variance of a slice's time is s · (g + rows): of rows alone if g is 0, of slices alone if it
    is large. The fit uses the g of `SPREADS` under which all times are likeliest. So a row that is
    slow by chance does not become a fixed part.

    Args:
        features: shape (n, k), the first being 1 for each slice, or 0 without a fixed part.
        seconds: shape (n,), times of the slices.
        rows: shape (n,), number of rows of each.
        most_fixed_s: time of the shortest slice, which has the fixed part, too.
        least_fixed_s: least fixed part of any slice, used if chance hides it.

    Raises:
        SettingError: no slice was measured.
    """
    best, likeliest, weights = np.zeros(features.shape[1]), -np.inf, np.ones(len(seconds))
    for spread in SPREADS:
        variance = spread + np.maximum(rows, 1.0)
        costs = fit_nonnegative(features, seconds, variance**-0.5)
        off = (seconds - features @ costs) ** 2 / variance
        scale = max(float(off.mean()), 1e-30)
        likely = -(len(seconds) * np.log(scale) + np.log(variance).sum()) / 2
        if likely > likeliest + 1e-9:
            best, likeliest, weights = costs, likely, (scale * variance) ** -0.5
    fixed_s = float(best[0])
    if fixed_s * features[:, 0].sum() < (features[:, 1:] @ best[1:]).sum():
        # Rows took most of the time, so the fixed part may be chance: use the usual one, if it is
        # within the error.
        error_s = _error(features, weights, best)
        least_s = min(least_fixed_s, fixed_s + error_s)
        fixed_s = max(least_s, fixed_s - error_s, min(fixed_s, USUAL_S))
    fixed_s = min(fixed_s, most_fixed_s * SHORTEST)
    if fixed_s == best[0]:
        return best
    left_s = seconds - fixed_s * features[:, 0]
    rest = fit_nonnegative(features[:, 1:], left_s, weights)
    fitted_s = float((features[:, 1:] @ rest).sum())
    return np.concatenate([[fixed_s], rest * (left_s.sum() / fitted_s if fitted_s > 0 else 1.0)])


def _error(features: FloatArray, weights: FloatArray, costs: FloatArray) -> float:
    """Return the standard error of the first cost; 0 if no slice has that feature."""
    if not features[:, 0].any():
        return 0.0
    features = features[:, (costs > 0) | (np.arange(len(costs)) == 0)]
    scale = np.abs(features).max(axis=0)
    known = features / scale * weights[:, None]
    return float(np.sqrt(np.linalg.pinv(known.T @ known)[0, 0]) / scale[0])


def _before(events: FloatArray, within_s: float, width_s: float) -> FloatArray:
    """Return the mean number of events that an event of each subinterval meets."""
    if within_s < width_s:
        return events * within_s / width_s
    return _recent(events, within_s + width_s / 2, width_s) - events / 2


def _recent(events: FloatArray, within_s: float, width_s: float) -> FloatArray:
    """Return the sums over the last `within_s` of each subinterval, shape (d,)."""
    total = np.concatenate([[0.0], np.cumsum(events)])
    ends = np.arange(1, len(events) + 1, dtype=np.float64)
    starts = np.maximum(ends - within_s / width_s, 0.0)
    return np.asarray(total[1:] - np.interp(starts, np.arange(len(total)), total))
