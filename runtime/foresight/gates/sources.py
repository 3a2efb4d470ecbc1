"""Source times: arrivals of a source's rows, their event times, and promises.

```
measured    event time   ▁▂▃▄▄▄▅▆▇█     lag: the clock less event time
by the      clock        ▁▂▃▄▅▆▇█
ahead       the lags of the sample, repeated, at the rates of the prediction
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.gates.streams import Promises, Rows, Series
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["SourceTimes"]

MOST_ROWS = 8
"""Rows of a source that stand for all rows of a subinterval."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceTimes:
    """Rows of a source; shape (k,) each, in the order of their arrival.

    Attributes:
        stimulus_s: arrival of each, seconds from the source's start.
        event_s: event times, seconds from the earliest of the flow's.
        at_s: when each leaves the source; later than its arrival if the source puts rows in order.
        promise_s: promise after each row; −inf: no promise yet.
        promise_stimulus_s: arrival of the row that made the promise.
        pace: seconds of event time in the clock's second; 1 unless it is a replay.
        ends_s: when it promises that it has no more rows; None if it may have more.
        stands_for: number of rows that each stands for.
        period_s: period after which lags repeat, from 0 on; None if they repeat after the time from
            its first row to its last, as in a sample of a source's first rows.
        most_rows: rows that stand for all of a subinterval ahead.
    """

    stimulus_s: FloatArray
    event_s: FloatArray
    at_s: FloatArray
    promise_s: FloatArray
    promise_stimulus_s: FloatArray
    pace: float = 1.0
    ends_s: float | None = None
    stands_for: float = 1.0
    period_s: float | None = None
    most_rows: int = MOST_ROWS

    def __post_init__(self) -> None:
        sizes = {len(each) for each in (self.stimulus_s, self.event_s, self.at_s, self.promise_s)}
        if len(sizes) != 1:
            raise SettingError(f"a source's rows have equally many times of each kind, not {sizes}")

    @classmethod
    def in_order(
        cls, stimulus_s: FloatArray, event_s: FloatArray, *, ends: bool = False
    ) -> SourceTimes:
        """Return the times of a source whose rows are in the order of event times."""
        newest_s = np.maximum.accumulate(event_s)
        return cls(
            stimulus_s=stimulus_s,
            event_s=event_s,
            at_s=stimulus_s,
            promise_s=newest_s,
            promise_stimulus_s=stimulus_s,
            ends_s=float(stimulus_s[-1]) if ends and len(stimulus_s) else None,
        )

    @property
    def rate(self) -> float:
        """Rows a second, as they arrived; 0 for fewer than two."""
        span_s = float(np.ptp(self.stimulus_s)) if len(self.stimulus_s) else 0.0
        return len(self.stimulus_s) * self.stands_for / span_s if span_s > 0 else 0.0

    def faster(self, times: float) -> SourceTimes:
        """Return the same rows in a replay `times` as fast, > 0."""
        return replace(
            self,
            stimulus_s=self.stimulus_s / times,
            at_s=self.at_s / times,
            promise_stimulus_s=self.promise_stimulus_s / times,
            pace=self.pace * times,
            ends_s=None if self.ends_s is None else self.ends_s / times,
            period_s=None if self.period_s is None else self.period_s / times,
        )

    @property
    def lag_s(self) -> FloatArray:
        """Clock less event time at each row, in seconds of the clock, shape (k,)."""
        return np.asarray(self.stimulus_s - self.event_s / self.pace)

    def series(self) -> Series:
        """Return rows and promises as they arrived."""
        count = np.full(len(self.event_s), float(self.stands_for))
        rows = Rows(self.event_s, self.stimulus_s, self.stimulus_s, self.at_s, count)
        promised = _promises(self.promise_s, self.promise_stimulus_s, self.at_s, self.ends_s)
        return Series(rows, promised)

    def ahead(
        self, arrivals: FloatArray, width_s: float, *, beyond: int = 0, as_it_came: bool = False
    ) -> Series:
        """Return rows and promises over a time ahead, with the lags of these rows.

        Args:
            arrivals: shape (d,), rows of each subinterval.
            width_s: length of a subinterval.
            beyond: number of further subintervals with rows and promises.
            as_it_came: whether these are its own arrivals, so that it ends as it did.
        """
        ends_s = self.ends_s if as_it_came and self._lasts(len(arrivals) * width_s) else None
        more = np.full(beyond, arrivals.mean() if len(arrivals) and ends_s is None else 0.0)
        stimulus_s, count = _placed(np.concatenate([arrivals, more]), width_s, self.most_rows)
        if not len(self.stimulus_s):
            none = Rows(stimulus_s, stimulus_s, stimulus_s, stimulus_s, count)
            return Series(none, _promises(np.zeros(0), np.zeros(0), np.zeros(0), ends_s))
        # Lags repeat from the start, not backwards: a lag may grow slowly and end at once.
        turned = self._turned(stimulus_s)
        if self.is_ordered:
            return self._ordered(stimulus_s, turned, count, ends_s)
        of = np.searchsorted(self.stimulus_s, turned).clip(max=len(self.stimulus_s) - 1)
        moved_s = (stimulus_s - self.stimulus_s[of]) * self.pace
        waits_s = (self.at_s - self.stimulus_s)[of]
        event_s, promise_s = self.event_s[of] + moved_s, self.promise_s[of] + moved_s
        if np.array_equal(self.event_s, self.promise_s):  # in order: keep the order
            lag_s = np.interp(turned, self.stimulus_s, self.lag_s)
            event_s = promise_s = np.maximum.accumulate((stimulus_s - lag_s) * self.pace)
        at_s = stimulus_s + waits_s
        promised = _promises(promise_s, stimulus_s, stimulus_s, ends_s)
        return Series(Rows(event_s, stimulus_s, stimulus_s, at_s, count), promised)

    def ends_within(self, arrivals: FloatArray) -> bool:
        """Whether the source is known to end, and has at least these rows."""
        rows = len(self.stimulus_s) * self.stands_for
        return self.ends_s is not None and float(arrivals.sum()) <= rows + 1

    @property
    def is_ordered(self) -> bool:
        """Whether its rows wait for their order."""
        return bool((self.at_s > self.stimulus_s).any())

    def _ordered(
        self, stimulus_s: FloatArray, turned: FloatArray, count: FloatArray, ends_s: float | None
    ) -> Series:
        """Return rows that wait for their order: samples show them as they left."""
        came = np.argsort(self.stimulus_s, kind="stable")
        came_s = self.stimulus_s[came]
        of = np.searchsorted(came_s, turned).clip(max=len(came) - 1)
        # Each stands for the rows since the one before, so it waits as long as any of them.
        since = np.minimum(np.append(0, of[:-1] + 1), of)
        waits_s = np.append((self.at_s - self.stimulus_s)[came], 0.0)
        spans = np.stack([since, of + 1], axis=1).ravel()
        longest_s = np.maximum.reduceat(waits_s, spans)[::2] if len(of) else np.zeros(0)
        moved_s = (stimulus_s - came_s[of]) * self.pace
        rows = Rows(
            self.event_s[came][of] + moved_s,
            stimulus_s,
            stimulus_s,
            stimulus_s + longest_s,
            count,
        )
        # A promise holds from the row that makes it, which arrived after the rows that it releases.
        order = np.argsort(self.promise_stimulus_s, kind="stable")
        made_s, newest_s = (
            self.promise_stimulus_s[order],
            np.maximum.accumulate(self.promise_s[order]),
        )
        by = np.searchsorted(made_s, came_s[of], side="right") - 1
        before_s = np.maximum(made_s[0] - came_s[of], 0.0)  # before the first promise
        promise_s = newest_s[by.clip(min=0)] + moved_s - before_s * self.pace
        return Series(rows, _promises(promise_s, stimulus_s, stimulus_s, ends_s))

    def _lasts(self, horizon_s: float) -> bool:
        """Whether the record lasts for the horizon, and the source had ended by then."""
        until_s = np.inf if self.period_s is None else self.period_s * (1 + 1e-9)
        return self.ends_s is not None and self.ends_s <= horizon_s <= until_s

    def _turned(self, stimulus_s: FloatArray) -> FloatArray:
        """Return the times in the record that stand for these."""
        if self.period_s is not None:  # its rows are placed within the period
            return np.asarray(stimulus_s % self.period_s)
        first_s = float(self.stimulus_s[0])
        span_s = max(float(self.stimulus_s[-1]) - first_s, 1e-9)
        known = not len(stimulus_s) or stimulus_s[-1] <= span_s
        return stimulus_s if known else np.asarray(stimulus_s % span_s + first_s)


