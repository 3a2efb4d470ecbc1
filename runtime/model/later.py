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

__all__ = ["KEYS_AT_ONCE", "Later", "LaterOfMany", "SavedEach"]

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


class SavedEach(Protocol):
    """Object of a key, of many.

    Attributes:
        code: code of its key.
        cut: the last cut in which it was saved.
        is_gone: whether another one has its place.
    """

    code: int
    cut: object | None
    is_gone: bool


T = TypeVar("T", bound=SavedEach)


class LaterOfMany(Later, Generic[T]):
    """State of many objects, a row for each.

    Args:
        every: objects at the cut, and after these more that are added later.
    """

    def __init__(self, every: Sequence[T]) -> None:
        self._every, self._size, self._at = every, len(every), 0
        self._mark = object()
        self._early: dict[int, Any] = {}  # {id of an object: its row, or an error}
        self.is_done = not every

    @abstractmethod
    def row(self, subject: T) -> Any:
        """Return the state of an object, which shares nothing that changes with it."""

    @abstractmethod
    def add(self, rows: Sequence[Any]) -> None:
        """Add rows, in the order of the objects, to the plain value."""

    def before(self, subject: T) -> None:
        """Save an object that will change, or be replaced, unless it is saved."""
        if subject.cut is self._mark or self.is_done:
            return
        subject.cut = self._mark
        try:
            self._early[id(subject)] = self.row(subject)
        except SlackwaterError as problem:  # of the checkpoint, and not of the slice
            self._early[id(subject)] = problem

    def before_all(self) -> None:
        """Save all objects: all of them are about to change."""
        for subject in self._every[self._at : self._size]:
            if not subject.is_gone:
                self.before(subject)

    def step(self, most: int) -> None:  # noqa: D102 - see Later
        start, self._at = self._at, min(self._at + most, self._size)
        rows = []
        for subject in self._every[start : self._at]:
            if subject.cut is self._mark:
                if isinstance(row := self._early.pop(id(subject)), SlackwaterError):
                    raise row
                rows.append(row)
            elif not subject.is_gone:
                subject.cut = self._mark
                rows.append(self.row(subject))
        if rows:
            self.add(rows)
        self.is_done = self._at == self._size
