"""Stamped events have clocks that may be off: each happened within a stretch.

```
      ├──1──┤                 somewhere in [t − bound, t + bound], either end included
          ├──2──┤  ├─3─┤      1 and 2: either order; both are surely before 3
```

Where two bounds are zero there is no doubt: the order of the stream decides between equal times.
Events that only touch may be either way round.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, TypeAlias

Moment: TypeAlias = tuple[int, int]
"""A point in time, and a number that tells equal points apart."""
BELOW, ABOVE = -1, 2**63
"""Such numbers below and above the place of any event in the stream."""
OFF = "#off"
"""The key of an event's values for how far its clock may be off, in ns."""


@dataclass(frozen=True, slots=True, eq=False)
class Stamped:
    """An event.

    Attributes:
        time_ns: time by its clock.
        off_ns: how far that may be off, either way.
        turn: its place in the whole stream.
        fits: numbers of what it fits.
        values: the values of the columns that must differ, and `OFF`.
        begin: earliest moment at which it happened; if its clock may be off, not at this moment
            itself.
        end: latest moment at which it happened; if its clock may be off, not at this moment itself.
    """

    time_ns: int
    off_ns: int
    turn: int
    fits: tuple[int, ...]
    values: dict[str, Any]
    begin: Moment
    end: Moment

    def is_surely_before(self, other: Stamped) -> bool:
        """Return whether it is, whatever clocks are off by."""
        return self.end < other.begin


def stamped(time_ns: int, turn: int, fits: tuple[int, ...], values: dict[str, Any]) -> Stamped:
    """Return an event; `values` has how far its clock may be off."""
    off_ns = values[OFF]
    ties = (BELOW, ABOVE) if off_ns else (turn, turn)
    begin, end = (time_ns - off_ns, ties[0]), (time_ns + off_ns, ties[1])
    return Stamped(time_ns, off_ns, turn, fits, values, begin, end)


class Lane:
    """A lane has one key's events that fit some of given things."""

    __slots__ = ("events", "times_ns")

    def __init__(self) -> None:
        self.events: list[Stamped] = []
        self.times_ns: list[int] = []

    @property
    def newest_ns(self) -> int:
        """The time of the last event; of an empty lane, below all times."""
        return self.times_ns[-1] if self.times_ns else -(2**62)

    def add(self, event: Stamped) -> None:  # noqa: D102
        self.events.append(event)
        self.times_ns.append(event.time_ns)

    def since(self, time_ns: int) -> int:
        """Return the place of the first that is not before a time, by its clock."""
        return bisect_left(self.times_ns, time_ns)

    def between(self, low_ns: int, high_ns: int) -> list[Stamped]:
        """Return those from one time to another, both included, by their clocks."""
        return self.events[self.since(low_ns) : self.since(high_ns + 1)]

    def forget_before(self, time_ns: int) -> None:
        """Forget events before a time, if they are half of all."""
        gone = self.since(time_ns)
        if gone and 2 * gone >= len(self.events):
            del self.events[:gone], self.times_ns[:gone]
