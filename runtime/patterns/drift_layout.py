"""A layout compiles a pattern for clocks that may be off, once for all keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from slackwater.runtime.patterns.assign import assignable
from slackwater.runtime.patterns.possible import Needs
from slackwater.runtime.patterns.rules import MOST_ROLES, Condition, Kind, Rules
from slackwater.runtime.patterns.scopes import OpenedWindows, TimeWindows, WindowRule, Within
from slackwater.runtime.patterns.stamped import Stamped


@dataclass(frozen=True, eq=False)
class Line:
    """A line is the places of a sequence, perhaps with an opener in front.

    Attributes:
        which: the number of the alternative.
        rules: the rules of the alternative.
        shift: the number of places in front of it: 1 with an opener, else 0.
        needs: the needs of each place, also of the opener.
        lanes: the lane of the events that fit each of these places.
        bars: events that may not come before a place of the sequence: the place, the event's number
            in the pattern if it reads earlier events, and the lane.
        ends: events that may not come after the line: the event's number in the pattern if it reads
            earlier events, and the lane.
    """

    which: int
    rules: Rules
    shift: int
    needs: tuple[Needs, ...]
    lanes: tuple[int, ...]
    bars: tuple[tuple[int, int | None, int], ...]
    ends: tuple[tuple[int | None, int], ...]

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The predicates of places that read earlier events."""
        return tuple(one for one in self.rules.conditions if not one.is_bar)

    @cached_property
    def barred_places(self) -> tuple[int, ...]:
        """The places of the sequence before which an event is barred."""
        return tuple(sorted({place for place, _, _ in self.bars}))

    @property
    def has_end(self) -> bool:  # noqa: D102
        return bool(self.ends)

    @property
    def waits(self) -> bool:
        """Whether an event that has yet to come may forbid a match."""
        return bool(self.bars or self.ends)


@dataclass(frozen=True, eq=False)
class DriftLayout:
    """Lanes, and the lines that are looked for in them; shared by all keys.

    A lane has the events that fit at least one number of a set, and perhaps one more; lane 0 has
    all events.

    Attributes:
        most_ns: clocks are off by no more.
        scope: the scope of a match, by time.
        lanes: the set of numbers of each lane, and the further number; lane 0 has none.
        lines: each alternative, and once more with the opener of windows in front, if windows are
            opened by events.
    """

    most_ns: int
    scope: Within | WindowRule
    lanes: tuple[_Lane, ...]
    lines: tuple[Line, ...]
    _found: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def lanes_of(self, fits: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lanes that an event is in."""
        lanes = self._found.get(fits)
        if lanes is None:
            if len(self._found) >= MOST_ROLES:
                self._found.clear()
            lanes = (
                0,
                *(
                    i
                    for i, (some, also) in enumerate(self.lanes)
                    if not some.isdisjoint(fits) and (also is None or also in fits)
                ),
            )
            self._found[fits] = lanes
        return lanes

    def since_ns(self, event: Stamped) -> int:
        """Return the beginning of the first window that an event may be in."""
        scope = self.scope
        if not isinstance(scope, TimeWindows):
            return -(2**63)
        return ((event.begin[0] - scope.size_ns) // scope.slide_ns + 1) * scope.slide_ns

    @property
    def waits(self) -> bool:
        """Whether an event that has yet to come may forbid a match."""
        return any(one.waits for one in self.lines)

    @cached_property
    def span_ns(self) -> int:
        """The most distance of two events of a match."""
        scope = self.scope
        if isinstance(scope, TimeWindows):
            return scope.size_ns - 1
        assert isinstance(scope, Within | OpenedWindows), "checked: it goes by time"
        assert scope.span_ns is not None
        return scope.span_ns if isinstance(scope, Within) else scope.span_ns - 1

    @cached_property
    def held_ns(self) -> int:
        """The time for which an event may be needed after its own.

        A match spans `span_ns`, and by clocks two bounds more; one that waits for barred events
        does so for two bounds, and looks two further back.
        """
        return self.span_ns + (6 if self.waits else 2) * self.most_ns


def layout_of(rules: tuple[Rules, ...], scope: Within | WindowRule, most_ns: int) -> DriftLayout:
    """Return the layout of a pattern.

    Args:
        rules: the rules of each alternative.
        scope: the scope of a match, by time.
        most_ns: clocks are off by no more.
    """
    made = _Lanes()
    lines = [_line(made, which, one) for which, one in enumerate(rules)]
    if isinstance(scope, OpenedWindows):
        later = [_after_opener(made, one, scope.asked) for one in lines]
        lines = [*(_from_opener(made, one, scope.asked) for one in lines), *later]
    return DriftLayout(most_ns, scope, tuple(made.lanes), tuple(lines))


_Lane: TypeAlias = tuple[frozenset[int], int | None]


class _Lanes:
    def __init__(self) -> None:
        self.lanes: list[_Lane] = [(frozenset(), None)]

    def of(self, asked: frozenset[int], also: int | None = None) -> int:
        lane = (asked, also)
        if lane not in self.lanes:
            self.lanes.append(lane)
        return self.lanes.index(lane)


def _after_opener(made: _Lanes, line: Line, opener: int) -> Line:
    opens = made.of(frozenset({opener}))
    needs, lanes = (Needs(1, 1, None), *line.needs), (opens, *line.lanes)
    return replace(line, shift=1, needs=needs, lanes=lanes)


def _from_opener(made: _Lanes, line: Line, opener: int) -> Line:
    if not line.needs[0].is_one:
        return line  # which of several first events opens it is known once they are chosen
    opens = made.of(frozenset(line.rules.places[0].asked), opener)
    return replace(line, lanes=(opens, *line.lanes[1:]))


def _line(made: _Lanes, which: int, rules: Rules) -> Line:
    bars: list[tuple[int, int | None, int]] = []
    bars += [(k, None, made.of(some)) for k, some in enumerate(rules.barred) if some]
    for one in rules.conditions:
        if one.is_bar:
            bars.append((one.place, one.asked, made.of(frozenset({one.asked}))))
    ends: list[tuple[int | None, int]] = []
    if always := rules.barred_after - rules.depends:
        ends.append((None, made.of(always)))
    ends += [(one, made.of(frozenset({one}))) for one in sorted(rules.depends)]
    return Line(
        which,
        rules,
        0,
        tuple(_needs(rules, k) for k in range(len(rules.places))),
        tuple(made.of(frozenset(place.asked)) for place in rules.places),
        tuple(bars),
        tuple(ends),
    )


def _needs(rules: Rules, k: int) -> Needs:
    place = rules.places[k]
    if rules.kinds[k] is not Kind.ANY:
        return Needs(place.least, place.most, None)
    if place.distinct is not None:
        column = place.distinct
        return Needs(place.count, place.count, lambda one: one.values[column])

    def fits(one: Stamped) -> tuple[int, ...]:
        return rules.roles(one.fits).fits[k]

    def label(one: Stamped) -> int:
        """Return its number if it fits only one; else it may be with any other."""
        some = fits(one)
        return some[0] if len(some) == 1 else -one.turn

    def are_together(some: Sequence[Stamped]) -> bool:
        return assignable(tuple(fits(one) for one in some))

    return Needs(place.count, place.count, label, are_together)
