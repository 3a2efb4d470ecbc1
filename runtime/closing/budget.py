"""Budget of a policy: windows that may miss a row, or slack.

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
    """Counts of closed windows, which say whether the next one may close early.

    Args:
        share: δ; None if slack is bounded instead: then any window may close early.
        guard: "strict": pending windows count as missed, so the share is never above δ where
            events of a type come in order. "known": only windows known to have missed a row count.
            "listed": as in Listing 3, one window may exceed the share. "none": no guard.
        slack_ns: Δ, the largest mean slack; None if slack is unbounded.

    Attributes:
        windows, missed, pending: counted windows that have closed; have missed a row; may have.
        slack_sum_ns: the sum of their slack; only counted if slack is bounded.
        early, denied: windows that closed early; windows that the budget kept from it.

    Source: [probslack] §3.1, the guarding mechanism, Listing 3, lines 5-9; Problem 3.3. Differs:
    (ME + 1)/k, not ME/(k − 1); and pending windows.
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
        """Return whether `more` windows may miss a row and the budget still allows another."""
        if self._share is None:
            return False
        if self._guard == "none":
            return True
        return self.missed + self.pending + more + 1 <= self._share * self.windows

    def has_room(
        self, *, missed: Int64Array, pending: Int64Array, windows: Int64Array
    ) -> BoolArray:
        """Return where the budget allows another window under any guard, and is not spent.

        Args:
            missed: shape (n,), how many more windows had missed a row, at most.
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
        """Whether as many windows missed a row as may: then the fit is renewed."""
        if self._share is None or self._guard == "none":
            return False
        return self.missed >= self._share * self.windows > 0

    @property
    def is_almost_spent(self) -> bool:  # noqa: D102 - its name says it
        if self._share is None or self._guard == "none":
            return False
        return self.missed >= 0.9 * self._share * self.windows > 0

    @property
    def is_overdrawn(self) -> bool:
        """Whether the mean slack exceeds its bound, so that windows close at once."""
        return self.slack_ns is not None and self.slack_sum_ns > self.slack_ns * self.windows

    def longest_slack_ns(self, slide_ns: int) -> int:
        """Return the longest slack of the next window that keeps the mean slack.

        While it waits, younger windows wait too. With B saved so far, and m more windows that end
        meanwhile, each at its turn: t − end <= Δ + B/(m + 1) + m·slide/2, for every m.
        """
        assert self.slack_ns is not None
        spared_ns = self.slack_ns * self.windows - self.slack_sum_ns
        likely = isqrt(max(2 * spared_ns // slide_ns, 0))
        return self.slack_ns + min(
            spared_ns // (more + 1) + more * slide_ns // 2
            for more in range(max(likely - 2, 0), likely + 2)
        )
