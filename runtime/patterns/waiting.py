"""Matches wait for the end of their scope if events to come can forbid them.

A match is not kept: when its scope is over, it is decided which matches there are, and which of
these leave. So an event is used up when its match has left, not before.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.settings import Found

What: TypeAlias = tuple[int, ...]
"""A window, or an event that ends matches, as the matcher knows it."""
Decides: TypeAlias = Callable[[int, What], "tuple[list[Found], tuple[int, What] | None]"]
"""Returns the matches that leave at a time, and perhaps the next (time, what) to ask for."""


class Waiting:
    """Windows and ends of one key that wait, and until when."""

    STATE = Fields("_heap")
    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, What]] = []

    @property
    def due_ns(self) -> int | None:
        """The time when the next is decided; None if none waits."""
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due_ns: int, what: What) -> None:
        """Let something wait for all events up to a time."""
        heapq.heappush(self._heap, (due_ns, what))

    def clear(self) -> None:
        """Forget all: whether something forbids them can no longer be told."""
        self._heap = []

    def decided(self, passed_ns: int, decides: Decides) -> list[Found]:
        """Return the matches whose scope has no event of `passed_ns` or later.

        Args:
            passed_ns: time that has passed, in ns.
            decides: function that returns what leaves.
        """
        matches: list[Found] = []
        while self._heap and self._heap[0][0] < passed_ns:
            leaves, again = decides(*heapq.heappop(self._heap))
            matches += leaves
            if again is not None:
                heapq.heappush(self._heap, again)
        return matches
