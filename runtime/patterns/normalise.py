"""Patterns as written become normal forms; other patterns are refused."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import and_
from typing import TypeAlias

from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.inside import conjuncts
from slackwater.runtime.patterns.language import AnyOf, Either, Event, No, Part, Repeat, Seq
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.shown import shown

MOST_ALTERNATIVES = 64

_Item: TypeAlias = "Place | tuple[int, ...]"
"""A place, or the numbers of the events that are barred there."""


def normal_of(pattern: Part, *, step: str, opener: Event | None = None) -> Normal:
    """Return a pattern in its normal form.

    Args:
        pattern: pattern as it was written.
        step: the step's name, for errors.
        opener: the event that opens windows; it need not be in the pattern.

    Raises:
        FlowError: it has none; says which part, the rule and the way out.
    """
    return _Writer(step).normal(pattern, opener)


class _Writer:
    def __init__(self, step: str) -> None:
        self._step = step
        self._events: list[Event] = []

    def normal(self, pattern: Part, opener: Event | None) -> Normal:
        alternatives = self._lists(pattern)
        if opener is not None:
            self._number(opener)
        asked = tuple(self._asked(one) for one in self._events)
        sequences = tuple(self._sequence(items) for items in alternatives)
        for one in sequences:
            self._check_reads(one, asked)
        if opener is not None and asked[self._number(opener)].also is not None:
            raise self.refuse(
                f"its windows are opened by {opener.name!r}, which reads earlier events; there are "
                "none when a window opens: open it by an event that reads its own row only"
            )
        return Normal(asked, sequences)

    def refuse(self, problem: str) -> FlowError:
        return FlowError(f"step {self._step!r}: {problem}")

    # -- parts ------------------------------------------------------------------------------

    def _lists(self, part: Part) -> list[list[_Item]]:  # noqa: PLR0911 - one for each part
        """Return a part's alternatives, each a list of places and barred events."""
        match part:
            case Event():
                return [[Place((self._number(part),))]]
            case Seq():
                both = product(*(self._lists(one) for one in part.parts))
                return self._bounded([[item for some in one for item in some] for one in both])
            case Either():
                if all(isinstance(one, Event) for one in part.parts):
                    return [[Place(self._numbers(part))]]
                return self._bounded([one for each in part.parts for one in self._lists(each)])
            case AnyOf():
                asked = tuple(self._number(one) for one in part.events)
                if (
                    part.count == 1 and part.distinct is None
                ):  # a place of one event, not of several
                    asked = tuple(sorted(asked, key=lambda number: self._events[number].name))
                return [[Place(asked, count=part.count, distinct=part.distinct)]]
            case Repeat():
                return [[Place(self._numbers(part.part), least=part.least, most=part.most)]]
            case No():
                return [[self._numbers(part.part)]]
        raise self.refuse(
            f"{shown(part)} is no part of a pattern; write sw.patterns.seq(…), sw.patterns.event(…)"
        )

    def _bounded(self, lists: list[list[_Item]]) -> list[list[_Item]]:
        if len(lists) > MOST_ALTERNATIVES:
            raise self.refuse(
                f"its either(…) of sequences make {len(lists)} alternatives, and "
                f"{MOST_ALTERNATIVES} are the most; write sw.patterns.either(A, B) of single "
                "events where it can be, or several patterns"
            )
        return lists

    def _numbers(self, part: Part) -> tuple[int, ...]:
        events = part.parts if isinstance(part, Either) else (part,)
        return tuple(self._number(one) for one in events if isinstance(one, Event))

    def _number(self, event: Event) -> int:
        for number, one in enumerate(self._events):
            if one is event:
                return number
            if one.name == event.name:
                raise self.refuse(
                    f"two events are called {event.name!r}; use one in both places, or name them "
                    "apart"
                )
        self._events.append(event)
        return len(self._events) - 1

    def _asked(self, event: Event) -> Asked:
        if event.where is None:
            return Asked(event.name, event.types)
        own: list[Expr] = []
        earlier: list[Expr] = []
        refers: set[str] = set()
        for part in conjuncts(event.where):
            read = {name for column in part.columns() if (name := self._event_of(column))}
            if event.name in read:
                raise self.refuse(
                    f"event {event.name!r} reads itself in {part!s}; its own columns are "
                    "col('price')"
                )
            refers |= read
            (earlier if read else own).append(part)
        return Asked(event.name, event.types, _all(own), _all(earlier), frozenset(refers))

    def _event_of(self, column: str) -> str | None:
        name, dot, _ = column.partition(".")
        return name if dot and any(one.name == name for one in self._events) else None

    # -- sequences --------------------------------------------------------------------------

    def _sequence(self, items: Several[_Item]) -> Sequence:
        places: list[Place] = []
        barred: tuple[int, ...] = ()
        for item in items:
            if isinstance(item, tuple):
                if not places:
                    raise self.refuse(
                        f"no({self._called(item)}) has nothing before it; what may not come must "
                        "stand after an event, so that it is known from when on"
                    )
                barred += item
                continue
            if barred and item.is_any:
                raise self.refuse(
                    f"no({self._called(barred)}) stands right in front of any_of or all_of, whose "
                    "events come in any order; put an event between them, or forbid it elsewhere"
                )
            places.append(replace(item, barred=barred))
            barred = ()
        if not places:
            raise self.refuse("a pattern needs an event that is to come, not only what may not")
        return Sequence(tuple(places), barred)

    def _called(self, numbers: tuple[int, ...]) -> str:
        return ", ".join(self._events[one].name for one in numbers)

    def _check_reads(self, sequence: Sequence, asked: tuple[Asked, ...]) -> None:
        """Check that events that predicates read have come before, just once."""
        known: set[str] = set()
        for place in sequence.places:
            for number in (*place.barred, *place.asked):
                self._check_known(asked[number], known)
            if len(place.asked) == 1 and not place.is_any and not place.is_repeated:
                known.add(asked[place.asked[0]].name)
        for number in sequence.barred_after:
            self._check_known(asked[number], known)

    def _check_known(self, one: Asked, known: set[str]) -> None:
        if missing := sorted(one.refers - known):
            raise self.refuse(
                f"event {one.name!r} reads {missing[0]!r}, which is not one event that surely "
                "stands before it: put it before it in the seq, by itself, not in any_of, repeat "
                "or either"
            )


def _all(parts: Several[Expr]) -> Expr | None:
    return reduce(and_, parts) if parts else None
