"""State that is saved in steps after its cut, while its machine goes on.

```
cut ─▶ step ─ a b ──────▶ step ─ c d ──▶ done      a slot's loop stands still for a step at a time
             └ the machine is about to change c: c is saved now, as it was at the cut
```

A machine with much state has `snapshot_later()` beside `snapshot()`. It returns a `Later`, and from
then on the machine tells it what it is about to change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from slackwater.runtime.errors import SlackwaterError

__all__ = ["KEYS_AT_ONCE", "Later", "LaterOfMany"]

KEYS_AT_ONCE = 512
"""Keys that are saved in one step: a fraction of a millisecond."""


class Later(ABC):
    """Part of a saved state that is made in steps.

    Attributes:
        plain: its plain value: whole once it is done, and the same object from the beginning.
        is_done: whether it is whole, or given up.
    """

    plain: Any
    is_done = False

    @abstractmethod
    def step(self, most: int) -> None:
        """Save more.

        Args:
            most: number of keys at most, or so many times a few hundred numbers.
        """

    def finish(self) -> Any:
        """Save all the rest; return the plain value."""
        while not self.is_done:
            self.step(KEYS_AT_ONCE)
        return self.plain

    def give_up(self) -> None:
        """Stop: the state is not needed."""
        self.is_done = True


class _Saved(Protocol):
    cut: object | None


T = TypeVar("T", bound=_Saved)


class LaterOfMany(Later, Generic[T]):
    """State of many objects, a row for each. Their attribute `cut` says in which cut each was saved.

    Args:
        every: the objects at the cut.
    """

    def __init__(self, every: Sequence[T]) -> None:
        self._every, self._at = every, 0
        self._mark = object()
        self._early: dict[int, Any] = {}  # {id of an object: its row, or why there is none}
        self.is_done = not every

    @abstractmethod
    def row(self, one: T) -> Any:
        """Return the state of an object, which shares nothing that changes with it."""

    @abstractmethod
    def add(self, start: int, rows: Sequence[Any]) -> None:
        """Add rows of objects to the plain value.

        Args:
            start: place of the first object.
            rows: rows of it, and of those that follow.
        """

    def before(self, one: T) -> None:
        """Save an object that is about to change, unless it is saved."""
        if one.cut is self._mark or self.is_done:
            return
        one.cut = self._mark
        try:
            self._early[id(one)] = self.row(one)
        except SlackwaterError as problem:  # of the checkpoint, and not of the slice
            self._early[id(one)] = problem

    def step(self, most: int) -> None:  # noqa: D102 - see Later
        start, self._at = self._at, min(self._at + most, len(self._every))
        rows = []
        for one in self._every[start : self._at]:
            if one.cut is not self._mark:
                one.cut = self._mark
                rows.append(self.row(one))
                continue
            row = self._early.pop(id(one))
            if isinstance(row, SlackwaterError):
                raise row
            rows.append(row)
        self.add(start, rows)
        self.is_done = self._at == len(self._every)
