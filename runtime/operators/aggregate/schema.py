"""Schemas of the results of an aggregate, and the checks of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from slackwater.runtime.errors import DuplicateName, FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.model.schema import is_read
from slackwater.runtime.operators.aggregate.custom_aggregate import CustomAggregate
from slackwater.runtime.operators.aggregate.kinds import KINDS, PART_OF_IT
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.checks import (
    column_type,
    key_types,
    predicate,
    unique_columns,
)
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.operators.ground.user_code import units_of
from slackwater.runtime.other_names import option_choices
from slackwater.runtime.shown import shown

Late = Literal["drop", "correct"]
"""The fate of a row that comes after the close of its window: it is counted, or the window's result
leaves again, as long as the frontier has not passed it."""
EarlyCounts = Literal["all", "new"]
"""The rows of a result that leaves early: all of its window so far, or those since the last one."""
ResultTime = Literal["end", "start", "first", "last"]
"""The event time of a result: the last moment of its window, the first one, or that of a row."""
REVISION = "revision"
"""The column of late="correct": how often the result of a window and key had left before."""
CHANCE = "chance_missing"
"""The column of close=: the chance, when the window closed, that a row of it was still to come."""
WINDOW_COLUMNS = ("window_start", "window_end")
_OPTIONS = (
    "window", "by", "empty", "early", "early_counts", "slack", "late", "close", "drift",
    "replicas", "combine", "every", "on_missing", "time", "name",
)  # fmt: skip
_MIDDLE = 0.5
"""Level of the quantile that is a median."""
MEAN, LOWEST, HIGHEST = "_mean", "_low", "_high"
"""Suffixes of an aggregate's name, with drift: its mean, least and greatest over three windows."""


def aggregated_schema(
    schema: pa.Schema,
    keys: Sequence[str],
    aggregates: Mapping[str, Aggregate],
    *,
    time: pa.DataType,
    step: str,
) -> pa.Schema:
    """Return the columns of results: keys, window_start, window_end (of type `time`), aggregates.

    Raises:
        FlowError: no aggregates.
        ColumnError, TypeMismatch: a column is not there, or of another type.
        DuplicateName: an aggregate has the name of a key or of a window's end.
    """
    types = aggregate_types(schema, aggregates, options=_OPTIONS, of="aggregate", step=step)
    fields = [*zip(keys, key_types(schema, keys, step=step), strict=True)]
    fields += [(name, time) for name in WINDOW_COLUMNS]
    fields += types.items()
    names = [name for name, _ in fields]
    way_out = "give the aggregate, or the key before it (.rename), another name"
    unique_columns(names, step=step, way_out=way_out)
    return pa.schema(fields)


def aggregate_types(
    schema: pa.Schema,
    aggregates: Mapping[str, Aggregate],
    *,
    options: Sequence[str],
    of: str,
    step: str,
) -> dict[str, pa.DataType]:
    """Return {aggregate: type of its column}.

    Args:
        schema: columns of the rows.
        aggregates: aggregates, or what a user gave for them.
        options: options of the method, for errors.
        of: name of the method, for errors.
        step: name of the step, for errors.

    Raises:
        FlowError: no aggregates.
        ColumnError, TypeMismatch: a column is not there, or of another type.
    """
    if not aggregates:
        raise FlowError(f"step {step!r}: {of} has no columns; write one, such as n=count()")
    types = {}
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise TypeMismatch(
                f"step {step!r}: {name}={shown(aggregate, 60)} is not an aggregate, as "
                f"n=sw.count() is, and no option; {option_choices(name, options)}"
            )
        types[name] = _aggregate_type(name, aggregate, schema, step)
    return types


def bound(
    aggregates: Mapping[str, Aggregate], schema: pa.Schema, *, step: str
) -> dict[str, Aggregate]:
    """Return the aggregates with their conditions bound, and the scales of their decimals.

    Raises:
        ColumnError, FlowError, TypeMismatch: a condition reads a column that is not there, calls a
            function, or is neither true nor false.
    """
    made = {}
    for name, aggregate in aggregates.items():
        column, condition = aggregate.column, aggregate.condition
        if condition is not None:
            what = f"where= of {name!r}"
            condition = predicate(condition, schema, step=step, what=what)
        kind = None if column is None else schema.field(column).type
        scale = kind.scale if kind is not None and pa.types.is_decimal(kind) else 0
        own = replace(aggregate, scale=scale, condition=condition)
        if isinstance(own, CustomAggregate):
            own = _with_rows(name, own, schema, step=step)
        made[name] = own
    return made


