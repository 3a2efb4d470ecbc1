"""Rules compile a sequence: its places, and the roles of events in it."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from slackwater.runtime.patterns.assign import Label
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence

MOST_ROLES = 1 << 16
"""The most roles that a sequence remembers: many predicates may make any number of them."""


class Kind(Enum):
    """The kind of a place."""

    ONE = "one event"
    ANY = "several, in any order"
    REPEATED = "one, several times"


class Condition(NamedTuple):
    """A predicate that reads earlier events: checked while matches are listed."""

    asked: int
    """The number of its event in the pattern."""
    place: int
    """The place of its event; of a barred event: the place that it is barred before."""
    is_bar: bool
    """Whether an event for which it is true must not come between the places."""
    reads: tuple[int, ...]
    """The places whose events it reads, all before `place`."""


class Roles(NamedTuple):
    """The roles of an event in a sequence, by the numbers of what it fits."""

    places: tuple[int, ...]
    """The places where it may stand, the last place first."""
    barred: tuple[int, ...]
    """The places before which it is barred."""
    is_after: bool
    """Whether it is surely barred after the last event."""
    watched: tuple[int, ...]
    """Numbers that may be barred by a predicate: see `Rules.watched`."""
    asked: dict[int, int]
    """{place: the first number that it fits there}."""
    fits: dict[int, tuple[int, ...]]
    """{place: all numbers that it fits there, in their order}."""


@dataclass(frozen=True, eq=False)
class Rules:
    """A sequence, compiled; shared by all keys.

    Attributes:
        places: places of the sequence, as asked for.
        kinds: the kind of each place.
        barred: the numbers that surely may not come before each place; predicates that read earlier
            events are in `conditions`.
        goes_next: whether no event between two neighbours may fit the place of the later one.
        conditions: the predicates that read earlier events.
        barred_after: numbers of what may not come after its last event.
        depends: numbers of `barred_after` that read earlier events.
        names: {name of an event that is read: its place}.
        orders: the numbers of each place in order; where several stand in any order by name, so
            that the order in which they were written does not matter.
        chosen: places whose events may fit several numbers there.
    """

    places: tuple[Place, ...]
    kinds: tuple[Kind, ...]
    barred: tuple[frozenset[int], ...]
    goes_next: bool
    conditions: tuple[Condition, ...]
    barred_after: frozenset[int]
    depends: frozenset[int]
    names: dict[str, int]
    orders: tuple[tuple[int, ...], ...]
    chosen: frozenset[int]
    _roles: dict[tuple[int, ...], Roles] = field(default_factory=dict)

    @cached_property
    def last(self) -> int:  # noqa: D102
        return len(self.places) - 1

    @cached_property
    def is_strict(self) -> tuple[bool, ...]:
        """Flags of places whose events must each be the next that fits."""
        loose = {one.place for one in self.conditions if one.is_bar}
        return tuple(self.goes_next and k not in loose for k in range(len(self.places)))

    @cached_property
    def of_place(self) -> dict[int, dict[int, Condition]]:
        """{place: {number in the pattern: its condition}}."""
        by_place: dict[int, dict[int, Condition]] = {}
        for one in self.conditions:
            if not one.is_bar:
                by_place.setdefault(one.place, {})[one.asked] = one
        return by_place

    @cached_property
    def watched(self) -> frozenset[int]:
        """Numbers that may not come if a predicate over earlier events is true."""
        return self.depends | {one.asked for one in self.conditions if one.is_bar}

    @cached_property
    def is_single(self) -> bool:
        """Whether each place but the last has one event, without conditions."""
        return not self.conditions and all(kind is Kind.ONE for kind in self.kinds[:-1])

    def is_assigned(self, k: int) -> bool:
        """Return whether the events of a place have different numbers."""
        return self.kinds[k] is Kind.ANY and self.places[k].distinct is None

    def label(self, k: int, fits: tuple[int, ...], values: dict[str, Any] | None) -> Label:
        """Return the label of an event at a place that takes several.

        Args:
            k: number of the place.
            fits: the numbers of the place that the event fits.
            values: the values of its columns that must differ.
        """
        column = self.places[k].distinct
        return fits if column is None else (values or {})[column]

    def matters(self, roles: Roles) -> bool:  # noqa: D102
        return bool(roles.places or roles.barred or roles.is_after or roles.watched)

    def roles(self, fits: tuple[int, ...]) -> Roles:
        """Return the roles of an event that fits these numbers; computed once for each."""
        roles = self._roles.get(fits)
        if roles is None:
            found_at = {
                k: some
                for k, order in enumerate(self.orders)
                if (some := tuple(one for one in order if one in fits))
            }
            barred = [k for k, bars in enumerate(self.barred) if not bars.isdisjoint(fits)]
            is_after = not (self.barred_after - self.depends).isdisjoint(fits)
            watched = tuple(one for one in fits if one in self.watched)
            if len(self._roles) >= MOST_ROLES:
                self._roles.clear()
            asked = {k: some[0] for k, some in found_at.items()}
            places = tuple(found_at)[::-1]
            roles = Roles(places, tuple(barred), is_after, watched, asked, found_at)
            self._roles[fits] = roles
        return roles


def rules_of(normal: Normal, *, skip: str) -> tuple[Rules, ...]:
    """Return the rules of each alternative.

    Args:
        normal: pattern in normal form.
        skip: kind of skipping, "any" or "next".
    """
    return tuple(_rules(one, normal.asked, goes_next=skip == "next") for one in normal.alternatives)


def _rules(sequence: Sequence, asked: Several[Asked], *, goes_next: bool) -> Rules:
    places = sequence.places
    names = {
        asked[place.asked[0]].name: k
        for k, place in enumerate(places)
        if len(place.asked) == 1 and not place.is_any and not place.is_repeated
    }
    barred, conditions = [], []
    for k, place in enumerate(places):
        # With skip="next" an event that fits a place is barred before it, too.
        own = place.asked if goes_next and k else ()
        bars = (*place.barred, *own)
        barred.append(frozenset(one for one in bars if asked[one].also is None))
        hosts = [(one, False) for one in place.asked] + [(one, True) for one in bars]
        for one, is_bar in hosts:
            if asked[one].also is not None:
                reads = tuple(sorted(names[name] for name in asked[one].refers))
                conditions.append(Condition(one, k, is_bar, reads))
    kinds = tuple(
        Kind.ANY if one.is_any else Kind.REPEATED if one.is_repeated or one.least > 1 else Kind.ONE
        for one in places
    )
    return Rules(
        places,
        kinds,
        tuple(barred),
        goes_next,
        tuple(conditions),
        frozenset(sequence.barred_after),
        frozenset(one for one in sequence.barred_after if asked[one].also is not None),
        names,
        tuple(
            tuple(sorted(place.asked, key=lambda one: asked[one].name))
            if place.is_any
            else place.asked
            for place in places
        ),
        frozenset(
            k
            for k, place in enumerate(places)
            if len(place.asked) > 1
            and (
                (place.is_any and place.distinct is None)
                or any(asked[one].also is not None for one in place.asked)
            )
        ),
    )
