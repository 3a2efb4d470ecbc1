"""Calibration: the stated chance of a miss, learned from known windows.

The raw chance, of histograms, takes delays for independent. Where they are not, such as in bursts,
windows of a class of raw chances miss a row more often, or less often. So the chance that is stated
follows the share that missed a row, and is the raw one before anything is known.

```
class            sure    … 0.032 …  0.056 …  0.1 …      of the raw chance at the close
windows known     812        90       40       3
missed a row        0        27       22       0
stated           0.0001     0.29     0.53 ... 0.53       monotone: the last two are pooled
```

What remains of the raw chance is by the known windows of all pooled classes.

One late row misses a streak of overlapping windows, which tells no more than one window would. So
the raw chance counts for as many more windows as the mean streak is long.

A window is known once it is sure, or many have closed since. Tables are made after set numbers of
known windows, so that a chance does not depend on how many rows are decided together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.happenings import LATE, Happenings, Settled, Stretch, Sure
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields

_EDGES = np.geomspace(1e-3, 1.0, 13)
"""Upper ends of the classes of raw chances, four to a factor of ten."""
_MIDDLES = np.concatenate([[1e-2, _EDGES[0] / 2], np.sqrt(_EDGES[:-1] * _EDGES[1:])])
"""Chance of each class before any window of it is known; the first class is of sure windows."""
_CLASSES, _SURE = len(_MIDDLES), 0
_IS_EVEN = _MIDDLES > 0.4
"""Classes of even chances, where nothing was known of the wait."""
_PRIOR, _PRIOR_EVEN = 16.0, 1.0
"""Windows that the chance before counts for, times the mean streak; and where it is even.

