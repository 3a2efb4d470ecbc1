"""Copies of values that a user's code may change after returning them.

```
user's code    buffer ─ refilled ─▶ buffer         the same memory in each call
kept here      copy 1               copy 2         so each call is read before the next
```

Arrow arrays are copied too: they may lie over a NumPy array, and do not tell. A view, such as
`dict.values()`, and an object with `__index__` are read: what they show may change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from operator import index
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from slackwater.runtime.model.arrow_streams import block_of, stream_of

__all__ = [
    "copied_array",
    "copied_block",
    "copied_column",
    "copied_table",
    "copied_value",
]

_NEVER_CHANGE = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta, UUID}
    | {np.float64, np.int64, np.float32, np.int32, np.bool_, np.str_, np.datetime64}
)
"""Types of most values: they are passed on before a call is made."""


SMALL_BYTES = 65_536
"""Of a column that Python copies by itself."""

_KNOWN = (str, bytes, bytearray, int, float, Decimal, UUID, Set, np.generic, np.ndarray, pa.Scalar)
"""Values that hold their own numbers and parts, or none."""


def copied_value(value: Any) -> Any:
    """Copy a value of a row, so that it shares no list, dict or array.

    A view's or an object's own code may raise; call this where the user's function is called.
    """
    if type(value) in _NEVER_CHANGE:
        return value
    try:
        if type(value) is dict:  # nearly each row: without a look at abstract classes
            return _each_copied(value)
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
            return _each_copied(value)
        case np.ndarray() if value.dtype != object:
            return value.copy()
        case pa.Array() | pa.ChunkedArray():
            return copied_column(value)
        case memoryview():
            return value.tobytes()
    if _is_whole_number(value):
        try:
            return index(value) if hasattr(type(value), "__index__") else int(value)
        except TypeError:  # such as a tensor of several numbers
            pass
    if _is_list(value):
        return _all_copied(islice(value, len(value)))
    try:
        return copy.deepcopy(value)
    except Exception:  # no value of a column; it is refused by name where it is fitted
        return value


def _is_whole_number(value: Any) -> bool:
    """Whether Arrow asks an object for its whole number when the column is made."""
    kind = type(value)
    if isinstance(value, _KNOWN):
        return False
    return hasattr(kind, "__index__") or (
        hasattr(kind, "__int__") and not hasattr(kind, "__float__")
    )


def _is_list(value: Any) -> bool:
    """Whether Arrow asks an object for its parts when the column is made."""
    kind = type(value)
    if isinstance(value, _KNOWN) or hasattr(kind, "keys"):
        return False
    return isinstance(value, ValuesView) or (
        hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    )


def _each_copied(row: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: own if type(own) in _NEVER_CHANGE else _copied(own) for name, own in row.items()}


def _all_copied(values: Iterable[Any]) -> list[Any]:
    return [own if type(own) in _NEVER_CHANGE else _copied(own) for own in values]


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
    if (small := _small_copied(block)) is not None:
        return small
    rows = block.to_struct_array()
    if _has_shared_parts(rows.type):
        columns = [copied_array(column) for column in block.columns]
        return pa.RecordBatch.from_arrays(columns, schema=block.schema)
    copied = pa.RecordBatch.from_struct_array(pa.concat_arrays([rows]))
    metadata = block.schema.metadata
    return copied if metadata is None else copied.replace_schema_metadata(metadata)


def _small_copied(block: pa.RecordBatch) -> pa.RecordBatch | None:
    """Return a small block of numbers in its own memory; None if another.

    Arrow's copy lets other threads run first, which takes 0.2 ms beside a busy slot.
    """
    rows, columns = block.num_rows, []
    for column in block.columns:
        kind = column.type
        if not pa.types.is_primitive(kind) or (bits := kind.bit_width) & 7:
            return None
        validity, values = column.buffers()
        width = bits >> 3
        if validity is not None or values is None or rows * width > SMALL_BYTES:
            return None
        start = column.offset * width
        own = memoryview(values)[start : start + rows * width].tobytes()
        columns.append(pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(own)]))
    return pa.RecordBatch.from_arrays(columns, schema=block.schema)


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
    return block_of(stream_of(block)).column(0)


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
