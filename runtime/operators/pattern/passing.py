"""Passing over rows: for a while none is looked at, and then all are again.

Where all that costs something would have to go, no match is left, and looking at rows is work in
vain. And where few events can be spared, dropping some of them everywhere loses more matches than
to lose stretches of the stream. So rows are passed over until there is room, and then looked at as
ever: what lies in such a stretch is lost, and the rest is whole.

```
level above f·bound                 rows are passed over, until
level at half of that, or below     all are looked at, until it is above f·bound again
```
"""

from __future__ import annotations

from typing import Any

from runtime.operators.pattern.what_if import Judged
from runtime.shedding.counts import ENOUGH

_SAVES = 0.9
"""Of the work of a row, what is saved if it is passed over."""


class PassingOver:
    """Says when rows are passed over, and counts what is lost by that.

    Attributes:
        is_on: whether rows that come now are passed over.
        rows: that were, so far.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.rows = 0
        self._is_better = False  # than dropping events: it was seen to be
        self._looked_at = 0  # rows, since it was first too much
        self._opened = self._given_up = 0  # windows, likewise

    def decide(
        self, *, is_overloaded: bool, share: float, saved_share: float, judged: Judged
    ) -> None:
        """Say anew whether rows are passed over.

        Args:
            is_overloaded: whether something has to go.
            share: of the events that cost something, what would have to go.
            saved_share: of the work of a row, what dropping all of these saves.
            judged: what dropping has cost so far.
        """
        if not is_overloaded:
            self.is_on = False
            return
        if judged.matches >= ENOUGH:
            # To save as much, so many rows have to be passed over, and as many matches are lost.
            instead = share * saved_share / _SAVES
            lost = judged.shared(1) / judged.matches
            # Beyond chance: two deviations of a share are 1 / √matches at most.
            self._is_better = self._is_better or lost - judged.matches**-0.5 > instead
        self.is_on = self.is_on or self._is_better or share >= 1

    def pass_over(self, rows: int, *, windows: int) -> None:
        """Count rows, and windows that are given up for that."""
        self.rows += rows
        self._given_up += windows

    def look_at(self, rows: int) -> None:
        """Count rows that are looked at."""
        self._looked_at += rows

    def opened(self) -> None:
        """Count a window that opens."""
        self._opened += 1

    @property
    def lost_share(self) -> float:
        """The share of windows that were given up, or that never opened."""
        if not self.rows:
            return 0.0
        if not self._opened or not self._looked_at:
            return 1.0
        never = self._opened * self.rows / self._looked_at
        return min((self._given_up + never) / (self._opened + never), 1.0)

    def snapshot(self) -> list[Any]:
        """Return all state, as plain values."""
        counts = [self.rows, self._looked_at, self._opened, self._given_up]
        return [self.is_on, self._is_better, *counts]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot."""
        self.is_on, self._is_better, *counts = state
        self.rows, self._looked_at, self._opened, self._given_up = counts
