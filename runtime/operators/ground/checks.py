"""Checks of a step's arguments, given the columns of its inputs.

They run on the call that makes the step. Each names the step and the column, says the rule, and
returns the checked value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    SchemaError,
    SettingError,
    TypeMismatch,
)
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.expressions import ColumnRef, Expr, checked_condition, lit
from slackwater.runtime.expressions.result_types import type_declared, type_read
from slackwater.runtime.model.hashes import KEY_GROUPS
from slackwater.runtime.nearest import no_column
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.traits import Replicas
from slackwater.runtime.shown import shown

Declared: TypeAlias = Mapping[str, str | pa.DataType] | pa.Schema
"""The columns that a user's function returns: {column: type, or its name}."""


def expression(value: Any, *, step: str, what: str) -> Expr:
    """Return an expression; a literal becomes one.

    Raises:
        TypeMismatch: it is neither, such as a function.
    """
    if isinstance(value, Expr):
        return value
    if callable(value):
        raise TypeMismatch(
            f"step {step!r}: {what} takes an expression such as col('speed') < 8, not the "
            f"function {getattr(value, '__name__', value)!r}; for functions there are "
            "map_elements, map_batches and map_rows"
        )
    try:
        return lit(value)
    except TypeMismatch as problem:
        raise TypeMismatch(f"step {step!r}: {what}: {problem}") from None


def predicate(value: Any, schema: pa.Schema, *, step: str, what: str) -> Expr:
    """Return an expression that is true or false for each row, and calls no function.

    Raises:
        TypeMismatch: it is something else.
        ColumnError: it reads a column that is not there.
    """
    checked = predicate_of_row(value, schema, step=step, what=what)
    no_function(checked, step=step, what=what)
    return checked


def no_function(checked: Expr, *, step: str, what: str) -> None:
    """Check that an expression does not call `map_elements`.

    Raises:
        FlowError: it does.
    """
    if checked.runs_users_code:
        raise FlowError(
            f"{step!r}: {what} {checked!s} calls a function, and only with_columns, select and "
            "filter can; make it a column in a step before: .with_columns(name=...)"
        )


def predicate_of_row(value: Any, schema: pa.Schema, *, step: str, what: str) -> Expr:
    """Return an expression that is true or false for each row.

    Raises:
        TypeMismatch: it is something else.
        ColumnError: it reads a column that is not there.
    """
    given = checked_condition(value, f"step {step!r}: {what}")
    checked = expression(given, step=step, what=what)
    kind = checked.type_in(schema, step=step)
    if kind != pa.bool_():
        way_out = "compare it with something"
        if isinstance(value, str):
            way_out = "write it in Python, such as sw.col('speed') > 8"
        raise TypeMismatch(
            f"step {step!r}: {what} {checked!s} is {kind}, and must be true or false; {way_out}"
        )
    return checked.bound(schema)


def column_type(schema: pa.Schema, column: str, *, step: str) -> pa.DataType:
    """Return a column's type.

    Raises:
        ColumnError: it is not there; names the nearest.
        TypeMismatch: it is no text.
    """
    if not isinstance(column, str):
        way_out = f"write {column.name!r}" if isinstance(column, ColumnRef) else "write it as text"
        if isinstance(column, list | tuple):
            way_out = f"write the names without the list, {', '.join(map(repr, column))}"
        raise TypeMismatch(f"step {step!r}: {column!r} is not a column's name; {way_out}")
    if column not in schema.names:
        raise no_column(column, schema.names, step=step)
    return type_read(schema.field(column), step=step)


