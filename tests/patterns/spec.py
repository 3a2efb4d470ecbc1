"""What a pattern means, written down so that it can be run: slow, and meant to be obvious.

It tries every choice of events. docs/decisions/2026-11-24-patterns.md says the same in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from runtime.patterns.normal import Asked, Normal
from runtime.patterns.normal import Sequence as Alternative
from runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, WindowRule, Within

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

    def run(self, events: Sequence[Event]) -> list[tuple[int, int | None, int, Choice]]:
        """Return (event time, start of the window, alternative, choice) of all that leave."""
        found = []
        if isinstance(self.scope, Within):
            used: set[int] = set()
            for end in events:
                inside = [one for one in events if self._reaches(one, end)]
                for which, choice in self._leave(inside, end, used, None):
                    found.append((end, None, which, choice, None))
        else:
            for index, (start_ns, those, end_ns) in enumerate(self._windows(events)):
                is_timed = isinstance(self.scope, TimeWindows)
                key = start_ns // self.scope.slide_ns if is_timed else index  # type: ignore[union-attr]
                inside = [one for one in those if (key, one.number) not in self.lost]
                used = set()
                kept: list[Any] = []
                for end in inside:
                    upto = [one for one in inside if one.number <= end.number]
                    kept = [
                        one
                        for one in kept
                        if not self._forbids(end, self.normal.alternatives[one[2]], one[3])
                    ]
                    room = None if self.most is None else self.most - len(kept)
                    for which, choice in self._leave(upto, end, used, room):
                        kept.append((end, start_ns, which, choice, end_ns))
                found += kept
            return sorted((self._time(one), one[1], one[2], one[3]) for one in found)
        alive = []
        for end, start_ns, which, choice, _ in found:
            alternative = self.normal.alternatives[which]
            assert isinstance(self.scope, Within)
            until = None
            if alternative.barred_after:
                assert self.scope.span_ns is not None
                first = next(one for one in events if one.number == choice[0][0])
                until = first.time_ns + self.scope.span_ns
                after = [one for one in events if one.number > end.number and one.time_ns <= until]
                if any(self._forbids(one, alternative, choice) for one in after):
                    continue
            alive.append((until if until is not None else end.time_ns, start_ns, which, choice))
        return sorted(alive, key=lambda one: (one[0], one[2], one[3]))

    def _time(self, one: Any) -> int:
        end, _, which, _, end_ns = one
        is_behind = bool(self.normal.alternatives[which].barred_after)
        return end_ns - 1 if is_behind else end.time_ns

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

    def _leave(
        self, inside: list[Event], end: Event, used: set[int], room: int | None
    ) -> Iterator[tuple[int, Choice]]:
        for which, alternative in enumerate(self.normal.alternatives):
            all_of_it = self._ending(inside, end, alternative)
            takes_used = not self.consumes or self.selection == "last"
            may = [
                one for one in all_of_it if takes_used or not any(part[0] in used for part in one)
            ]
            for choice in self._selected(may):
                if room is not None and room <= 0:
                    return
                if self.consumes and any(part[0] in used for part in choice):
                    continue
                if self.consumes:
                    used |= {part[0] for part in choice}
                if room is not None:
                    room -= 1
                yield which, choice

    def _selected(self, may: list[Choice]) -> list[Choice]:
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
        return [tuple(sorted({part for one in may for part in one}))]

    def _ending(self, inside: list[Event], end: Event, alternative: Alternative) -> list[Choice]:
        return [
            choice
            for choice in self._choices(inside, alternative, 0, ())
            if choice[-1][0] == end.number and self._is_right(choice, inside, alternative)
        ]

    def _choices(
        self, inside: list[Event], alternative: Alternative, k: int, chosen: Choice
    ) -> Iterator[Choice]:
        if k == len(alternative.places):
            yield chosen
            return
        place = alternative.places[k]
        if place.is_any:
            for parts in self._several(inside, place, k, chosen, ()):
                yield from self._choices(inside, alternative, k + 1, chosen + parts)
            return
        most = len(inside) if place.most is None else place.most
        for parts in self._repeats(inside, place, k, chosen, (), most):
            if len(parts) >= place.least:
                yield from self._choices(inside, alternative, k + 1, chosen + parts)

    def _fitting(self, inside: list[Event], place: Any, after: int) -> Iterator[tuple[Event, int]]:
        for one in inside:
            if one.number > after:
                for asked in place.asked:
                    if asked in one.fits:
                        yield one, asked
                        break

    def _repeats(
        self, inside: list[Event], place: Any, k: int, chosen: Choice, parts: Choice, most: int
    ) -> Iterator[Choice]:
        if parts:
            yield parts
        if len(parts) == most:
            return
        after = (chosen + parts)[-1][0] if chosen + parts else 0
        for one, asked in self._fitting(inside, place, after):
            more = (*parts, (one.number, k, asked))
            yield from self._repeats(inside, place, k, chosen, more, most)

    def _several(
        self, inside: list[Event], place: Any, k: int, chosen: Choice, parts: Choice
    ) -> Iterator[Choice]:
        if len(parts) == place.count:
            yield parts
            return
        by_number = {one.number: one for one in inside}
        seen = {self._label(by_number[part[0]], part[2], place) for part in parts}
        after = (chosen + parts)[-1][0] if chosen + parts else 0
        for one, asked in self._fitting(inside, place, after):
            if self._label(one, asked, place) not in seen:
                more = (*parts, (one.number, k, asked))
                yield from self._several(inside, place, k, chosen, more)

    def _label(self, one: Event, asked: int, place: Any) -> Any:
        return asked if place.distinct is None else one.values[place.distinct]

    def _asked(self, number: int) -> Asked:
        return self.normal.asked[number]

    def _true(self, asked: int, number: int, choice: Choice, alternative: Alternative) -> bool:
        if self._asked(asked).also is None:
            return True
        names = {}
        for part in choice:
            place = alternative.places[part[1]]
            if len(place.asked) == 1 and not place.is_any and not place.is_repeated:
                names[self._asked(part[2]).name] = part[0]
        return self.holds(asked, number, names)

    def _is_right(self, choice: Choice, inside: list[Event], alternative: Alternative) -> bool:
        for part in choice:
            if not self._true(part[2], part[0], choice, alternative):
                return False
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
