"""Rows as JSON, and values without a JSON type as text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nested import with_leaves
from slackwater.runtime.model.schema import is_nested
from slackwater.runtime.model.time_text import clock_text
from slackwater.runtime.model.zones import zoned_text

__all__ = [
    "as_json",
    "bad_rows_as_json",
    "infinite_values",
    "plain",
    "rows_as_json",
    "values_as_json",
]


def _untyped(value: Any) -> str:
    """Return bytes, a decimal or a date, for which JSON has no type, as text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")  # 0.0000000001, not 1E-10
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


# Shared: `json.dumps` makes one for each row.
as_json = json.JSONEncoder(ensure_ascii=False, default=_untyped).encode
"""Return a value of a `plain` column as JSON."""


def rows_as_json(rows: pa.RecordBatch) -> list[str]:
    """Return rows as JSON objects; times are ISO 8601, NaN and ±inf null.

    Raises:
        SchemaError: a duration is longer than 292 years.
    """
    return _as_json(rows, plain)


def bad_rows_as_json(rows: pa.RecordBatch) -> list[str]:
    """Return rows as `rows_as_json` does; a duration of more than 292 years is text."""
    return _as_json(rows, lambda column: with_leaves(column, _plain_or_text))


def _as_json(rows: pa.RecordBatch, change: Callable[[pa.Array], pa.Array]) -> list[str]:
    columns = [change(column) for column in rows.columns]
    records = pa.record_batch(columns, names=rows.schema.names).to_pylist()
    return [as_json(record) for record in records]


def values_as_json(values: Any) -> str:
    """Return Python's values as JSON: of dicts and lists too; NaN and ±inf are null."""
    return as_json(_finite(values))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(element) for element in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(column: pa.Array) -> pa.Array:
    """Return a column in types that JSON has, lists and structs inside too."""
    return with_leaves(column, _plain_leaf)


def _plain_leaf(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return arrow_functions().replace_substring(zoned_text(column), " ", "T")
    if pa.types.is_floating(kind):
        of_arrow = arrow_functions()
        if pa.types.is_float16(kind):
            column = column.cast(pa.float32())
        return of_arrow.if_else(of_arrow.is_finite(column), column, None)
    if pa.types.is_duration(kind):
        return _in_nanoseconds(column)
    if pa.types.is_date(kind):
        return clock_text(column)
    if pa.types.is_time(kind):  # Python's have no nanoseconds
        return column.cast(pa.string())
    return column


def _in_nanoseconds(durations: pa.Array) -> pa.Array:
    try:
        return durations.cast(pa.duration("ns")).cast(pa.int64())
    except pa.ArrowInvalid:
        raise SchemaError(
            f"a {durations.type} is longer than 292 years, and JSON has nanoseconds of 64 bits; "
            "write csv or parquet, or filter out such rows"
        ) from None


def _plain_or_text(column: pa.Array) -> pa.Array:
    try:
        return _plain_leaf(column)
    except SchemaError:
        return duration_text(column)


def duration_text(durations: pa.Array) -> pa.Array:
    """Return durations as text with their unit, 5s: a reader need not guess it."""
    whole = durations.view(pa.int64()).cast(pa.large_string())
    unit, empty = (pa.scalar(text, pa.large_string()) for text in (durations.type.unit, ""))
    return arrow_functions().binary_join_element_wise(whole, unit, empty)


def infinite_values(column: pa.Array) -> int:
    """Return how many infinite values a column has, lists and structs inside too."""
    if pa.types.is_struct(column.type):
        return sum(map(infinite_values, column.flatten()))
    if pa.types.is_map(column.type):
        column = pa.concat_arrays([column])  # as above
        return infinite_values(column.keys) + infinite_values(column.items)
    if is_nested(column.type):
        return infinite_values(column.flatten())
    if not pa.types.is_floating(column.type):
        return 0
    return int(np.isinf(column.to_numpy(zero_copy_only=False)).sum())
