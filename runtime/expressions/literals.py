"""Literals of an expression: value, type and text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.shown import shown, text_of

Value = bool | int | float | str | bytes | Decimal | Fraction
"""Values inside; a fraction is a time in the unit of the column beside it."""

Writable = bool | int | float | str | bytes | Decimal | datetime | date | time | timedelta
"""Numbers, text, bytes, True and False, times and durations."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_CYCLE_DAYS = 146_097
"""400 years of the calendar."""
_NUMPY_NS: dict[str, int | Fraction] = {
    "as": Fraction(1, 10**9),
    "fs": Fraction(1, 10**6),
    "ps": Fraction(1, 10**3),
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
    "D": 86_400 * 10**9,
    "W": 7 * 86_400 * 10**9,
    "generic": 1,
}
"""{unit of NumPy's times: nanoseconds}"""


def read_literal(value: Any) -> tuple[Value, pa.DataType, str]:  # noqa: PLR0911, PLR0912 - one for each type
    """Return (value inside, type, text as written) of a literal.

    Times become int64 nanoseconds since 1970; a time without a zone is UTC.

    Raises:
        TypeMismatch: `value` is None, a list, or another value that is not `Writable`.
    """
    if isinstance(value, np.datetime64 | np.timedelta64 | datetime | timedelta):
        _check_is_time(value)
    if isinstance(value, np.datetime64):
        return _of_numpy_ns(value), pa.timestamp("ns"), repr(value)
    if isinstance(value, np.timedelta64):
        return _length_ns(_of_numpy_ns(value), value), pa.int64(), repr(value)
    if isinstance(value, np.generic):
        value = value.item()
    text = quoted(value)
    match value:
        case datetime():
            return _datetime_ns(value), pa.timestamp("ns"), text
        case date():
            midnight = datetime(value.year, value.month, value.day, tzinfo=UTC)
            return _datetime_ns(midnight), pa.timestamp("ns"), text
        case time():
            return _time_ns(value), pa.time64("ns"), text
        case timedelta():
            return _length_ns(_timedelta_ns(value), value), pa.int64(), text
        case Decimal():
            return value, _decimal_type(value), text
        case bytes():
            return value, pa.binary(), text
        case bool():
            return value, pa.bool_(), text
        case int():
            return value, _integer_type(value), text
        case float():
            return value, pa.float64(), text
        case str():
            _check_utf8(value)
            return value, pa.string(), text
    way_out = ""
    if value is None:
        way_out = "; to ask whether it is null, write .is_null(); a null is sw.lit(None, 'int64')"
    if isinstance(value, list | tuple | set | frozenset):
        way_out = "; to ask whether it is one of several, write .is_in([...])"
    raise TypeMismatch(
        f"{shown(value)} cannot stand in an expression, which takes columns, numbers, text, bytes, "
        f"True, False, dates, times and timedeltas{way_out}"
    )


def _check_utf8(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise TypeMismatch(
            f"{shown(value)} has half a character ({problem.reason}), which UTF-8 has not; "
            "write whole characters"
        ) from None


def quoted(value: object) -> str:
    """Return a value as Python text, strings in double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _integer_type(value: int) -> pa.DataType:
    if -(2**63) <= value < 2**64:
        return pa.int64() if value < 2**63 else pa.uint64()
    raise TypeMismatch(f"{value} does not fit in 64 bits; write it as a float")


def _decimal_type(value: Decimal) -> pa.DataType:
    if not value.is_finite():
        raise TypeMismatch(f"{shown(value)} is not finite; write a finite decimal number")
    try:
        return pa.scalar(value).type
    except pa.ArrowInvalid as problem:
        raise TypeMismatch(f"{shown(value)} has too many digits: {text_of(problem)}") from None


def _time_ns(value: time) -> int:
    if value.tzinfo is not None:
        raise TypeMismatch(f"{shown(value)} has a zone, and times of day have none; leave it out")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 10**9 + value.microsecond * 1_000


def _check_is_time(value: np.datetime64 | np.timedelta64 | datetime | timedelta) -> None:
    if value != value:  # noqa: PLR0124 - NumPy's and pandas' NaT
        raise TypeMismatch(
            f"{shown(value)} is not a time; to ask whether it is null, write .is_null(); a null is "
            "sw.lit(None, 'timestamp')"
        )


def _of_numpy_ns(value: np.datetime64 | np.timedelta64) -> int:
    """Return a time of NumPy, or a length, in nanoseconds, which may need many bits."""
    unit, count = np.datetime_data(value.dtype)
    whole = int(value.astype(np.int64)) * count
    if unit in _NUMPY_NS:
        return int(whole * _NUMPY_NS[unit] // 1)
    if isinstance(value, np.timedelta64):
        raise TypeMismatch(f"{shown(value)} has no fixed length; write it in days, seconds or ns")
    year, month = divmod(whole if unit == "M" else whole * 12, 12)
    cycles, year = divmod(year + 1969, 400)
    day = date(year + 1, month + 1, 1).toordinal() + cycles * _CYCLE_DAYS - _EPOCH_DAY
    return day * 86_400 * 10**9


def _length_ns(length_ns: int, value: timedelta | np.timedelta64) -> int:
    if not -(2**63) <= length_ns < 2**63:
        raise TypeMismatch(f"{shown(value)} must be less than 292 years, 64 bits of nanoseconds")
    return length_ns


def _datetime_ns(value: datetime) -> int:
    return _timedelta_ns((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH)


def _timedelta_ns(value: timedelta) -> int:
    whole = (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1_000
    nanoseconds: int = getattr(value, "nanoseconds", 0)  # only pandas has them
    return whole + nanoseconds
