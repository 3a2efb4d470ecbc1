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
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from slackwater.runtime.errors import SlackwaterError

__all__ = ["KEYS_AT_ONCE", "Later", "LaterOfMany", "SavedEach"]

KEYS_AT_ONCE = 128
"""Keys that are saved in one step: a fraction of a millisecond, also where none is in a cache."""


class Later(ABC):
    """Part of a saved state that is made in steps.

    Attributes:
        plain: its plain value: whole once it is done, and the same object from the beginning.
        is_done: whether it is whole, or given up.
        cpu_ns: clock of the CPU time of the thread that saves, given by its host.
        early_ns: CPU time, by that clock, of what was saved before its step, as it was to change.
    """

    plain: Any
    is_done = False
    early_ns = 0

    def __init__(self) -> None:
        self.cpu_ns: Callable[[], int] = int  # it stands still

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
    """State of many objects: columns, to which each object adds its values once.

    Objects that change before their step come earlier in the columns than the others.

    Args:
        every: objects at the cut, and after these more that are added later.
    """

    def __init__(self, every: Sequence[T]) -> None:
        super().__init__()
        self._every, self._size, self._at = every, len(every), 0
        self._mark = object()
        self._problem: SlackwaterError | None = None
        self.is_done = not every

    @abstractmethod
    def add(self, subjects: Sequence[T]) -> None:
        """Add objects to the plain value, which then shares nothing that changes with them."""

    def began(self, subject: T) -> None:
        """Take note of an object that has begun after the cut: it is not saved."""
        subject.cut = self._mark

    def before(self, subjects: Iterable[T]) -> None:
        """Save objects that will change, or be replaced, unless they are saved."""
        if self.is_done:
            return
        began_ns = self.cpu_ns()
        try:
            self._save(subjects)
        except SlackwaterError as problem:  # of the checkpoint, and not of the slice
            self._problem = problem
        self.early_ns += self.cpu_ns() - began_ns

    def before_all(self) -> None:
        """Save all objects: all of them are about to change."""
        self.before(own for own in self._every[self._at : self._size] if not own.is_gone)

    def step(self, most: int) -> None:  # noqa: D102 - see Later
        if self._problem is not None:
            raise self._problem
        start, self._at = self._at, min(self._at + most, self._size)
        here = self._every[start : self._at]
        self._save(own for own in here if not own.is_gone)
        self.is_done = self._at == self._size

    def _save(self, subjects: Iterable[T]) -> None:
        mark, unsaved = self._mark, []
        for subject in subjects:
            if subject.cut is not mark:
                subject.cut = mark
                unsaved.append(subject)
        if unsaved:
            self.add(unsaved)
