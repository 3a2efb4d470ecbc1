"""The budget of a policy: of windows that may miss something, or of slack.

```
closed   1 2 3 4 5 6 7 8 9 …        early while (missed + pending + 1) / windows ≤ δ
missed       x                      a late row has shown it
pending            ? ?              closed early, and no type is sure yet: each may have missed one
```
"""

from __future__ import annotations

from math import isqrt
from typing import Literal

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields

GuardWord = Literal["strict", "known", "listed", "none"]
GUARDS: tuple[GuardWord, ...] = ("strict", "known", "listed", "none")


class Budget:
    """What has been spent, and whether one more window may close early.

    Args:
        share: δ; None where slack is bounded instead: then any window may.
        guard: "strict": what is pending counts as missed, so the share is never above δ where
            events of a type come in order. "known": only what is known to have missed. "listed":
            as Listing 3 has it, one window may go above. "none": no guard.
        slack_ns: Δ, the mean slack that is not to be passed; None: no matter.

    Attributes:
        windows, missed, pending: how many have closed and count; have missed something; may have.
        slack_sum_ns: the slack of them all; only counted where it is bounded.
        early, denied: how many closed early; how many would have, but for the budget.

    Source: [probslack] §3.1, the guarding mechanism, Listing 3, lines 5-9; Problem 3.3. Differs:
    (ME + 1)/k, not ME/(k − 1); and what is pending.
    """

    STATE = Fields("windows", "missed", "pending", "slack_sum_ns", "early", "denied")

    def __init__(self, share: float | None, guard: GuardWord, *, slack_ns: int | None) -> None:
        self._share = share
        self._guard = guard
        self.slack_ns = slack_ns
        self.windows = self.missed = self.pending = self.slack_sum_ns = 0
        self.early = self.denied = 0

    def allows(self) -> bool:
        """Return whether the next window may close early."""
        if self._share is None or self._guard == "none":
            return True
        if self._guard == "strict":
            return self.missed + self.pending + 1 <= self._share * (self.windows + 1) + 1e-9
        if self._guard == "known":
            return self.missed + 1 <= self._share * (self.windows + 1) + 1e-9
        return self.missed < self._share * max(self.windows, 1)

    def allows_all(self, more: int) -> bool:
        """Return whether so many more may be missed, and it would still allow and not be spent."""
        if self._share is None:
            return False
        if self._guard == "none":
            return True
        return self.missed + self.pending + more + 1 <= self._share * self.windows

    def has_room(
        self, *, missed: Int64Array, pending: Int64Array, windows: Int64Array
    ) -> BoolArray:
        """Return where it would allow one more and not be spent, whatever the guard.

        Args:
            missed: shape (n,), how many more windows had missed something, at most.
            pending: shape (n,), how many were pending, at most.
            windows: shape (n,), how many more had closed, at least.
        """
        if self._share is None or self._guard == "none":
            return np.full(len(missed), self._share is not None)
        room: BoolArray = self.missed + missed + pending + 1 <= self._share * (
            self.windows + windows
        )
        return room

    @property
    def is_spent(self) -> bool:
        """Whether as many windows are known to have missed something as may: it renews the fit."""
        if self._share is None or self._guard == "none":
            return False
        return self.missed >= self._share * self.windows > 0

    @property
    def is_almost_spent(self) -> bool:
        """Whether it may be spent soon."""
        if self._share is None or self._guard == "none":
            return False
        return self.missed >= 0.9 * self._share * self.windows > 0

    @property
    def is_overdrawn(self) -> bool:
        """Whether the mean slack is above its bound: windows then close as soon as they may."""
        return self.slack_ns is not None and self.slack_sum_ns > self.slack_ns * self.windows

    def longest_slack_ns(self, slide_ns: int) -> int:
        """Return the longest slack of the next window that keeps the mean; with a bound on slack.

        While it waits those behind it wait too. With B spared so far, and m more windows that end
        meanwhile, each at its turn: t − end <= Δ + B/(m + 1) + m·slide/2, for every m.
        """
        assert self.slack_ns is not None
        spared_ns = self.slack_ns * self.windows - self.slack_sum_ns
        likely = isqrt(max(2 * spared_ns // slide_ns, 0))
        return self.slack_ns + min(
            spared_ns // (more + 1) + more * slide_ns // 2
            for more in range(max(likely - 2, 0), likely + 2)
        )
