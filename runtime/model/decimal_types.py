"""Types of decimals: forms that come in, and types that hold the results of two.

Arrow takes decimals of negative scale, 7E+2 of two zeros, and computes them wrong or not at all. So
they come in as decimals of scale 0, and nothing inside meets another.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = [
    "MOST_DIGITS",
    "MOST_WIDE_DIGITS",
    "decimal_holding",
    "decimal_of_digits",
    "digits_of_both",
    "usual_decimal",
]

MOST_DIGITS, MOST_WIDE_DIGITS = 38, 76
"""Digits of decimal128 and decimal256."""


def usual_decimal(kind: pa.DataType) -> pa.DataType:
    """Return the type that carries decimals of a type.

    It has 128 bits or more, and a scale >= 0. Beyond 76 digits, it has 76: other values are refused
    by their row.
    """
    digits, scale = kind.precision - min(kind.scale, 0), max(kind.scale, 0)
    if pa.types.is_decimal256(kind):
        return pa.decimal256(min(digits, MOST_WIDE_DIGITS), scale)
    return decimal_of_digits(min(digits, MOST_WIDE_DIGITS), scale)


def decimal_of_digits(digits: int, scale: int) -> pa.DataType:
    """Return the narrowest type of so many digits, 76 at most."""
    return (pa.decimal128 if digits <= MOST_DIGITS else pa.decimal256)(digits, scale)


def digits_of_both(first: pa.DataType, other: pa.DataType) -> tuple[int, int]:
    """Return (precision, scale) of the decimals that hold the values of two types."""
    scale = max(first.scale, other.scale)
    return max(first.precision - first.scale, other.precision - other.scale) + scale, scale


def decimal_holding(first: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the decimals of two types; None if none does."""
    digits, scale = digits_of_both(first, other)
    if digits > MOST_WIDE_DIGITS:
        return None
    if any(map(pa.types.is_decimal256, (first, other))):
        return pa.decimal256(digits, scale)
    return decimal_of_digits(digits, scale)
