"""Users write patterns with events, and with words that combine them.

```python
strike = event("strike", of_type="10", where=col("speed") >= 5)
near = event("near", where=col("distance") < strike["reach"])
seq(strike, no(whistle), any_of(3, near, distinct="player"))
```
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.expressions.expressions import Expr, col
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.shown import shown

MOST_EVENTS = 10**15
"""More events than any stream has; sums of a few such numbers stay in 64 bits."""
MOST_TIMES = 1 << 16
"""A pattern keeps a list for each time that an event is to come, of each key."""


@dataclass(frozen=True, eq=False)
class Part:
    """Part of a pattern."""

    def __or__(self, other: Part) -> Either:
        """Return a choice of this part or the other."""
        return either(self, other)


@dataclass(frozen=True, eq=False)
class Event(Part):
    """An event of a pattern; see `event`."""

    name: str
    types: tuple[Any, ...] | None = None
    where: Expr | None = None

    def __getitem__(self, column: str) -> Expr:
        """Return the value of this event's column, for the `where` of a later event."""
        if not isinstance(column, str):
            raise FlowError(f"event {self.name!r}: {column!r} is not a column's name; write text")
        return col(f"{self.name}.{column}")


@dataclass(frozen=True, eq=False)
class Seq(Part):
    """Parts in order; see `seq`."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class AnyOf(Part):
    """Several events in any order; see `any_of`."""

    count: int
    events: tuple[Event, ...]
    distinct: str | None


@dataclass(frozen=True, eq=False)
class Either(Part):
    """A choice of parts; see `either`."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Repeat(Part):
    """A repeated event; see `repeat`."""

    part: Part
    least: int
    most: int | None


@dataclass(frozen=True, eq=False)
class No(Part):
    """A forbidden event between its neighbours; see `no`."""

    part: Part


@dataclass(frozen=True, eq=False)
class OpenedBy:
    """Windows that events open; see `opened_by`."""

    event: Event
    span_ns: int | None
    events: int | None


@dataclass(frozen=True)
class CountWindow:
    """Windows of a number of events; see `count_window`."""

    size: int
    every: int


