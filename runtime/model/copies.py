"""Copies of values that a user's code may change after returning them.

```
user's code    buffer ─ refilled ─▶ buffer         the same memory in each call
kept here      copy 1               copy 2         so each call is read before the next
```

Arrow arrays are copied too: they may lie over a NumPy array, and do not tell.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

__all__ = [
    "copied_array",
    "copied_block",
    "copied_column",
    "copied_table",
    "copied_value",
    "copied_values",
]

_NEVER_CHANGE = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, UUID}
    | {np.float64, np.int64, np.float32, np.int32, np.bool_, np.str_, np.datetime64}
)
"""Types of most values: they are passed on before a call is made."""


def copied_value(value: Any) -> Any:
    """Copy a value of a row, so that it shares no list, dict or array."""
    if type(value) in _NEVER_CHANGE:
        return value
    try:
        return _copied(value)
    except RecursionError:  # it contains itself; it is refused by name where it is fitted
        return value


def _copied(value: Any) -> Any:  # noqa: PLR0911 - one for each kind
    match value:
        case list():
            return _all_copied(value)
        case tuple():
            return tuple(_all_copied(value))
        case Mapping():
            return {name: _copied(own) for name, own in value.items()}
        case np.ndarray() if value.dtype != object:
            return value.copy()
        case pa.Array() | pa.ChunkedArray():
            return copied_column(value)
        case memoryview():
            return value.tobytes()
    try:
        return copy.deepcopy(value)
    except Exception:  # no value of a column; it is refused by name where it is fitted
        return value


def _all_copied(values: Iterable[Any]) -> list[Any]:
    return [own if type(own) in _NEVER_CHANGE else _copied(own) for own in values]


def copied_values(values: Iterable[Any]) -> list[Any]:
    """Return values of a row or list, each as `copied_value` does."""
    return [own if type(own) in _NEVER_CHANGE else copied_value(own) for own in values]


def copied_column(values: Any) -> Any:
    """Return an array of NumPy or Arrow in its own memory; other values unchanged."""
    match values:
        case np.ndarray():
            return values.copy()
        case pa.ChunkedArray():
            return pa.chunked_array([copied_array(part) for part in values.chunks], values.type)
        case pa.Array():
            return copied_array(values)
    return values


def copied_block(block: pa.RecordBatch) -> pa.RecordBatch:
    """Return a record batch in its own memory, as much as its rows need.

    One that points outside its memory is returned as it is: its reader refuses it.
    """
    if not block.num_columns or not _is_within(block):
        return block
    rows = block.to_struct_array()
    if _has_shared_parts(rows.type):
        columns = [copied_array(column) for column in block.columns]
        return pa.RecordBatch.from_arrays(columns, schema=block.schema)
    # One call for all columns: a block may be small, and each call lets other threads go first.
    copied = pa.RecordBatch.from_struct_array(pa.concat_arrays([rows]))
    metadata = block.schema.metadata
    return copied if metadata is None else copied.replace_schema_metadata(metadata)


def copied_table(table: pa.Table) -> pa.Table:
    """Return a table in its own memory."""
    return pa.Table.from_batches(list(map(copied_block, table.to_batches())), table.schema)


def copied_array(values: pa.Array) -> pa.Array:
    """Return an Arrow array in its own memory; see `copied_block`."""
    if not _is_within(values):
        return values
    if not _has_shared_parts(values.type):
        return pa.concat_arrays([values])
    block = pa.record_batch([values], ["values"])
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, block.schema) as writer:
        writer.write_batch(block)
    with pa.ipc.open_stream(stream.getvalue()) as reader:
        return reader.read_next_batch().column(0)


def _is_within(values: pa.Array | pa.RecordBatch) -> bool:
    """Whether values lie in their memory, by its ends: enough to copy them."""
    try:
        values.validate()
    except pa.ArrowInvalid:
        return False
    return True


@lru_cache(maxsize=256)
def _has_shared_parts(kind: pa.DataType) -> bool:
    """Whether Arrow's concatenation keeps a part of such an array as it is."""
    if pa.types.is_dictionary(kind) or pa.types.is_string_view(kind):
        return True
    if pa.types.is_binary_view(kind):
        return True
    return any(_has_shared_parts(kind.field(at).type) for at in range(kind.num_fields))
