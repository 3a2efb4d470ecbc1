"""Change the innermost values of lists, structs and maps, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import TIME_UNIT_NS, is_nested, is_time, time_unit

__all__ = ["has_times_inside", "nested_times_in_ns", "with_leaves"]


@lru_cache(maxsize=256)
def has_times_inside(kind: pa.DataType) -> bool:
    """Return whether a type has a time among its parts, at any depth."""
    parts = [kind.field(at).type for at in range(kind.num_fields)] if is_nested(kind) else []
    return any(is_time(part) or has_times_inside(part) for part in parts)


def with_leaves(column: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Change the values without parts of a column; lists of one size become lists."""
    kind, mask = column.type, column.is_null() if column.null_count else None
    if not is_nested(kind):
        return change(column)
    if pa.types.is_struct(kind):
        fields = [with_leaves(field, change) for field in column.flatten()]
        return pa.StructArray.from_arrays(fields, names=[child.name for child in kind], mask=mask)
    if pa.types.is_fixed_size_list(kind):
        return with_leaves(column.cast(pa.list_(kind.value_type)), change)
    column = pa.concat_arrays([column])  # without the offset of a slice
    if pa.types.is_map(kind):
        parts = with_leaves(column.keys, change), with_leaves(column.items, change)
        return pa.MapArray.from_arrays(column.offsets, *parts, mask=mask)
    list_class = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    return list_class.from_arrays(column.offsets, with_leaves(column.values, change), mask=mask)


def nested_times_in_ns(column: pa.Array) -> pa.Array:
    """Return a nested column with its times as int64 nanoseconds; other columns unchanged.

    Raises:
        ArrowInvalid: a time does not fit 64 bits of nanoseconds.
    """
    if not has_times_inside(column.type):
        return column
    try:
        return with_leaves(column, _in_ns)
    except pa.ArrowInvalid:  # perhaps of a value under a null, which `take` omits
        return with_leaves(column.take(pa.array(range(len(column)), pa.int64())), _in_ns)


def _in_ns(leaf: pa.Array) -> pa.Array:
    if not is_time(leaf.type):
        return leaf
    whole = leaf.view(pa.int32() if leaf.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    scale = pa.scalar(TIME_UNIT_NS[time_unit(leaf.type)], pa.int64())
    return whole if scale.as_py() == 1 else arrow_functions().multiply_checked(whole, scale)
