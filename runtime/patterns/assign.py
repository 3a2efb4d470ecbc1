"""An assignment gives each event of a place a different thing asked for there.

```
all_of(A, B)    x fits A and B, y fits A      x is B, y is A
```

A set of events may be together if an assignment exists. Such sets are the independent sets of a
matroid (a transversal one), so a greedy choice, in any order, is never too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

Label: TypeAlias = Any
"""An event's label: the numbers of what it fits, ascending in their order; or a column's value."""
Together: TypeAlias = Any
"""Labels that are together: sorted numbers, or a frozenset of values."""

NO_FITS: tuple[tuple[int, ...], ...] = ()
NO_VALUES: frozenset[Any] = frozenset()


def with_label(state: Together, label: Label) -> Together | None:
    """Return labels with one more; None if they cannot be together."""
    if isinstance(state, frozenset):
        return None if label in state else state | {label}
    return _with_fits(state, label)


@lru_cache(maxsize=1 << 14)
def _with_fits(
    state: tuple[tuple[int, ...], ...], label: tuple[int, ...]
) -> tuple[tuple[int, ...], ...] | None:
    if len(label) == 1 and label in state:
        return None
    more = tuple(sorted((*state, label)))
    return more if assignable(more) else None


@lru_cache(maxsize=1 << 14)
def assignable(choices: tuple[tuple[int, ...], ...]) -> bool:
    """Return whether each can have one of its choices, all different."""
    if all(len(some) == 1 for some in choices):
        return len(set(choices)) == len(choices)
    owners: dict[int, int] = {}

    def place(one: int, tried: set[int]) -> bool:
        for choice in choices[one]:
            if choice not in tried:
                tried.add(choice)
                if choice not in owners or place(owners[choice], tried):
                    owners[choice] = one
                    return True
        return False

    return all(place(one, set()) for one in range(len(choices)))


@lru_cache(maxsize=1 << 14)
def assigned(choices: tuple[tuple[int, ...], ...]) -> tuple[int, ...] | None:
    """Return the assignment in which the first has its first possible choice, and so on.

    None if no assignment exists.
    """
    if not assignable(choices):
        return None
    things: list[tuple[int, ...]] = list(choices)
    for i, some in enumerate(choices):
        things[i] = next((one,) for one in some if _allows(things, i, one))
    return tuple(one for (one,) in things)


def _allows(choices: Sequence[tuple[int, ...]], i: int, one: int) -> bool:
    return assignable((*choices[:i], (one,), *choices[i + 1 :]))
