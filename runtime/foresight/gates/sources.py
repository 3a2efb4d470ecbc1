"""When the rows of a source come, what time they are of, and what it has promised by then.

```
measured    event time   ▁▂▃▄▄▄▅▆▇█     lag: how far event time is behind the clock
by the      clock        ▁▂▃▄▅▆▇█
ahead       the lags of the sample, over and over, under the rates that are asked for
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
"""Rows of a source that stand for all of a subinterval."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceTimes:
    """Rows of a source as they came; shape (k,) each, in the order in which they came.

    Attributes:
        stimulus_s: when each came, seconds from the source's start.
        event_s: event times, seconds from the earliest of the flow's.
        at_s: when each is handed on; later than it came where the source puts rows in order.
        promise_s: nothing older than that follows it; −inf: nothing is promised yet.
        promise_stimulus_s: when the row came that the promise is from.
        pace: how many seconds of event time the clock's second is; 1 unless it is a replay.
        ends_s: when it promises that these were all its rows; None: there may be more.
        stands_for: how many rows each is one of.
        period_s: after how long, from 0 on, lags come over again; None: from its first row to its
            last, as the first rows of a source are seen.
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

    def __post_init__(self) -> None:
        sizes = {len(each) for each in (self.stimulus_s, self.event_s, self.at_s, self.promise_s)}
        if len(sizes) != 1:
            raise SettingError(f"a source's rows have as many times of each kind, not {sizes}")

    @classmethod
    def in_order(
        cls, stimulus_s: FloatArray, event_s: FloatArray, *, ends: bool = False
    ) -> SourceTimes:
        """Return the times of a source that sends its rows in the order of their event times."""
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
        """Rows a second, as they came; 0 of fewer than two."""
        span_s = float(np.ptp(self.stimulus_s)) if len(self.stimulus_s) else 0.0
        return len(self.stimulus_s) * self.stands_for / span_s if span_s > 0 else 0.0

    def faster(self, times: float) -> SourceTimes:
        """Return the same rows as they come in a replay that is so many times faster, > 0."""
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
        """How far event time is behind the clock at each row, by the clock, shape (k,)."""
        return np.asarray(self.stimulus_s - self.event_s / self.pace)

    def series(self) -> Series:
        """Return rows and promises as they came."""
        count = np.full(len(self.event_s), float(self.stands_for))
        rows = Rows(self.event_s, self.stimulus_s, self.stimulus_s, self.at_s, count)
        promised = _promises(self.promise_s, self.promise_stimulus_s, self.at_s, self.ends_s)
        return Series(rows, promised)

    def ahead(
        self, arrivals: FloatArray, width_s: float, *, beyond: int = 0, as_it_came: bool = False
    ) -> Series:
        """Return rows and promises over a time ahead, with the lags that these had.

        Args:
            arrivals: shape (d,), rows of each subinterval.
            width_s: how long it is.
            beyond: subintervals behind these of which rows and promises are wanted, too.
            as_it_came: whether these are the arrivals that it had, so that it ends as it did.
        """
        ends_s = self.ends_s if as_it_came and self._lasts(len(arrivals) * width_s) else None
        more = np.full(beyond, arrivals.mean() if len(arrivals) and ends_s is None else 0.0)
        stimulus_s, count = _placed(np.concatenate([arrivals, more]), width_s)
        if not len(self.stimulus_s):
            none = Rows(stimulus_s, stimulus_s, stimulus_s, stimulus_s, count)
            return Series(none, _promises(np.zeros(0), np.zeros(0), np.zeros(0), ends_s))
        # Over and over, and not back again: who falls behind slowly may catch up at once.
        turned = self._turned(stimulus_s)
        if self.is_ordered:
            return self._ordered(stimulus_s, turned, count, ends_s)
        of = np.searchsorted(self.stimulus_s, turned).clip(max=len(self.stimulus_s) - 1)
        moved_s = (stimulus_s - self.stimulus_s[of]) * self.pace
        waits_s = (self.at_s - self.stimulus_s)[of]
        event_s, promise_s = self.event_s[of] + moved_s, self.promise_s[of] + moved_s
        if np.array_equal(self.event_s, self.promise_s):  # in order: it stays so
            lag_s = np.interp(turned, self.stimulus_s, self.lag_s)
            event_s = promise_s = np.maximum.accumulate((stimulus_s - lag_s) * self.pace)
        at_s = stimulus_s + waits_s
        promised = _promises(promise_s, stimulus_s, stimulus_s, ends_s)
        return Series(Rows(event_s, stimulus_s, stimulus_s, at_s, count), promised)

    def ends_within(self, arrivals: FloatArray) -> bool:
        """Whether it is known to end, and these are no more rows than it has."""
        rows = len(self.stimulus_s) * self.stands_for
        return self.ends_s is not None and float(arrivals.sum()) <= rows + 1

    @property
    def is_ordered(self) -> bool:
        """Whether its rows wait to be put in order."""
        return bool((self.at_s > self.stimulus_s).any())

    def _ordered(
        self, stimulus_s: FloatArray, turned: FloatArray, count: FloatArray, ends_s: float | None
    ) -> Series:
        """Return rows that wait for their order: they are known as they left, not as they came."""
        came = np.argsort(self.stimulus_s, kind="stable")
        came_s = self.stimulus_s[came]
        of = np.searchsorted(came_s, turned).clip(max=len(came) - 1)
        # Each stands for those since the one before, so it waits as long as any of them.
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
        # A promise is known from the row on that brings it, which came later than those it lets go.
        told = np.argsort(self.promise_stimulus_s, kind="stable")
        told_s, newest_s = (
            self.promise_stimulus_s[told],
            np.maximum.accumulate(self.promise_s[told]),
        )
        by = np.searchsorted(told_s, came_s[of], side="right") - 1
        before_s = np.maximum(told_s[0] - came_s[of], 0.0)  # of a turn before there is one
        promise_s = newest_s[by.clip(min=0)] + moved_s - before_s * self.pace
        return Series(rows, _promises(promise_s, stimulus_s, stimulus_s, ends_s))

    def _lasts(self, horizon_s: float) -> bool:
        """Whether what was seen lasts so long, and it had ended by then."""
        until_s = np.inf if self.period_s is None else self.period_s * (1 + 1e-9)
        return self.ends_s is not None and self.ends_s <= horizon_s <= until_s

    def _turned(self, stimulus_s: FloatArray) -> FloatArray:
        """Return the times in what was seen that stand for these."""
        if self.period_s is not None:  # its rows are known by when they came in it
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
    told_s = np.maximum.accumulate(at_s)[moved]
    if ends_s is not None:
        event_s, stimuli_s = np.append(event_s, np.inf), np.append(stimuli_s, ends_s)
        told_s = np.append(told_s, max(ends_s, float(np.max(told_s, initial=0.0))))
    return Promises(event_s, stimuli_s, stimuli_s, told_s)


def _placed(arrivals: FloatArray, width_s: float) -> tuple[FloatArray, FloatArray]:
    """Return when rows come that stand for these arrivals, and for how many each does."""
    total = np.concatenate([[0.0], np.cumsum(arrivals)])
    times, counts = [], []
    for p in np.flatnonzero(arrivals > 0):
        # A row comes as the sum passes a half: one of a tenth comes every tenth time.
        first, last = np.floor(total[p] + 0.5), np.floor(total[p + 1] + 0.5)
        if last > first:
            few = int(min(last - first, MOST_ROWS))
            each = (last - first) / few
            numbers = first + (np.arange(few) + 0.5) * each  # in the middle of those it stands for
            times.append((p + ((numbers - total[p]) / arrivals[p]).clip(0, 1)) * width_s)
            counts.append(np.full(few, each))
    none = [np.zeros(0)]
    return np.concatenate(times or none), np.concatenate(counts or none)
