"""The normal form of a pattern: alternatives, each a sequence of places.

Matchers work on it.

```
seq(A, no(N), any_of(2, B, C), repeat(D, 2, 3))
place    0: A      1: two of B, C      2: D, two or three times
barred             N, before it
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slackwater.runtime.expressions.expressions import Expr


@dataclass(frozen=True, eq=False)
class Asked:
    """An event that a pattern asks for; each is numbered in `Normal.asked`.

    Attributes:
        name: its name.
        types: values of the type column that it may have; None if any.
        where: a predicate over the columns of its row; None if any row will do.
        also: a predicate over its row, and earlier events of the match: their columns are named
            "event.column" there. None if it has none.
        refers: names of the events that `also` reads.
    """

    name: str
    types: tuple[Any, ...] | None = None
    where: Expr | None = None
    also: Expr | None = None
    refers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Place:
    """A place of a sequence: an event, several in any order, or a repeated one.

    Exactly one of these: `count` > 1 or `distinct` (several in any order), `most` ≠ 1 (repeated),
    or neither: one event.

    Attributes:
        asked: numbers of what fits here, the first of them that an event fits counts.
        count: number of events, of different numbers of `asked`, in any order.
        distinct: column whose values differ among the events, in place of that.
        least: number of times that it must come.
        most: number of times that it may come; None if any number may.
        barred: numbers of what may not come between the last event of the place before and the
            first one of this place; of the first place: none.
    """

    asked: tuple[int, ...]
    count: int = 1
    distinct: str | None = None
    least: int = 1
    most: int | None = 1
    barred: tuple[int, ...] = ()

    @property
    def is_any(self) -> bool:
        """Whether it is several events in any order."""
        return self.count > 1 or self.distinct is not None

    @property
    def is_repeated(self) -> bool:
        """Whether one event comes several times, or may."""
        return self.most != 1


@dataclass(frozen=True)
class Sequence:
    """An alternative of a pattern.

    Attributes:
        places: places, at least one.
        barred_after: numbers of what may not come from its last event to the end of the scope.
    """

    places: tuple[Place, ...]
    barred_after: tuple[int, ...] = ()


@dataclass(frozen=True)
class Normal:
    """A pattern, whole.

    Attributes:
        asked: all events of the pattern, by number.
        alternatives: alternatives, at least one.
    """

    asked: tuple[Asked, ...]
    alternatives: tuple[Sequence, ...]

    @cached_property
    def once(self) -> frozenset[int]:
        """Numbers of the events that are in every match, just once."""
        alone = [
            [
                place.asked[0]
                for place in sequence.places
                if len(place.asked) == 1 and not place.is_any and not place.is_repeated
            ]
            for sequence in self.alternatives
        ]
        in_all = frozenset(alone[0])
        for sequence, numbers in zip(self.alternatives, alone, strict=True):
            others = [number for place in sequence.places for number in place.asked]
            in_all &= {number for number in numbers if others.count(number) == 1}
        return in_all
