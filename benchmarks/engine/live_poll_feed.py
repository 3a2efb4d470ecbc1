"""The feed of `live-poll`: rows as the clock reaches them, a few at a call.

It uses the standard library only, so that Bytewax's interpreter reads it too.
"""

from __future__ import annotations

import time

__all__ = ["KEYS", "Feed", "Row"]

KEYS = 100
REST_S = 0.001
"""Least rest of an input without rows, as of a device or a queue."""
MOST_S = 0.1
"""Longest rest, so that a job can end."""

Row = tuple[int, str, int, int]
"""Number from 0, key, value, event time in ns: when the row was due."""


class Feed:
    """Rows at regular intervals, each handed over once.

    Args:
        start_ns: by `time.time_ns`, when row 0 is due; whole microseconds.
        rate: rows a second, a divisor of 1,000,000.
        rows: of the whole feed.
        first: number of the first row to hand over.
    """

    def __init__(self, start_ns: int, *, rate: int, rows: int, first: int = 0) -> None:
        self._start_ns, self._rows = start_ns, rows
        self._every_ns = 1_000_000_000 // rate
        self._next = first

    @property
    def next_number(self) -> int:
        """Return the number of the next row."""
        return self._next

    @property
    def is_over(self) -> bool:
        """Whether all rows were handed over."""
        return self._next == self._rows

    def rest_s(self) -> float:
        """Return how long to rest before the next call: 0 if a row is due."""
        wait_s = (self._start_ns + self._next * self._every_ns - time.time_ns()) / 1e9
        return 0.0 if wait_s <= 0 else min(max(wait_s, REST_S), MOST_S)

    def due(self) -> list[Row]:
        """Return the rows that have come due since the last call."""
        passed = (time.time_ns() - self._start_ns) // self._every_ns + 1
        first, self._next = self._next, max(self._next, min(passed, self._rows))
        return [
            (n, f"k{n % KEYS}", n * 31 % 1_000, self._start_ns + n * self._every_ns)
            for n in range(first, self._next)
        ]
