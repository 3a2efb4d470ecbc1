"""Rows of a stage's next slice: as many as fit into its time.

```
time  ·                    ╱ ·     a slice costs a fixed part, and a part for each row: a line
      ·              ·  ╱          through the times of the last slices tells both. Without slices
      ·         ╱                  of different lengths there is no line, so each twelfth full one
fixed ├ · ╱                        is cut to an eighth.
      └────────────────────── rows
```

A window's fixed part may be a millisecond, that of a model 20 ms; another function takes 5 ms for
each row. A slice is so long that its fixed part is at most a fifth of it, and longer if its rows
have waited for long: see `backlog.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.runtime.config import Limits
from slackwater.runtime.model.slice_time import time_of_rows
from slackwater.runtime.model.state import Fields

__all__ = ["FIRST_ROWS", "MOST_GROWTH", "SOURCE_GROWTH", "SliceSize"]

FIRST_ROWS = 64
"""Of a stage's first slice, while nothing is known: nothing else of the slot runs meanwhile."""
FAR_TOO_LONG = 4
"""A slice of so many times `slice_ns` is not made longer to see what its rows cost, but shorter."""
WEIGHT_OF_OLD = 15 / 16
"""Weight of the slices so far, when the next one is noted: the line follows in some ten slices."""
OUTLIER = 2
"""A slice that took longer than so many times the line says counts as one of that time."""
FEW = 16
"""A slice of less than a sixteenth of the rows tells nothing of full ones."""
MOST_GROWTH, SOURCE_GROWTH = 4, 64
"""A slice has at most so many times the rows of the one before: the line goes further than it was
seen. Doubling from 64 rows took 32 of the 113 ms of a slot with a replica of a dense join. A source
looks at each row by itself, so its line goes on as it began; and each of its short slices is a
message to each of its replicas, which costs as much as a long one."""
SHORT_EVERY, SHORT = 12, 8
LEAST_SPREAD = 0.1
"""Spread of lengths, by their mean, from which on they make a line."""


class SliceSize:
    """The length of one stage's slices.

    Args:
        limits: `slice_ns` is the time of a slice with a short fixed part; `min_slice_rows` are
            taken if their time is no longer than the fixed part; `max_slice_rows` the most.
        longest_ns: time of a slice with a long fixed part, or of rows that have waited.
        most_growth: most rows of a slice by those of the one before.
        first_rows: rows of the first slice.

    Attributes:
        rows: most rows of the next slice, if its rows have not waited.
        is_full: whether the last slice took as many rows as it might.
    """

    STATE = Fields("rows", "is_full", "_full", "_tried", "_sums", "_since_short")

    def __init__(
        self,
        limits: Limits,
        *,
        longest_ns: int,
        most_growth: int = MOST_GROWTH,
        first_rows: int = FIRST_ROWS,
    ) -> None:
        self._limits, self._longest_ns = limits, longest_ns
        self._most_growth = most_growth
        self._usual_ns = min(limits.slice_ns, longest_ns)
        self.rows = self._full = min(first_rows, limits.max_slice_rows)
        self.is_full = False
        self._tried = self._full  # rows of the last full slice
        self._sums = [0.0] * 5  # over slices: of 1, rows, time, rows², rows · time, weighted
        self._since_short = 0
        self._line: tuple[float, float] | None = None  # fixed part and a row's time; of `_sums`

    def derive(self) -> None:
        """Find the line of the slices so far."""
        self._line = line_of(self._sums)

    def took(self, rows: int, took_ns: int) -> None:
        """Note how long a slice of so many rows took."""
        full = self._full
        self.is_full = 2 * rows > self.rows
        if not rows or (rows * FEW < full and took_ns <= self._usual_ns):
            return
        line = self._line
        if line is not None:
            fixed_ns, row_ns = line
            took_ns = min(took_ns, round(OUTLIER * (fixed_ns + rows * row_ns)))
        self._note(rows, max(took_ns, 1))
        if 2 * rows <= full and (line is not None or took_ns <= self._usual_ns):
            self._since_short = 0
            self.rows = full
            return
        self._tried = rows
        if (line := self._line) is None:
            full = self._without_line(rows, took_ns)
        else:
            full = min(self._fitting(line, self._usual_ns), self._most_growth * rows)
        most = self._limits.max_slice_rows
        self._full = self.rows = max(1, min(full, most))
        self._since_short += 1
        if self._since_short >= SHORT_EVERY and self._full < most:
            self._since_short = 0
            self.rows = max(1, self._full // SHORT)

    def within(self, slice_ns: int) -> int:
        """Return the rows of a slice of that time, at most twice those tried."""
        line = self._line
        if line is None or self.rows < self._full or slice_ns <= self._usual_ns:
            return self.rows
        fitting = self._fitting(line, min(slice_ns, self._longest_ns))
        return max(self.rows, min(fitting, 2 * self._tried, self._limits.max_slice_rows))

    def _without_line(self, rows: int, took_ns: int) -> int:
        """Return other rows than those of the last slices, to compare."""
        if took_ns > FAR_TOO_LONG * self._usual_ns and rows > 1:
            return rows // 2
        if took_ns <= self._usual_ns or rows < self._limits.min_slice_rows:
            return rows * min(max(self._usual_ns // max(took_ns, 1), 2), MOST_GROWTH)
        return rows // 2

    def _note(self, rows: int, took_ns: int) -> None:
        # Times scatter in proportion to their length, so a slice counts by 1 / time².
        ones, rows_sum, took_sum, squares, products = self._sums
        weight = 1.0 / (float(took_ns) * took_ns)
        weighted = weight * rows
        self._sums = [
            WEIGHT_OF_OLD * ones + weight,
            WEIGHT_OF_OLD * rows_sum + weighted,
            WEIGHT_OF_OLD * took_sum + weight * took_ns,
            WEIGHT_OF_OLD * squares + weighted * rows,
            WEIGHT_OF_OLD * products + weighted * took_ns,
        ]
        self._line = line_of(self._sums)

    def _fitting(self, line: tuple[float, float], slice_ns: int) -> int:
        fixed_ns, row_ns = line
        limits = self._limits
        rows_ns = time_of_rows(fixed_ns, usual=slice_ns, longest=self._longest_ns)
        rows_ns = max(rows_ns, min(fixed_ns, limits.min_slice_rows * row_ns))
        most = limits.max_slice_rows
        return most if rows_ns >= most * row_ns else max(1, round(rows_ns / row_ns))


def line_of(sums: Sequence[float]) -> tuple[float, float] | None:
    """Return fixed part and time of a row; None if lengths are too equal.

    Args:
        sums: sums over slices of 1, rows, time, rows², rows · time, weighted.
    """
    weight, rows, took, squares, products = sums
    if not weight:
        return None
    mean, mean_ns = rows / weight, took / weight
    spread = squares / weight - mean * mean
    if spread < (LEAST_SPREAD * mean) ** 2:
        return None
    row_ns = (products / weight - mean * mean_ns) / spread
    row_ns = min(max(row_ns, 0.0), mean_ns / mean)
    return mean_ns - row_ns * mean, row_ns
