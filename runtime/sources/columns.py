"""Out of an Arrow block: the columns that travel, and its times in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Literal

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import (
    EARLIEST_NS,
    END_NS,
    LATEST_NS,
    NS_PER_SECOND,
    Column,
    Columns,
    Int64Array,
)
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import (
    TIME_UNIT_NS,
    UNIT_NS,
    NullError,
    column_from_arrow,
    is_text,
)
from slackwater.runtime.nearest import choices
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.spec import SourceSpec

TimeUnit = Literal["ns", "us", "ms", "s"]


TIME_ROLES = frozenset({"arrival", "event time"})
"""Roles of columns that `on_bad` looks at."""


def check_source_columns(
    source: str, spec: SourceSpec, schema: pa.Schema, carried: Iterable[str]
) -> None:
    """Check that the columns of a source exist and fit their roles.

    Args:
        source: its name, for errors.
        spec: settings of the source.
        schema: inside schema of its input.
        carried: the columns that travel.

    Raises:
        SchemaError: a column is missing, a time is neither timestamp nor integer, or a
            writer neither integer nor text, or a sequence no integer.
    """
    for name in [*carried, *(spec.promise.columns() if spec.promise is not None else ())]:
        _field(source, schema, name, role="carried")
    if isinstance(spec.event_time, Expr):
        time = pa.field(spec.time_column, spec.time_type(schema))
    else:
        time = _field(source, schema, spec.event_time, role="event_time")
    _check_time(source, time, "event_time")
    if spec.arrival is not None:
        _check_time(source, _field(source, schema, spec.arrival, role="arrival"), "arrival")
    for name in () if spec.clock is None else spec.clock.names:
        kind = _field(source, schema, name, role="clock").type
        if not pa.types.is_integer(kind):
            raise SchemaError(
                f"source {source!r}: clock column {name!r} has type {kind}, and offsets and bounds "
                "are integers: a float could not hold nanoseconds; round it, and name its unit"
            )
    if spec.sequence is not None:
        sequence = _field(source, schema, spec.sequence, role="sequence")
        if not pa.types.is_integer(sequence.type):
            raise SchemaError(
                f"source {source!r}: sequence column {sequence.name!r} has type {sequence.type}, "
                "and a number in a sequence is an integer, each one above the one before; cast it"
            )
    if spec.writer is not None:
        writer = _field(source, schema, spec.writer, role="writer")
        if not (pa.types.is_integer(writer.type) or is_text(writer.type)):
            raise SchemaError(
                f"source {source!r}: writer column {writer.name!r} has type {writer.type}, "
                "and only integers and text tell writers apart for certain; cast it to text"
            )


def schema_to_read(spec: SourceSpec, schema: pa.Schema, read: Set[str]) -> pa.Schema:
    """Return the inside schema of the columns to `read` and of its promise's."""
    wanted = read | (frozenset() if spec.promise is None else spec.promise.columns())
    fields = [field for field in schema if field.name in wanted]
    if spec.computes_time:
        fields.append(pa.field(spec.time_column, spec.time_type(schema)))
    return pa.schema(fields)


def read_columns(source: str, block: pa.RecordBatch, schema: pa.Schema, *, row: int) -> Columns:
    """Return the columns of `schema` out of a block, as they are kept inside.

    Args:
        source: its name, for errors.
        block: rows as the reader gave them; may have more columns, in any order.
        schema: inside schema of the columns wanted.
        row: how many rows of the input came before this block, for errors.

    Raises:
        SchemaError: a column is missing, does not fit, or is null where it may not be.
    """
    columns: Columns = {}
    who = f"source {source!r}, input rows {row} to {row + len(block) - 1}"
    for field in schema:
        index = block.schema.get_field_index(field.name)
        if index < 0 and field.name in block.schema.names:
            raise SchemaError(
                f"{who}: column name {field.name!r} occurs twice, so it says nothing; rename one"
            )
        if index < 0:
            raise SchemaError(
                f"{who}: column {field.name!r} is missing; "
                f"{choices(field.name, block.schema.names)}; "
                "every block of an input must have the columns of its schema"
            )
        try:
            columns[field.name] = column_from_arrow(
                field.name, block.column(index), field.type, who=who
            )
        except pa.ArrowNotImplementedError as problem:
            raise SchemaError(
                f"{who}: column {field.name!r} has type {block.column(index).type} and cannot "
                f"become {field.type}; every block of an input must have the types of its schema"
            ) from problem
    return columns


