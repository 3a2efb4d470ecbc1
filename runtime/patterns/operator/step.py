"""The step of a pattern, and the seam through which it sheds events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.patterns.normal import Normal, Place, Sequence
from slackwater.runtime.patterns.rules import rules_of
from slackwater.runtime.patterns.scopes import (
    CountWindows,
    OpenedWindows,
    TimeWindows,
    WindowRule,
    Within,
)
from slackwater.runtime.patterns.settings import Selection, Settings
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits

WINDOW_START = "window_start"
"""The column with the beginning of a match's window."""
EVENTS = "events"
"""The column that names the events of a match."""


@runtime_checkable
class PatternShedding(Protocol):
    """A rule of dropping events under load: the value of `shed=`.

    Its predictions know the classes of `runtime/shedding/settings.py` alone.
    """

    @property
    def text(self) -> str:
        """The line of `explain` about it."""
        ...

    @property
    def columns(self) -> Set[str]:
        """Columns of rows that it reads."""
        ...

    def bound(self, schema: pa.Schema, *, step: str) -> PatternShedding:
        """Return the rule with its expressions bound to the columns of rows, all checked.

        Raises:
            SlackwaterError: an expression does not fit the columns.
        """
        ...

    def machine(self, step: PatternStep, *, most_kept_rows: int) -> Operator:
        """Return a fresh operator for a step that has this rule as `shed`."""
        ...


@dataclass(frozen=True, kw_only=True)
class PatternStep(GatedStep):
    """Sequences of events of a key, as a pattern describes them.

    Columns that leave: the keys; `window_start` if there are windows;
    `<event>_<column>` for each event that is in every match just once (none with
    `selection="cumulative"`); `events`, text: JSON, a list
    of [event's name, its id]. Event time: of the last event; where a `no` ends the match, that end.

    Attributes:
        pattern: the pattern in its normal form.
        scope: the scope of a match.
        skip: "any": events that do not match are skipped; "next": only up to the next that fits.
        selection: choice among the matches that end with one event.
        consumes: whether an event that has left is in no other match of its scope.
        most: the most matches of a window; None if all leave.
        type_column: the column whose values `of_type` names; None if no event has `of_type`.
        id_column: the column that names an event; None if its event time in ns does.
        shed: rule of dropping events under load; None if none is dropped.
    """

    keys: tuple[str, ...]
    pattern: Normal
    scope: Within | WindowRule
    release: Release
    skip: str = "any"
    selection: Selection = "first"
    consumes: bool = True
    most: int | None = None
    type_column: str | None = None
    id_column: str | None = None
    shed: PatternShedding | None = None
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="pattern",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=self._reach_ns,
            release=self.release,
            port_keys=(self.keys,),
            makes="rows" if self.leaves_with_rows else "on its time",
            counts_events=isinstance(self.scope, CountWindows),
            misses="matches",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
            uses_clock=self.shed is not None,  # load is a matter of time
            shed=self.shed,
        )

    @property
    def has_windows(self) -> bool:
        """Whether a match names its window."""
        return not isinstance(self.scope, Within)

    @cached_property
    def distinct(self) -> Several[str]:
        """The columns whose values must differ, in their order."""
        places = [place for one in self.pattern.alternatives for place in one.places]
        return sorted({one.distinct for one in places if one.distinct is not None})

    @property
    def names(self) -> Mapping[str, tuple[int, str]]:
        """{column that leaves: (number of the pattern's event, name it came under)}."""
        own = {*self.keys, EVENTS, *([WINDOW_START] if self.has_windows else [])}
        names = {}
        once = () if self.selection == "cumulative" else self.pattern.once
        for number in sorted(once):
            prefix = f"{self.pattern.asked[number].name}_"
            for column in self.schema.names:
                if column not in own and column.startswith(prefix):
                    names[column] = (number, column.removeprefix(prefix))
        return names

    @property
    def own_columns(self) -> Set[str]:
        """Columns that are read whatever columns are needed downstream, without the keys."""
        columns = {one for one in (self.type_column, self.id_column) if one is not None}
        if self.shed is not None:
            columns |= self.shed.columns
        for asked in self.pattern.asked:
            for predicate in (asked.where, asked.also):
                columns |= _columns_of(predicate, [one.name for one in self.pattern.asked])
        return columns | set(self.distinct)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        del position, there
        came = {old for name, (_, old) in self.names.items() if name in needed}
        return came | set(self.keys) | self.own_columns

    def compiled(self) -> Settings:
        """Return the settings of its matchers."""
        rules = rules_of(self.pattern, skip=self.skip)
        return Settings(rules, self.scope, self.selection, self.consumes, self.most)

    @property
    def _reach_ns(self) -> int:
        """The length of a window or match; 0 for a number of events."""
        scope = self.scope
        if isinstance(scope, CountWindows):
            return 0
        return scope.size_ns if isinstance(scope, TimeWindows) else scope.span_ns or 0

    @property
    def counts_events(self) -> bool:
        """Whether scopes count events, whatever these are."""
        scope = self.scope
        if isinstance(scope, Within | OpenedWindows):
            return scope.events is not None
        return isinstance(scope, CountWindows)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # The rows of a key make its matches.
        return (column if column in self.keys else None,)

    @property
    def leaves_with_rows(self) -> bool:  # noqa: D102
        return not any(one.barred_after for one in self.pattern.alternatives)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> PatternStep:  # noqa: D102 - see Step
        schema = pa.schema([field for field in self.schema if field.name in needed])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        del steps
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        for number, sequence in enumerate(self.pattern.alternatives):
            yield f"{'or' if number else 'pattern':<8} {sequence_text(self.pattern, sequence)}"
        for one in self.pattern.asked:
            kinds = None if one.types is None else " or ".join(map(repr, one.types))
            texts = [kinds, *(str(each) for each in (one.where, one.also) if each is not None)]
            if any(texts):
                yield f"  {one.name}: {' and '.join(text for text in texts if text)}"
        yield f"in       {scope_text(self.pattern, self.scope)}"
        yield f"leaves   {selection_text(self.selection, self.consumes, self.most, self.skip)}"
        if self.shed is not None:
            yield f"shed     {self.shed.text}"


