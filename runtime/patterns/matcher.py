"""The matches of one key: events in order in, matches out as they are decided.

```
event ──▶ windows open, end ──▶ lists of each alternative ──▶ does it end a match?
                                                               of which windows? ──▶ choose
```
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from runtime.patterns.chain import Chain
from runtime.patterns.choose import Listing, Match
from runtime.patterns.log import Log
from runtime.patterns.rules import Rules
from runtime.patterns.scopes import Window, Windows, Within
from runtime.patterns.settings import Found, HoldsOfTurns, Settings


class _Own:
    """A window that has lists of its own: it lost events, or used them up."""

    __slots__ = ("chains", "window")

    def __init__(self, window: Window, rules: tuple[Rules, ...]) -> None:
        self.window = window
        self.chains = [Chain(one) for one in rules]


class KeyMatcher:
    """What is known of one key.

    Args:
        settings: of all keys.
        holds: of predicates that read earlier events.
    """

    def __init__(self, settings: Settings, holds: HoldsOfTurns) -> None:
        self._settings = settings
        self._holds_of_turns = holds
        self.log = Log()
        self._chains = [Chain(one) for one in settings.rules]
        scope = settings.scope
        self._windows = None if isinstance(scope, Within) else scope.begin()
        self._waits = any(one.barred_after for one in settings.rules)
        # Of windows: those up to this key have all their matches; counts of those behind it.
        self._full: int | None = None
        self._counts: dict[int, int] = {}
        self._own: dict[int, _Own] = {}  # {key of the window: its lists}
        self._used: dict[int, set[int]] = {}  # {key of the window, 0 without: numbers}
        # What waits for the end of its scope: (when, turn, order, match, key of its window).
        self._waiting: list[tuple[int, int, int, Found, int]] = []
        self._orders = 0

    @property
    def due_ns(self) -> int | None:
        """What waits is decided when all events up to this time have come; None: nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    def decided(self, passed_ns: int) -> list[Found]:
        """Return what waited for the end of a scope that no event of `passed_ns` or later is in."""
        found = []
        while self._waiting and self._waiting[0][0] < passed_ns:
            found.append(heapq.heappop(self._waiting)[3])
        return found

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
        settings, windows, log = self._settings, self._windows, self.log
        found = self.decided(time_ns) if self._waiting else []
        if windows is not None:
            windows.pass_to(number, time_ns)
            windows.take(number, time_ns, fits)
            if windows.low(log) is None or self._has_all(windows):
                return found  # it is in no window, or in none that waits for a match
        if not fits:
            return found
        log.add(number, time_ns, turn, fits, values)
        roles = [one.roles(fits) for one in settings.rules]
        if self._waits:
            self._bar(number, [one.ends for one in roles])
        ended = []
        for which, chain in enumerate(self._chains):
            if roles[which].places or roles[which].barred:
                start = chain.take(number, roles[which], values)
                if start is not None:
                    ended.append((which, start))
        self._orders = 0
        if windows is None:
            if ended:
                found += self._in_reach(number, time_ns, turn, ended)
        else:
            made = self._in_windows(number, turn, time_ns, ended) if ended else []
            if self._own:
                made += self._in_own(number, time_ns, turn, roles, values)
                made.sort(key=lambda one: (one.alternative, one.window_start_ns))
            found += made
        self._forget(number, time_ns)
        return found

    # -- without windows ------------------------------------------------------------------

    def _in_reach(
        self, number: int, time_ns: int, turn: int, ended: list[tuple[int, int]]
    ) -> list[Found]:
        scope = self._settings.scope
        assert isinstance(scope, Within)
        low = scope.low(number, time_ns, self.log)
        found = []
        for which, _ in ended:
            chain = self._chains[which]
            ends = chain.ends[-1]
            if not ends.at or ends.at[-1] != number or ends.start[-1] < low:
                continue  # out of reach, or used up by an alternative before
            for match in self._chosen(chain, number, low, self._used.setdefault(0, set())):
                found += self._left(match, which, turn, time_ns, None)
                self._consume(match)
        return found

    def _consume(self, match: Match) -> None:
        settings = self._settings
        if not settings.consumes:
            return
        gone = {number for number, _, _ in match}
        if settings.selection == "last":
            self._used.setdefault(0, set()).update(gone)
            return
        self._chains = [Chain(one) for one in settings.rules]
        used = self._used.setdefault(0, set())
        used |= gone
        self._replay(self._chains, self.log.since(0), used)

    def _replay(self, chains: list[Chain], numbers: list[int], used: set[int]) -> None:
        log = self.log
        for number in numbers:
            fits, values = log.fits[number], log.values.get(number)
            for chain in chains:
                if number in used:
                    chain.take_used(number, chain.rules.roles(fits))
                else:
                    chain.take(number, chain.rules.roles(fits), values)

    # -- in windows -----------------------------------------------------------------------

    def _in_windows(
        self, number: int, turn: int, time_ns: int, ended: list[tuple[int, int]]
    ) -> list[Found]:
        assert self._windows is not None
        settings = self._settings
        found = []
        for which, start in ended:
            for window in list(self._windows.around(self._full, start, self.log)):
                if window.key in self._own or self._is_full(window.key):
                    continue
                used = self._used.setdefault(window.key, set()) if self._keeps_used else set()
                for match in self._chosen(self._chains[which], number, window.low, used):
                    found += self._left(match, which, turn, time_ns, window)
                    self._count(window)
                    if settings.consumes and settings.selection == "last":
                        used.update(one for one, _, _ in match)
                    elif settings.consumes and settings.most != 1:
                        gone = {one for one, _, _ in match}
                        self._make_own(window, gone | {number})
                        break
                    if self._is_full(window.key):
                        break
        return found

    def _has_all(self, windows: Windows) -> bool:
        """Return whether no open window waits for a match, or for what may forbid one."""
        full = self._full
        return full is not None and not self._own and not self._waits and windows.newest() <= full

    @property
    def _keeps_used(self) -> bool:
        return self._settings.consumes and self._settings.selection == "last"

    def _count(self, window: Window) -> None:
        most = self._settings.most
        if most is None:
            return
        self._counts[window.key] = self._counts.get(window.key, 0) + 1
        # An earlier window has had all that a later one has: the full ones come first.
        if self._counts[window.key] >= most and not self._own and not self._waits:
            self._full = window.key if self._full is None else max(self._full, window.key)
            for key in [one for one in self._counts if one <= self._full]:
                del self._counts[key]

    def _is_full(self, key: int) -> bool:
        most = self._settings.most
        if most is None:
            return False
        return (self._full is not None and key <= self._full) or self._counts.get(key, 0) >= most

    def _make_own(self, window: Window, without: set[int]) -> None:
        """Give a window lists of its own, of the events that are left of it."""
        own = _Own(window, self._settings.rules)
        self._replay(own.chains, self.log.since(window.low), without)
        self._own[window.key] = own
        self._used[window.key] = set(without)

    def _in_own(
        self,
        number: int,
        time_ns: int,
        turn: int,
        roles: list[Any],
        values: dict[str, Any] | None,
    ) -> list[Found]:
        found: list[Found] = []
        for key, own in list(self._own.items()):
            window = own.window
            if (window.end_ns is not None and time_ns >= window.end_ns) or (
                window.end is not None and number >= window.end
            ):
                del self._own[key]
                self._used.pop(key, None)
                continue
            used = self._used[key]
            if number in used:
                continue
            ended = [
                which
                for which, chain in enumerate(own.chains)
                if chain.take(number, roles[which], values) is not None
            ]
            for which in ended:
                if self._is_full(key) or number in used:
                    break
                for match in self._chosen(own.chains[which], number, window.low, set()):
                    found += self._left(match, which, turn, time_ns, window)
                    self._count(window)
                    if self._settings.consumes:
                        used.update(one for one, _, _ in match)
                        own.chains = [Chain(one) for one in self._settings.rules]
                        self._replay(own.chains, self.log.since(window.low), used)
                        break
                    if self._is_full(key):
                        break
        return found

    # -- what both need -------------------------------------------------------------------

    def _chosen(self, chain: Chain, number: int, low: int, used: set[int]) -> Iterator[Match]:
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

    def _left(
        self, match: Match, which: int, turn: int, time_ns: int, window: Window | None
    ) -> list[Found]:
        """Return the match, if it is decided; else it waits for the end of its scope."""
        turns = self.log.turns
        parts = tuple((turns[number], asked) for number, _, asked in match)
        start_ns = window.start_ns if window is not None else None
        self._orders += 1
        made = Found(time_ns, False, turn, self._orders, start_ns, parts, which)
        if not self._settings.rules[which].barred_after:
            return [made]
        if window is not None:
            assert window.end_ns is not None
            due_ns = window.end_ns - 1
        else:
            scope = self._settings.scope
            assert isinstance(scope, Within)
            assert scope.span_ns is not None
            first_ns = self.log.times_ns[self.log.numbers.index(match[0][0])]
            due_ns = first_ns + scope.span_ns
        made = made._replace(time_ns=due_ns, is_behind=True)
        key = window.key if window is not None else 0
        heapq.heappush(self._waiting, (due_ns, turn, self._orders, made, key))
        return []

    def _bar(self, number: int, ends: list[tuple[int, ...]]) -> None:
        """Drop what waits and may not be followed by this event."""
        if not any(ends) or not self._waiting:
            return
        turn = self.log.turns[number]
        stays = []
        for one in self._waiting:
            if not any(self._forbids(bar, turn, one[3]) for bar in ends[one[3].alternative]):
                stays.append(one)
            elif one[4] in self._counts:
                self._counts[one[4]] -= 1  # its window waits for another match again
        if len(stays) < len(self._waiting):
            self._waiting = stays
            heapq.heapify(self._waiting)

    def _forbids(self, bar: int, turn: int, made: Found) -> bool:
        depends = self._settings.rules[made.alternative].depends
        return bar not in depends or self._holds_of_turns(bar, turn, self._named(made))

    def _named(self, made: Found) -> dict[str, int]:
        names = self._settings.rules[made.alternative].names
        asked_at = self._settings.rules[made.alternative].places
        of_asked = {asked: turn for turn, asked in made.parts}
        return {
            name: of_asked[asked_at[k].asked[0]]
            for name, k in names.items()
            if asked_at[k].asked[0] in of_asked
        }

    def _forget(self, number: int, time_ns: int) -> None:
        """Let go of events that no scope reaches back to, if there are many."""
        if self._windows is not None:
            low = self._windows.low(self.log)
            if low is None:
                low = number + 1
        else:
            scope = self._settings.scope
            assert isinstance(scope, Within)
            low = scope.low(number, time_ns, self.log)
        if self.log.forget(low):
            for chain in self._chains:
                chain.forget(low)
            for key, used in list(self._used.items()):
                kept = {one for one in used if one >= low}
                if kept or key in self._own or self._windows is None:
                    self._used[key] = kept
                else:
                    del self._used[key]
            if self._windows is not None and self._counts:
                oldest = self._windows.oldest()
                self._counts = {key: n for key, n in self._counts.items() if key >= oldest}