def refuse_nulls(source: str, block: pa.RecordBatch, name: str, *, role: str, row: int) -> None:
    """Check that a column on which order depends has no nulls.

    Raises:
        SchemaError: it has; says how many, and where the first one is.
    """
    index = block.schema.get_field_index(name)
    if index < 0:
        return  # read_columns names it
    values = block.column(index)
    if values.null_count == 0:
        return
    first = arrow_functions().index(values.is_null(), True).as_py()
    raise NullError(
        f"source {source!r}: {role} column {name!r} is null in {values.null_count} of the "
        f"{len(values)} rows from row {row} on, first in row {row + first} (counted from 0); "
        f"an event without {role} has no place in the order: drop or fill such rows before "
        f"reading (Spark: df.na.drop(subset=[{name!r}]))"
        + (", or leave them out with on_bad='skip'" if role in TIME_ROLES else ""),
        place=row + first,
    )


def near_time_ns(values: Column, *, unit: str) -> Int64Array | None:
    """Return a column as times, ns since 1970 UTC; None if one is far off.

    Times that are as they should be are looked at once, for the least and the most.

    Args:
        values: shape (rows,), integers in `unit`; no null.
        unit: unit of the values.
    """
    integers = np.asarray(values)
    scale = TIME_UNIT_NS[unit]
    if len(integers) and (
        int(np.minimum.reduce(integers)) * scale < EARLIEST_NS
        or int(np.maximum.reduce(integers)) * scale > LATEST_NS
    ):
        return None
    times_ns = integers.astype(np.int64, copy=False)
    return times_ns if scale == 1 else times_ns * np.int64(scale)


def time_ns(source: str, name: str, values: Column, *, unit: str, row: int) -> Int64Array:
    """Return a column of times as nanoseconds since 1970 UTC, shape (rows,).

    Args:
        source: its name, for errors.
        name: name of the column.
        values: shape (rows,), integers in `unit`; no null.
        unit: unit of the values.
        row: how many rows of the input came before, for errors.

    Raises:
        SchemaError: a time does not fit int64 nanoseconds (years 1677 to 2262).
    """
    integers = np.asarray(values)
    scale = TIME_UNIT_NS[unit]
    limit = END_NS // scale
    if integers.dtype == np.int64 and scale == 1:
        return integers
    if integers.size and (int(integers.max()) > limit or int(integers.min()) < -limit):
        outside = int(np.argmax((integers > limit) | (integers < -limit)))
        raise SchemaError(
            f"source {source!r}: {name!r} is {integers[outside]} {unit} in row {row + outside} "
            "(counted from 0), which is outside the years 1677 to 2262; check time_unit="
            f"{shown(unit)}, the unit of integer time columns ('ns', 'us', 'ms' or 's'), or leave "
            "such rows out with on_bad='skip'"
        )
    return integers.astype(np.int64) * np.int64(scale)


def refuse_far_times(source: str, name: str, times_ns: Int64Array, *, row: int) -> None:
    """Check that times leave room for arithmetic in 64 bits.

    The ends of int64 besides mean "nothing yet" and "the end of the stream" to us.

    Raises:
        SchemaError: a time lies outside the years 1824 to 2116; says where the first one is.
    """
    if not len(times_ns) or (
        int(np.minimum.reduce(times_ns)) >= EARLIEST_NS
        and int(np.maximum.reduce(times_ns)) <= LATEST_NS
    ):
        return
    outside = int(np.argmax((times_ns < EARLIEST_NS) | (times_ns > LATEST_NS)))
    raise SchemaError(
        f"source {source!r}: {name!r} is {times_ns[outside]} ns "
        f"({_utc(int(times_ns[outside]))}) in row {row + outside} (counted from 0), and times lie "
        f"between {_utc(EARLIEST_NS)} and {_utc(LATEST_NS)}; drop such rows before reading, "
        "leave them out with on_bad='skip', or give those that stand for 'never' or 'unknown' "
        "a time of their own"
    )


