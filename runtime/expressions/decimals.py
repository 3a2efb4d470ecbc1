"""Operands of operations over decimals, which are Arrow arrays.

Beside a float a decimal is a float, as in DuckDB; beside a whole number both are decimals.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.function import Operand
from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.whole import Kernel, refused
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.decimal_types import (
    MOST_DIGITS,
    MOST_WIDE_DIGITS,
    decimal_of_digits,
    digits_of_both,
)
from slackwater.runtime.model.exact_casts import cast_of_decimals, floats_of, last_digits
from slackwater.runtime.model.nullable import bitmap_of
from slackwater.runtime.model.schema import values_of

OF_ARROW = (pa.Array, str, bytes, Decimal)
"""Classes of operands that Arrow computes: columns and literals."""
DECIMAL_FUNCTIONS = {"+": "add", "-": "subtract", "*": "multiply"}
"""Operations that are exact over decimals: {operation: its name in Arrow}."""
__all__ = [
    "DECIMAL_FUNCTIONS",
    "OF_ARROW",
    "arithmetic",
    "as_arrow",
    "as_decimal",
    "as_float",
    "converted",
    "decimal_of",
    "decimals_of",
    "literal_of",
    "to_equal_scale",
    "whole_of",
]


def literal_of(kind: pa.DataType, value: Any) -> pa.Scalar:
    """Return a literal as a type has it.

    Raises:
        ArrowInvalid, ArrowTypeError: the type does not have it.
    """
    if pa.types.is_decimal(kind):  # pa.scalar(value, kind) makes 1E-42 of decimal128(15, 3) 0
        return cast_of_decimals(pa.array([Decimal(value)]), kind)[0]
    return pa.scalar(value, kind)


def decimal_of(kind: pa.DataType, value: Value | None = None) -> pa.DataType:
    """Return the decimal type that holds a number; a literal's has its digits."""
    if pa.types.is_decimal(kind):
        return kind
    if value is not None:
        return pa.scalar(Decimal(int(value))).type
    return pa.decimal128(20 if kind == pa.uint64() else 19, 0)


def as_float(operand: Any) -> Any:
    """Return decimals as the floats nearest to them, 0 for null; other operands unchanged."""
    if isinstance(operand, pa.Array):
        return floats_of(operand)
    return float(operand) if isinstance(operand, Decimal) else operand


def as_decimal(operand: Any) -> Any:
    """Return a decimal or whole number as Arrow's decimals."""
    if isinstance(operand, np.ndarray):
        whole = pa.array(operand)
        return whole.cast(decimal_of(whole.type))
    return operand if isinstance(operand, pa.Array) else pa.scalar(Decimal(operand))


def as_arrow(operand: Any) -> Any:
    """Return text or bytes as Arrow takes them fastest: a literal as a scalar."""
    return operand if isinstance(operand, pa.Array) else pa.scalar(operand)


def to_equal_scale(left: Operand, right: Operand) -> Callable[[Any], Any]:
    """Return the conversion of decimals and whole numbers to types that can be compared."""
    digits, scale = digits_of_both(*(decimal_of(each.type, each.value) for each in (left, right)))
    if digits <= MOST_DIGITS:
        return as_decimal
    kind = decimal_of_digits(digits, scale)
    return lambda operand: as_decimal(operand).cast(kind)


def converted(
    kernel: Kernel, convert: Callable[[Any], Any], left: Operand, right: Operand
) -> Kernel:
    """Return a kernel of two operands that converts them first, literals once."""
    if right.value is not None:
        last = convert(right.value)
        return lambda column, _: kernel(convert(column), last)
    if left.value is not None:
        first = convert(left.value)
        return lambda _, column: kernel(first, convert(column))
    return lambda *columns: kernel(*map(convert, columns))


def arithmetic(op: str, left: Any, right: Any) -> Any:
    """Return `+`, `-` or `*` of Arrow's decimals, exactly.

    A result has as many digits as it may need, and 38 if those are more. It has 76 beside
    decimal256, where it may need more than 76, and with 38 or more after the point.

    Raises:
        OperatorError: a result has more digits; with its place.
        ArrowInvalid: results have more than 76 digits after the point.
    """
    try:
        return getattr(arrow_functions(), DECIMAL_FUNCTIONS[op])(left, right)
    except pa.ArrowInvalid:  # its type has too many digits, or none is wide enough
        kind = _type_beyond(op, left.type, right.type)
    rows = max(len(side) for side in (left, right) if isinstance(side, pa.Array))
    sides = [
        side if isinstance(side, pa.Array) else pa.repeat(side, rows) for side in (left, right)
    ]
    wide, is_beyond = _in_256_bits(op, kind.scale, *sides)
    for side in sides:
        is_beyond &= ~values_of(side.is_null())  # what is missing has no digits
    most = pa.scalar(Decimal((0, (9,) * kind.precision, -kind.scale)), wide.type)
    of_arrow = arrow_functions()
    is_beyond = is_beyond | values_of(of_arrow.greater(of_arrow.abs(wide), most))
    if is_beyond.any():
        place = int(is_beyond.argmax())
        raise refused(
            f"{sides[0][place]} {op} {sides[1][place]} has more than {kind.precision} digits; cast "
            "one to 'float64', or to a decimal of fewer digits",
            place,
        )
    return _retyped(wide, kind.precision).cast(kind)


