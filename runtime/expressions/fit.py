"""Values that a user's function returned, made a column of a declared type.

Numbers change type where no value changes: int64 to int8 if all fit, 2.0 to 2. Nulls are None, NaT,
or masked. Times are whole nanoseconds, or datetimes; within lists, structs and maps too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.expressions.times import in_unit
from slackwater.runtime.model import Column
from slackwater.runtime.model.nested import has_times_inside, nested_times_in_ns
from slackwater.runtime.model.nullable import Nullable, without_mask
from slackwater.runtime.model.schema import (
    column_from_arrow,
    counted,
    is_nested,
    is_text,
    is_time,
    number_dtype,
    numbers_from_arrow,
    read_type,
    time_unit,
)
from slackwater.runtime.model.unset import is_unset, times_with_nulls, with_nulls
from slackwater.runtime.shown import shown

__all__ = ["NOT_FITTING", "as_column", "described"]

NOT_FITTING = (pa.ArrowException, SchemaError, TypeError, ValueError, OverflowError)
"""Errors of `as_column`."""


def as_column(values: Any, to: pa.DataType, *, name: str, who: str) -> Column:
    """Return values (an array, an Arrow array or a sequence) as an inside column.

    Args:
        values: shape (rows,), values of the column.
        to: type of the values inside.
        name: name of the column, for errors.
        who: names the step, for errors.

    Raises:
        NOT_FITTING: a value does not fit.
    """
    if isinstance(values, Nullable):
        return without_mask(Nullable(_as_numbers(values.values, to), values.valid))
    if isinstance(values, np.ma.MaskedArray):
        return _of_masked(values, to, name=name, who=who)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array) and values.type != to:
        if number_dtype(values.type) is not None and not is_time(values.type) and number_dtype(to):
            return as_column(numbers_from_arrow(values), to, name=name, who=who)
        if is_nested(to):
            values = nested_times_in_ns(values).to_pylist()
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return _as_times(values, to)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        if not pa.types.is_decimal(to) or values.dtype.kind in "bf":
            return _as_numbers(values, to)
        _refuse_shape(values)
        values = pa.array(values)
    numbers = None
    if not isinstance(values, pa.Array):
        values = list(values)
        numbers = _plain_numbers(values, to)
        values = values if numbers is not None else _as_arrow(values, to)
    return column_from_arrow(name, values, to, who=who) if numbers is None else numbers


def described(values: Any) -> str:
    """Return what values are, for errors."""
    if isinstance(values, list):
        kinds = sorted({type(value).__name__ for value in values})
        return f"values of {' and '.join(kinds)}"
    kind = values.dtype if isinstance(values, np.ndarray) else getattr(values, "type", None)
    return type(values).__name__ + (f" of {kind}" if kind is not None else "")


_PLAIN_NUMBERS = {pa.int64(): (int, np.int64), pa.float64(): (float, np.float64)}


def _plain_numbers(values: list[Any], to: pa.DataType) -> Column | None:
    """Return plain numbers of the type as an array; None if they are others."""
    kind, dtype = _PLAIN_NUMBERS.get(to, (None, None))
    if kind is None or set(map(type, values)) != {kind}:
        return None
    try:
        return np.array(values, dtype)
    except OverflowError:  # Arrow says of which value
        return None


def _as_arrow(values: list[Any], to: pa.DataType) -> pa.Array:
    """Return Python's values as Arrow, without its silent cuts (1.9 to 1, 1e40 to infinity)."""
    values = [None if is_unset(value) else value for value in values]
    if is_nested(to):
        try:
            values = list(map(with_nulls, values))
        except RecursionError:
            raise ValueError("a value contains itself, or nests too deep") from None
        _check_parts(values, to)
        if has_times_inside(to):
            values = [_with_times(value, to) for value in values]
    if pa.types.is_integer(to) or is_time(to):
        for place, value in enumerate(values):
            if isinstance(value, float | np.floating):
                if not float(value).is_integer():
                    raise ValueError(f"{value} is not a whole number; round it first")
                values[place] = int(value)
    if is_time(to):
        values = [_time_of(value, to) for value in values]
    array = pa.array(values, from_pandas=False, type=read_type(to))
    if pa.types.is_decimal(to) and array.to_pylist() != values:  # Arrow cuts more than 38 digits
        raise ValueError(f"some values do not fit {to}")
    if to == pa.float32():
        _refuse_infinite(np.array(values, np.float64), array.to_numpy(zero_copy_only=False))
    return array


def _check_parts(values: list[Any], to: pa.DataType) -> None:
    """Check that parts of lists, structs and maps fit: Arrow would cut them in silence."""
    there = [value for value in values if value is not None]
    parts: list[tuple[pa.DataType, list[Any]]] = []
    if pa.types.is_struct(to):
        names = {field.name for field in to}
        dicts = [value for value in there if isinstance(value, Mapping)]
        for value in dicts:
            if more := value.keys() - names:
                raise ValueError(f"{min(map(shown, more))} is not a field of {to}")
        parts = [(field.type, [value.get(field.name) for value in dicts]) for field in to]
    elif pa.types.is_map(to):
        pairs = [list(entry.items() if isinstance(entry, Mapping) else entry) for entry in there]
        flat = [pair for each in pairs for pair in each]
        parts = [
            (to.key_type, [key for key, _ in flat]),
            (to.item_type, [item for _, item in flat]),
        ]
    else:
        parts = [(to.value_type, [part for value in there for part in value])]
    for kind, own in parts:
        _as_arrow(own, kind)