def refuse_another_unit(source: str, name: str, times_ns: Int64Array, *, is_whole: bool) -> None:
    """Check that the first times, whole numbers taken as nanoseconds, are not of another unit.

    Times of 0 and less, by which people mean "unknown", are set aside. Then the others have to be
    near each other: 0, 1 s, 2 s, … in nanoseconds is in our days if taken as seconds, 31 years
    apart. (Equal steps from 0 are at least 20 years there, as our days begin in 1990.)

    Raises:
        SchemaError: they lie in January 1970, and in our days in the unit that it names.
    """
    if not is_whole or not len(times_ns):
        return
    clock = times_ns[times_ns > 0]
    if not len(clock):
        return
    least, most = int(clock.min()), int(clock.max())
    for unit, scale in UNIT_NS.items():
        in_our_days = _OUR_DAYS[0] <= least * scale and most * scale <= _OUR_DAYS[1]
        is_near = len(clock) == len(times_ns) or (most - least) * scale <= _NEAR_NS
        if scale > 1 and in_our_days and is_near:
            row, first = int(np.argmax(times_ns > 0)), int(clock[0])
            which = f"has {first} in row {row} (counted from 0)" if row else f"begins with {first}"
            raise SchemaError(
                f"source {source!r}: {name!r} {which}, which as nanoseconds is {_utc(first)}, and "
                f"in {shown(unit)} {_utc(first * scale)}; give time_unit={shown(unit)} if that is "
                "meant, or time_unit='ns' if it is January 1970"
            )


_OUR_DAYS = (631_152_000 * NS_PER_SECOND, 4_102_444_800 * NS_PER_SECOND)  # 1990 to 2100
_NEAR_NS = 10 * 366 * 86_400 * NS_PER_SECOND  # ten years


def _utc(time_ns: int) -> str:
    return f"{np.datetime64(time_ns, 'ns')}Z"


def _field(source: str, schema: pa.Schema, name: str, *, role: str) -> pa.Field:
    if not isinstance(name, str):
        raise SchemaError(
            f"source {source!r}: {role} column {name!r} is not a column's name; write it as text; "
            f"there are: {', '.join(schema.names)}"
        )
    index = schema.get_field_index(name)
    if index < 0:
        raise SchemaError(
            f"source {source!r}: {role} column {name!r} is not there; "
            f"{choices(name, schema.names)}; name one of these"
        )
    return schema.field(index)


def _check_time(source: str, field: pa.Field, role: str) -> None:
    kind = field.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind):
        return
    name = field.name
    way_out = (
        f"give it the type of one: types={{{name!r}: 'timestamp[ns, tz=UTC]'}} (sw.csv, sw.jsonl; "
        "without tz=UTC if it has no zone), or cast it before reading (Spark: to_timestamp)"
    )
    if is_text(kind) and role == "event_time":
        way_out = (
            f"say its format: event_time=sw.col({name!r}).str.to_time('%d.%m.%Y %H:%M:%S', "
            "zone='UTC'), with the codes of strptime; or its type, if it is ISO 8601: "
            f"types={{{name!r}: 'timestamp[ns, tz=UTC]'}} (without tz=UTC if it has no zone)"
        )
    if pa.types.is_floating(field.type):
        way_out = (
            "a float cannot hold nanoseconds since 1970, so rows would change places; make it "
            "a timestamp, or an integer with time_unit (seconds as float: round(t * 1e6), 'us')"
        )
    raise SchemaError(
        f"source {source!r}: {role} column {field.name!r} has type {field.type}, and times are "
        f"timestamps or integers; {way_out}"
    )