def _type_beyond(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of results that may have more digits than Arrow computes."""
    digits, scale = digits_of_both(left, right)
    if op == "*":
        digits, scale = left.precision + right.precision, left.scale + right.scale
    is_wide = any(map(pa.types.is_decimal256, (left, right)))
    if is_wide or digits >= MOST_WIDE_DIGITS or scale >= MOST_DIGITS:
        if scale > MOST_WIDE_DIGITS:
            raise pa.ArrowInvalid(f"{scale} digits after the point, and {MOST_WIDE_DIGITS} at most")
        return pa.decimal256(MOST_WIDE_DIGITS, scale)
    return pa.decimal128(MOST_DIGITS, scale)


def _in_256_bits(
    op: str, scale: int, left: pa.Array, right: pa.Array
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return results of one scale as decimal256, and which operands are beyond that: null there.

    Arrow asks for types that hold each result. Narrower ones are declared here, since 256 bits
    hold five times 10**76.
    """
    if op == "*":
        size = np.abs(floats_of(left)) * np.abs(floats_of(right))
        is_beyond = size >= 2 * 10.0 ** (MOST_WIDE_DIGITS - scale)
        scales, declared = [left.type.scale, right.type.scale], [MOST_DIGITS - 1, MOST_DIGITS]
    else:
        whole = MOST_WIDE_DIGITS - scale
        is_beyond = _has_more_whole(left, whole) | _has_more_whole(right, whole)
        scales, declared = [scale] * 2, [MOST_WIDE_DIGITS - 1] * 2
    of_arrow, there = arrow_functions(), pa.array(~is_beyond)
    own = [
        _retyped(
            of_arrow.if_else(there, side, None).cast(pa.decimal256(MOST_WIDE_DIGITS, own_scale)),
            digits,
        )
        for side, own_scale, digits in zip((left, right), scales, declared, strict=True)
    ]
    results = getattr(of_arrow, DECIMAL_FUNCTIONS[op])(*own)
    return _retyped(results, MOST_WIDE_DIGITS), is_beyond


def _has_more_whole(decimals: pa.Array, digits: int) -> npt.NDArray[np.bool_]:
    """Return which decimals have more digits than these before the point."""
    if decimals.type.precision - decimals.type.scale <= digits:
        return np.zeros(len(decimals), np.bool_)
    of_arrow, least = arrow_functions(), pa.scalar(Decimal(10) ** digits).cast(decimals.type)
    return values_of(of_arrow.greater_equal(of_arrow.abs(decimals), least)).astype(np.bool_)


def _retyped(wide: pa.Array, digits: int) -> pa.Array:
    """Return decimal256 as ones of so many digits, unchecked."""
    kind = pa.decimal256(digits, wide.type.scale)
    return pa.Array.from_buffers(kind, len(wide), wide.buffers(), offset=wide.offset)


def whole_of(decimals: pa.Array, name: str) -> npt.NDArray[np.int64]:
    """Return decimals as whole numbers of their last digit: 1.50 of two digits is 150.

    Args:
        decimals: column of decimals without nulls.
        name: name of the column, for the error.

    Raises:
        OperatorError: one does not fit 64 bits; with its place.
    """
    low, fits = last_digits(decimals)
    if not fits.all():
        place = int(fits.argmin())
        raise refused(
            f"{name!r} is {decimals[place]}, which has too many digits to aggregate; cast it to "
            "'float64' before",
            place,
        )
    return low


def decimals_of(
    whole: npt.NDArray[np.int64], kind: pa.DataType, *, valid: npt.NDArray[np.bool_]
) -> pa.Array:
    """Return whole numbers of the last digit as decimals, null where `valid` is false."""
    parts = np.empty((len(whole), kind.bit_width // 64), np.int64)
    parts[:, 0], parts[:, 1:] = whole, (whole >> 63)[:, np.newaxis]
    mask = None if valid.all() else bitmap_of(valid)
    return pa.Array.from_buffers(kind, len(whole), [mask, pa.py_buffer(parts)])
