"""Losses by shedding: the share of matches that the tried windows have lost.

Windows of a block lie over each other and fare alike, so a block is what is counted when the error
of the share is told: it is the standard error of a ratio of sums over blocks.
"""

from __future__ import annotations

from math import sqrt
from typing import Any


class Losses:
    """Sums over blocks of windows that were tried.

    Attributes:
        windows: that were judged.
        matches: of them, had nothing been dropped.
    """

    def __init__(self) -> None:
        self.windows = self.matches = 0
        self._sums = [0.0] * 3  # matches, lost and false ones, each for as many as it stands for
        self._squares = [0.0] * 3  # of blocks: lost², lost · matches, matches²
        self._block: list[float] = [-1, 0.0, 0.0]  # the last: its number, matches, lost
        self._blocks = 0  # that had a match

    def add(self, block: int, stands_for: float, *, matches: int, lost: int, false: int) -> None:
        """Count a window."""
        self.windows += 1
        self.matches += matches
        if block != self._block[0]:
            self._squares = self._squared()
            self._block = [block, 0.0, 0.0]
        self._blocks += matches > 0 and not self._block[1]
        for at, many in enumerate((matches, lost, false)):
            self._sums[at] += stands_for * many
        self._block[1] += stands_for * matches
        self._block[2] += stands_for * lost

    @property
    def lost_share(self) -> float:
        """Of the matches, those that were not found."""
        return self._sums[1] / self._sums[0] if self._sums[0] else 0.0

    @property
    def false_share(self) -> float:
        """Matches that were found and are none, by those that there are."""
        return self._sums[2] / self._sums[0] if self._sums[0] else 0.0

    @property
    def error(self) -> float:
        """The standard error of the share that was lost."""
        if not self._sums[0]:
            return 1.0
        share, (ll, lm, mm) = self.lost_share, self._squared()
        of_blocks = max(ll - 2 * share * lm + share * share * mm, 0.0) / self._sums[0] ** 2
        # Where all were found, or none, so many blocks do not tell a few from none.
        return sqrt(of_blocks + (1 / (self._blocks + 2)) ** 2)

    def _squared(self) -> list[float]:
        _, matches, lost = self._block
        ll, lm, mm = self._squares
        return [ll + lost * lost, lm + lost * matches, mm + matches * matches]

    def snapshot(self) -> list[Any]:
        """Return all state, as plain values."""
        counts = [self.windows, self.matches, self._blocks]
        return [*counts, list(self._sums), list(self._squares), list(self._block)]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot."""
        self.windows, self.matches, self._blocks = state[:3]
        self._sums, self._squares, self._block = (list(one) for one in state[3:])
