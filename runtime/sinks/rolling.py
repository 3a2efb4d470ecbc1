"""Rolling policy: a part of an output ends by rows, or by rows and time.

By rows alone, the ends depend only on the rows, so that two runs write the same files.
"""

from __future__ import annotations

from slackwater.runtime.model.state import Fields
from slackwater.runtime.sinks.output import SinkTraits

__all__ = ["GROUP_ROWS", "PART_ROWS", "RollingPolicy"]

GROUP_ROWS = 65_536
"""Rows of a row group: about a megabyte of each column, which a reader takes at a time."""
PART_ROWS = 4_000_000
"""Rows of a part by default: files of some hundred megabytes."""


class RollingPolicy:
    """Counts the rows of the part that is being written.

    Args:
        traits: traits of the output.
    """

    STATE = Fields("_rows", "_first_ns")

    def __init__(self, traits: SinkTraits) -> None:
        self._most, self._every_ns = traits.rows, traits.every_ns
        self._rows = 0
        self._first_ns: int | None = None

    @property
    def is_timed(self) -> bool:
        """Whether a part also ends by time."""
        return self._every_ns is not None

    @property
    def due_ns(self) -> int | None:
        """Time at which the part ends without further rows; None if it waits."""
        if self._first_ns is None or self._every_ns is None:
            return None
        return self._first_ns + self._every_ns

    def take(self, rows: int) -> tuple[int, bool]:
        """Count rows as the part's; return how many fit it, and whether it is full."""
        rows_added = rows if self._most is None else min(rows, self._most - self._rows)
        self._rows += rows_added
        if self._rows != self._most:
            return rows_added, False
        self._rows = 0
        return rows_added, True

    def wrote(self, now_ns: int) -> None:
        """Let the part's time run since its first write."""
        if self._first_ns is None:
            self._first_ns = now_ns

    def flushed(self) -> None:
        """End the part's time."""
        self._first_ns = None

    def is_restored(self) -> None:
        """Let the part's time begin at 0: its first write was by another process's clock."""
        if self._first_ns is not None:
            self._first_ns = 0

    def cut_short(self) -> None:
        """End the part before it is full."""
        self._rows = 0
