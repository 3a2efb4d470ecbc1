"""The cost of an event, and the saving of a drop, from intervals' times.

While events are dropped the operator looks faster than it is. So time has two parts: every event
takes some, dropped or not, and a kept event takes more. They are a line through the intervals, of
the time over the share of pairs kept.

Events that are in more windows may cost more, whatever is dropped. So each interval's time is
divided by the time that its events would have taken, had nothing been dropped. That is so much for
an event, and so much for each of its pairs with a window, as in intervals without drops.
"""

from __future__ import annotations

from slackwater.runtime.model.state import Fields

_RIDGE = 1e-3
"""How firmly the fixed part keeps its value while only one share of pairs is seen. It begins with
0: all of the time is saved, as [espice] takes it."""
_SOONER = 8
"""The number of an event's windows is forgotten so many times sooner than its cost."""


class Costs:
    """Costs fits a line by least squares, forgets older intervals; no part is negative.

    The line is of ratios: of what an event that is kept would have taken.
    """

    STATE = Fields("_fixed", "_saved", "_lately", "_sums", "_plain")

    def __init__(self) -> None:
        self._fixed = self._saved = 0.0
        self._sums = [0.0] * 5  # sums of weights: time; times kept, kept², ratio, ratio · kept
        self._plain = _Plain()
        self._lately = [0.0, 0.0]  # events, and what they would have taken

    @property
    def whole_ns(self) -> float:
        """The time of an event now, kept in all of its windows; 0: not known."""
        return self.fixed_ns + self.saved_ns

    @property
    def fixed_ns(self) -> float:
        """The time that any event takes."""
        return self._fixed * self._each_ns

    @property
    def saved_ns(self) -> float:
        """The further time of an event that is kept in all of its windows."""
        return self._saved * self._each_ns

    @property
    def _each_ns(self) -> float:
        events, ns = self._lately
        return ns / events if events > 0 else 0.0

    @property
    def pairs_each(self) -> float:
        """The mean number of windows of an event, at least 1."""
        events, pairs = self._plain.sums[:2]
        return max(pairs / events, 1.0) if events else 1.0

    def at(self, dropped_share: float) -> float:
        """Return the time that an event takes at a share of pairs dropped."""
        return self.fixed_ns + self.saved_ns * (1.0 - dropped_share)

    def add(
        self, events: int, busy_ns: int, dropped_share: float, *, keep: float, pairs: int = 0
    ) -> None:
        """Count an interval; `keep` is the share that older ones still count."""
        if events <= 0:
            return
        if not dropped_share or not self._plain.is_known:
            self._plain.add(events, pairs, busy_ns, keep=keep)
        taken_ns = self._plain.time_ns(events, pairs)
        if taken_ns <= 0:
            return
        kept, ratio = 1.0 - dropped_share, busy_ns / taken_ns
        added = (1.0, kept, kept * kept, ratio, ratio * kept)
        each = zip(self._sums, added, strict=True)
        self._sums = [keep * old + taken_ns * new for old, new in each]
        self._fit()
        sooner = keep**_SOONER
        self._lately = [
            sooner * old + new
            for old, new in zip(self._lately, (float(events), taken_ns), strict=True)
        ]

    def _fit(self) -> None:
        n, k, kk, t, tk = self._sums
        # The normal equations; the ridge holds the fixed part where nothing tells them apart.
        held = _RIDGE * n
        det = (n + held) * kk - k * k
        fixed = ((t + held * self._fixed) * kk - k * tk) / det if det > 0 else self._fixed
        fixed = min(max(fixed, 0.0), t / n)
        self._fixed = fixed
        self._saved = max((tk - fixed * k) / kk, 0.0) if kk > 0 else self._saved


class _Plain:
    """In intervals without drops: the time of an event, and of each of its pairs."""

    STATE = Fields("sums")

    def __init__(self) -> None:
        self.sums = [0.0] * 5  # sums of events, pairs, ns; of pairs² and pairs · ns for an event

    @property
    def is_known(self) -> bool:
        return self.sums[0] > 0

    def add(self, events: int, pairs: int, ns: int, *, keep: float) -> None:
        added = (events, pairs, ns, pairs * pairs / events, pairs * ns / events)
        self.sums = [keep * old + new for old, new in zip(self.sums, added, strict=True)]

    def time_ns(self, events: int, pairs: int) -> float:
        """Return the time that events would have taken; neither part is negative."""
        n, p, t, pp, pt = self.sums
        det = n * pp - p * p
        if det <= 1e-9 * n * pp or pp <= 0:
            return t / n * events  # nothing tells them apart
        event_ns, pair_ns = (t * pp - p * pt) / det, (n * pt - p * t) / det
        if event_ns < 0:
            return pt / pp * pairs
        return t / n * events if pair_ns < 0 else event_ns * events + pair_ns * pairs
