"""Find rows whose times cannot be: none at all, or far from ours.

`on_bad="skip"` omits them before anything else is decided, and counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model import (
    EARLIEST_NS,
    LATEST_NS,
    START_NS,
    BoolArray,
    Int64Array,
)
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import TIME_UNIT_NS, UNIT_NS, time_unit
from slackwater.runtime.sources.columns import TimeUnit

__all__ = ["bad_time_text", "known_times_ns", "refuse_bad_times", "rows_with_times"]


def rows_with_times(
    block: pa.RecordBatch, names: Sequence[str], *, unit: TimeUnit
) -> BoolArray | None:
    """Return the rows whose times lie between the years 1823 and 2116; None if all.

    Args:
        block: rows as the reader gave them.
        names: names of the columns of times; one that is not there, or is not a time, is not looked
            at.
        unit: unit of the columns of whole numbers.

    Returns:
        Shape (rows,).
    """
    good: BoolArray | None = None
    for name in names:
        place = block.schema.get_field_index(name)
        if place < 0:
            continue
        valid = _good(block.column(place), unit)
        if valid is not None:
            good = valid if good is None else good & valid
    return good


def known_times_ns(values: pa.Array, unit: TimeUnit) -> Int64Array:
    """Return times as nanoseconds, START_NS for each that cannot be; shape (values,).

    Args:
        values: timestamps, days or whole numbers.
        unit: unit of whole numbers.
    """
    scale = _scale(_plain(values).type, unit)
    assert scale is not None, "they are times"
    good, times = _good(values, unit), _whole_numbers(values)
    if good is None:
        return times.astype(np.int64) * scale
    return np.where(good, np.where(good, times, 0).astype(np.int64) * scale, START_NS)


def bad_time_text(names: Sequence[str]) -> str:
    """Return why rows have no place in the order, for their stream and for reports."""
    names_text = " or ".join(names)
    return f"{names_text} is null, cannot be computed, or is beyond the years 1823 to 2116"


def refuse_bad_times(source: str, block: pa.RecordBatch, name: str, *, role: str, row: int) -> None:
    """Check that a column of timestamps or days has none that nanoseconds cannot hold.

    Raises:
        SchemaError: it has; says where the first one is.
    """
    place = block.schema.get_field_index(name)
    if place < 0 or pa.types.is_integer(block.column(place).type):
        return  # whole numbers are looked at with their unit
    good = rows_with_times(block, [name], unit="ns")
    if good is None:
        return
    first, values = int(good.argmin()), block.column(place)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    unit: Any = time_unit(values.type)
    time = np.datetime64(values[first].value, unit)
    raise SchemaError(
        f"source {source!r}: {role} column {name!r} is {time} in row {row + first} (counted from "
        "0), and times lie between the years 1823 and 2116; drop such rows before reading, leave "
        "them out with on_bad='skip', or give those that stand for 'never' or 'unknown' a time "
        "of their own"
    )


def _good(values: pa.Array, unit: TimeUnit) -> BoolArray | None:
    values = _plain(values)
    scale = _scale(values.type, unit)
    if scale is None:
        return None
    is_there: BoolArray | None = None
    if values.null_count:
        is_there = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
    times = _whole_numbers(values)
    least, most = -(-EARLIEST_NS // scale), LATEST_NS // scale
    known = np.iinfo(times.dtype)
    is_near = is_there
    if len(times) and (
        int(np.minimum.reduce(times)) < least or int(np.maximum.reduce(times)) > most
    ):
        near = (times >= max(least, known.min)) & (times <= min(most, known.max))
        is_near = near if is_there is None else near & is_there
    return None if is_near is None or bool(is_near.all()) else is_near


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _whole_numbers(values: pa.Array) -> npt.NDArray[np.integer[Any]]:
    """Return times in their unit, 0 for a null."""
    values = _plain(values)
    if not pa.types.is_integer(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    if values.null_count:
        values = arrow_functions().fill_null(values, 0)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _scale(kind: pa.DataType, unit: TimeUnit) -> int | None:
    """Return a unit of the type in nanoseconds; None if it is not a time."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return TIME_UNIT_NS[time_unit(kind)]
    return UNIT_NS[unit] if pa.types.is_integer(kind) else None