def _with_rows(
    name: str, aggregate: CustomAggregate, schema: pa.Schema, *, step: str
) -> CustomAggregate:
    """Return a custom aggregate with its columns, and without its functions."""
    columns = aggregate.row_columns
    if columns is None:
        columns = tuple(field.name for field in schema if is_read(field))
    types = [(column, column_type(schema, column, step=step)) for column in columns]
    return replace(
        aggregate,
        functions=None,
        row_columns=columns,
        leaves_as=name,
        units=units_of(pa.schema(types)),
    )


def with_three(
    schema: pa.Schema, aggregates: Mapping[str, Aggregate], drift: Drift | None, *, step: str
) -> pa.Schema:
    """Return the schema with drift=: each aggregate has its mean and its ends beside it.

    Raises:
        DuplicateName: there is a column of such a name.
    """
    if drift is None:
        return schema
    fields = []
    for field in schema:
        aggregate = aggregates.get(field.name)
        if aggregate is None:
            fields.append(field)
            continue
        if family(field.type) != "number":
            raise TypeMismatch(
                f"step {step!r}: {field.name} is {field.type}, and drift= has a mean beside each "
                f"aggregate that is a number; {_without_drift(aggregate)}"
            )
        fields += [
            field,
            pa.field(field.name + MEAN, pa.float64()),
            field.with_name(field.name + LOWEST),
            field.with_name(field.name + HIGHEST),
        ]
    unique_columns(
        [field.name for field in fields],
        step=step,
        way_out=f"drift= adds {MEAN}, {LOWEST} and {HIGHEST}: give the aggregate another name",
    )
    return pa.schema(fields)


def _without_drift(aggregate: Aggregate) -> str:
    if KINDS[aggregate.kind].takes.families == ("bool",):
        return f"count the rows with sw.count(where=sw.col({aggregate.column!r}))"
    return f"cast {aggregate.column!r} to 'float64' before"


def without_three(schema: pa.Schema, aggregates: Mapping[str, Aggregate]) -> pa.Schema:
    """Return the schema as it would be without drift=."""
    added = {name + end for name in aggregates for end in (MEAN, LOWEST, HIGHEST)}
    return pa.schema([field for field in schema if field.name not in added])


def revised(schema: pa.Schema, late: Late, *, is_early: bool, step: str) -> pa.Schema:
    """Return the schema of results: if they leave again there is a `revision`.

    Raises:
        SettingError: late is neither "drop" nor "correct".
        DuplicateName: there is a column of that name.
    """
    if late not in ("drop", "correct"):
        raise SettingError(f"step {step!r}: late={shown(late)} must be 'drop' or 'correct'")
    if late == "drop" and not is_early:
        return schema
    if REVISION in schema.names:
        raise DuplicateName(
            f"step {step!r}: {'early=' if is_early else 'late=' + repr(late)} adds a column "
            f"{REVISION!r}, and there is one already; give that key or aggregate another name"
        )
    return schema.append(pa.field(REVISION, pa.int64()))


def with_chance(schema: pa.Schema, *, step: str) -> pa.Schema:
    """Return the schema of windows that close in time: with the chance of each.

    Raises:
        DuplicateName: there is a column of that name.
    """
    if CHANCE in schema.names:
        raise DuplicateName(
            f"step {step!r}: close= adds a column {CHANCE!r}, and there is one already; give that "
            "key or aggregate another name"
        )
    return schema.append(pa.field(CHANCE, pa.float64()))


def _aggregate_type(name: str, aggregate: Aggregate, schema: pa.Schema, step: str) -> pa.DataType:
    kind = KINDS[aggregate.kind]
    if aggregate.column is None:
        return kind.type(aggregate, pa.null())
    of = column_type(schema, aggregate.column, step=step)
    takes = kind.takes
    if not takes.has(of):
        called = "median" if aggregate.level == _MIDDLE else aggregate.kind
        way_out = PART_OF_IT if family(of) == "nested" else takes.way_out
        raise TypeMismatch(
            f"step {step!r}: {name}={called}({aggregate.column!r}) takes {takes.text}, and "
            f"{aggregate.column!r} is {of}; {way_out.format(aggregate.column, aggregate.kind)}"
        )
    if aggregate.by is not None:
        by = column_type(schema, aggregate.by, step=step)
        if takes.is_of_pairs and not takes.has(by):
            raise TypeMismatch(
                f"step {step!r}: {name}={aggregate.text} takes {takes.text}, and {aggregate.by!r} "
                f"is {by}; {takes.way_out.format(aggregate.by, aggregate.kind)}"
            )
        if family(by) == "nested":
            raise TypeMismatch(
                f"step {step!r}: {name}={aggregate.text} chooses by {aggregate.by!r}, {by}, and a "
                "list, struct or map has no order; choose by what is in it"
            )
    return kind.type(aggregate, of)
