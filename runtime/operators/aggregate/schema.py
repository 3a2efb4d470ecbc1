"""Schemas of the results of an aggregate, and the checks of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pyarrow as pa

from slackwater.runtime.errors import DuplicateName, FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.checks import (
    column_type,
    is_whole,
    key_types,
    unique_columns,
)
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.other_names import option_choices
from slackwater.runtime.shown import shown

Late = Literal["drop", "correct"]
"""The fate of a row that comes after the close of its window: it is counted, or the window's result
leaves again, as long as the frontier has not passed it."""
REVISION = "revision"
"""The column of late="correct": how often the result of a window and key had left before."""
CHANCE = "chance_missing"
"""The column of close=: the chance, when the window closed, that a row of it was still to come."""
WINDOW_COLUMNS = ("window_start", "window_end")
_OPTIONS = ("window", "by", "slack", "late", "close", "drift", "replicas", "combine", "name")
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
        ColumnError, TypeMismatch: a column is not there, or is no number.
        DuplicateName: an aggregate has the name of a key or of a window's end.
    """
    if not aggregates:
        raise FlowError(f"step {step!r}: aggregate has no columns; write one, such as n=count()")
    fields = [*zip(keys, key_types(schema, keys, step=step), strict=True)]
    fields += [(name, time) for name in WINDOW_COLUMNS]
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise TypeMismatch(
                f"step {step!r}: {name}={shown(aggregate, 60)} is not an aggregate, as "
                f"n=sw.count() is, and no option; {option_choices(name, _OPTIONS)}"
            )
        fields.append((name, _aggregate_type(name, aggregate, schema, step)))
    names = [name for name, _ in fields]
    way_out = "give the aggregate, or the key before it (.rename), another name"
    unique_columns(names, step=step, way_out=way_out)
    return pa.schema(fields)


def scaled(aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> dict[str, Aggregate]:
    """Return the aggregates with the scales of their decimals; the columns are there."""
    return {
        name: replace(one, scale=schema.field(one.column).type.scale)
        if one.column is not None and pa.types.is_decimal(schema.field(one.column).type)
        else one
        for name, one in aggregates.items()
    }


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
                f"aggregate; cast {aggregate.column!r} to 'float64' before"
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


def without_three(schema: pa.Schema, aggregates: Mapping[str, Aggregate]) -> pa.Schema:
    """Return the schema as it would be without drift=."""
    added = {name + end for name in aggregates for end in (MEAN, LOWEST, HIGHEST)}
    return pa.schema([field for field in schema if field.name not in added])


def revised(schema: pa.Schema, late: Late, *, step: str) -> pa.Schema:
    """Return the schema of results: with late="correct" there is a `revision`.

    Raises:
        SettingError: late is neither "drop" nor "correct".
        DuplicateName: there is a column of that name.
    """
    if late not in ("drop", "correct"):
        raise SettingError(f"step {step!r}: late={shown(late)} must be 'drop' or 'correct'")
    if late == "drop":
        return schema
    if REVISION in schema.names:
        raise DuplicateName(
            f"step {step!r}: late='correct' adds a column {REVISION!r}, and there is one already; "
            "give that key or aggregate another name"
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
    if aggregate.column is None:
        return pa.int64()
    kind = column_type(schema, aggregate.column, step=step)
    if aggregate.kind == "count":
        return pa.int64()
    takes = _TAKES.get(aggregate.kind, ("number", "decimal"))
    if family(kind) not in takes:
        what = "numbers and times" if "timestamp" in takes else "numbers"
        raise TypeMismatch(
            f"step {step!r}: {name}={aggregate.kind}({aggregate.column!r}) takes {what}, and "
            f"{aggregate.column!r} is {kind}; cast it with .with_columns(x=col(...).cast('int64'))"
        )
    if aggregate.kind in ("min", "max") or (aggregate.kind == "sum" and pa.types.is_duration(kind)):
        return kind
    if aggregate.kind == "sum" and pa.types.is_decimal(kind):
        is_wide = pa.types.is_decimal256(kind)
        return pa.decimal256(76, kind.scale) if is_wide else pa.decimal128(38, kind.scale)
    return pa.int64() if aggregate.kind == "sum" and is_whole(kind) else pa.float64()


_ORDERED = ("number", "decimal", "timestamp", "time", "duration")
_TAKES = {"min": _ORDERED, "max": _ORDERED, "sum": ("number", "decimal", "duration")}
"""{aggregate: the families that it takes}; others take numbers and decimals."""