def _promises(
    promise_s: FloatArray, stimulus_s: FloatArray, at_s: FloatArray, ends_s: float | None
) -> Promises:
    newest_s = np.maximum.accumulate(promise_s)
    moved = newest_s > np.concatenate([[-np.inf], newest_s[:-1]])[: len(newest_s)]
    event_s, stimuli_s = newest_s[moved], stimulus_s[moved]
    known_s = np.maximum.accumulate(at_s)[moved]
    if ends_s is not None:
        event_s, stimuli_s = np.append(event_s, np.inf), np.append(stimuli_s, ends_s)
        known_s = np.append(known_s, max(ends_s, float(np.max(known_s, initial=0.0))))
    return Promises(event_s, stimuli_s, stimuli_s, known_s)


def _placed(arrivals: FloatArray, width_s: float, most: int) -> tuple[FloatArray, FloatArray]:
    """Return times of rows that stand for arrivals, and the number of each."""
    total = np.concatenate([[0.0], np.cumsum(arrivals)])
    times, counts = [], []
    for p in np.flatnonzero(arrivals > 0):
        # A row arrives as the sum passes a half: at a tenth of a row, every tenth time.
        first, last = np.floor(total[p] + 0.5), np.floor(total[p + 1] + 0.5)
        if last > first:
            few = int(min(last - first, most))
            each = (last - first) / few
            numbers = (
                first + (np.arange(few) + 0.5) * each
            )  # in the middle of the rows that it stands for
            times.append((p + ((numbers - total[p]) / arrivals[p]).clip(0, 1)) * width_s)
            counts.append(np.full(few, each))
    none = [np.zeros(0)]
    return np.concatenate(times or none), np.concatenate(counts or none)
