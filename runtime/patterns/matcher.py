"""The matches of one key: events in order in, matches out as they are decided.

```
event ──▶ windows open, end ──▶ lists of each alternative ──▶ does it end a match?
                                                               of which windows? ──▶ choose
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Set
from typing import Any

from runtime.patterns.chain import Chain
from runtime.patterns.choose import Listing, Match
from runtime.patterns.log import Log
from runtime.patterns.rules import Roles
from runtime.patterns.scopes import Window
from runtime.patterns.settings import Found, HoldsOfTurns, Settings
from runtime.patterns.waiting import WaitingMatches

NONE: frozenset[int] = frozenset()


class KeyMatcher(ABC):
    """What is known of one key, in windows or without.

    Args:
        settings: of all keys.
        holds: of predicates that read earlier events.

    Attributes:
        log: the events that may be in a match to come.
        waiting: matches that wait for the end of their scope.
        rests: whether no event does anything until one opens a window: none is open, or all that
            are have their matches.
    """

    def __init__(self, settings: Settings, holds: HoldsOfTurns) -> None:
        self._settings = settings
        self._holds_of_turns = holds
        self.log = Log()
        self.waiting = WaitingMatches(settings.rules, holds)
        self._chains = [Chain(one) for one in settings.rules]
        self._waits = any(one.barred_after for one in settings.rules)
        self._used: dict[int, set[int]] = {}  # {key of the window, 0 without: numbers}
        self._orders = 0
        self.rests = False

    @abstractmethod
    def take(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None = None,
    ) -> list[Found]:
        """Take the next event; return the matches that are decided.

        Args:
            number: among the events of the key; greater than all before.
            time_ns: no less than that of any before.
            turn: its place in the whole stream.
            fits: numbers of what it fits, ascending; perhaps none.
            values: of the columns that must differ.
        """

    def turns_held(self) -> list[int]:
        """Return the places in the stream of events that may be in a match to leave."""
        return [*self.log.turns.values(), *self.waiting.turns()]

    @property
    def _keeps_used(self) -> bool:
        """Whether what is used up is chosen from, still."""
        return self._settings.consumes and self._settings.selection == "last"

    def _add(
        self, number: int, roles: list[Roles], values: dict[str, Any] | None
    ) -> list[tuple[int, int]]:
        """Put an event into the lists; return what it ends: alternatives, their latest starts."""
        ended = []
        for which, chain in enumerate(self._chains):
            if roles[which].places or roles[which].barred:
                start = chain.take(number, roles[which], values)
                if start is not None:
                    ended.append((which, start))
        self._orders = 0
        return ended

    def _replay(self, chains: list[Chain], low: int, used: Set[int], lost: Set[int] = NONE) -> None:
        """Give lists the events from a number on that were not lost."""
        log = self.log
        for number in log.since(low):
            if number in lost:
                continue
            fits, values = log.fits[number], log.values.get(number)
            for chain in chains:
                if number in used:
                    chain.take_used(number, chain.rules.roles(fits))
                else:
                    chain.take(number, chain.rules.roles(fits), values)

    def _chosen(self, chain: Chain, number: int, low: int, used: Set[int]) -> Iterator[Match]:
        """Yield what leaves of the matches of a scope that end with an event."""
        settings = self._settings
        listing = Listing(chain, number, low, self.log.fits, self.log.values, self._holds)
        if settings.selection == "first":
            least = listing.least()
            if least is not None:
                yield least
        elif settings.selection == "last":
            match = next(listing.back(), None)
            if match is not None and not any(one in used for one, _, _ in match):
                yield match
        elif settings.selection == "each":
            for match in listing.back():
                yield match
                if settings.consumes:
                    return  # all others end with this event, too
        else:
            union = {part for match in listing.back() for part in match}
            if union:
                yield tuple(sorted(union))

    def _holds(self, asked: int, number: int, read: dict[str, int]) -> bool:
        turns = self.log.turns
        return self._holds_of_turns(
            asked, turns[number], {name: turns[one] for name, one in read.items()}
        )

    def _made(
        self, match: Match, which: int, turn: int, time_ns: int, window: Window | None
    ) -> Found:
        turns = self.log.turns
        parts = tuple((turns[number], asked) for number, _, asked in match)
        self._orders += 1
        key, start_ns = (0, None) if window is None else (window.key, window.start_ns)
        order = (which, key, self._orders)
        return Found(time_ns, False, turn, order, start_ns, parts, which)

    def _left(self, made: Found, due_ns: int) -> list[Found]:
        """Return a match, if it is decided; else it waits for the end of its scope."""
        if not self._settings.rules[made.alternative].barred_after:
            return [made]
        self.waiting.add(made._replace(time_ns=due_ns, is_behind=True))
        return []

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return all state, as plain values; lists are made anew from the events."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