An even chance counts for one: of such times nearly all windows miss a row, or nearly none.
"""
_ABOVE_EVEN = np.where(_IS_EVEN, 0.25, 0.0)
"""More than the raw chance of these classes: three of four such windows missed a row, where rows
that were held up came together (docs/decisions/2026-11-29-stated-chances.md)."""
_LEAST = 1e-4
"""Least chance that is stated where a row may come."""
_LEAST_NEW, _SHARE_NEW, _MOST_NEW = 8, 8, 2_048
"""A table is made after an eighth more known windows, at least 8 and at most 2,048."""
_MOST_PENDING = 256
"""Closed windows that wait to be known; of more the oldest count as known."""
_MOST_KNOWN = 1 << 14
"""Known windows after which all counts are halved: older windows count for less."""
_MOST_RECORDS = 4_096
"""Known windows that are kept, since a row may still miss them."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of a stretch of time: known windows, and late rows.

    Attributes:
        sure_ns, sure_open: shape (steps,): from this tick on all windows before `open` are known.
            The first step has those that were known when the stretch began.
        late_ns, first, last: shape (late,): a row of this tick missed the closed windows
            `first` … `last`.
    """

    sure_ns: Int64Array
    sure_open: Int64Array
    late_ns: Int64Array
    first: Int64Array
    last: Int64Array


def outcomes_of(stretch: Stretch, what: Happenings, sure: Sure, settled: Settled) -> Outcomes:
    """Return the outcomes of a stretch of time, up to where it broke off."""
    late, known = np.flatnonzero(what.kind == LATE), len(sure.step_ns)
    if settled.broken_ns is not None:  # from there on all is decided again
        done = int(np.searchsorted(what.tick_ns[late], settled.broken_ns, side="right"))
        late = late[:done]
        known = int(np.searchsorted(sure.step_ns, settled.broken_ns, side="left"))
    late_ns = what.tick_ns[late]
    closed = stretch.first + np.searchsorted(settled.step_ns, late_ns, side="left")
    last = np.minimum(what.limit[late], closed - 1)
    is_missed = what.window[late] <= last
    return Outcomes(
        np.append(stretch.now_ns, sure.step_ns[:known]),
        np.append(stretch.pending, sure.step_open[:known]),
        late_ns[is_missed],
        what.window[late][is_missed],
        last[is_missed],
    )


class Calibration:
    """Calibration of the chances of one run, by the rows that its windows missed.

    Args:
        states_zero: whether sure windows miss nothing whatever comes.
    """

    STATE = Fields(
        "_windows",
        "_classes",
        "_missed",
        "_known",
        "_known_now",
        "_late_now",
        "_counts",
        "_misses",
        "_later",
        "_streak",
    )

    def __init__(self, *, states_zero: bool) -> None:
        self._states_zero = states_zero
        self._windows = np.empty(0, dtype=np.int64)  # closed ones, ascending
        self._classes = np.empty(0, dtype=np.int64)
        self._missed = np.empty(0, dtype=np.bool_)
        self._known = 0  # the first of them are counted
        # Outcomes of the newest tick, as `_sure_from` and `_late_with` give them.
        self._known_now = self._last_steps = np.empty((2, 0), dtype=np.int64)
        self._late_now = np.empty((3, 0), dtype=np.int64)
        self._counts = np.zeros(_CLASSES)  # known windows by class
        self._misses = np.zeros(_CLASSES)  # the part that missed a row
        self._later = np.zeros(_CLASSES)  # more of it, since the last table
        self._streak = 1.0  # of windows that missed a row, mean length
        self.derive()

    def stated(self, settled: Settled, raw: FloatArray, outcomes: Outcomes) -> FloatArray:
        """Return the chance to state for each settled window, and learn from outcomes.

        A window that closes at a tick states what was known before it, however ticks are cut into
        stretches. So outcomes of the newest tick wait until it is over.

        Args:
            settled: the windows that closed in a stretch of time.
            raw: shape (closed,), the raw chances; NaN, which is stated, where unknown.
            outcomes: the outcomes of the same stretch.
        """
        raw = np.maximum(raw, _LEAST)
        classes = np.where(settled.is_early, np.searchsorted(_EDGES, raw) + 1, _SURE)
        self._add(settled.windows, classes, is_learned=~np.isnan(raw))
        known, late = self._sure_from(settled, outcomes), self._late_with(outcomes)
        newest_ns = max([int(ns[-1]) for ns in (known[0], late[0], settled.at_ns) if len(ns)])
        over, done = (int(np.searchsorted(of[0], newest_ns)) for of in (known, late))
        self._known_now, self._late_now = known[:, over:], late[:, done:]
        (known_ns, opens), (late_ns, first, last) = known[:, :over], late[:, :done]
        ends = np.searchsorted(self._windows, opens)
        chances, begin, heard = np.empty(len(raw)), 0, 0
        while (step := int(np.searchsorted(ends, self._known + self._due))) < len(ends):
            tick_ns = known_ns[step]
            step = int(np.searchsorted(known_ns, tick_ns, side="right")) - 1
            stop = int(np.searchsorted(settled.at_ns, tick_ns, side="right"))
            chances[begin:stop] = self._chances(classes[begin:stop], raw[begin:stop])
            until = int(np.searchsorted(late_ns, tick_ns, side="right"))
            self._miss(first[heard:until], last[heard:until])
            self._count(int(ends[step]))
            begin, heard = stop, until
        chances[begin:] = self._chances(classes[begin:], raw[begin:])
        self._miss(first[heard:], last[heard:])
        self._forget()
        return chances

    def repeat(self, *, windows: int, every_ns: int, times: int) -> None:
        """Repeat the last stretch, in a pause that is passed at once.

        Args:
            windows: number of windows from one time to the next.
            every_ns: time between two repetitions.
            times: number of the repetitions.
        """
        steps = self._last_steps
        if len(self._windows):
            unknown = int(self._windows[-1]) + 1 - int(steps[1, 0])
            times = min(times, max(-(-unknown // windows), 0))  # the others know no more
            turns = np.arange(1, times + 1) * np.array([[every_ns], [windows]])
            again = (steps[:, np.newaxis] + turns[:, :, np.newaxis]).reshape(2, -1)
            self._known_now = np.concatenate([self._known_now, again], axis=1)

    def _sure_from(self, settled: Settled, outcomes: Outcomes) -> Int64Array:
        """Return steps, shape (2, steps): from a tick on all windows before another are known.

        They are sure; or many have closed since, as where a type has gone and none is ever sure.
        """
        self._last_steps = np.stack([outcomes.sure_ns, outcomes.sure_open])
        steps = np.concatenate([self._known_now, self._last_steps], axis=1)
        if len(self._windows) - self._known > _MOST_PENDING:
            closed = np.searchsorted(self._windows, settled.windows, side="right")
            is_far = closed > _MOST_PENDING
            opens = self._windows[closed[is_far] - _MOST_PENDING]
            steps = np.concatenate([steps, np.stack([settled.at_ns[is_far], opens])], axis=1)
            steps = steps[:, np.argsort(steps[0], kind="stable")]
        np.maximum.accumulate(steps[1], out=steps[1])
        return steps

    def _late_with(self, outcomes: Outcomes) -> Int64Array:
        """Return late rows, shape (3, rows): tick, first and last window that one missed."""
        new = np.stack([outcomes.late_ns, outcomes.first, outcomes.last])
        return np.concatenate([self._late_now, new], axis=1)

    def _add(self, windows: Int64Array, classes: Int64Array, *, is_learned: BoolArray) -> None:
        if self._states_zero:
            is_learned &= classes != _SURE
        if not is_learned.any():
            return
        new = windows[is_learned]
        self._windows = np.concatenate([self._windows, new])
        self._classes = np.concatenate([self._classes, classes[is_learned]])
        self._missed = np.concatenate([self._missed, np.zeros(len(new), dtype=np.bool_)])

    def _chances(self, classes: Int64Array, raw: FloatArray) -> FloatArray:
        # While few windows of a class are known, most of the raw chance remains.
        chances: FloatArray = self._fixed[classes] + self._remains[classes] * raw
        np.clip(chances, self._least[classes], self._most[classes], out=chances)
        np.clip(chances, _LEAST, 1.0, out=chances)
        if self._states_zero:
            chances[classes == _SURE] = 0.0
        return chances

    def _miss(self, firsts: Int64Array, lasts: Int64Array) -> None:
        """Note that rows missed these ranges of windows."""
        if not len(firsts):
            return
        oldest = max(self._known - _MOST_RECORDS, 0)
        low = np.maximum(np.searchsorted(self._windows, firsts), oldest)
        high = np.maximum(np.searchsorted(self._windows, lasts, side="right"), low)
        begin, size = int(low.min()), int(high.max()) - int(low.min())
        opens, closes = (np.bincount(at - begin, minlength=size + 1) for at in (low, high))
        here = slice(begin, begin + size)
        new = ((opens - closes).cumsum()[:size] > 0) & ~self._missed[here]
        self._missed[here] |= new
        known = np.flatnonzero(new) + begin
        self._later += self._by_class(known[known < self._known])

    def _count(self, end: int) -> None:
        """Count the windows before a place, which are known, and make a table."""
        known = np.arange(self._known, end)
        self._counts += self._by_class(known)
        self._misses += self._by_class(known[self._missed[known]]) + self._later
        self._later[:] = 0.0
        self._known = end
        self._streak = _mean_streak(self._missed[:end])
        if self._counts.sum() > _MOST_KNOWN:
            self._counts, self._misses = self._counts / 2, self._misses / 2
        self.derive()

    def _by_class(self, places: Int64Array) -> FloatArray:
        return np.bincount(self._classes[places], minlength=_CLASSES).astype(np.float64)

    def _forget(self) -> None:
        if (over := self._known - _MOST_RECORDS) > _MOST_RECORDS:
            self._windows, self._classes = self._windows[over:], self._classes[over:]
            self._missed, self._known = self._missed[over:], _MOST_RECORDS

    def derive(self) -> None:
        """Make the table from the counts."""
        prior = np.where(_IS_EVEN, _PRIOR_EVEN, _PRIOR * self._streak)
        weights = self._counts + prior
        rates = (self._misses + prior * (_MIDDLES + _ABOVE_EVEN)) / weights
        early = slice(_SURE + 1, None)
        rates[early], weights[early] = _never_falling(rates[early], weights[early])
        remains = prior / weights
        remains[_SURE] = 0.0
        fixed = rates - remains * _MIDDLES
        # One more class has no raw chance, and states none.
        self._fixed, self._remains = np.append(fixed, 0.0), np.append(remains, 1.0)
        least, most = _between(rates[early], fixed[early], remains[early])
        self._least = np.concatenate([[0.0], least, [0.0]])
        self._most = np.concatenate([[1.0], most, [1.0]])
        total = int(self._counts.sum())
        self._due = min(max(total // _SHARE_NEW, _LEAST_NEW), _MOST_NEW)


def _mean_streak(missed: BoolArray) -> float:
    """Return how many neighbouring windows missed rows together, in the mean; 1 if none did."""
    begins = missed & ~np.append(False, missed[:-1])
    return float(missed.sum() / begins.sum()) if begins.any() else 1.0


def _never_falling(rates: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rates, falling neighbours pooled by weight, and the pooled weights."""
    pooled: list[tuple[float, float, int]] = []  # rate, weight, classes
    for rate, weight in zip(rates.tolist(), weights.tolist(), strict=True):
        classes = 1
        while pooled and pooled[-1][0] > rate:
            other, of_other, more = pooled.pop()
            rate = (rate * weight + other * of_other) / (weight + of_other)  # noqa: PLW2901
            weight, classes = weight + of_other, classes + more  # noqa: PLW2901
        pooled.append((rate, weight, classes))
    sizes = [classes for _, _, classes in pooled]
    return (
        np.repeat([rate for rate, _, _ in pooled], sizes),
        np.repeat([weight for _, weight, _ in pooled], sizes),
    )


def _between(
    rates: FloatArray, fixed: FloatArray, remains: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest chance of each class: none falls at an edge.

    A class ends at its neighbour's rate at most; where two classes overlap, halfway between both.
    """
    ends = np.minimum(fixed[:-1] + remains[:-1] * _EDGES[:-1], rates[1:])
    begins = np.maximum(fixed[1:] + remains[1:] * _EDGES[:-1], rates[:-1])
    halfway = (ends + begins) / 2
    least = np.append(0.0, np.maximum(begins, halfway))
    return least, np.append(np.minimum(ends, halfway), 1.0)