def unique_columns(names: Iterable[str], *, step: str, way_out: str) -> None:
    """Check that no column comes twice.

    Raises:
        DuplicateName: one does.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DuplicateName(f"step {step!r}: two columns are named {name!r}; {way_out}")
        seen.add(name)


def key_types(schema: pa.Schema, keys: Sequence[str], *, step: str) -> list[pa.DataType]:
    """Return the types of key columns: any but lists, structs and maps.

    Raises:
        ColumnError, DuplicateName, TypeMismatch: a key is not there, comes twice, or is nested.
    """
    unique_columns(keys, step=step, way_out="name each key once")
    types = [column_type(schema, key, step=step) for key in keys]
    for key, kind in zip(keys, types, strict=True):
        if family(kind) == "nested":
            raise TypeMismatch(
                f"step {step!r}: key {shown(key)} is {kind}, and a list, struct or map is not a "
                "key; key by what is in it"
            )
    return types


def word_type(schema: pa.Schema, column: str, *, step: str, role: str) -> pa.DataType:
    """Return the type of a column whose values are written out: text, integers or booleans.

    Raises:
        ColumnError, TypeMismatch: it is not there, or of another type.
    """
    kind = column_type(schema, column, step=step)
    if not (is_whole(kind) or family(kind) in ("text", "bool")):
        raise TypeMismatch(
            f"step {step!r}: {role} column {column!r} is {kind}, and must be text, integers or "
            f"booleans; cast it, such as .with_columns(text=col({column!r}).cast('string'))"
        )
    return kind


def declared_schema(columns: Declared, *, step: str) -> pa.Schema:
    """Return the schema that a user's function declares.

    Args:
        columns: {column: type}; a type of Arrow, or its name: those of `result_types.TYPES`, and
            those that `explain` prints, such as "timestamp[ns, tz=UTC]".
            "float" and "double" have 32 and 64 bits, as in Arrow; "int" and "long" are none.
        step: name of the step, for errors.

    Raises:
        FlowError: no columns.
        DuplicateName: two columns of one name.
        TypeMismatch: no mapping; or a type that is not there, or does not travel.
    """
    if isinstance(columns, pa.Schema):
        unique_columns(columns.names, step=step, way_out="each column leaves once")
        columns = dict(zip(columns.names, columns.types, strict=True))
    if not isinstance(columns, Mapping):
        raise TypeMismatch(
            f"step {step!r}: schema={shown(columns)} is neither a dict such as "
            f"{{'kmh': 'float64'}} nor a pyarrow schema"
        )
    if not columns:
        raise FlowError(f"step {step!r}: schema= must name the columns that the function returns")
    fields = []
    for name, kind in columns.items():
        try:
            inside = type_declared(name, kind)
        except (TypeMismatch, SchemaError) as problem:
            raise TypeMismatch(f"step {step!r}: schema of {name!r}: {problem}") from None
        fields.append((name, inside))
    return pa.schema(fields)


def none_missing(on_missing: str, *, step: str) -> None:
    """Check that `on_missing` is not written where no row goes.

    Raises:
        SettingError: one is.
    """
    if on_missing != "error":
        raise SettingError(
            f"step {step!r}: on_missing={shown(on_missing)} is for inputs whose rows change or go, "
            "and no row goes here; omit it"
        )


def replicas(written: Replicas, *, keys: Sequence[str], step: str) -> None:
    """Check a step's number of replicas, if it was written.

    Raises:
        SettingError: not from 1 to the number of key groups.
        FlowError: a step without keys cannot share its rows by keys.
    """
    if written is None:
        return
    count = 2 if written == "auto" else written  # two need keys, as any number does
    if count < 1:
        raise SettingError(
            f"step {step!r}: replicas={shown(count)} must be a whole number, 1 or more, or 'auto'"
        )
    if count > KEY_GROUPS:
        raise SettingError(
            f"step {step!r}: replicas={count} must be {KEY_GROUPS} at most, since keys have "
            f"{KEY_GROUPS} groups, and a replica owns one or more; give as many as there are slots "
            "for them"
        )
    if count > 1 and not keys:
        raise FlowError(
            f"step {step!r}: replicas={shown(written)} share its rows by key, and it has none; "
            "give it a key, by=..., or replicas=1"
        )


def together(
    first: Mapping[str, Any] | None, named: Mapping[str, Any], *, step: str
) -> dict[str, Any]:
    """Return the columns of a dict and of keywords.

    Raises:
        DuplicateName: one is in both.
        TypeMismatch: they are no dict, or a name is no text.
    """
    if first is not None and not isinstance(first, Mapping):
        raise TypeMismatch(
            f"step {step!r}: {first!r} is not a dict of columns; write new='…', or "
            "{'new name': …}"
        )
    columns = dict(first or {})
    if wrong := [name for name in columns if not isinstance(name, str)]:
        raise TypeMismatch(
            f"step {step!r}: {shown(wrong[0])} is not a name of a column; write it as text"
        )
    for name, value in named.items():
        if name in columns:
            raise DuplicateName(f"step {step!r}: column {name!r} is given twice; give it once")
        columns[name] = value
    return columns


def function(given: Any, *, step: str) -> None:
    """Check that an argument can be called.

    Raises:
        TypeMismatch: it cannot.
    """
    if not callable(given):
        raise TypeMismatch(
            f"step {step!r}: {shown(given)} is not a function; expressions go to with_columns and "
            "filter"
        )


def is_whole(kind: pa.DataType) -> bool:
    """Whether a type has whole numbers."""
    return bool(pa.types.is_integer(kind))


def check_times_meet(steps: Mapping[str, Step], other: str, own: str, *, step: str) -> None:
    """Check that rows of an input may be near rows of another in event time.

    Raises:
        FlowError: all rows of `own` alone have the latest event time that there is; names the step
            that made them.
    """
    made_by = _latest(steps, own)
    if made_by is not None and _latest(steps, other) is None:
        raise FlowError(
            f"step {step!r}: results of {made_by!r} leave at the end of the input with the latest "
            "event time that there is, in 2116, so no row of the other input is near; write "
            f"time='last' or time='first' in {made_by!r}, or windows of the clock, such as "
            "sw.calendar('day')"
        )


def _latest(steps: Mapping[str, Step], name: str) -> str | None:
    """Return the step upstream that gives all rows of a step the latest event time."""
    step = steps[name]
    if step.traits.is_at_latest:
        return name
    if not step.inputs or not step.traits.passes_on:
        return None
    latest = [_latest(steps, above) for above in step.inputs]
    return None if None in latest else latest[0]
