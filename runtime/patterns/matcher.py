"""The matches of one key: events in order in, matches out as they are decided.

```
event ──▶ windows open, end ──▶ lists of each alternative ──▶ does it end a match?
                                                               of which windows? ──▶ choose
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Set
from functools import partial
from typing import Any

from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.ending import Accepts
from slackwater.runtime.patterns.log import Log
from slackwater.runtime.patterns.naming import Match
from slackwater.runtime.patterns.rules import Roles
from slackwater.runtime.patterns.scopes import Window
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Settings
from slackwater.runtime.patterns.union import United
from slackwater.runtime.patterns.waiting import Waiting, What

NONE: frozenset[int] = frozenset()
_NOTHING_WAITS = Waiting()
"""Shared by all keys of patterns that no later event forbids: it stays empty."""


class KeyMatcher(ABC):
    """The matcher of one key, with or without windows.

    Args:
        settings: the settings of all keys.
        holds: evaluates predicates that read earlier events.

    Attributes:
        log: the events that may be in a match to come.
        low: the least number that may be in a match to come.
        waiting: the windows and matches that wait for the end of a scope.
        code: code of its key, among several.
        cut: the last cut in which it was saved.
        is_gone: whether the key has a newer matcher.
    """

    STATE = Fields("log", "low", "_used", "waiting", elements={"_used": set})

    def __init__(self, settings: Settings, holds: HoldsOfTurns) -> None:
        self._settings = settings
        self._holds_of_turns = holds
        self.log = Log()
        self._waits = settings.waits
        self.waiting = Waiting() if self._waits else _NOTHING_WAITS
        self._used: dict[int, set[int]] = {}  # {key of the window, 0 without: numbers}
        self._orders = 0
        self.low = 0
        self.code, self.is_gone = 0, False
        self.cut: object | None = None

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
            values: the values of the columns that must differ.
        """

    def decided(self, passed_ns: int) -> list[Found]:
        """Return the matches whose scope has no event of `passed_ns` or later."""
        return self.waiting.decided(passed_ns, self._decide)

    @property
    def ends_waiting(self) -> int:
        """The number of windows, or ends of matches, that wait."""
        return len(self.waiting)

    def turns_held(self) -> list[int]:
        """Return the places of events that may be in a match to come."""
        turns = self.log.turns
        return [turns[number] for number in self.log.since(self.low)]

    @property
    def has_only_events(self) -> bool:
        """Whether its state is surely no more than `low`, and events without values."""
        return False

    def begin_with(
        self,
        low: int,
        numbers: list[int],
        times_ns: list[int],
        turns: list[int],
        fits: list[tuple[int, ...]],
    ) -> None:
        """Continue with events, and no other state."""
        log = self.log
        self.low, log.numbers, log.times_ns = low, numbers, times_ns
        log.turns = dict(zip(numbers, turns, strict=True))
        log.fits = dict(zip(numbers, fits, strict=True))
        self.derive()

    @property
    @abstractmethod
    def _chains(self) -> list[Chain]:
        """The lists of each alternative."""

    @property
    def _keeps_used(self) -> bool:
        return self._settings.consumes and self._settings.selection == "last"

    def _add(
        self, number: int, roles: list[Roles], values: dict[str, Any] | None
    ) -> list[tuple[int, int]]:
        """Put an event into the lists; return the alternatives that it ends, and latest starts."""
        ended = []
        for which, chain in enumerate(self._chains):
            if chain.rules.matters(roles[which]):
                start = chain.take(number, roles[which], values)
                if start is not None:
                    ended.append((which, start))
        self._orders = 0
        return ended

    def _replay(self, chains: list[Chain], low: int, used: Set[int], lost: Set[int] = NONE) -> None:
        """Give the lists the events from a number on that were not lost."""
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

    def _chosen(
        self,
        chain: Chain,
        number: int,
        low: int,
        used: Set[int],
        accepts: Accepts | None = None,
    ) -> Iterator[Match]:
        """Yield the matches of a scope that end with an event, and that leave.

        Args:
            chain: the lists of one alternative.
            number: the number of the event.
            low: the lowest number that the scope has.
            used: numbers of events that are used up, and in the lists all the same.
            accepts: tells which matches may leave; None if all may.
        """
        settings = self._settings
        listing = self._listing(chain, number, low, accepts)
        if settings.selection == "first":
            match = listing.least()
            if match is not None:
                yield match
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
            match = listing.union()
            if match is not None:
                yield match

    def _listing(
        self,
        chain: Chain,
        number: int,
        low: int,
        accepts: Accepts | None = None,
        latest: int | None = None,
    ) -> United:
        log = self.log
        many = None if self._settings.many is None else self._hold
        holds = self._holds
        return United(chain, number, low, log.fits, log.values, holds, accepts, latest, many)

    # -- events that may not come after a match ------------------------------------------

    @abstractmethod
    def _decide(self, due_ns: int, what: What) -> tuple[list[Found], tuple[int, What] | None]:
        """Return the matches that leave after the end of a scope; see `Waiting`."""

    def _accepts(self, chain: Chain) -> Accepts | None:
        # None if all matches leave, as no predicate forbids one.
        return partial(self._is_free, chain) if chain.rules.depends else None

    def _is_free(self, chain: Chain, match: Match) -> bool:
        """Return whether no event after a match forbids it by a predicate."""
        rules = chain.rules
        at = {k: number for number, k, _ in match}
        read = {name: at[k] for name, k in rules.names.items() if k in at}
        until_ns = self._until_ns(match)
        for asked in rules.depends:
            numbers = chain.watched[asked]
            for number in numbers[bisect_right(numbers, match[-1][0]) :]:
                if self.log.time_of(number) > until_ns:
                    break
                if self._holds(asked, number, read):
                    return False
        return True

    def _until_ns(self, match: Match) -> int:
        del match
        return self.log.newest_ns  # all events so far are in its window

    def _holds(self, asked: int, number: int, read: dict[str, int]) -> bool:
        turns = self.log.turns
        return self._holds_of_turns(
            asked, turns[number], {name: turns[one] for name, one in read.items()}
        )

    def _hold(self, asked: int, number: int, name: str, read: list[int]) -> list[bool] | None:
        turns, many = self.log.turns, self._settings.many
        assert many is not None
        return many(asked, turns[number], name, [turns[one] for one in read])

    def _made(
        self,
        match: Match,
        which: int,
        turn: int,
        time_ns: int,
        window: Window | None,
        *,
        has_waited: bool = False,
    ) -> Found:
        turns = self.log.turns
        if self._settings.limit is not None:
            self._settings.limit.take(len(match))
        parts = tuple((turns[number], asked) for number, _, asked in match)
        self._orders += 1
        key, start_ns = (0, None) if window is None else (window.key, window.start_ns)
        order = (which, key, self._orders)
        return Found(time_ns, has_waited, turn, order, start_ns, parts)

    @abstractmethod
    def derive(self) -> None:
        """Make lists of the events."""
