"""Compute the wait before a restart after repeated deaths."""

from __future__ import annotations

__all__ = ["BackOff"]

FIRST_S = 1.0
AT_MOST_S = 30.0
LIVED_S = 30.0
"""A process that lived this long did not die at its start: the next one need not wait."""


class BackOff:
    """Waits of 0, 1, 2, 4 … 30 s; reset by a 30 s life."""

    def __init__(self) -> None:
        self._deaths = 0

    def wait_s(self, *, lived_s: float) -> float:
        """Count a death; return how long to wait before the next start."""
        if lived_s >= LIVED_S:
            self._deaths = 0
        self._deaths += 1
        doublings = min(self._deaths - 2, 10)  # 2.0 ** 1,024 would overflow
        return 0.0 if doublings < 0 else min(FIRST_S * 2.0**doublings, AT_MOST_S)
