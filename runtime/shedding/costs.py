"""What an event costs, and what dropping it saves: from how long intervals took.

While events are dropped the operator looks faster than it is. So time is taken apart into what
every event takes, dropped or not, and what one takes that is kept: a line through the intervals, of
the time for an event over the share of pairs kept.
"""

from __future__ import annotations

_RIDGE = 1e-3
"""How firmly the fixed part stays as it was found before, while one share of pairs is seen only. It
begins with 0: all of the time is saved, as [espice] takes it."""


class Costs:
    """Least squares of a line with older intervals forgotten; neither part is negative.

    Attributes:
        fixed_ns: what any event takes.
        saved_ns: what one takes besides if it is kept in all of its windows.
    """

    def __init__(self) -> None:
        self.fixed_ns = self.saved_ns = 0.0
        self._sums = [0.0] * 5  # of weights: events; times kept, kept², ns, ns · kept

    @property
    def whole_ns(self) -> float:
        """What an event takes that is kept in all of its windows; 0: not known."""
        return self.fixed_ns + self.saved_ns

    def at(self, dropped_share: float) -> float:
        """Return what an event takes at a share of pairs dropped."""
        return self.fixed_ns + self.saved_ns * (1.0 - dropped_share)

    def add(self, events: int, busy_ns: int, dropped_share: float, *, keep: float) -> None:
        """Count an interval; `keep` is the share that older ones still count."""
        if events <= 0:
            return
        kept, each_ns = 1.0 - dropped_share, busy_ns / events
        added = (1.0, kept, kept * kept, each_ns, each_ns * kept)
        self._sums = [keep * old + events * new for old, new in zip(self._sums, added, strict=True)]
        self._fit()

    def _fit(self) -> None:
        n, k, kk, t, tk = self._sums
        # The normal equations; the ridge holds the fixed part where nothing tells them apart.
        held = _RIDGE * n
        det = (n + held) * kk - k * k
        fixed = ((t + held * self.fixed_ns) * kk - k * tk) / det if det > 0 else self.fixed_ns
        fixed = min(max(fixed, 0.0), t / n)
        self.fixed_ns = fixed
        self.saved_ns = max((tk - fixed * k) / kk, 0.0) if kk > 0 else self.saved_ns

    def snapshot(self) -> list[float]:
        """Return all state, as plain values."""
        return [self.fixed_ns, self.saved_ns, *self._sums]

    def restore(self, state: list[float]) -> None:
        """Continue from a snapshot."""
        self.fixed_ns, self.saved_ns = float(state[0]), float(state[1])
        self._sums = [float(one) for one in state[2:]]