def _with_times(value: Any, to: pa.DataType) -> Any:
    """Return a value of a checked nested type with its times as Arrow takes them."""
    if value is None or not (is_time(to) or has_times_inside(to)):
        return value
    if is_time(to):
        return _time_of(value, to)
    if pa.types.is_struct(to):
        return {field.name: _with_times(value.get(field.name), field.type) for field in to}
    if pa.types.is_map(to):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_with_times(k, to.key_type), _with_times(v, to.item_type)) for k, v in pairs]
    return [_with_times(part, to.value_type) for part in value]


def _time_of(value: Any, to: pa.DataType) -> Any:
    """Return a time as Arrow takes it without a cut: whole nanoseconds become whole units."""
    if isinstance(value, int | np.integer):
        return counted(in_unit(np.array([value], np.int64), time_unit(to)), to).item()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else _as_times(np.array([value]), to).tolist()[0]
    if isinstance(value, datetime) and pa.types.is_date(to):
        raise ValueError(f"{value} is a time, and a date has none; write .date()")
    part_us = getattr(value, "microseconds" if isinstance(value, timedelta) else "microsecond", 0)
    if part_us % {"s": 1_000_000, "ms": 1_000}.get(time_unit(to), 1):
        raise ValueError(f"{value} is not a whole {time_unit(to)}; round it first")
    return value


def _refuse_infinite(values: npt.NDArray[Any], made: npt.NDArray[Any]) -> None:
    if (np.isinf(made) & np.isfinite(values)).any():
        raise ValueError("some values are too large for float32; make it float64")


def _as_numbers(values: npt.NDArray[Any], to: pa.DataType) -> npt.NDArray[Any]:
    if is_text(to):
        raise ValueError("turn the numbers into text first, such as [str(x) for x in …]")
    _refuse_shape(values)
    dtype = number_dtype(to)
    if dtype is None:
        raise ValueError(f"numbers are not of type {to}; return Python's values for such a column")
    if is_time(to):
        return counted(in_unit(_changed(values, np.dtype(np.int64)), time_unit(to)), to)
    return _changed(values, dtype)


def _changed(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return numbers as another type, if no value changes."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        raise ValueError("compare to get true and false: values != 0")
    with np.errstate(invalid="ignore", over="ignore"):
        changed = values.astype(dtype)
        if dtype.kind != "f" and not np.array_equal(changed, values):
            raise ValueError("some values would change; round or clip them first")
        if values.dtype.kind in "iu" and not np.array_equal(changed.astype(values.dtype), values):
            raise ValueError(f"some whole numbers have no {dtype} of their own; round them first")
        if dtype == np.float32 and values.dtype.kind == "f":
            _refuse_infinite(values, changed)
    return changed


def _refuse_shape(values: npt.NDArray[Any]) -> None:
    if values.ndim != 1:
        raise ValueError(f"one value a row is needed, not an array of shape {values.shape}")


def _of_masked(values: Any, to: pa.DataType, *, name: str, who: str) -> Column:
    """Return a masked array of NumPy as a column: what is masked is null."""
    _refuse_shape(values)
    if values.dtype.kind in "biuf":
        valid = ~np.ma.getmaskarray(values)
        numbers = _as_numbers(np.where(valid, values.data, values.dtype.type(0)), to)
        return without_mask(Nullable(numbers, valid))
    if values.dtype.kind in "mM":
        return _as_times(times_with_nulls(values), to)
    return column_from_arrow(name, _as_arrow(values.tolist(), to), to, who=who)


def _as_times(values: npt.NDArray[Any], to: pa.DataType) -> Column:
    _refuse_shape(values)
    is_length = values.dtype.kind == "m"
    fits = pa.types.is_duration(to) if is_length else pa.types.is_timestamp(to)
    if not (fits or (pa.types.is_date(to) and not is_length)):
        raise ValueError("times are not numbers; take nanoseconds: values.astype('int64')")
    valid, unit = ~np.isnat(values), time_unit(to)
    times = values.astype(f"{'timedelta64' if is_length else 'datetime64'}[{unit}]")
    if not np.array_equal(times.astype(values.dtype)[valid], values[valid]):
        if unit == "ns":
            raise ValueError("some times do not fit 64 bits of nanoseconds, 1677 to 2262")
        raise ValueError(f"some times are not whole {unit}; round them first")
    numbers = times.view(np.int64).astype(number_dtype(to))
    return without_mask(Nullable(np.where(valid, numbers, numbers.dtype.type(0)), valid))
