"""Objects of keys, such as matchers, which a cut refers to without a copy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from slackwater.runtime.model.later import LaterOfMany, SavedEach

__all__ = ["OfKeys"]

T = TypeVar("T", bound=SavedEach)
S = TypeVar("S", bound=LaterOfMany[Any])


class OfKeys(dict[int, T]):
    """{code of a key: its object}. Entries are made by `add` only.

    Args:
        objects: the objects to begin with, each with its code.

    Attributes:
        order: all objects, and some that were replaced, to which more are only added.
    """

    def __init__(self, objects: Iterable[T] = ()) -> None:
        super().__init__((subject.code, subject) for subject in objects)
        self.order = list(self.values())

    def add(self, subject: T) -> None:
        """Add an object, perhaps in place of another subject of its key."""
        if (before := self.pop(subject.code, None)) is not None:  # the new object stands last
            before.is_gone = True
        self[subject.code] = subject
        self.order.append(subject)
        if len(self.order) > 2 * len(self) + 1024:
            self.order = list(self.values())

    def save_before(self, codes: Iterable[int], saving: S | None) -> S | None:
        """Save the objects of keys, which are about to change; return the saving.

        None if nothing is being saved, or all is.
        """
        if saving is None:
            return None
        known = map(self.get, codes)
        saving.before(subject for subject in known if subject is not None)
        return None if saving.is_done else saving
