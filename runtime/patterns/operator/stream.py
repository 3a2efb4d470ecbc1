"""The method `pattern` of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, SettingError
from slackwater.runtime.model import Duration
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.streams import (
    AnyStream,
    Names,
    names_of,
)
from slackwater.runtime.patterns.language import OpenedBy, Part
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.operator.checked import (
    AnyWindow,
    check_columns,
    check_distinct,
    check_meaning,
    scope_of,
)
from slackwater.runtime.patterns.operator.step import (
    EVENTS,
    WINDOW_START,
    PatternShedding,
    PatternStep,
)
from slackwater.runtime.patterns.scopes import Within
from slackwater.runtime.patterns.settings import Selection
from slackwater.runtime.plan.event_time_type import event_time_type
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.traits import Replicas
from slackwater.runtime.shown import shown

Skip = Literal["any", "next"]
Consumption = Literal["consumed", "zero"]


class Patterning(AnyStream):
    """Streams can be searched for patterns."""

    @checked_call
    def pattern(  # noqa: PLR0913 - each option is one word of what a pattern means
        self,
        pattern: Part,
        *,
        type: str | None = None,  # noqa: A002 - the field's word
        window: AnyWindow | None = None,
        within: Duration | int | None = None,
        skip: Skip = "any",
        selection: Selection = "first",
        consumption: Consumption = "consumed",
        matches: int | None = None,
        id: str | None = None,  # noqa: A002 - the field's word
        by: Names = (),
        shed: PatternShedding | None = None,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Find sequences of events, of equal keys, in the order of the stream.

        A match leaves with its last event; one that a `no` ends, once nothing that it forbids can
        follow. It leaves with the keys, `window_start` if there are windows, `<event>_<column>` for
        each event that is in every match just once, and `events`: text, JSON, a list of [event's
        name, its id].

        Args:
            pattern: `seq(A, any_of(2, B, C))` of `sw.patterns`, and the like; see
                docs/patterns.md.
            type: the column that `of_type=` is about.
            window: the scope of a match: `sw.sliding("15s", "1s")`; of `sw.patterns`
                `count_window(2_000)`, `opened_by(A, within="15s")`. A match in several windows
                leaves of each.
            within: longest distance of the first and the last event of a match, in place of
                windows: "5s", or a number of events of the key.
            skip: "any": events between two of a match are skipped, whatever they are; "next": no
                further than to the next event that fits.
            selection: choice among the matches that end with one event. "first": that of the
                earliest events; "last": of the latest; "each": all; "cumulative": one of all their
                events.
            consumption: "consumed": an event that has left in a match of a window, or within, is in
                no other match there; "zero": events are used again.
            matches: the most matches of a window that leave; None if all do.
            id: the column that names an event in `events`; None if its event time, in ns, does.
            by: the key columns; none: all rows together. Rows with a null key are in no match.
            shed: rule of dropping events when the latency is at risk:
                `sw.shedding.espice(latency="1s")`. Needs `window=`. Events differ by
                `feature=sw.col("change") > 0`, too, if it is given.
            slack: how long its gate waits; AS_FLOW: as the flow says. A row that comes late is in
                no match: it is counted, and `.late()` has it.
            replicas: the number of replicas, each with the rows of its keys.
            name: the name of the step.

        Raises:
            FlowError: the pattern can never match, or its parts do not go together.
            SettingError: neither `window` nor `within`; an unknown word.
            ColumnError, TypeMismatch: a column is not there, or of another type; a predicate is
                neither true nor false.
        """
        name = self.flow.name_for("pattern", name)
        keys = names_of(by)
        checks.key_types(self.schema, keys, step=name)
        if not isinstance(pattern, Part):
            raise FlowError(
                f"step {name!r}: {shown(pattern)} is not a pattern; write "
                "sw.patterns.seq(sw.patterns.event('A', where=…), …)"
            )
        opener = window.event if isinstance(window, OpenedBy) else None
        normal = normal_of(pattern, step=name, opener=opener)
        normal = check_columns(normal, self.schema, type_column=type, id_column=id, step=name)
        check_distinct(normal, self.schema, keys=keys, type_column=type, step=name)
        scope = scope_of(normal, window, within, step=name)
        check_meaning(normal, scope, skip=skip, selection=selection, matches=matches, step=name)
        if shed is not None:
            _check_shed(shed, scope, step=name)
            shed = shed.bound(self.schema, step=name)
        checks.replicas(replicas, keys=keys, step=name)
        once = () if selection == "cumulative" else sorted(normal.once)
        events = [normal.asked[number].name for number in once]
        has_windows = not isinstance(scope, Within)
        return self._add(
            PatternStep(
                name=name,
                inputs=self._in,
                schema=_matched(
                    self.schema,
                    keys,
                    events,
                    time=event_time_type(self.flow.steps, self._in) if has_windows else None,
                    step=name,
                ),
                keys=keys,
                pattern=normal,
                scope=scope,
                skip=skip,
                selection=selection,
                consumes=consumption == "consumed",
                most=matches,
                type_column=type,
                id_column=id,
                shed=shed,
                release=self.flow.release_of(slack, step=name),
                replicas=replicas,
            )
        )


def _check_shed(shed: object, scope: object, *, step: str) -> None:
    if isinstance(shed, type) or not isinstance(shed, PatternShedding):
        raise SettingError(
            f"step {step!r}: shed={shown(shed)} is not a way of shedding; write "
            'sw.shedding.espice(latency="1s")'
        )
    if isinstance(scope, Within):
        raise SettingError(
            f"step {step!r}: shed= drops events of windows, and within= has none; give window= in "
            "place of it, such as sw.patterns.opened_by(A, within=…)"
        )


def _matched(
    schema: pa.Schema,
    keys: Sequence[str],
    events: Sequence[str],
    *,
    time: pa.DataType | None,
    step: str,
) -> pa.Schema:
    """Return the columns that leave; `time` is the type of `window_start`.

    None if there are no windows.

    Raises:
        DuplicateName: two would leave under one name.
    """
    fields = [schema.field(key) for key in keys]
    if time is not None:
        fields.append(pa.field(WINDOW_START, time))
    for event in events:
        fields += [
            field.with_name(f"{event}_{field.name}") for field in schema if field.name not in keys
        ]
    fields.append(pa.field(EVENTS, pa.string()))
    way_out = "give the event another name, or rename the column with .select(new='old') before"
    checks.unique_columns([field.name for field in fields], step=step, way_out=way_out)
    return pa.schema(fields)