def _columns_of(predicate: Expr | None, events: Several[str]) -> set[str]:
    """Return the columns that a predicate reads: of `event.column` the column."""
    if predicate is None:
        return set()
    columns = set()
    for column in predicate.columns():
        event, dot, rest = column.partition(".")
        columns.add(rest if dot and event in events else column)
    return columns


def sequence_text(pattern: Normal, sequence: Sequence) -> str:
    """Return the text of an alternative.

    For example: "A → no N → 2 of B, C → D, 2 to 3 times".
    """
    parts = []
    for place in sequence.places:
        parts += [f"no {pattern.asked[one].name}" for one in place.barred]
        parts.append(_place_text(pattern, place))
    parts += [f"no {pattern.asked[one].name} to the end" for one in sequence.barred_after]
    return " → ".join(parts)


def _place_text(pattern: Normal, place: Place) -> str:
    text = ", ".join(pattern.asked[one].name for one in place.asked)
    if place.distinct is not None:
        return f"{place.count} of {text}, each of another {place.distinct}"
    if place.count > 1:
        return f"{place.count} of {text}"
    if len(place.asked) > 1:
        text = " or ".join(pattern.asked[one].name for one in place.asked)
    if place.most is None:
        return f"{text}, {place.least} times or more"
    if place.most > 1:
        times = str(place.most) if place.least == place.most else f"{place.least} to {place.most}"
        return f"{text}, {times} times"
    return text


def scope_text(pattern: Normal, scope: Within | WindowRule) -> str:
    """Return the text on the scope of a match."""
    if isinstance(scope, TimeWindows):
        size, slide = format_ns(scope.size_ns), format_ns(scope.slide_ns)
        return f"windows of {size}" + ("" if size == slide else f", one every {slide}")
    if isinstance(scope, CountWindows):
        return f"windows of {scope.size:,} events, one every {scope.every:,}"
    length = f"{scope.events:,} events" if scope.span_ns is None else format_ns(scope.span_ns)
    if isinstance(scope, OpenedWindows):
        return f"windows of {length}, one from each {pattern.asked[scope.asked].name} on"
    return f"{length}, wherever it begins"


def selection_text(selection: str, consumes: bool, most: int | None, skip: str) -> str:
    """Return the text on which matches leave."""
    text = {
        "first": "of the matches that end with one event that of the first events",
        "last": "of the matches that end with one event that of the last events",
        "each": "each match",
        "cumulative": "of the matches that end with one event all events, as one",
    }[selection]
    if most is not None:
        text += f"; {most} a window"
    if skip == "next":
        text += "; each event the next that fits"
    return text + ("; events are used once" if consumes else "")
