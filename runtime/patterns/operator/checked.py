"""Checks of a pattern, given the columns of its rows and its scope."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from slackwater.runtime.errors import FlowError, SettingError, TypeMismatch
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.patterns.language import CountWindow, OpenedBy, whole_events
from slackwater.runtime.patterns.normal import Asked, Normal, Place
from slackwater.runtime.patterns.scopes import (
    CountWindows,
    OpenedWindows,
    TimeWindows,
    WindowRule,
    Within,
)
from slackwater.runtime.shown import shown


@runtime_checkable
class TimeWindow(Protocol):
    """A window by event time: `sw.tumbling`, `sw.sliding`."""

    @property
    def size_ns(self) -> int:
        """The length of a window."""
        ...

    @property
    def slide_ns(self) -> int:
        """The distance between the starts of two windows."""
        ...

    @property
    def has_whole_slides(self) -> bool:
        """Whether windows begin at whole slides since 1970."""
        ...


AnyWindow: TypeAlias = TimeWindow | CountWindow | OpenedBy


def scope_of(
    pattern: Normal, window: AnyWindow | None, within: Duration | int | None, *, step: str
) -> Within | WindowRule:
    """Return the scope of a match; the pattern tells which event opens its windows.

    Raises:
        SettingError: neither is given, or both; or `window` is not a window.
    """
    if window is None and within is None:
        raise SettingError(
            f"step {step!r}: the pattern has neither window= nor within=, so every event would be "
            'kept for ever; give within="5s" or within=1_000 (events), or a window='
        )
    if window is not None and within is not None:
        raise SettingError(
            f"step {step!r}: window= and within= both say how long a match may be; give one"
        )
    if isinstance(window, OpenedBy):
        names = [one.name for one in pattern.asked]
        return OpenedWindows(names.index(window.event.name), window.span_ns, window.events)
    if isinstance(window, CountWindow):
        return CountWindows(window.size, window.every)
    if isinstance(window, TimeWindow):
        if not window.has_whole_slides:
            raise SettingError(
                f"step {step!r}: windows of a pattern begin at whole slides since 1970, and "
                f"window={shown(window, 60)} does not; write sw.tumbling('1d') without offset= and "
                "closed="
            )
        return TimeWindows(window.size_ns, window.slide_ns)
    if window is not None:
        raise SettingError(
            f"step {step!r}: window={shown(window)} is not a window; write sw.tumbling(…), "
            "sw.sliding(…), sw.patterns.count_window(…) or sw.patterns.opened_by(…)"
        )
    if isinstance(within, int) and not isinstance(within, bool):
        return Within(events=whole_events(f"step {step!r}: within", within))
    assert within is not None
    return Within(span_ns=duration_ns(within, what=f"step {step!r}: within", positive=True))


def check_columns(
    pattern: Normal,
    schema: pa.Schema,
    *,
    type_column: str | None,
    id_column: str | None,
    step: str,
) -> Normal:
    """Return the pattern with its predicates bound to these columns, all checked.

    Raises:
        ColumnError: a column is not there.
        TypeMismatch: a predicate is neither true nor false, a type cannot be in its column, or a
            column is of a type that it must not be.
        FlowError: `of_type` without `type=`.
    """
    kind = None
    if type_column is not None:
        kind = checks.word_type(schema, type_column, step=step, role="type")
    bound = []
    for one in pattern.asked:
        where, also = one.where, one.also
        if one.types is not None:
            if kind is None:
                raise FlowError(
                    f"step {step!r}: event {one.name!r} has of_type=, and the pattern no "
                    "type=; name the column of types with type='…'"
                )
            _check_types(one, kind, column=type_column, step=step)
        if where is not None:
            where = checks.predicate(where, schema, step=step, what=f"{one.name}: where")
        if also is not None:
            earlier = [
                field.with_name(f"{name}.{field.name}") for name in one.refers for field in schema
            ]
            both = pa.schema([*schema, *earlier])
            also = checks.predicate(also, both, step=step, what=f"{one.name}: where")
        bound.append(replace(one, where=where, also=also))
    distinct = [place.distinct for place in _places(pattern) if place.distinct is not None]
    for column in dict.fromkeys(distinct):
        checks.key_types(schema, [column], step=step)
    if id_column is not None:
        checks.word_type(schema, id_column, step=step, role="id")
    return replace(pattern, asked=tuple(bound))


def _check_types(one: Asked, kind: pa.DataType, *, column: str | None, step: str) -> None:
    for value in one.types or ():
        if not _may_be(value, kind):
            raise TypeMismatch(
                f"step {step!r}: event {one.name!r}: of_type {shown(value)} can never be in column "
                f"{column!r}, which is {kind}; give a value of that type"
            )


def _may_be(value: Any, kind: pa.DataType) -> bool:
    try:
        converted = pa.array([value], kind)[0].as_py()
        return bool(converted == value) and isinstance(converted, bool) is isinstance(value, bool)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False


def check_meaning(
    pattern: Normal,
    scope: Within | WindowRule,
    *,
    skip: str,
    selection: str,
    matches: int | None,
    step: str,
) -> None:
    """Check that all settings go together, and that the pattern can match at all.

    Args:
        pattern: pattern to be checked.
        scope: the scope of a match.
        skip: rule for events between two of a match, "any" or "next".
        selection: choice among the matches that end with one event.
        matches: the most matches of a window; None if all leave.
        step: the step's name, for errors.

    Raises:
        SettingError: `matches` without windows.
        FlowError: the pattern can never match, or is too long for what would be kept.
    """
    if matches is not None and isinstance(scope, Within):
        raise SettingError(
            f"step {step!r}: matches={shown(matches)} limits the matches of a window, and the "
            "pattern has none; give window= in place of within="
        )
    if matches is not None:
        whole_events(f"step {step!r}: matches", matches)
    places = _places(pattern)
    if skip == "next" and any(one.is_any for one in places):
        raise FlowError(
            f"step {step!r}: skip='next' asks for the next event that fits, and any_of takes "
            "events in any order; leave skip='any'"
        )
    if selection == "cumulative":
        for one in pattern.alternatives:
            if any(place.is_repeated for place in one.places):
                raise FlowError(
                    f"step {step!r}: selection='cumulative' gives all events of each place, which "
                    "repeat does too; write the event once"
                )
            if any(place.is_any for place in one.places[:-1]):
                raise FlowError(
                    f"step {step!r}: selection='cumulative' with any_of needs it to be the last "
                    "part of the pattern"
                )
    by_number = isinstance(scope, CountWindows) or (
        not isinstance(scope, TimeWindows) and scope.events is not None
    )
    if by_number and any(one.barred_after for one in pattern.alternatives):
        raise FlowError(
            f"step {step!r}: no(…) at the end waits until its scope is over, and one that ends by "
            "a number of events may never be; use a time"
        )
    if by_number:
        size = scope.size if isinstance(scope, CountWindows) else getattr(scope, "events", 0)
        needed = min(sum(map(_least, one.places)) for one in pattern.alternatives)
        if needed > size:
            raise FlowError(
                f"step {step!r}: the pattern takes {needed} events, and a match may lie in {size}: "
                "it can never match; allow more"
            )


def check_distinct(
    pattern: Normal,
    schema: pa.Schema,
    *,
    keys: Several[str],
    type_column: str | None,
    step: str,
) -> None:
    """Check that there can be as many different values as `any_of(…, distinct=…)` asks for.

    Raises:
        FlowError: there are always fewer, so that the pattern can never match.
    """
    for place in _places(pattern):
        column = place.distinct
        if column is None:
            continue
        many, why = None, ""
        if column in keys:
            many, why = 1, f"rows of one key have one {column!r}"
        elif pa.types.is_boolean(schema.field(column).type):
            many, why = 3, f"{column!r} is true, false or null"
        elif column == type_column:
            types = [pattern.asked[one].types for one in place.asked]
            named = {one for some in types for one in some or ()}
            if None not in types:
                many, why = len(named), f"its events are of {len(named)} types"
        if many is not None and many < place.count:
            raise FlowError(
                f"step {step!r}: any_of({place.count}, …, distinct={column!r}) asks for "
                f"{place.count} different values, and {why}: it can never match; ask for "
                f"{many} or fewer, or for another column"
            )


def _least(place: Place) -> int:
    return place.count if place.is_any else place.least


def _places(pattern: Normal) -> Several[Place]:
    return [place for one in pattern.alternatives for place in one.places]
