"""Rows of a stage's next slice: as many as fit into its time.

A slice has a fixed part and a part for each row, and which of them is large is not known: a
window's may take a millisecond whatever its rows, a model that a user's function asks 20 ms, and
another function 5 ms for each row. The last two slices of different length tell.
"""

from __future__ import annotations

from slackwater.runtime.config import Limits
from slackwater.runtime.model.state import Fields

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

    STATE = Fields("rows", "_before")

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
        elif 2 * rows > self.rows and 2 * took_ns < slice_ns:
            self.rows = min(2 * self.rows, most)
        elif 2 * rows > self.rows and self.rows < least:
            fitting = round(rows * slice_ns / took_ns)
            self.rows = max(self.rows, min(self._short(before, rows, took_ns, fitting), most))

    def _short(self, before: tuple[int, int], rows: int, took_ns: int, fitting: int) -> int:
        """Return the length after a short slice that took too long.

        Rows get what the fixed part leaves of a slice, or as long as it takes, if that is more.
        """
        longer = max(self.rows, min(2 * rows, self._limits.min_slice_rows))
        rows_before, took_before_ns = before
        is_far = took_ns > FAR_TOO_LONG * self._slice_ns
        if rows_before == 0:  # nothing to compare with
            return rows // 2 if is_far else longer
        if rows_before == rows:  # nor here: somewhat more or less will tell, and costs little
            step = max(1, rows // 4)
            is_less = is_far and rows > 1
            return rows - step if is_less else max(self.rows, min(rows + step, longer))
        row_ns = min((took_ns - took_before_ns) / (rows - rows_before), took_ns / rows)
        if row_ns <= 0:
            return longer
        fixed_ns = took_ns - rows * row_ns
        return min(longer, max(fitting, round(max(self._slice_ns - fixed_ns, fixed_ns) / row_ns)))
