"""Rolling policy: a part of an output ends by rows, or by rows and time.

By rows alone, the ends depend only on the rows, so that two runs write the same files.
"""

from __future__ import annotations

from slackwater.runtime.errors import SettingError

__all__ = ["GROUP_ROWS", "PART_ROWS", "RollingPolicy"]

GROUP_ROWS = 65_536
"""Rows of a row group: about a megabyte of each column, which a reader takes at a time."""
PART_ROWS = 4_000_000
"""Rows of a part by default: files of some hundred megabytes."""


class RollingPolicy:
    """Counts the rows of the part that is being written.

    Args:
        part_rows: rows of a part; None: no limit, the output is one file.
        every_ns: longest wait of a row for the end of its part; None: no limit.
    """

    def __init__(self, part_rows: int | None, every_ns: int | None = None) -> None:
        if part_rows is not None and part_rows < 1:
            raise SettingError(f"rows={part_rows} must be at least 1")
        self._most = part_rows
        self._every_ns = every_ns
        self._rows = 0
        self._first_ns: int | None = None

    @property
    def rows(self) -> int:
        """Rows of the part so far."""
        return self._rows

    @property
    def due_ns(self) -> int | None:
        """Time at which the part ends without further rows; None if it waits."""
        if self._first_ns is None or self._every_ns is None:
            return None
        return self._first_ns + self._every_ns

    def is_due(self, now_ns: int) -> bool:
        """Whether the oldest row of the part has waited long enough."""
        due_ns = self.due_ns
        return due_ns is not None and now_ns >= due_ns

    def take(self, rows: int, now_ns: int) -> tuple[int, bool]:
        """Count rows as written; return how many fit this part, and whether it is full."""
        rows_taken = rows if self._most is None else min(rows, self._most - self._rows)
        if rows_taken and self._first_ns is None:
            self._first_ns = now_ns
        self._rows += rows_taken
        return rows_taken, self._rows == self._most

    def cut(self) -> None:
        """Begin the next part."""
        self._rows, self._first_ns = 0, None