@checked_call
def event(name: str, *, of_type: Any = None, where: Expr | None = None) -> Event:
    """Describe an event of a pattern.

    Args:
        name: its name in matches, and in predicates of later events.
        of_type: the value that the column `type=` of `.pattern` has, or several; any if None.
        where: a predicate that is true of it; `A["price"]` there is the price of the event A of the
            same match; any event if None.

    Raises:
        FlowError: `name` is not a name; `of_type` is empty, or of what no column has.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise FlowError(
            f"an event's name must be one word of letters, digits and _, as columns are called by "
            f"it, not {name!r}"
        )
    types = None
    if of_type is not None:
        several = isinstance(of_type, Iterable) and not isinstance(of_type, str | bytes)
        types = _types(name, of_type) if several else (of_type,)
        if not types:
            raise FlowError(
                f"event {name!r}: of_type={shown(of_type)} has no type; give at least one"
            )
    if where is not None and not isinstance(where, Expr):
        raise FlowError(
            f"event {name!r}: where= takes an expression such as col('speed') >= 5, not {where!r}"
        )
    return Event(name, types, where)


@checked_call
def seq(*parts: Part) -> Seq:
    """Put parts in order; what lies between them is skipped.

    Raises:
        FlowError: nothing is given, or a value that is not a part of a pattern.
    """
    return Seq(_parts("seq", parts))


@checked_call
def any_of(n: int, *events: Event, distinct: str | None = None) -> AnyOf:
    """Ask for n different ones of these events, in any order.

    Args:
        n: number of different events.
        events: the events to choose from; one that fits several may be any of them.
        distinct: column; if given, n events of different values of it instead.

    Raises:
        FlowError: a value is not an event.
        SettingError: `n` is not whole, or too small.
    """
    some = _events("any_of", events)
    most = None if distinct is not None else len(some)
    return AnyOf(_whole("any_of: n", n, 1, most), some, distinct)


@checked_call
def all_of(*events: Event) -> AnyOf:
    """Ask for all of these events, in any order."""
    some = _events("all_of", events)
    return AnyOf(len(some), some, None)


@checked_call
def either(*parts: Part) -> Either:
    """Ask for one of these parts; A | B is the same."""
    return Either(_parts("either", parts))


@overload
def repeat(part: Event | Either, least: int, most: int | None = ..., /) -> Repeat: ...
@overload
def repeat(part: Event | Either, /, *, at_least: int) -> Repeat: ...
@checked_call
def repeat(
    part: Event | Either,
    least: int | None = None,
    most: int | None = None,
    /,
    *,
    at_least: int | None = None,
) -> Repeat:
    """Repeat an event: `repeat(A, 3)`, `repeat(A, 2, 5)`, `repeat(A, at_least=1)`.

    Raises:
        FlowError: it is not an event, nor one of several events.
        SettingError: it is not said how often, or no such number.
    """
    of_events = isinstance(part, Either) and all(isinstance(one, Event) for one in part.parts)
    if not (isinstance(part, Event) or of_events):
        raise FlowError(
            f"repeat takes an event, or one of several, not {shown(part)}; write a sequence as "
            "often as it is to come"
        )
    if (least is None) == (at_least is None):
        raise SettingError(
            "repeat needs how often: sw.patterns.repeat(A, 3), (A, 2, 5) or (A, at_least=1)"
        )
    if at_least is not None:
        return Repeat(part, _times("at_least", at_least), None)
    fewest = _times("times", least)
    return Repeat(part, fewest, fewest if most is None else _whole("repeat: most", most, fewest))


@checked_call
def no(part: Event | Either) -> No:
    """Forbid these events between the parts before and after; at the end: to the end.

    Raises:
        FlowError: it is not an event, nor one of several events.
    """
    if isinstance(part, Event) or (
        isinstance(part, Either) and all(isinstance(one, Event) for one in part.parts)
    ):
        return No(part)
    raise FlowError(f"no takes an event, or one of several, not {shown(part)}")


@checked_call
def opened_by(
    event: Event, *, within: Duration | None = None, events: int | None = None
) -> OpenedBy:
    """Open a window with each such event, which is in it.

    Args:
        event: the event that opens a window.
        within: the length of a window, "15s"; an event at its end is not in it.
        events: number of its events, in place of `within`.

    Raises:
        SettingError: not just one length is given.
    """
    if not isinstance(event, Event):
        raise FlowError(f"opened_by takes an event of the pattern, not {event!r}")
    if (within is None) == (events is None):
        raise SettingError('opened_by needs one length: within="15s", or events=2_000')
    if events is not None:
        return OpenedBy(event, None, _whole("opened_by: events", events, 1))
    assert within is not None
    return OpenedBy(event, duration_ns(within, what="opened_by: within", positive=True), None)


@checked_call
def count_window(size: int, *, every: int | None = None) -> CountWindow:
    """Return windows of so many events of a key.

    Args:
        size: number of events of each.
        every: the events from one beginning to the next; `size` if None.

    Raises:
        SettingError: a number is not whole, or too small.
    """
    whole = _whole("count_window: size", size, 1)
    return CountWindow(whole, whole if every is None else _whole("count_window: every", every, 1))


def _parts(word: str, parts: tuple[Any, ...]) -> tuple[Part, ...]:
    if not parts:
        raise FlowError(f"{word}() is empty; give it the events that are to come")
    for inner in parts:
        if not isinstance(inner, Part):
            raise FlowError(
                f"{word} takes parts of a pattern, such as sw.patterns.event('A', where=…), "
                f"not {inner!r}"
            )
    return parts


def _events(word: str, events: tuple[Any, ...]) -> tuple[Event, ...]:
    for inner in _parts(word, events):
        if not isinstance(inner, Event):
            raise FlowError(f"{word} takes events, not {type(inner).__name__.lower()}(…)")
    if len({id(inner) for inner in events}) < len(events):
        raise FlowError(f"{word} has an event twice; each of its events counts once")
    return events


def _types(event: str, several: Iterable[Any]) -> tuple[Any, ...]:
    try:
        return tuple(dict.fromkeys(several))
    except TypeError:
        raise FlowError(
            f"event {event!r}: of_type={shown(several)} has what no column of types can have; give "
            "one value, or a list of texts, whole numbers, or true and false"
        ) from None


def _times(what: str, value: object) -> int:
    times = _whole(f"repeat: {what}", value, 1)
    if times > MOST_TIMES:
        raise SettingError(
            f"repeat: {what}={times} must be {MOST_TIMES:,} at most, since each time has a list of "
            "its own; count so many with .aggregate(…, n=sw.count()) and .filter(…)"
        )
    return times


def _whole(what: str, value: object, least: int, most: int | None = None) -> int:
    number = whole_events(what, value, least)
    if most is not None and number > most:
        raise SettingError(f"{what}={number} of {most} events can never be; give more events")
    return number


def whole_events(what: str, value: object, least: int = 1) -> int:
    """Return a number of events, or of matches, that can be.

    Args:
        what: the name of the number, for the error.
        value: value that was given.
        least: the smallest that may be.

    Raises:
        SettingError: it is not whole, or not within its range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(f"{what}={shown(value)} must be a whole number, {least} or more")
    if value > MOST_EVENTS:
        raise SettingError(
            f"{what}={shown(value)} must be {MOST_EVENTS:,} at most, and no stream has so many "
            "events; give a smaller number"
        )
    return value
