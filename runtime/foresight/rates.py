"""Rates for predictions: events of each subinterval, from a number, model or trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import Int64Array

__all__ = [
    "EndedTimes",
    "OnOff",
    "OwnTimes",
    "Rate",
    "RecordedRate",
    "constant",
    "is_trace",
    "series_of",
]


MOST_EVENTS_PER_S = 1e12
"""The most events a second: figures computed from a rate stay far below the largest float."""


def series_of(
    rates: Mapping[str, Rate] | Rate,
    shares: Mapping[str, float],
    *,
    d: int,
    width_s: float,
    seed: int = 0,
    own: Mapping[str, OwnTimes | EndedTimes] | None = None,
) -> dict[str, FloatArray]:
    """Return {source: its arrivals in each subinterval}.

    Args:
        rates: {source: its rate}; or one number or model for all sources, by their shares.
        shares: {source: its share of all events}.
        d: number of the subintervals.
        width_s: length of each subinterval.
        seed: seed of the models.
        own: {source: times of its rows, which spread a number over time}; other sources are
            constant.

    Raises:
        SettingError: a source has no rate, a rate has no source, or a value is not a rate.
    """
    own = own or {}
    for rate in rates.values() if isinstance(rates, Mapping) else [rates]:
        if isinstance(rate, (int, float)):
            _check(rate)  # as it was written, before it is split by shares
    if isinstance(rates, (int, float)) and not isinstance(rates, bool):
        rates = {source: float(rates) * share for source, share in shares.items()}
    if not isinstance(rates, Mapping):
        whole = _series(rates, np.random.default_rng(seed), d=d, width_s=width_s)
        return {source: np.asarray(whole * share) for source, share in shares.items()}
    strangers = [name for name in rates if name not in shares]
    if strangers:
        raise SettingError(
            f"a rate is given for {strangers[0]!r}, which is not a source; the sources are "
            f"{', '.join(shares)}"
        )
    missing = [name for name in shares if name not in rates]
    if missing:
        raise SettingError(
            f"source {missing[0]!r} has no rate: give one for each of {', '.join(shares)}, or one "
            "number for all together"
        )
    return {
        source: _series(
            rates[source],
            np.random.default_rng([seed, n]),
            d=d,
            width_s=width_s,
            own=own.get(source),
        )
        for n, source in enumerate(shares)
    }


def _series(
    rate: Rate,
    rng: np.random.Generator,
    *,
    d: int,
    width_s: float,
    own: OwnTimes | EndedTimes | None = None,
) -> FloatArray:
    if isinstance(rate, OnOff):
        return rate.series(rng, d=d, width_s=width_s)
    if isinstance(rate, RecordedRate):
        return rate.series(d=d, width_s=width_s)
    if isinstance(rate, (int, float)) and not isinstance(rate, bool):
        even = constant(float(rate), d=d, width_s=width_s)
        return even if own is None else own.spread(even, width_s=width_s)
    counts = _counts(rate)
    if counts.shape != (d,):
        raise SettingError(
            f"a trace of {counts.size} counts was given for {d} subintervals of {width_s:g} s: "
            "give one for each, or other subintervals (width=, horizon=)"
        )
    return counts


def _counts(rate: object) -> FloatArray:
    """Return a trace as numbers.

    Raises:
        SettingError: it is not a trace.
    """
    try:
        if isinstance(rate, (str, bytes, bool, Mapping)) or rate is None:
            raise TypeError
        return np.asarray(rate, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(
            f"{rate!r:.80} is not a rate: give events a second, a model of them, or a trace, the "
            "events of each subinterval"
        ) from None


def constant(rate: float, *, d: int, width_s: float) -> FloatArray:
    """Return d subintervals of a constant rate, in events a second.

    Raises:
        SettingError: the rate is below zero, or above `MOST_EVENTS_PER_S`.
    """
    _check(rate)
    return np.full(d, rate * width_s)


def _check(rate: float) -> None:
    if not 0 <= rate <= MOST_EVENTS_PER_S:
        raise SettingError(
            f"a rate of {rate:.12g} events/s is none: it is at least 0 and at most "
            f"{MOST_EVENTS_PER_S:g}"
        )


def is_trace(rate: Rate) -> bool:
    """Whether a rate is counted by subinterval, not a number or a model."""
    return not isinstance(rate, (int, float, OnOff))


class OnOff:
    """Load of [mace] §VIII: high and low load in turn, for random times.

    Args:
        mean_rate: mean events a second over time.
        rate_ratio: ratio of the high rate to the low one, >= 1; 100 in §VIII, 10 in Fig. 12.
        duration_ratio: ratio of the mean high period to the mean low one; 0.33 and 0.25.
        high_s: mean length of a high period.

    Attributes:
        low, high: events a second in periods of each kind.
    """

    def __init__(
        self,
        mean_rate: float,
        *,
        rate_ratio: float = 100.0,
        duration_ratio: float = 0.33,
        high_s: float = 10.0,
    ) -> None:
        if min(mean_rate, duration_ratio, high_s) <= 0 or rate_ratio < 1:
            raise SettingError(
                f"on-off load: mean_rate={mean_rate}, duration_ratio={duration_ratio} and "
                f"high_s={high_s} must be above 0, and rate_ratio={rate_ratio} at least 1"
            )
        share = duration_ratio / (1 + duration_ratio)  # of the time with high load
        self.low = mean_rate / (share * rate_ratio + 1 - share)
        self.high = self.low * rate_ratio
        self._high_s, self._low_s = high_s, high_s / duration_ratio

    def rates(
        self, rng: np.random.Generator, *, until_s: float
    ) -> list[tuple[float, float, float]]:
        """Return the periods up to a time: (start, end, events a second)."""
        periods = []
        for start_s, end_s, rate in self.periods(rng):
            periods.append((start_s, min(end_s, until_s), rate))
            if end_s >= until_s:
                break
        return periods

    def periods(self, rng: np.random.Generator) -> Iterator[tuple[float, float, float]]:
        """Yield periods without end: (start, end, events a second)."""
        at_s = 0.0
        is_high = bool(rng.random() < self._high_s / (self._high_s + self._low_s))
        while True:
            end_s = at_s + float(rng.exponential(self._high_s if is_high else self._low_s))
            yield at_s, end_s, self.high if is_high else self.low
            at_s, is_high = end_s, not is_high

    def arrivals_s(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return the arrivals of the first events, Poisson within periods, ascending.

        Shape (count,), seconds from the start of the first period.
        """
        parts: list[FloatArray] = []
        left = count
        for start_s, end_s, rate in self.periods(rng):
            if left <= 0:
                break
            came_s = np.sort(rng.uniform(start_s, end_s, rng.poisson(rate * (end_s - start_s))))
            parts.append(came_s[:left])
            left -= len(came_s)
        return np.concatenate([np.zeros(0), *parts])

    def series(self, rng: np.random.Generator, *, d: int, width_s: float) -> FloatArray:
        """Return the expected events of each of d subintervals."""
        edges = np.arange(d + 1) * width_s
        total = np.zeros(d + 1)
        for start_s, end_s, rate in self.rates(rng, until_s=d * width_s):
            total += rate * np.clip(edges - start_s, 0.0, end_s - start_s)
        return np.diff(total)


