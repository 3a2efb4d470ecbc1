"""The lists of one window that differs from the others of its key."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.rules import Roles, Rules
from slackwater.runtime.patterns.scopes import Window


class OwnLists:
    """A window with its own lists: it lost events, or used them up.

    `kept` are numbers of events that it has, and the windows that share lists have not.
    """

    STATE = Fields("window", "kept")
    __slots__ = ("_rules", "chains", "kept", "window")

    def __init__(self, window: Window, rules: tuple[Rules, ...]) -> None:
        self.window = window
        self.kept: set[int] = set()
        self._rules = rules
        self.begin()

    def begin(self) -> None:
        """Begin with empty lists."""
        self.chains = [Chain(one) for one in self._rules]

    def remove(self, gone: Collection[int]) -> None:
        """Remove events that are used up."""
        for chain in self.chains:
            chain.remove(gone)

    def take(self, number: int, roles: list[Roles], values: dict[str, Any] | None) -> list[int]:
        """Take an event; return the alternatives of which it ends a match."""
        return [
            which
            for which, chain in enumerate(self.chains)
            if chain.take(number, roles[which], values) is not None
        ]

    def ended(self, number: int) -> list[int]:
        """Return the alternatives of which the event that was taken last ends a match."""
        return [
            which
            for which, chain in enumerate(self.chains)
            if chain.ends[-1].at and chain.ends[-1].at[-1] == number
        ]
