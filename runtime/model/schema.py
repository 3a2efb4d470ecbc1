"""Between Arrow's types at the edges and NumPy's inside.

A schema has the types as they came; a column is kept by its type:

| type | kept as |
| --- | --- |
| int8 … uint64, float32, float64, bool | NumPy of the same type |
| timestamp, date, time, duration | NumPy whole numbers, in the type's own unit |
| nulls of these | `Nullable`: values and a mask; NaN is a value, no null |
| string, large_string, dictionary of text | Arrow string array |
| decimal, binary, list, struct, map | Arrow array of the type |
| uuid, JSON (extensions of Arrow) | text |

When they are read, at any depth, float16 becomes float32, decimal32 and decimal64 decimal128, and
decimals of negative scale those of scale 0.
Dictionaries of other values than text, or within lists, structs and maps, become these values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.batch import Batch, Column
from slackwater.runtime.model.decimal_types import usual_decimal
from slackwater.runtime.model.exact_casts import cast_exactly, first_refused, is_text_extension
from slackwater.runtime.model.made_ahead import FEW_ROWS, RowsMadeAhead
from slackwater.runtime.model.nullable import Nullable, Numbers, in_own_memory, valid_bits
from slackwater.runtime.model.times import NS_PER_SECOND
from slackwater.runtime.shown import MOST_TEXT, cut, shown, text_of

UNIT_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS_PER_SECOND}
"""{unit of whole numbers that are times: nanoseconds}"""
TIME_UNIT_NS = {**UNIT_NS, "D": 86_400 * NS_PER_SECOND}
"""{unit of a time type, see `time_unit`: nanoseconds}"""


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is one of text, perhaps as a dictionary."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_time(kind: pa.DataType) -> bool:
    """Return whether a type is a timestamp, date, time of day or duration."""
    return bool(pa.types.is_temporal(kind) and not pa.types.is_interval(kind))


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is a list, of any kind."""
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def is_nested(kind: pa.DataType) -> bool:
    """Return whether a type is a list, struct or map."""
    return bool(is_list(kind) or pa.types.is_struct(kind) or pa.types.is_map(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a type is one of bytes."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def with_parts(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a list, struct or map whose parts have changed types; other types unchanged."""

    def part(field: pa.Field) -> pa.Field:
        return field.with_type(change(field.type))

    if pa.types.is_struct(kind):
        return pa.struct([part(child) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(part(kind.key_field), part(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(part(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(part(kind.value_field))
    return pa.list_(part(kind.value_field)) if pa.types.is_list(kind) else kind


def _usual(kind: pa.DataType) -> pa.DataType:
    """Return the usual form of a lesser one; frames have no dictionaries of parts."""
    if pa.types.is_dictionary(kind):
        return _usual(kind.value_type)
    if pa.types.is_decimal(kind):
        return usual_decimal(kind)
    return pa.float32() if pa.types.is_float16(kind) else with_parts(kind, _usual)


def with_usual_decimals(kind: pa.DataType) -> pa.DataType:
    """Return a type whose decimals, at any depth, are those that are carried."""
    return (
        usual_decimal(kind) if pa.types.is_decimal(kind) else with_parts(kind, with_usual_decimals)
    )


def inside_type(name: str, outside: pa.DataType) -> pa.DataType:
    """Return the type that a column of this outside type has in a schema.

    Raises:
        SchemaError: a type we do not carry: nothing but nulls, unions, intervals, views of lists,
            other extensions than uuid and JSON.
    """
    is_number = pa.types.is_integer(outside) or outside in (pa.float32(), pa.float64(), pa.bool_())
    if is_number or is_time(outside) or is_binary(outside):
        return outside
    if is_nested(outside) or pa.types.is_decimal(outside) or pa.types.is_float16(outside):
        return _usual(outside)
    if pa.types.is_dictionary(outside):
        values = inside_type(name, outside.value_type)
        # Text of many blocks may have more distinct values than the indices of one block count.
        return pa.dictionary(pa.int32(), values, outside.ordered) if is_text(values) else values
    if is_text(outside) or is_text_extension(outside):
        is_plain = is_text(outside) and not pa.types.is_string_view(outside)
        return outside if is_plain else pa.string()
    way_out = (
        "cast it before it is read, or leave it out (files: "
        f"types={{{name!r}: 'float64'}}, say, or columns=[…]; Spark, tables: select the others)"
    )
    if pa.types.is_null(outside):
        raise SchemaError(f"column {name!r} shows nothing but nulls, so no type; {way_out}")
    if isinstance(outside, pa.BaseExtensionType):
        way_out = (
            f"read its storage, {outside.storage_type} (files: types={{{name!r}: …}}, tables: "
            "cast()), or leave it out"
        )
    raise SchemaError(f"column {name!r} has type {outside}, which does not travel; {way_out}")


def travels(outside: pa.DataType) -> bool:
    """Return whether a column of this outside type can be read."""
    try:
        inside_type("", outside)
    except SchemaError:
        return False
    return True


def is_read(field: pa.Field) -> bool:
    """Return whether a step may read a column of an input."""
    return travels(field.type) and GUESSED not in (field.metadata or {})


def read_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which a column is read: all text is a string."""
    return pa.string() if is_text(kind) else kind


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type of the memory that keeps a column."""
    if is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return read_type(kind)


def time_unit(kind: pa.DataType) -> str:
    """Return the unit of a time type: "D", "s", "ms", "us" or "ns"."""
    if pa.types.is_date(kind):
        return "D" if pa.types.is_date32(kind) else "ms"
    return str(kind.unit)


def coarse_unit(kind: pa.DataType) -> str | None:
    """Return the unit of a time type; None if nanoseconds, or not a time."""
    unit = time_unit(kind) if is_time(kind) else "ns"
    return None if unit == "ns" else unit


def nanoseconds_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in nanoseconds of a timestamp, date or time of day."""
    if pa.types.is_time(kind):
        return pa.time64("ns")
    return pa.timestamp("ns", kind.tz if pa.types.is_timestamp(kind) else None)


def number_dtype(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return the NumPy type that keeps a column; None if Arrow keeps it."""
    storage = storage_type(kind)
    if (
        pa.types.is_integer(storage)
        or pa.types.is_floating(storage)
        or pa.types.is_boolean(storage)
    ):
        dtype: np.dtype[Any] = np.dtype(storage.to_pandas_dtype())
        return dtype
    return None


def nulls_of(kind: pa.DataType, rows: int) -> Column:
    """Return a column of a type that is null in each row."""
    dtype = number_dtype(kind)
    if dtype is None:
        return pa.nulls(rows, read_type(kind))
    none = np.zeros(rows, np.bool_)
    return Nullable(np.zeros(rows, dtype), none) if rows else np.zeros(0, dtype)


def counted(numbers: npt.NDArray[Any], kind: pa.DataType) -> npt.NDArray[Any]:
    """Return whole numbers in a time's unit as its memory has them.

    Raises:
        ArrowInvalid: one is outside the type; a time of day ends with its day.
    """
    bits = kind.bit_width
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    if pa.types.is_time(kind):
        least, most = 0, TIME_UNIT_NS["D"] // TIME_UNIT_NS[kind.unit] - 1
    if (numbers < least).any() or (numbers > most).any():
        raise pa.ArrowInvalid(f"not from {least} to {most}, as a {kind} is")
    return numbers.astype(np.int32 if bits == 32 else np.int64, copy=False)


GUESSED = b"guessed"
"""Key of a field whose type was guessed and may change: no step reads it. Its value says why."""
OF_SOURCE = b"source"
"""Of a column that does not travel, the key under which its field has the name of its source."""


def inside_schema(outside: pa.Schema, *, source: str = "") -> pa.Schema:
    """Return the schema that rows of this outside schema have inside.

    A column that does not travel keeps its type: it is refused where a step reads it.
    """
    return pa.schema(
        [
            (field.name, inside_type(field.name, field.type))
            if is_read(field)
            else pa.field(
                field.name,
                field.type,
                metadata={**(field.metadata or {}), OF_SOURCE: source.encode()},
            )
            for field in outside
        ]
    )


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
        SchemaError: it does not; with the first row that is not UTF-8, counted from 0.
    """
    problem = _unsound(values)
    if problem is None:
        return
    match = re.search(r"Invalid UTF8 sequence at string index (\d+)", problem)
    if match is None:  # not looked at any closer: it may lie anywhere
        raise SchemaError(
            f"{who}: column {name!r} is damaged: {cut(problem, MOST_TEXT)}; write it again"
        )
    place = "category" if pa.types.is_dictionary(values.type) else "row"
    raise SchemaError(
        f"{who}: column {name!r} is not UTF-8 text, first in {place} {match[1]} of these, counted "
        "from 0; write it as UTF-8 before it is read, or leave it out (files: columns=[…])"
    )


def column_from_arrow(name: str, values: pa.Array, inside: pa.DataType, *, who: str) -> Column:
    """Return an Arrow column as it is kept inside.

    Raises:
        SchemaError: values that do not fit the type, or text that is not UTF-8.
    """
    if not pa.types.is_primitive(values.type):
        refuse_unsound(name, values, who=who)
    is_stated_text = is_text(values.type) or is_text_extension(values.type)
    is_ours = is_stated_text or pa.types.is_null(values.type)
    if is_ours != is_text(inside) and values.null_count < len(values):  # no 501 of 00501
        raise SchemaError(
            f"{who}: column {name!r} has type {values.type}, and its schema says {inside}; "
            f"give blocks of the stated schema"
        )
    target = read_type(inside)
    try:
        cast = cast_exactly(values, target)
    except pa.ArrowInvalid as problem:
        place = first_refused(
            lambda start, stop: cast_exactly(values.slice(start, stop - start), target), len(values)
        )
        raise SchemaError(
            f"{who}: column {name!r} does not fit {inside}: {text_of(problem)}; first "
            f"{shown(values[place])}, in row {place} of these, counted from 0; cast it before it "
            "is read, or leave it out (files: columns=[…])"
        ) from problem
    return column_of_arrow(cast)


def column_of_arrow(values: pa.Array) -> Column:
    """Return a sound Arrow array as a column of its own type is kept."""
    return keeper_of(values.type)(values)


def keeper_of(kind: pa.DataType) -> Callable[[pa.Array], Column]:
    """Return the function that makes sound Arrow arrays columns."""
    inside = inside_type("", kind)
    target = read_type(inside)

    def cast(values: pa.Array) -> pa.Array:
        return values.cast(target)

    usual = _unchanged if target == kind else cast
    if number_dtype(inside) is None:
        return usual
    if not is_time(inside):
        return lambda values: numbers_from_arrow(usual(values))
    stored = storage_type(inside)
    return lambda values: numbers_from_arrow(usual(values).view(stored))


def _unchanged(values: pa.Array) -> pa.Array:
    return values


def values_of(array: pa.Array) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers as NumPy's, 0 or False for a null."""
    if array.null_count:
        array = array.fill_null(pa.scalar(0).cast(array.type))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def numbers_from_arrow(values: pa.Array) -> Numbers:
    """Return an Arrow array of numbers or booleans as a column."""
    if not values.null_count:
        return values_of(values)
    valid, memory = valid_bits(values), values.buffers()[1]
    if pa.types.is_boolean(values.type) or memory is None:
        return Nullable(values_of(values), valid)
    dtype = np.dtype(values.type.to_pandas_dtype())
    numbers = np.frombuffer(memory, dtype, len(values), values.offset * dtype.itemsize)
    nulls = (~valid).nonzero()[0]
    if numbers.take(nulls).any():  # what lies under a null may be anything
        numbers = numbers.copy()
        numbers[nulls] = 0
    return Nullable(numbers, valid)


class NullError(SchemaError):
    """Nulls where they may not be; `place` is the first such row."""

    def __init__(self, text: str, *, place: int) -> None:
        super().__init__(text)
        self.place = place


def column_to_arrow(values: Column, kind: pa.DataType) -> pa.Array:
    """Return a column as an Arrow array of its type."""
    if isinstance(values, pa.Array):
        return _of_text(values, kind) if is_text(kind) else values
    storage = storage_type(kind)
    masked = values if isinstance(values, Nullable) else None
    array = pa.array(values, type=storage) if masked is None else masked.to_arrow(storage)
    return array.view(kind) if is_time(kind) else array


def _of_text(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return values if values.type == kind else values.cast(kind)
    encoded = values.cast(kind.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary, ordered=kind.ordered)


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
            columns = self._made_ahead.of(batch)
            if columns is not None:
                return columns
        arrays = []
        for name, inside, dtype in self._fields:
            column = batch.columns[name]
            array = None
            if dtype is not None and column.dtype == dtype:
                # A fifth of what pa.array takes, which counts when there is one row.
                array = in_own_memory(column, inside)
            arrays.append(column_to_arrow(column, inside) if array is None else array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _stored_as(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return the NumPy type whose memory Arrow can use; None if it cannot."""
    return None if pa.types.is_boolean(kind) else number_dtype(kind)
