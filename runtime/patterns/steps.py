"""Steps of a listing: a part, and the parts before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slackwater.runtime.patterns.assign import Together
from slackwater.runtime.patterns.naming import Part


@dataclass(frozen=True, slots=True)
class Step:
    """A part in either direction, and the step before it."""

    came: Step | None
    part: Part
    taken: int
    """The number of parts at its place."""
    labels: Together
    """Their labels, where several stand in any order."""

    @property
    def key(self) -> tuple[int, int, int, Together]:
        """The events that can follow depend on this alone, without conditions."""
        return (self.part[0], self.part[1], self.taken, self.labels)

    def parts(self) -> Iterator[Part]:
        """Yield all parts, this one first."""
        step: Step | None = self
        while step is not None:
            yield step.part
            step = step.came


def merged(
    one: Iterator[Part], other: Iterator[Part], *, is_ascending: bool = False
) -> Iterator[Part]:
    """Yield the parts of both by number, then by place; descending by default."""
    left, right = next(one, None), next(other, None)
    while left is not None or right is not None:
        if right is None or (left is not None and (left[:2] < right[:2]) == is_ascending):
            assert left is not None
            yield left
            left = next(one, None)
        else:
            yield right
            right = next(other, None)
