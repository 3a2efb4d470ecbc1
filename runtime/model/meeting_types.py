"""Types that differ on the outside only, and the type that holds both."""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.model.decimal_types import decimal_holding, usual_decimal

__all__ = ["meeting_type"]

_UNITS = ("s", "ms", "us", "ns")


def meeting_type(first: pa.DataType, other: pa.DataType) -> pa.DataType | None:  # noqa: PLR0911 - one for each kind
    """Return the type that holds the values of two types unchanged; None if none exists.

    Widths, units and encodings meet; a null column meets all. Whole numbers and floats do not.
    """
    first, other = _plain(first), _plain(other)
    if first == other or pa.types.is_null(other):
        return first
    if pa.types.is_null(first):
        return other
    if pa.types.is_integer(first) and pa.types.is_integer(other):
        return _whole(first, other)
    if pa.types.is_floating(first) and pa.types.is_floating(other):
        return max(first, other, key=lambda kind: kind.bit_width)
    if pa.types.is_date(first) and pa.types.is_date(other):
        return pa.date32()
    if pa.types.is_timestamp(first) and pa.types.is_timestamp(other):
        if (first.tz is None) != (other.tz is None):
            return None
        return pa.timestamp(_finer(first, other), first.tz)
    if pa.types.is_duration(first) and pa.types.is_duration(other):
        return pa.duration(_finer(first, other))
    if pa.types.is_time(first) and pa.types.is_time(other):
        unit = _finer(first, other)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    if pa.types.is_decimal(first) and pa.types.is_decimal(other):
        return decimal_holding(usual_decimal(first), usual_decimal(other))
    return None


def _finer(first: pa.DataType, other: pa.DataType) -> str:
    return max(str(first.unit), str(other.unit), key=_UNITS.index)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def _whole(first: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    is_signed = pa.types.is_signed_integer(first)
    if is_signed == pa.types.is_signed_integer(other):
        return max(first, other, key=lambda kind: kind.bit_width)
    signed, unsigned = (first, other) if is_signed else (other, first)
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        if kind.bit_width >= signed.bit_width and kind.bit_width > unsigned.bit_width:
            return kind
    return None
