"""Read values back from the types in which JSON lines have them, as `jsonl_sink` writes.

| type | in JSON |
| --- | --- |
| timestamp, date, time of day | text; Arrow's JSON reader drops zones and fractions |
| duration | whole nanoseconds |
| decimal | a number; Arrow wraps those that do not fit, so it is read wider |
| binary | text, base64 |
| large_list, fixed_size_list | list |
| dictionary | its values |
| list, struct | the same, of these types |
"""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from slackwater.ingest.numerals import Misfit, cast_all, text_as
from slackwater.ingest.times import is_time
from slackwater.runtime.model.exact_casts import cast_of_decimals
from slackwater.runtime.model.schema import is_binary, is_list, is_nested

__all__ = ["is_long", "read_back", "written_type"]


def written_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which JSON has values of a type."""
    if pa.types.is_dictionary(kind):
        return written_type(kind.value_type)
    if is_list(kind):
        return pa.list_(written_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(written_type(field.type)) for field in kind])
    if pa.types.is_decimal(kind):
        return pa.decimal256(76 if is_long(kind) else _MOST_DIGITS, kind.scale)
    if pa.types.is_duration(kind):
        return pa.int64()
    return pa.string() if is_time(kind) or is_binary(kind) else kind


def is_long(kind: pa.DataType) -> bool:
    """Return whether a decimal's values may not fit 256 bits once Arrow has scaled them."""
    return bool(pa.types.is_decimal(kind)) and max(kind.precision, kind.scale) > _MOST_DIGITS


_MOST_DIGITS = 38
"""Digits of which twice as many fit 256 bits."""


def read_back(column: pa.Array, kind: pa.DataType) -> pa.Array | Misfit:
    """Return a column of `written_type` in its type, or its first misfit."""
    return cast_all(column, kind, _read)


def _read(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if is_nested(kind):
        return _read_nested(column, kind)
    if pa.types.is_duration(kind):
        return column.view(pa.duration("ns")).cast(kind)
    if pa.types.is_decimal(kind):
        return cast_of_decimals(column, kind)
    if is_binary(kind):
        return pa.array([_bytes(text) for text in column.to_pylist()], kind)
    return text_as(column, kind)


def _read_nested(column: pa.Array, kind: pa.DataType) -> pa.Array:
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(kind):
        parts = zip(column.flatten(), kind, strict=True)
        arrays = [_read(part, field.type) for part, field in parts]
        return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)
    column = pa.concat_arrays([column])  # without the offset of a slice
    values = _read(column.values, kind.value_type)
    as_list = pa.ListArray.from_arrays(
        column.offsets, values, type=pa.list_(kind.value_field), mask=mask
    )
    return as_list.cast(kind)


def _bytes(text: Any) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except ValueError as problem:
        raise pa.ArrowInvalid(f"no base64, {problem}") from problem
