"""Between Arrow's types at the edges and NumPy's inside.

| Arrow, outside | inside | note |
| --- | --- | --- |
| int8 … uint64, float32/64 | NumPy of the same type | |
| bool | NumPy bool | |
| nulls of these | `Nullable`: values and a mask | NaN is a value, no null |
| timestamp, any unit | NumPy int64, nanoseconds since 1970 UTC | the schema keeps timestamp[ns] |
| string, large_string, dictionary of string | Arrow string array | |
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.batch import Batch, Column
from slackwater.runtime.model.made_ahead import FEW_ROWS, RowsMadeAhead
from slackwater.runtime.model.nullable import Nullable, Numbers


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def inside_type(name: str, outside: pa.DataType) -> pa.DataType:
    """Return the type that a column of this outside type has inside.

    Raises:
        SchemaError: a type we do not carry (lists, structs, maps, binary).
    """
    if pa.types.is_integer(outside) or outside in (pa.float32(), pa.float64(), pa.bool_()):
        return outside
    if pa.types.is_float16(outside):
        return pa.float32()
    if pa.types.is_timestamp(outside) or pa.types.is_date(outside):
        return pa.timestamp("ns", tz=outside.tz if pa.types.is_timestamp(outside) else None)
    if pa.types.is_dictionary(outside):
        return inside_type(name, outside.value_type)
    if _is_text(outside):
        return pa.string()
    way_out = (
        "cast it before it is read, or leave it out (files: "
        f"types={{{name!r}: 'float64'}}, say, or columns=[…]; Spark, tables: select the others)"
    )
    if pa.types.is_null(outside):
        raise SchemaError(f"column {name!r} shows nothing but nulls, so no type; {way_out}")
    if pa.types.is_decimal(outside):
        raise SchemaError(
            f"column {name!r} has type {outside}, which does not travel, and a float would round "
            f"it; {way_out}"
        )
    raise SchemaError(
        f"column {name!r} has type {outside}, which does not travel: numbers, booleans, "
        f"timestamps and text do; {way_out}"
    )


def travels(outside: pa.DataType) -> bool:
    """Return whether a column of this outside type can be read."""
    try:
        inside_type("", outside)
    except SchemaError:
        return False
    return True


OF_SOURCE = b"source"
"""Of a column that does not travel, the key under which its field has the name of its source."""


def inside_schema(outside: pa.Schema, *, source: str = "") -> pa.Schema:
    """Return the schema that rows of this outside schema have inside.

    A column that does not travel keeps its type: it is refused where a step reads it.
    """
    return pa.schema(
        [
            (one.name, inside_type(one.name, one.type))
            if travels(one.type)
            else pa.field(one.name, one.type, metadata={OF_SOURCE: source})
            for one in outside
        ]
    )


def wire_type(inside: pa.DataType) -> pa.DataType:
    """Return the Arrow type that a column of this inside type has in a frame."""
    return pa.int64() if pa.types.is_timestamp(inside) else inside


def is_sound(values: pa.Array) -> bool:
    """Return whether text is UTF-8, and lies within its memory; numbers always do."""
    return _unsound(values) is None


def _unsound(values: pa.Array) -> str | None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as problem:
        return str(problem)
    return None


def refuse_unsound(name: str, values: pa.Array, *, who: str) -> None:
    """Check that text is UTF-8, and lies where its offsets say.

    Raises:
        SchemaError: it does not; with the first row that is no UTF-8, counted from 0.
    """
    problem = _unsound(values)
    if problem is None:
        return
    match = re.search(r"Invalid UTF8 sequence at string index (\d+)", problem)
    if match is None:  # not looked at any closer: it may lie anywhere
        raise SchemaError(f"{who}: column {name!r} is damaged: {problem}; write it again")
    place = "category" if pa.types.is_dictionary(values.type) else "row"
    raise SchemaError(
        f"{who}: column {name!r} is not UTF-8 text, first in {place} {match[1]} of these, counted "
        "from 0; write it as UTF-8 before it is read, or leave it out (files: columns=[…])"
    )


def column_from_arrow(name: str, values: pa.Array, inside: pa.DataType, *, who: str) -> Column:
    """Return an Arrow column as it is kept inside.

    Raises:
        SchemaError: values that do not fit the type, or text that is no UTF-8.
    """
    if not pa.types.is_primitive(values.type):
        refuse_unsound(name, values, who=who)
    is_text = _is_text(values.type) or pa.types.is_null(values.type)
    if is_text != _is_text(inside) and values.null_count < len(values):  # no 501 of 00501
        raise SchemaError(f"{who}: column {name!r} has type {values.type}, and {inside} was said")
    try:
        cast = values if values.type == inside else values.cast(inside)
    except pa.ArrowInvalid as problem:
        raise SchemaError(f"{who}: column {name!r} does not fit {inside}: {problem}") from problem
    if pa.types.is_string(inside):
        return cast
    if pa.types.is_timestamp(inside):
        cast = cast.view(pa.int64())
    return numbers_from_arrow(cast)


def numbers_from_arrow(values: pa.Array) -> Numbers:
    """Return an Arrow array of numbers or booleans as a column."""
    if not values.null_count:
        return np.asarray(values.to_numpy(zero_copy_only=False))
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    zero = pa.scalar(0, pa.int64()).cast(values.type)
    return Nullable(values.fill_null(zero).to_numpy(zero_copy_only=False), valid)


class NullError(SchemaError):
    """Nulls where they may not be; `place` is the first such row."""

    def __init__(self, text: str, *, place: int) -> None:
        super().__init__(text)
        self.place = place


def column_to_arrow(values: Column, inside: pa.DataType) -> pa.Array:
    """Return an inside column as Arrow, of its inside type."""
    if isinstance(values, np.ndarray):
        if pa.types.is_timestamp(inside):
            return pa.array(values.astype(np.int64, copy=False)).view(inside)
        return pa.array(values, type=inside)
    if isinstance(values, Nullable):
        return values.to_arrow(inside)
    return values


class ArrowRows:
    """Makes Arrow record batches of batches, without copying many numbers.

    Args:
        schema: the inside schema of the batches that will come.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        dtypes = [_stored_as(field.type) for field in schema]
        self._fields = [(f.name, f.type, own) for f, own in zip(schema, dtypes, strict=True)]
        numbers = [own for own in dtypes if own is not None]
        is_numbers = 0 < len(numbers) == len(dtypes)
        self._made_ahead = RowsMadeAhead(schema, numbers) if is_numbers else None

    def of(self, batch: Batch) -> pa.RecordBatch:
        """Return the batch's columns."""
        rows = len(batch.event_time_ns)
        if self._made_ahead is not None and 0 < rows <= FEW_ROWS:
            found = self._made_ahead.of(batch)
            if found is not None:
                return found
        arrays = []
        for name, inside, dtype in self._fields:
            values = batch.columns[name]
            if isinstance(values, np.ndarray) and values.dtype == dtype and values.flags.contiguous:
                # A fifth of what pa.array takes, which counts when there is one row.
                values = pa.Array.from_buffers(inside, rows, [None, pa.py_buffer(values)])
            else:
                values = column_to_arrow(values, inside)
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _stored_as(inside: pa.DataType) -> np.dtype[Any] | None:
    """Return the NumPy type whose memory Arrow can use as it is; None: it cannot."""
    wire = wire_type(inside)
    is_number = pa.types.is_integer(wire) or pa.types.is_floating(wire)
    return np.dtype(wire.to_pandas_dtype()) if is_number else None
