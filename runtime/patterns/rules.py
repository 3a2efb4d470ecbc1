"""What a sequence asks of its lists: its places compiled, and the roles an event has in it."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from runtime.patterns.normal import Asked, Normal, Place, Sequence

MOST_ROLES = 1 << 16
"""Roles that are remembered of each sequence: with many predicates there may be no end of them."""


class Kind(Enum):
    """Of a place."""

    ONE = "one event"
    ANY = "several, in any order"
    REPEATED = "one, several times"


class Condition(NamedTuple):
    """A predicate that reads earlier events: checked while matches are listed."""

    asked: int
    """Whose it is."""
    place: int
    """Where its event stands; of what is barred: the place that it is barred in front of."""
    is_bar: bool
    """Whether an event for which it is true must not come between the places."""
    reads: tuple[int, ...]
    """The places whose events it reads, all before `place`."""


class Roles(NamedTuple):
    """What an event is to a sequence, by the numbers of what it fits."""

    places: tuple[tuple[int, int], ...]
    """(place, number of what is asked there), the last place first."""
    barred: tuple[int, ...]
    """The places in front of which it may not come."""
    ends: tuple[int, ...]
    """What it is of that which may not come behind the last event."""
    asked: dict[int, int]
    """{place: number of what is asked there}."""


@dataclass(frozen=True, eq=False)
class Rules:
    """A sequence, compiled; shared by all keys.

    Attributes:
        places: as they are asked for.
        kinds: of each place.
        barred: of each place, what may surely not come in front of it; predicates that read earlier
            events are in `conditions`.
        goes_next: whether no event between two neighbours may fit the place of the later one.
        conditions: what reads earlier events.
        barred_after: numbers of what may not come behind its last event.
        depends: those of them that read earlier events.
        names: {name of an event that is read: its place}.
    """

    places: tuple[Place, ...]
    kinds: tuple[Kind, ...]
    barred: tuple[frozenset[int], ...]
    goes_next: bool
    conditions: tuple[Condition, ...]
    barred_after: frozenset[int]
    depends: frozenset[int]
    names: dict[str, int]
    _roles: dict[tuple[int, ...], Roles] = field(default_factory=dict)

    @cached_property
    def is_strict(self) -> tuple[bool, ...]:
        """Of each place, whether of its events each must be the next that fits, whatever it is."""
        loose = {one.place for one in self.conditions if one.is_bar}
        return tuple(self.goes_next and k not in loose for k in range(len(self.places)))

    @cached_property
    def is_plain(self) -> bool:
        """Whether each place has one event, nothing is barred, and there is no condition."""
        return (
            not self.conditions
            and not any(self.barred)
            and all(kind is Kind.ONE for kind in self.kinds)
        )

    @cached_property
    def is_plain_up_to_any(self) -> bool:
        """Whether its last place takes several in any order, and it is plain but for that."""
        *before, last = self.kinds
        return (
            not self.conditions
            and not any(self.barred)
            and all(kind is Kind.ONE for kind in before)
            and last is Kind.ANY
        )

    def roles(self, fits: tuple[int, ...]) -> Roles:
        """Return what an event that fits these is; worked out once for each."""
        found = self._roles.get(fits)
        if found is None:
            places = [
                (place, next(one for one in asks.asked if one in fits))
                for place, asks in enumerate(self.places)
                if not set(asks.asked).isdisjoint(fits)
            ]
            barred = [k for k, bars in enumerate(self.barred) if not bars.isdisjoint(fits)]
            ends = [one for one in fits if one in self.barred_after]
            if len(self._roles) >= MOST_ROLES:
                self._roles.clear()
            found = Roles(tuple(places[::-1]), tuple(barred), tuple(ends), dict(places))
            self._roles[fits] = found
        return found


def rules_of(normal: Normal, *, skip: str) -> tuple[Rules, ...]:
    """Return the rules of each alternative.

    Args:
        normal: the pattern.
        skip: "any" or "next".
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
        # With skip="next" what fits a place is barred in front of it, too.
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
    )
