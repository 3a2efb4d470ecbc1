"""Types that hold the values of two others unchanged, for advice that loses none."""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.decimals import decimal_of
from slackwater.runtime.expressions.function import Operand
from slackwater.runtime.model.decimal_types import decimal_holding
from slackwater.runtime.model.meeting_types import meeting_type
from slackwater.runtime.model.schema import read_type

__all__ = ["cast_of_both", "holding_type"]

_OF_FLOAT = {pa.float32(): 24, pa.float64(): 53}
"""{float: bits of the whole numbers that it holds}"""
_FLOAT_DIGITS = 15
"""Digits of decimals that a float64 gives back."""
_AS_TEXT = {"number", "decimal", "bool", "text", "timestamp", "time"}
"""Families that a cast to text keeps apart."""


def cast_of_both(left: Operand, right: Operand) -> str:
    """Return the cast to write where two operands must have one type."""
    kind = holding_type(left, right)
    if kind is None:
        return "no type holds the values of both, so cast one where its values fit the other"
    return f"write .cast('{kind}') on both"


def holding_type(left: Operand, right: Operand) -> pa.DataType | None:
    """Return the type that holds the values of two operands; None if none does.

    It can be cast to from both. A cast to a finer unit of time refuses what is too far away.
    """
    first, other = read_type(left.type), read_type(right.type)
    families = {family(first), family(other)}
    if families <= {"number", "decimal"}:
        return _of_numbers(left, right)
    if families == {"timestamp"}:
        return _of_times(first, other)
    if "bytes" in families and families <= {"bytes", "text"}:
        return pa.binary()
    if len(families) == 1:
        return meeting_type(first, other)
    return pa.string() if "text" in families and families <= _AS_TEXT else None


def _of_times(first: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type of two timestamps or dates; without a zone they are UTC."""
    met = meeting_type(first, other)
    if met is not None:
        return met
    stamps = [kind for kind in (first, other) if pa.types.is_timestamp(kind)]
    zone = next((kind.tz for kind in stamps if kind.tz is not None), None)
    units = [kind.unit for kind in stamps] + ["ms"] * any(map(pa.types.is_date64, (first, other)))
    return pa.timestamp(max(units, key=("s", "ms", "us", "ns").index), zone)


def _of_numbers(left: Operand, right: Operand) -> pa.DataType | None:
    first, other = left.type, right.type
    met = meeting_type(first, other)
    floats = [kind for kind in (first, other) if pa.types.is_floating(kind)]
    if met is not None or len(floats) == 2:
        return met
    if not floats:
        return decimal_holding(*(decimal_of(each.type, each.value) for each in (left, right)))
    rest = other if first == floats[0] else first
    if pa.types.is_decimal(rest):
        return pa.float64() if rest.precision <= _FLOAT_DIGITS else None
    bits = rest.bit_width - pa.types.is_signed_integer(rest)
    return next((kind for kind in (*floats, pa.float64()) if bits <= _OF_FLOAT[kind]), None)
