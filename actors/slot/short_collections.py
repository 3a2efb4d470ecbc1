"""Collections of cyclic garbage that are short, whatever a job keeps.

Python looks at all objects whenever their number has grown by a quarter: with a million keys in a
pattern that took four fifths of the CPU, and seconds at a time. Here objects that survived a
collection are set aside, so the next looks at what came since; all are looked at when as many were
set aside as at the last time, so garbage among them is never more than that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["short_collections"]

LEAST = 2_000_000
"""Objects that are set aside before all are looked at again, at least: some 0.1 s of a look."""


@contextmanager
def short_collections(least: int = LEAST) -> Iterator[None]:
    """Set aside what exists, and in this block what survives, in this process.

    Args:
        least: number of objects that are set aside before all are looked at.
    """
    survivors = _Survivors(least)
    gc.freeze()
    gc.callbacks.append(survivors.note)
    try:
        yield
    finally:
        gc.callbacks.remove(survivors.note)


class _Survivors:
    """Counts objects that were set aside since all were looked at."""

    def __init__(self, least: int) -> None:
        self._least = self._limit = least
        self._count = 0
        self._is_whole = False

    def note(self, phase: str, info: dict[str, Any]) -> None:
        """Set aside what survived a whole collection, or see that the next looks at all."""
        if phase != "stop" or info["generation"] != 2:
            return
        survived = len(gc.get_objects(generation=2))
        if self._is_whole:
            self._limit, self._count, self._is_whole = max(self._least, survived), 0, False
        else:
            self._count += survived
        gc.freeze()
        if self._count >= self._limit:
            gc.unfreeze()
            self._is_whole = True
