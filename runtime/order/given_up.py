"""Numbers of a writer that were given up, to tell late rows from duplicates."""

from __future__ import annotations

from bisect import bisect_right

from slackwater.runtime.model.state import Fields

MOST_GAPS = 4_096
"""Most gaps remembered of a writer: of lower numbers it is unknown whether they were given up."""


class GivenUp:
    """Runs of numbers given up that have not come since, the oldest forgotten first.

    Attributes:
        forgotten: the highest number of a gap that is no longer remembered; None if all are.
    """

    STATE = Fields("_firsts", "_gaps", "forgotten")

    __slots__ = ("_firsts", "_gaps", "forgotten")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._gaps: list[tuple[int, int]] = []  # (last number, when its wait began), by first
        self.forgotten: int | None = None

    def add(self, first: int, last: int, *, opened_ns: int) -> None:
        """Add the numbers from `first` to `last`, missing since `opened_ns`."""
        place = bisect_right(self._firsts, first)
        self._firsts.insert(place, first)
        self._gaps.insert(place, (last, opened_ns))
        if len(self._firsts) > MOST_GAPS:
            del self._firsts[0]
            self.forgotten, _ = self._gaps.pop(0)

    def take(self, number: int) -> int | None:
        """Return since when a number was missing, and forget it; None if not given up."""
        place = bisect_right(self._firsts, number) - 1
        if place < 0 or self._gaps[place][0] < number:
            return None
        first, (last, opened_ns) = self._firsts[place], self._gaps[place]
        left = [(first, number - 1), (number + 1, last)]
        kept = [(a, b) for a, b in left if a <= b]
        self._firsts[place : place + 1] = [a for a, _ in kept]
        self._gaps[place : place + 1] = [(b, opened_ns) for _, b in kept]
        return opened_ns

    def is_forgotten(self, number: int) -> bool:
        """Whether a number is too old to be remembered."""
        return self.forgotten is not None and number <= self.forgotten
