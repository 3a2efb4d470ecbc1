"""Needs: how long late events come after a moment, where a type's events are disordered.

There the next event of a type says nothing of older ones. So the fitted rows are examined at
moments spread evenly over their time: how long after the moment did the last event come that had
happened before it?

```
moment        m1        m2       m3
happened   a  |  b   c  |   d    |
came            a   c     b   d           need of m1: a − m1, of m2: b − m2, of m3: d − m3
```
A window without a row misses none that counts. So there are no moments further after an event than
a window is long: else the moments of one long pause would outweigh all others.

The share of moments with a longer need is the chance that a window misses a row. Types play no
part, and no independence is assumed: events that are late together count once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.candidates import NONE, Candidates, Scope
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import Int64Array

_MOMENTS = 1_024
_LONGEST_TIMES = 3
"""Halves of the longest known wait for which a run lasts before any window counts as complete.

While delays are as long as the run, the longest known wait is always nearly as long as the run.
"""
_SETTLED = 0.999
"""Moments end at the newest arrival less this quantile of delays: after it, events are missing."""


@dataclass(eq=False)
class Needs:
    """Times from a moment until the last event came that had happened before it.

    Attributes:
        needs_ns: shape (moments,), ascending.
        longest_ns: the longest known need or delay.
        unforeseen: the chance that the next one is longer.

    Beyond [probslack], which assumes that events of a type come in order (§2).
    """

    needs_ns: Int64Array
    longest_ns: int
    unforeseen: float

    @classmethod
    def of(
        cls,
        event_time_ns: Int64Array,
        tick_ns: Int64Array,
        *,
        at_most_ns: int | None = None,
        size_ns: int | None = None,
    ) -> Needs:
        """Return the needs of events.

        Args:
            event_time_ns: shape (rows,), at least one.
            tick_ns: shape (rows,), when they came.
            at_most_ns: events that come later than that after a moment are missed in any case; None
                if all are waited for.
            size_ns: size of a window; None if moments may be in any pause.
        """
        delays_ns = tick_ns - event_time_ns
        order = np.argsort(event_time_ns, kind="stable")
        happened, came = event_time_ns[order], tick_ns[order]
        until_ns = int(tick_ns.max() - np.quantile(delays_ns, _SETTLED))
        begin_ns = int(happened[len(happened) // 64])  # before the first events there is no need
        moments = _moments(happened, begin_ns, max(until_ns, begin_ns), size_ns)
        before = np.maximum(np.searchsorted(happened, moments, side="left") - 1, 0)
        needs = np.maximum.accumulate(came)[before] - moments
        if at_most_ns is not None:
            needs = np.minimum(needs, at_most_ns)
        longest_ns = int(max(needs.max(), delays_ns.max()))
        if at_most_ns is not None:
            longest_ns = min(longest_ns, at_most_ns)
        return cls(np.sort(needs), longest_ns, 1 / (1 + len(delays_ns)))

    @property
    def entries(self) -> int:
        """Number of needs kept."""
        return len(self.needs_ns)

    def chance(self, slack_ns: Int64Array) -> FloatArray:
        """Return the chance that a window with this slack misses a row.

        It is never 0: the longest of n delays is shorter than the next with a chance of 1/(n + 1).
        """
        index = np.searchsorted(self.needs_ns, slack_ns, side="right")
        return np.maximum(1.0 - index / len(self.needs_ns), self.unforeseen)

    def least_slack_ns(self, bound: float) -> int:
        """Return the least slack with a chance of at most `bound`."""
        return int(self.needs_ns[max(int(np.ceil((1 - bound) * len(self.needs_ns))) - 1, 0)])


def _moments(happened: Int64Array, begin_ns: int, until_ns: int, size_ns: int | None) -> Int64Array:
    """Return moments spread evenly, save where no event happened for longer than a size."""
    inside = happened[(happened > begin_ns) & (happened < until_ns)]
    knots = np.concatenate([[begin_ns], inside, [until_ns]])
    steps = np.diff(knots)
    if size_ns is None or steps.max() <= size_ns:
        return np.linspace(begin_ns, until_ns, _MOMENTS).astype(np.int64)
    passed = np.concatenate([[0], np.cumsum(np.minimum(steps, size_ns))])
    places = np.linspace(0, passed[-1], _MOMENTS).astype(np.int64)
    knot = np.searchsorted(passed, places, side="right") - 1
    moments: Int64Array = knots[knot] + places - passed[knot]
    return moments


def candidates_in_disorder(
    needs: Needs | None,
    bound: float,
    windows: WindowEnds,
    scope: Scope,
    *,
    now_ns: int,
    end_ns: int,
) -> Candidates:
    """Return when windows may close from `now_ns` to `end_ns`: a fixed slack after their end.

    A window counts as complete when the longest known wait has passed, but no window does before
    the run has lasted for half as long again: until then longer ones could not have been seen.

    Args:
        needs: the known needs; None if there are none: then no window closes.
        bound: the largest chance allowed.
        windows: the windows of the aggregate.
        scope: the windows to decide, and their clock.
        now_ns: the first time, inclusive.
        end_ns: the last time, exclusive.
    """
    last, tick_ns = scope.last, scope.tick_ns
    if needs is None:
        return Candidates(NONE, NONE, NONE, NONE, NONE)
    now_ns = -(-now_ns // tick_ns) * tick_ns

    def from_on(slack_ns: int, first: int) -> tuple[Int64Array, Int64Array]:
        window = np.arange(first, min(windows.first_after(end_ns - slack_ns), last + 1))
        due = -(-(windows.end_ns(window) + slack_ns) // tick_ns) * tick_ns
        opens = ((windows.end_ns(window) - scope.lead_ns) // tick_ns + 1) * tick_ns
        at_ns = np.maximum(np.maximum(due, opens), now_ns)
        return window[at_ns < end_ns], at_ns[at_ns < end_ns]

    window, at_ns = from_on(needs.least_slack_ns(bound), scope.first)
    sure, sure_at_ns = from_on(needs.longest_ns, scope.pending)
    known_ns = windows.end_ns(scope.begun) + needs.longest_ns * _LONGEST_TIMES // 2
    known_ns = -(-known_ns // tick_ns) * tick_ns
    if known_ns >= end_ns:
        sure = sure_at_ns = NONE
    elif len(sure):
        sure_at_ns = np.maximum(sure_at_ns, known_ns)
    return Candidates(
        at_ns,
        window,
        np.full(len(window), end_ns),
        sure_at_ns,
        sure + 1,
    )
