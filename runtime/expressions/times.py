"""Times in nanoseconds, out of columns that keep them in another unit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model import Column
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.schema import TIME_UNIT_NS, is_time, time_unit

__all__ = ["in_nanoseconds", "in_unit", "literal_in", "rescaled"]


def in_nanoseconds(column: Column, unit: str, name: str) -> Column:
    """Return times as int64 nanoseconds.

    Args:
        column: whole numbers of `unit`, shape (rows,).
        unit: unit of the column (`time_unit`).
        name: name of the column, or its expression, for the error.

    Raises:
        OperatorError: a time does not fit 64 bits of nanoseconds; with its place.
    """
    if isinstance(column, Nullable):
        return Nullable(_scaled(column.values, unit, name), column.valid)
    return _scaled(column, unit, name)


def literal_in(kind: pa.DataType, value: Any, unit: str) -> tuple[pa.DataType, Value]:
    """Return a literal's (type, value) in a unit, exactly: perhaps a fraction.

    Args:
        kind: kind of the literal; a literal that is not a time stays as it is.
        value: whole number or fraction of the type's unit.
        unit: `time_unit` of a column.
    """
    if not is_time(kind):
        return kind, value
    exact = Fraction(value) * TIME_UNIT_NS[time_unit(kind)] / TIME_UNIT_NS[unit]
    if pa.types.is_time(kind):
        to: pa.DataType = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    else:
        to = pa.date32() if unit == "D" else pa.timestamp(unit)
    return to, exact.numerator if exact.denominator == 1 else exact


def rescaled(values: npt.NDArray[Any], unit: str, to: str) -> npt.NDArray[np.int64]:
    """Return whole numbers of a unit in another one, the begin of it.

    Raises:
        ArrowInvalid: one does not fit 64 bits.
    """
    values = values.astype(np.int64, copy=False)
    scale, wanted = TIME_UNIT_NS[unit], TIME_UNIT_NS[to]
    if scale <= wanted:
        return values if scale == wanted else values // np.int64(wanted // scale)
    place = _first_beyond(values, scale // wanted)
    if place is not None:
        raise pa.ArrowInvalid(f"{_shown(values[place], unit)} does not fit 64 bits of {to}")
    return values * np.int64(scale // wanted)


def _first_beyond(values: npt.NDArray[np.int64], scale: int) -> int | None:
    """Return the place of the first value that times `scale` does not fit 64 bits."""
    most = (2**63 - 1) // scale
    if not len(values) or (
        values.item(values.argmax()) <= most and values.item(values.argmin()) >= -most
    ):
        return None
    return int(((values > most) | (values < -most)).argmax())


def _shown(value: np.int64, unit: str) -> np.datetime64:
    as_unit: Any = unit
    return np.datetime64(int(value), as_unit)


def _scaled(values: npt.NDArray[np.signedinteger], unit: str, name: str) -> npt.NDArray[np.int64]:
    scale, values = TIME_UNIT_NS[unit], values.astype(np.int64, copy=False)
    place = _first_beyond(values, scale)
    if place is not None:
        # Its type is not known here; no duration counts days.
        duration = "" if unit == "D" else f", or a duration of {values[place]} {unit}"
        raise refused(
            f"{name} is {_shown(values[place], unit)}{duration}, and times are computed in "
            "nanoseconds, 1677 to 2262 (292 years); filter out such rows first, "
            f".filter(~{name}.try_cast('timestamp[ns]').is_null()), or make them null, "
            ".try_cast('timestamp[ns]')",
            place,
        )
    return values * np.int64(scale)


def in_unit(values: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    """Return nanoseconds as whole numbers of a unit.

    Raises:
        ValueError: one is not a whole number of these.
    """
    scale = TIME_UNIT_NS[unit]
    whole = values // scale
    if (whole * scale != values).any():
        place = int((whole * scale != values).argmax())
        raise ValueError(f"{values[place]} ns is not a whole number of {unit}; round it first")
    return whole
