"""A log has the fitting events of a key, as long as scopes reach back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from slackwater.runtime.model.state import Fields


class Log:
    """Events in order.

    Attributes:
        numbers: ascending.
        times_ns: their times, never descending.
        fits: {number: numbers of what it fits}.
        values: {number: {column: value}} of columns that must differ.
        turns: {number: its place in the whole stream}.
    """

    STATE = Fields("numbers", "times_ns", "fits", "values", "turns")
    __slots__ = ("fits", "numbers", "times_ns", "turns", "values")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.times_ns: list[int] = []
        self.fits: dict[int, tuple[int, ...]] = {}
        self.values: dict[int, dict[str, Any]] = {}
        self.turns: dict[int, int] = {}

    def add(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None,
    ) -> None:
        """Take the next event."""
        self.numbers.append(number)
        self.times_ns.append(time_ns)
        self.fits[number] = fits
        self.turns[number] = turn
        if values is not None:
            self.values[number] = values

    @property
    def newest_ns(self) -> int:
        """The time of the last event; of an empty log, below all times."""
        return self.times_ns[-1] if self.times_ns else -(2**62)

    def number_at(self, time_ns: int) -> int:
        """Return the least number of an event here that is not before a time.

        Without such an event, a number above all.
        """
        index = bisect_left(self.times_ns, time_ns)
        if index < len(self.numbers):
            return self.numbers[index]
        return self.numbers[-1] + 1 if self.numbers else 1

    def time_of(self, number: int) -> int:
        """Return the time of an event that is here."""
        return self.times_ns[bisect_left(self.numbers, number)]

    def last_at(self, time_ns: int) -> int:
        """Return the greatest number of an event here not after a time; one must exist."""
        return self.numbers[bisect_right(self.times_ns, time_ns) - 1]

    def since(self, low: int) -> list[int]:
        """Return the numbers from one on."""
        return self.numbers[bisect_left(self.numbers, low) :]

    def forget(self, below: int) -> bool:
        """Forget lower numbers, if they are half of all; return whether it did."""
        gone = bisect_left(self.numbers, below)
        if not gone or 2 * gone < len(self.numbers):
            return False
        for number in self.numbers[:gone]:
            del self.fits[number], self.turns[number]
            self.values.pop(number, None)
        del self.numbers[:gone], self.times_ns[:gone]
        return True
