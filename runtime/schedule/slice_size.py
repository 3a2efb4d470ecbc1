"""How many rows a stage's next slice has: as many as fit into the time that a slice may take.

A slice has a fixed part and a part for each row, and which of them is large is not known: a
window's may take a millisecond whatever its rows, a model that a user's function asks 20 ms, and
another function 5 ms for each row. The last two slices of different length tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.config import Limits

__all__ = ["FIRST_ROWS", "SliceSize"]

FIRST_ROWS = 64
"""Of a stage's first slice, while nothing is known: nothing else of the slot runs meanwhile."""
FAR_TOO_LONG = 4
"""A slice of so many times `slice_ns` is not made longer to see what its rows cost, but shorter."""


class SliceSize:
    """The length of one stage's slices.

    Args:
        limits: `min_slice_rows` is what a slice is not cut below, but where its rows, and not its
            fixed part, are what takes long; `max_slice_rows` the most.
        slice_ns: what a slice may take.

    Attributes:
        rows: of the next slice, at most.
    """

    def __init__(self, limits: Limits, *, slice_ns: int) -> None:
        self._limits, self._slice_ns = limits, slice_ns
        self.rows = min(FIRST_ROWS, limits.max_slice_rows)
        self._before = (0, 0)  # rows and time of the last slice that had any

    def took(self, rows: int, took_ns: int) -> None:
        """Note how long a slice of so many rows took."""
        limits, slice_ns = self._limits, self._slice_ns
        least, most = limits.min_slice_rows, limits.max_slice_rows
        before, self._before = self._before, (rows, took_ns) if rows else self._before
        if took_ns > slice_ns:
            fitting = round(rows * slice_ns / took_ns)
            if rows > least:
                self.rows = max(fitting, self.rows // 2, least)
            elif rows:
                self.rows = max(1, min(self._short(before, rows, took_ns, fitting), most))
        elif 2 * rows > self.rows and (2 * took_ns < slice_ns or self.rows < least):
            self.rows = min(2 * self.rows, most)

    def _short(self, before: tuple[int, int], rows: int, took_ns: int, fitting: int) -> int:
        """Return the length after a slice that took too long though it was short already."""
        limits = self._limits
        longer = max(self.rows, min(2 * rows, limits.min_slice_rows))
        rows_before, took_before_ns = before
        if rows_before in (0, rows):  # nothing to compare with
            is_far = took_ns > FAR_TOO_LONG * self._slice_ns
            return rows // 2 if is_far else longer
        row_ns = (took_ns - took_before_ns) / (rows - rows_before)
        return fitting if 2 * rows * row_ns > took_ns else longer

    def snapshot(self) -> dict[str, Any]:
        """Return all state."""
        return {"rows": self.rows, "before": self._before}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a snapshot."""
        self.rows, self._before = state["rows"], tuple(state["before"])
