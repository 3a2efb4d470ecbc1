"""Times in nanoseconds, out of columns that keep them in another unit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model import Column
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.schema import TIME_UNIT_NS

__all__ = ["in_nanoseconds", "in_unit", "literal_in"]


def in_nanoseconds(column: Column, unit: str, name: str) -> Column:
    """Return times as int64 nanoseconds.

    Args:
        column: whole numbers of `unit`, shape (rows,).
        unit: of the column (`time_unit`).
        name: of the column, or its expression, for the error.

    Raises:
        OperatorError: a time does not fit 64 bits of nanoseconds; with its place.
    """
    if isinstance(column, Nullable):
        return Nullable(_scaled(column.values, unit, name), column.valid)
    return _scaled(column, unit, name)


def literal_in(value: int | float | Decimal, unit: str) -> Value:
    """Return nanoseconds in another unit, exactly: a fraction where they are no whole number."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    exact = Fraction(value) / TIME_UNIT_NS[unit]
    return exact.numerator if exact.denominator == 1 else exact


def _scaled(values: npt.NDArray[np.signedinteger], unit: str, name: str) -> npt.NDArray[np.int64]:
    scale, values = TIME_UNIT_NS[unit], values.astype(np.int64, copy=False)
    most = (2**63 - 1) // scale
    if len(values) and (
        values.item(values.argmax()) > most or values.item(values.argmin()) < -most
    ):
        place = int(((values > most) | (values < -most)).argmax())
        as_unit: Any = unit
        time = np.datetime64(values.item(place), as_unit)
        # Its type is not known here; no duration counts days.
        duration = "" if unit == "D" else f", or a duration of {values[place]} {unit}"
        raise refused(
            f"{name} is {time}{duration}, and times are computed in nanoseconds, 1677 to 2262 "
            "(292 years); filter out such rows first, or leave the column as it is",
            place,
        )
    return values * np.int64(scale)


def in_unit(values: npt.NDArray[np.int64], unit: str) -> npt.NDArray[np.int64]:
    """Return nanoseconds as whole numbers of a unit.

    Raises:
        ValueError: one is no whole number of these.
    """
    scale = TIME_UNIT_NS[unit]
    whole = values // scale
    if (whole * scale != values).any():
        place = int((whole * scale != values).argmax())
        raise ValueError(f"{values[place]} ns is no whole number of {unit}; round it first")
    return whole
