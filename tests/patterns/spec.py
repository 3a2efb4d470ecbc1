"""What a pattern means, written down so that it can be run: slow, and meant to be obvious.

It tries every choice of events. docs/decisions/2026-11-24-patterns.md says the same in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import Any

from slackwater.runtime.patterns.normal import Asked, Normal, Place
from slackwater.runtime.patterns.normal import Sequence as Alternative
from slackwater.runtime.patterns.scopes import (
    CountWindows,
    OpenedWindows,
    TimeWindows,
    WindowRule,
    Within,
)

Part = tuple[int, int, int]  # number, place, asked
Choice = tuple[Part, ...]


@dataclass(frozen=True)
class Event:
    number: int  # 1, 2, …
    time_ns: int
    fits: tuple[int, ...]
    values: dict[str, Any] = field(default_factory=dict)


Holds = Callable[[int, int, dict[str, int]], bool]


@dataclass(frozen=True)
class Spec:
    normal: Normal
    scope: Within | WindowRule
    selection: str
    consumes: bool
    most: int | None
    skip: str
    holds: Holds
    lost: frozenset[tuple[int, int]] = frozenset()
    """(key of a window, number): what is taken out of it."""
    events: list[Event] = field(default_factory=list)
    """All that came."""

    def run(self, events: Sequence[Event]) -> list[tuple[int, int | None, int, Choice]]:
        """Return (event time, start of the window, alternative, choice) of all that leave."""
        self.events[:] = events
        if isinstance(self.scope, Within):
            return sorted(self._in_reach(events))
        found = []
        for index, (start_ns, those, end_ns) in enumerate(self._windows(events)):
            is_timed = isinstance(self.scope, TimeWindows)
            key = start_ns // self.scope.slide_ns if is_timed else index  # type: ignore[union-attr]
            inside = [one for one in those if (key, one.number) not in self.lost]
            found += [(at, start_ns, *rest) for at, *rest in self._in_window(inside, end_ns)]
        return sorted(found)

    def _in_window(self, inside: list[Event], end_ns: int) -> Iterator[tuple[int, int, Choice]]:
        """Yield what leaves of a window: what a `no` ends after all else, as it leaves."""
        used: set[int] = set()
        left = 0
        for waits in (False, True):
            for end in inside:
                upto = [one for one in inside if one.number <= end.number]
                for which, alternative in enumerate(self.normal.alternatives):
                    if bool(alternative.barred_after) is not waits:
                        continue
                    every = [
                        one
                        for one in self._ending(upto, end, alternative)
                        if not any(self._forbids(bar, alternative, one) for bar in inside)
                    ]
                    for choice in self._leave(every, used, alternative):
                        if self.most is None or left < self.most:
                            left += 1
                            used.update(part[0] for part in choice if self.consumes)
                            yield end_ns - 1 if waits else end.time_ns, which, choice

    def _in_reach(self, events: Sequence[Event]) -> Iterator[tuple[int, int | None, int, Choice]]:
        """Yield what leaves as time goes by: what a `no` ends when nothing may follow it."""
        used: set[int] = set()
        waiting: list[tuple[Event, int, list[Choice]]] = []  # of which event and alternative

        def decided(passed_ns: int | None) -> Iterator[tuple[int, int | None, int, Choice]]:
            while True:
                best = None
                for at, (end, which, every) in enumerate(waiting):
                    alternative = self.normal.alternatives[which]
                    choice = self._next(events, every, used, alternative)
                    if choice is not None:
                        due_ns = self._until_ns(events, choice)
                        key = (due_ns, end.number, which)
                        if best is None or key < best[0]:
                            best = (key, at, choice)
                if best is None or (passed_ns is not None and best[0][0] >= passed_ns):
                    return
                (due_ns, *_), at, choice = best
                _, which, every = waiting[at]
                alternative = self.normal.alternatives[which]
                is_last = self.selection in ("last", "cumulative")
                is_used = self.consumes and any(part[0] in used for part in choice)
                if not (is_last and (is_used or self._is_forbidden(events, alternative, choice))):
                    used.update(part[0] for part in choice if self.consumes)
                    yield due_ns, None, which, choice
                if self.consumes or self.selection != "each":
                    del waiting[at]
                else:
                    every.remove(choice)

        for end in events:
            yield from decided(end.time_ns)
            inside = [one for one in events if self._reaches(one, end)]
            for which, alternative in enumerate(self.normal.alternatives):
                every = self._ending(inside, end, alternative)
                if alternative.barred_after:
                    waiting.append((end, which, every))
                    continue
                for choice in self._leave(every, used, alternative):
                    used.update(part[0] for part in choice if self.consumes)
                    yield end.time_ns, None, which, choice
        yield from decided(None)

    def _next(
        self, events: Sequence[Event], every: list[Choice], used: set[int], alternative: Alternative
    ) -> Choice | None:
        """Return which of the choices with an event is decided next: that which begins first."""
        if self.selection == "last":
            return self._selected(every, alternative)[0] if every else None
        taken = used if self.consumes else set()
        may = [one for one in every if not any(part[0] in taken for part in one)]
        if self.selection == "cumulative":
            return self._selected(may, alternative)[0] if may else None
        may = [one for one in may if not self._is_forbidden(events, alternative, one)]
        if not may:
            return None
        until_ns = min(self._until_ns(events, one) for one in may)
        now = [one for one in may if self._until_ns(events, one) == until_ns]
        if self.consumes:  # of one time that which begins first in the stream takes the events
            begin = min(one[0][0] for one in now)
            now = [one for one in now if one[0][0] == begin]
        return self._selected(now, alternative)[0]

    def _until_ns(self, events: Sequence[Event], choice: Choice) -> int:
        assert isinstance(self.scope, Within)
        assert self.scope.span_ns is not None
        first = next(one for one in events if one.number == choice[0][0])
        return first.time_ns + self.scope.span_ns

    def _is_forbidden(
        self, events: Sequence[Event], alternative: Alternative, choice: Choice
    ) -> bool:
        until_ns = self._until_ns(events, choice)
        return any(
            self._forbids(one, alternative, choice) for one in events if one.time_ns <= until_ns
        )

    def _reaches(self, one: Event, end: Event) -> bool:
        scope = self.scope
        assert isinstance(scope, Within)
        if one.number > end.number:
            return False
        if scope.events is not None:
            return end.number - one.number < scope.events
        assert scope.span_ns is not None
        return end.time_ns - one.time_ns <= scope.span_ns

    def _windows(self, events: Sequence[Event]) -> Iterator[tuple[int, list[Event], int]]:
        scope = self.scope
        if isinstance(scope, TimeWindows):
            first = (events[0].time_ns - scope.size_ns) // scope.slide_ns
            last = events[-1].time_ns // scope.slide_ns
            for k in range(first, last + 1):
                start = k * scope.slide_ns
                end = start + scope.size_ns
                yield start, [one for one in events if start <= one.time_ns < end], end
        elif isinstance(scope, CountWindows):
            for i in range(0, len(events), scope.every):
                yield events[i].time_ns, list(events[i : i + scope.size]), 0
        else:
            assert isinstance(scope, OpenedWindows)
            for i, one in enumerate(events):
                if scope.asked not in one.fits:
                    continue
                if scope.events is not None:
                    yield one.time_ns, list(events[i : i + scope.events]), 0
                else:
                    assert scope.span_ns is not None
                    end = one.time_ns + scope.span_ns
                    yield one.time_ns, [e for e in events[i:] if e.time_ns < end], end

    def _leave(self, every: list[Choice], used: set[int], alternative: Alternative) -> list[Choice]:
        """Return what leaves of the choices with an event; `used` is what has left before."""
        if not self.consumes:
            return self._selected(every, alternative)
        if self.selection == "last":
            chosen = self._selected(every, alternative)
            return [one for one in chosen if not any(part[0] in used for part in one)]
        may = [one for one in every if not any(part[0] in used for part in one)]
        return self._selected(may, alternative)[:1]  # all others end with that event, too

    def _selected(self, may: list[Choice], alternative: Alternative) -> list[Choice]:
        def forward(one: Choice) -> list[tuple[int, int]]:
            return [part[:2] for part in one]

        def backward(one: Choice) -> list[tuple[int, int]]:
            return [part[:2] for part in reversed(one)]

        if not may:
            return []
        if self.selection == "first":
            return [min(may, key=forward)]
        if self.selection == "last":
            return [max(may, key=backward)]
        if self.selection == "each":
            return sorted(may, key=backward, reverse=True)
        roles: dict[tuple[int, int], list[int]] = {}
        for one in may:
            for named in self._namings(one, alternative):
                for number, k, asked in named:
                    roles.setdefault((number, k), []).append(asked)
        orders = [self._order(place) for place in alternative.places]
        return [
            tuple(
                (number, k, min(some, key=orders[k].index))
                for (number, k), some in sorted(roles.items())
            )
        ]

    def _ending(self, inside: list[Event], end: Event, alternative: Alternative) -> list[Choice]:
        """Return all choices that end with an event, whatever may follow, each with its names."""
        found = []
        for choice in self._choices(inside, alternative, 0, ()):
            if choice[-1][0] == end.number and self._is_clear(choice, inside, alternative):
                named = next(self._namings(choice, alternative), None)
                if named is not None:
                    found.append(named)
        return found

    def _choices(
        self, inside: list[Event], alternative: Alternative, k: int, chosen: Choice
    ) -> Iterator[Choice]:
        """Yield all choices of events that fit their places, whatever they are there."""
        if k == len(alternative.places):
            yield chosen
            return
        place = alternative.places[k]
        most = place.count if place.is_any else len(inside) if place.most is None else place.most
        least = place.count if place.is_any else place.least
        after = chosen[-1][0] if chosen else 0
        fitting = [one for one in inside if one.number > after and set(one.fits) & set(place.asked)]
        for size in range(least, min(most, len(fitting)) + 1):
            for some in combinations(fitting, size):
                values = [one.values[place.distinct] for one in some if place.distinct is not None]
                if len(set(values)) == len(values):
                    parts = tuple((one.number, k, -1) for one in some)
                    yield from self._choices(inside, alternative, k + 1, chosen + parts)

    def _order(self, place: Place) -> list[int]:
        """Return in which order the names of a place are tried."""
        by_name = sorted(place.asked, key=lambda one: self.normal.asked[one].name)
        return by_name if place.is_any else list(place.asked)

    def _namings(self, choice: Choice, alternative: Alternative) -> Iterator[Choice]:
        """Yield all ways of saying which of the things asked for each event is."""
        fits = {one.number: one.fits for one in self.events}
        orders = [self._order(place) for place in alternative.places]
        each = [[one for one in orders[k] if one in fits[number]] for number, k, _ in choice]
        for names in product(*each):
            named = tuple(
                (number, k, asked) for (number, k, _), asked in zip(choice, names, strict=True)
            )
            if all(
                self._true(asked, number, named, alternative) for number, _, asked in named
            ) and all(
                len({part[2] for part in named if part[1] == k}) == place.count
                for k, place in enumerate(alternative.places)
                if place.is_any and place.distinct is None
            ):
                yield named

    def _asked(self, number: int) -> Asked:
        return self.normal.asked[number]

    def _true(self, asked: int, number: int, choice: Choice, alternative: Alternative) -> bool:
        if self._asked(asked).also is None:
            return True
        names = {}
        for part in choice:
            place = alternative.places[part[1]]
            if len(place.asked) == 1 and not place.is_any and not place.is_repeated:
                names[self._asked(place.asked[0]).name] = part[0]
        return self.holds(asked, number, names)

    def _is_clear(self, choice: Choice, inside: list[Event], alternative: Alternative) -> bool:
        """Return whether nothing lies between its events that may not."""
        for before, part in pairwise(choice):
            place = alternative.places[part[1]]
            bars = set(place.barred) if before[1] < part[1] else set()
            if self.skip == "next":
                bars |= set(place.asked)
            for one in inside:
                if before[0] < one.number < part[0]:
                    for bar in bars & set(one.fits):
                        if self._true(bar, one.number, choice, alternative):
                            return False
        return True

    def _forbids(self, one: Event, alternative: Alternative, choice: Choice) -> bool:
        if one.number <= choice[-1][0]:
            return False
        return any(
            self._true(bar, one.number, choice, alternative)
            for bar in set(alternative.barred_after) & set(one.fits)
        )
