"""Account of closed windows: when each closed, and whether it missed a row.

A window counts if it had a row when it closed, or if it missed one later. Windows without a row
would lower the share of misses, so they are counted apart.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.closing.policy import ClosedWindows, ClosingCounts, FloatArray
from slackwater.runtime.closing.windows import Ranges, WindowEnds, exact_sum, merged
from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.state import Fields


class Account:
    """Closed windows of one run.

    Attributes:
        open: the first open window; None if no row has come.
        first: the first window that counts.
        windows, early, missed: counted windows: all, those closed before it was sure, those that
            missed a row. A window before the first counts once it misses a row: it closed with the
            first, and had no row.
        empty: windows that closed without a row, and have missed none.
    """

    STATE = Fields(
        "open",
        "first",
        "windows",
        "early",
        "missed",
        "empty",
        "_slack_ns",
        "_missing",
        "_leapt",
        "_taken",
        "_leapt_early",
        "_taken_early",
        "_closed",
    )

    def __init__(self, windows: WindowEnds) -> None:
        self._windows = windows
        self.open: int | None = None
        self.first = 0
        self.windows = self.early = self.missed = self.empty = self._slack_ns = 0
        self._missing = Ranges()
        self._leapt = Ranges()  # windows that closed without a row
        self._taken = Ranges()  # the part of them that missed a row, and so counts
        self._leapt_early = Ranges()  # the part of `_leapt` that was not sure when it closed
        self._taken_early = Ranges()
        self._closed: list[tuple[Int64Array, Int64Array, FloatArray]] = []  # to report

    def begin(self, window: int) -> None:
        """Start the account at a window."""
        self.open = self.first = window

    @property
    def closed_ns(self) -> int:
        """End of the last window that has closed; START_NS before any."""
        if self.open is None or self.open == self.first:
            return START_NS
        return self._windows.end_ns(self.open - 1)

    def close(
        self, windows: Int64Array, at_ns: Int64Array, chances: FloatArray, *, early: int = 0
    ) -> None:
        """Note windows that count as closed: all arrays of shape (windows,), ascending."""
        self._closed.append((windows, at_ns, chances))
        self.windows += len(windows)
        self.early += early
        self._slack_ns += exact_sum(at_ns - self._windows.end_ns(windows))

    def leap(self, first: int, last: int, *, early: bool = False) -> None:
        """Note windows that closed without a row; `early`: before it was sure."""
        self.empty += self._leapt.add(first, last)
        if early:
            self._leapt_early.add(first, last)

    def leap_between(self, windows: Int64Array, first: int, last: int) -> None:
        """Note all windows of first … last but these, ascending, as closed without a row."""
        begins = np.concatenate([[first], windows + 1])
        ends = np.concatenate([windows - 1, [last]])
        self.empty += self._leapt.add_all(*merged(begins, ends))

    def miss(self, first: int, last: int) -> int:
        """Note that closed windows have missed a row; return how many are new.

        Windows before the first closed together with it.
        """
        new_before = self._missing.add(first, min(last, self.first - 1))
        self.windows += new_before
        first = max(first, self.first)
        new = self._missing.add(first, last)
        if new and self._leapt:
            for low, high in self._leapt.within(first, last):
                now_counted = self._taken.add(low, high)
                self.windows += now_counted
                self.empty -= now_counted
            for low, high in self._leapt_early.within(first, last):
                self.early += self._taken_early.add(low, high)
        self.missed += new_before + new
        return new_before + new

    def miss_all(self, firsts: Int64Array, lasts: Int64Array) -> int:
        """Note missed rows of ranges of windows, ascending, that do not touch."""
        if not self._leapt and len(firsts) and firsts[0] >= self.first:
            new = self._missing.add_all(firsts, lasts)
            self.missed += new
            return new
        return sum(map(self.miss, firsts.tolist(), lasts.tolist()))

    def closings(self) -> ClosedWindows:
        """Return the windows that have closed since the last call."""
        if not self._closed:
            nothing = np.empty(0, dtype=np.int64)
            return ClosedWindows(nothing, nothing, np.empty(0))
        windows = np.concatenate([part[0] for part in self._closed])
        at_ns = np.concatenate([part[1] for part in self._closed])
        chances = np.concatenate([part[2] for part in self._closed])
        self._closed.clear()
        return ClosedWindows(self._windows.end_ns(windows), at_ns, chances)

    def counts(self, promised: float | None) -> ClosingCounts:
        """Return the counts so far."""
        return ClosingCounts(
            self.windows, self.early, self.missed, self._slack_ns, promised, self.empty
        )
