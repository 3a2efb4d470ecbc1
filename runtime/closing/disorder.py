"""Events that do not come in order within a type: the chance that any is still to come.

The next event of a type says nothing then of those behind it. So it is asked of the rows that were
fitted, at moments spread evenly over their time: how long after this moment did the last event
come that happened before it?

```
moment        m1        m2       m3
happened   a  |  b   c  |   d    |
came            a   c     b   d           need of m1: a − m1, of m2: b − m2, of m3: d − m3
```
The share of moments with a longer need is the chance that a window misses something. No type is
asked, no independence assumed: events that are late together count once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.candidates import NONE, Asked, Candidates
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import Int64Array

_MOMENTS = 1_024
_SETTLED = 0.999
"""Moments count up to the newest arrival less this quantile of delays: later, some is to come."""


@dataclass(eq=False)
class Needs:
    """How long after a moment the last event came that had happened before it.

    Attributes:
        needs_ns: shape (moments,), ascending.
        longest_ns: the longest need, or delay, that is known.
        unforeseen: the chance that the next is longer.

    Beyond [probslack], which assumes that events of a type come in order (§2).
    """

    needs_ns: Int64Array
    longest_ns: int
    unforeseen: float

    @classmethod
    def of(
        cls, event_time_ns: Int64Array, tick_ns: Int64Array, *, at_most_ns: int | None = None
    ) -> Needs:
        """Return the needs of events.

        Args:
            event_time_ns: shape (rows,), at least one.
            tick_ns: shape (rows,), when they came.
            at_most_ns: what comes later than that after a moment is missed anyway; None: waited
                for.
        """
        delays_ns = tick_ns - event_time_ns
        order = np.argsort(event_time_ns, kind="stable")
        happened, came = event_time_ns[order], tick_ns[order]
        until_ns = int(tick_ns.max() - np.quantile(delays_ns, _SETTLED))
        begin_ns = int(happened[len(happened) // 64])  # the first have nothing before them
        moments = np.linspace(begin_ns, max(until_ns, begin_ns), _MOMENTS).astype(np.int64)
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
        """How many values are kept."""
        return len(self.needs_ns)

    def chance(self, slack_ns: Int64Array) -> FloatArray:
        """Return the chance that a window misses something that closes so long after its end.

        It is never 0: the longest of n delays is shorter than the next with a chance of 1/(n + 1).
        """
        index = np.searchsorted(self.needs_ns, slack_ns, side="right")
        return np.maximum(1.0 - index / len(self.needs_ns), self.unforeseen)

    def least_slack_ns(self, bound: float) -> int:
        """Return the least slack with a chance of at most `bound`."""
        return int(self.needs_ns[max(int(np.ceil((1 - bound) * len(self.needs_ns))) - 1, 0)])


def candidates_in_disorder(
    needs: Needs | None,
    bound: float,
    windows: WindowEnds,
    asked: Asked,
    *,
    now_ns: int,
    end_ns: int,
) -> Candidates:
    """Return when windows may close from `now_ns` to `end_ns`: some time after their end.

    It is sure that one is complete when the longest need that is known has passed.

    Args:
        needs: what is known; None: nothing closes.
        bound: what the chance may be.
        windows: which there are.
        asked: which of them are asked for.
        now_ns: from when on.
        end_ns: before when.
    """
    last, tick_ns = asked.last, asked.tick_ns
    if needs is None:
        return Candidates(NONE, NONE, NONE, NONE, NONE)
    now_ns = -(-now_ns // tick_ns) * tick_ns

    def from_on(slack_ns: int, first: int) -> tuple[Int64Array, Int64Array]:
        window = np.arange(first, min(windows.first_after(end_ns - slack_ns), last + 1))
        due = -(-(windows.ends_ns(window) + slack_ns) // tick_ns) * tick_ns
        opens = ((windows.ends_ns(window) - asked.lead_ns) // tick_ns + 1) * tick_ns
        at_ns = np.maximum(np.maximum(due, opens), now_ns)
        return window[at_ns < end_ns], at_ns[at_ns < end_ns]

    window, at_ns = from_on(needs.least_slack_ns(bound), asked.first)
    sure, sure_at_ns = from_on(needs.longest_ns, asked.pending)
    return Candidates(
        at_ns,
        window,
        np.full(len(window), end_ns),
        sure_at_ns,
        sure + 1,
    )
