"""What a pattern means where clocks may be off, written down so that it can be run.

It tries every choice of events in every order that clocks allow; what is left of times are sums of
differences, and whether they can be had says Bellman and Ford. Slow, and meant to be obvious.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

from slackwater.runtime.patterns.normal import Normal
from slackwater.runtime.patterns.normal import Sequence as Alternative
from slackwater.runtime.patterns.scopes import OpenedWindows, TimeWindows, WindowRule, Within


@dataclass(frozen=True)
class Event:
    """Somewhere in [time − off, time + off]."""

    number: int
    time_ns: int
    off_ns: int
    fits: tuple[int, ...]
    values: dict[str, Any] = field(default_factory=dict)

    def is_surely_before(self, other: Event) -> bool:
        if self.off_ns == other.off_ns == 0:
            return (self.time_ns, self.number) < (other.time_ns, other.number)
        return self.time_ns + self.off_ns < other.time_ns - other.off_ns


Parts = tuple[tuple[int, int], ...]  # (number of the event, what it is), place by place
Choice = tuple[tuple[Event, ...], ...]
Holds = Callable[[int, int, dict[str, int]], bool]


class Match(NamedTuple):
    time_ns: int
    start_ns: int | None
    alternative: int
    parts: Parts
    is_certain: bool


class Scope(NamedTuple):
    """Where it lies: from `first` on, an event or a time; so long, its end included or not."""

    first: Event | int | None  # None: the first event of the match
    span_ns: int
    is_closed: bool


Less = tuple[Any, Any, int, bool]
"""The first is at most so far behind the second; or less, if that is true. None: the time 0."""


@dataclass(frozen=True)
class DriftSpec:
    normal: Normal
    scope: Within | WindowRule
    skip: str
    holds: Holds
    most_ns: int

    def run(self, events: Sequence[Event]) -> list[Match]:
        """Return all possible matches."""
        found = []
        for which, one in enumerate(self.normal.alternatives):
            for choice in self._choices(events, one, 0, ()):
                for scope, start_ns in self._scopes(events, choice):
                    told = self._told(events, one, choice, scope)
                    if told is not None:
                        time_ns = self._time_ns(one, choice, scope)
                        parts = next(self._namings(one, choice))
                        found.append(Match(time_ns, start_ns, which, parts, told))
        return found

    # -- choices --------------------------------------------------------------------------

    def _choices(
        self, events: Sequence[Event], alternative: Alternative, k: int, chosen: Choice
    ) -> Iterator[Choice]:
        if k == len(alternative.places):
            if next(self._namings(alternative, chosen), None) is not None:
                yield chosen
            return
        place = alternative.places[k]
        fitting = [
            one
            for one in events
            if set(place.asked) & set(one.fits) and not any(one in some for some in chosen)
        ]
        most = len(events) if place.most is None else place.most
        sizes = [place.count] if place.is_any else range(place.least, most + 1)
        for size in sizes:
            for some in combinations(fitting, size):
                values = [one.values[place.distinct] for one in some if place.distinct is not None]
                if len(set(values)) < len(values):
                    continue
                yield from self._choices(events, alternative, k + 1, (*chosen, some))

    def _namings(
        self, alternative: Alternative, choice: Choice
    ) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield all ways of saying which of the things asked for each event is."""
        of_places = []
        for place, some in zip(alternative.places, choice, strict=True):
            order = list(place.asked)
            if place.is_any:
                order.sort(key=lambda one: self.normal.asked[one].name)
            each = [[one for one in order if one in event.fits] for event in some]
            is_each_another = place.is_any and place.distinct is None
            of_places.append(
                [
                    names
                    for names in product(*each)
                    if not is_each_another or len(set(names)) == len(names)
                ]
            )
        events = [event for some in choice for event in some]
        for ways in product(*of_places):
            names = [asked for some in ways for asked in some]
            each_is = list(zip(events, names, strict=True))
            if all(self._is_true(asked, event, alternative, choice) for event, asked in each_is):
                yield tuple((event.number, asked) for event, asked in each_is)

    def _is_true(self, asked: int, event: Event, alternative: Alternative, choice: Choice) -> bool:
        if self.normal.asked[asked].also is None:
            return True
        names = {
            self.normal.asked[place.asked[0]].name: some[0].number
            for place, some in zip(alternative.places, choice, strict=True)
            if len(place.asked) == 1 and not place.is_any and not place.is_repeated
        }
        return self.holds(asked, event.number, names)

    # -- scopes ---------------------------------------------------------------------------

    def _scopes(
        self, events: Sequence[Event], choice: Choice
    ) -> Iterator[tuple[Scope, int | None]]:
        rule = self.scope
        if isinstance(rule, Within):
            assert rule.span_ns is not None
            yield Scope(None, rule.span_ns, is_closed=True), None
        elif isinstance(rule, TimeWindows):
            times = [one.time_ns for some in choice for one in some]
            begin = (min(times) - self.most_ns - rule.size_ns) // rule.slide_ns
            for k in range(begin, (max(times) + self.most_ns) // rule.slide_ns + 1):
                yield Scope(k * rule.slide_ns, rule.size_ns, is_closed=False), k * rule.slide_ns
        else:
            assert isinstance(rule, OpenedWindows)
            assert rule.span_ns is not None
            for one in events:
                if rule.asked in one.fits:
                    yield Scope(one, rule.span_ns, is_closed=False), one.time_ns

    def _time_ns(self, alternative: Alternative, choice: Choice, scope: Scope) -> int:
        """Of its last event, or the last at which something may come that forbids it."""
        ends = [[one.time_ns + one.off_ns for one in some] for some in choice]
        found = max(one.time_ns for some in choice for one in some)
        if isinstance(scope.first, Event):
            found = max(found, scope.first.time_ns)
        if self.most_ns:
            for k in range(1, len(choice)):
                if self._barred(alternative, k):
                    found = max(found, max(ends[k]) + self.most_ns)
        if alternative.barred_after:
            first = scope.first
            first_ns = min(map(min, ends)) if not isinstance(first, int) else first
            if isinstance(first, Event):
                first_ns = min(first_ns, first.time_ns + first.off_ns)
            end_ns = first_ns + scope.span_ns - (0 if scope.is_closed else 1)
            found = max(found, end_ns + self.most_ns)
        return found

    def _barred(self, alternative: Alternative, k: int) -> set[int]:
        place = alternative.places[k]
        return set(place.barred) | (set(place.asked) if self.skip == "next" else set())

    # -- worlds ---------------------------------------------------------------------------

    def _told(
        self, events: Sequence[Event], alternative: Alternative, choice: Choice, scope: Scope
    ) -> bool | None:
        """Return whether it is certain; None: impossible."""
        own = [one for some in choice for one in some]
        if isinstance(scope.first, Event) and scope.first not in own:
            own.append(scope.first)
        barred = [set[int]()] + [self._barred(alternative, k) for k in range(1, len(choice))]
        gaps = [
            [
                one
                for one in events
                if one not in own
                and any(
                    self._is_true(bar, one, alternative, choice) for bar in bars & set(one.fits)
                )
            ]
            for bars in (*barred, set(alternative.barred_after))
        ]
        others = [one for one in events if any(one in gap for gap in gaps)]
        is_possible, is_certain = False, True
        for order in _orders([*own, *others]):
            place = {one.number: i for i, one in enumerate(order)}
            is_right = _is_in_order(choice, gaps, scope, place)
            behind = [one for one in gaps[-1] if place[one.number] > _last(choice, place)]
            inside, ways_out = _edges(order, choice, scope, behind)
            if is_right and not is_possible:
                is_possible = _can_be(order, inside)
            if is_certain:
                is_certain = is_right and not any(_can_be(order, [one]) for one in ways_out)
            if is_possible and not is_certain:
                return False
        return is_certain if is_possible else None


def _last(choice: Choice, place: dict[int, int]) -> int:
    return max(place[one.number] for some in choice for one in some)


def _is_in_order(
    choice: Choice, gaps: list[list[Event]], scope: Scope, place: dict[int, int]
) -> bool:
    for (before, after), gap in zip(pairwise(choice), gaps[1:-1], strict=True):
        first = max(place[one.number] for one in before)
        last = min(place[one.number] for one in after)
        if first > last or any(first < place[one.number] < last for one in gap):
            return False
    opener = scope.first
    return not isinstance(opener, Event) or all(
        place[opener.number] <= place[one.number] for some in choice for one in some
    )


def _edges(
    order: list[Event], choice: Choice, scope: Scope, behind: list[Event]
) -> tuple[list[Less], list[Less]]:
    """Return what is to be so that the match lies in its scope; and the ways in which it does not.

    All that is barred behind it must be behind the scope, too.
    """
    own = [one for one in order if any(one in some for some in choice)]
    first: Any = own[0] if scope.first is None else scope.first
    offset = 0
    if isinstance(first, int):
        first, offset = None, first
    end = offset + scope.span_ns
    inside: list[Less] = [(own[-1], first, end, not scope.is_closed)]
    outside: list[Less] = [(first, own[-1], -end, scope.is_closed)]
    if first is None:
        inside.append((None, own[0], -offset, False))
        outside.append((own[0], None, offset, True))
    for one in behind:
        inside.append((first, one, -end, scope.is_closed))
        outside.append((one, first, end, not scope.is_closed))
    if isinstance(scope.first, Event) and len(own) == 1 and own[0] is scope.first:
        outside = outside[1:]
    return inside, [one for one in outside if one[0] is not one[1]]


def _orders(events: list[Event]) -> Iterator[list[Event]]:
    """Yield all orders in which they may have happened."""
    if not events:
        yield []
        return
    for one in events:
        if not any(other.is_surely_before(one) for other in events if other is not one):
            for rest in _orders([other for other in events if other is not one]):
                yield [one, *rest]


def _can_be(order: list[Event], edges: list[Less]) -> bool:
    """Return whether there are such times, in this order: no circle of differences is too short."""
    number: dict[Any, int] = {None: 0} | {one.number: i for i, one in enumerate(order, 1)}

    def at(one: Event | None) -> int:
        return number[None if one is None else one.number]

    less: list[tuple[int, int, int]] = []
    for one in order:
        less += [
            (at(one), 0, 1000 * (one.time_ns + one.off_ns)),
            (0, at(one), -1000 * (one.time_ns - one.off_ns)),
        ]
    less += [(at(one), at(other), 0) for one, other in pairwise(order)]
    less += [(at(one), at(other), 1000 * by - is_less) for one, other, by, is_less in edges]
    far = [0] * (len(order) + 1)
    for _ in range(len(far)):
        changed = False
        for one, other, by in less:
            if far[other] + by < far[one]:
                far[one], changed = far[other] + by, True
        if not changed:
            return True
    return False