class RecordedRate:
    """Arrivals of an earlier run by interval, repeated if the record is too short.

    Events are assumed to arrive evenly within an interval: no more is known.

    Args:
        counts: events of each interval, >= 0; all 0 for a silent source.
        interval_s: length of an interval, > 0.

    Attributes:
        length_s: length of the record.
    """

    def __init__(self, counts: Sequence[float] | FloatArray, *, interval_s: float) -> None:
        each = np.asarray(counts, dtype=np.float64)
        self._until = np.concatenate([[0.0], np.cumsum(each)])
        self._interval_s = interval_s
        self.length_s = len(each) * interval_s

    @property
    def mean(self) -> float:
        """Mean events a second over the whole record."""
        return float(self._until[-1]) / self.length_s

    @property
    def events(self) -> int:
        """Number of events in the record."""
        return round(float(self._until[-1]))

    def nth_s(self, numbers: FloatArray | Int64Array) -> FloatArray:
        """Return arrivals by number, from 0; seconds from the start of the record."""
        return np.asarray(np.interp(numbers + 0.5, self._until, self._ends_s))

    def until(self, at_s: FloatArray) -> FloatArray:
        """Return the events until these times; all lie within the record."""
        return np.asarray(np.interp(at_s, self._ends_s, self._until))

    def stretched(self, times: float) -> RecordedRate:
        """Return the same events `times` as slow, > 0."""
        return RecordedRate(np.diff(self._until), interval_s=self._interval_s * times)

    def times(self, share: float) -> RecordedRate:
        """Return a share of the events, >= 0, at the same times."""
        return RecordedRate(np.diff(self._until) * share, interval_s=self._interval_s)

    @property
    def _ends_s(self) -> FloatArray:
        return np.arange(len(self._until), dtype=np.float64) * self._interval_s

    def series(self, *, d: int, width_s: float) -> FloatArray:
        """Return the events of each of d subintervals."""
        turns, rest_s = np.divmod(np.arange(d + 1) * width_s, self.length_s)
        came = turns * self._until[-1] + self.until(rest_s)
        return np.diff(came)


class OwnTimes:
    """Arrivals of a source's rows, whose bursts and pauses repeat at any rate.

    Args:
        came_s: shape (k,), k >= 2, ascending; the last later than the first.
    """

    def __init__(self, came_s: FloatArray) -> None:
        since_s = came_s - came_s[0]
        count = len(since_s)
        self._length_s = float(since_s[-1]) * count / (count - 1)
        self._at_s = np.append(since_s, self._length_s)
        self._share = np.arange(count + 1) / count

    def spread(self, even: FloatArray, *, width_s: float) -> FloatArray:
        """Return the rows of a constant rate in d subintervals, spread like these arrivals."""
        turns, rest_s = np.divmod(np.arange(len(even) + 1) * width_s, self._length_s)
        each = np.diff(turns + np.interp(rest_s, self._at_s, self._share))
        total = float(each.sum())
        return even if total <= 0 else np.asarray(each * (float(even.sum()) / total))


class EndedTimes:
    """Arrivals of a source's rows, if these are all its rows.

    Args:
        came_s: shape (k,), k >= 1, seconds from the start, ascending.
    """

    def __init__(self, came_s: FloatArray) -> None:
        self._came_s = came_s

    def spread(self, even: FloatArray, *, width_s: float) -> FloatArray:
        """Return the rows of a constant rate in d subintervals, spread like these arrivals."""
        each = np.histogram(self._came_s, np.arange(len(even) + 1) * width_s)[0].astype(np.float64)
        total = float(each.sum())
        return even if total <= 0 else np.asarray(each * (float(even.sum()) / total))


Rate = float | OnOff | RecordedRate | FloatArray | Sequence[float]
"""Events a second; a model of them; or a trace: events in each subinterval, or of an earlier
run."""
