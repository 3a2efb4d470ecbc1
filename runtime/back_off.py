"""Pauses before a call to the outside is tried again."""

from __future__ import annotations

__all__ = ["pause_ns"]

FIRST_PAUSE_NS, LONGEST_PAUSE_NS = 100_000_000, 10_000_000_000


def pause_ns(raised: int) -> int:
    """Return the pause after a call raised; it doubles from 0.1 s to 10 s.

    Args:
        raised: how often it raised before, in a row.
    """
    return min(FIRST_PAUSE_NS << min(raised, 10), LONGEST_PAUSE_NS)
