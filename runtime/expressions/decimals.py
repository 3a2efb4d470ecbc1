"""Operands of operations over decimals, which are Arrow arrays.

Beside a float a decimal is a float, as in DuckDB; beside a whole number both are decimals.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.exact_casts import cast_of_decimals, floats_of, last_digits
from slackwater.runtime.model.nullable import bitmap_of
from slackwater.runtime.model.schema import values_of

OF_ARROW = (pa.Array, str, bytes, Decimal)
"""Classes of operands that Arrow computes: columns and literals."""
DECIMAL_FUNCTIONS = {"+": "add", "-": "subtract", "*": "multiply"}
"""Operations that are exact over decimals: {operation: its name in Arrow}."""
MOST_DIGITS, MOST_WIDE_DIGITS = 38, 76
"""Digits of decimal128 and decimal256."""
__all__ = [
    "DECIMAL_FUNCTIONS",
    "MOST_DIGITS",
    "MOST_WIDE_DIGITS",
    "OF_ARROW",
    "arithmetic",
    "as_decimal",
    "as_float",
    "beside_arrow",
    "decimal_of",
    "decimals_of",
    "digits_of_both",
    "is_float",
    "literal_of",
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


def is_float(operand: Any) -> bool:
    """Return whether an operand is a column of floats, or one float."""
    if isinstance(operand, np.ndarray):
        return bool(operand.dtype.kind == "f")
    return isinstance(operand, float)


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


def _is_decimal(operand: Any) -> bool:
    if isinstance(operand, pa.Array):
        return bool(pa.types.is_decimal(operand.type))
    return isinstance(operand, Decimal)


def beside_arrow(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two operands, one of Arrow's, as types that can be compared."""
    if not (_is_decimal(left) or _is_decimal(right)):
        return left, right
    if is_float(left) or is_float(right):
        return as_float(left), as_float(right)
    left, right = as_decimal(left), as_decimal(right)
    digits, scale = digits_of_both(left.type, right.type)
    if digits <= MOST_DIGITS:
        return left, right
    kind = pa.decimal256(digits, scale)
    return left.cast(kind), right.cast(kind)


def digits_of_both(one: pa.DataType, other: pa.DataType) -> tuple[int, int]:
    """Return (precision, scale) of the decimals that hold the values of two types."""
    scale = max(one.scale, other.scale)
    return max(one.precision - one.scale, other.precision - other.scale) + scale, scale


def arithmetic(op: str, left: Any, right: Any) -> Any:
    """Return `+`, `-` or `*` of Arrow's decimals, exactly.

    A result has as many digits as it may need, or 38 if that is more.

    Raises:
        OperatorError: a result has more than 38 digits; with its place.
        ArrowInvalid: one decimal256 has not enough digits either.
    """
    function = getattr(arrow_functions(), DECIMAL_FUNCTIONS[op])
    try:
        return function(left, right)
    except pa.ArrowInvalid:
        if pa.types.is_decimal256(left.type) or pa.types.is_decimal256(right.type):
            raise
    wide = function(_widened(left), _widened(right))
    kind, of_arrow = pa.decimal128(MOST_DIGITS, wide.type.scale), arrow_functions()
    most = pa.scalar(Decimal((0, (9,) * MOST_DIGITS, -kind.scale))).cast(wide.type)
    is_beyond = values_of(of_arrow.greater(of_arrow.abs(wide), most))
    if is_beyond.any():
        place = int(is_beyond.argmax())
        shown = [one[place] if isinstance(one, pa.Array) else one for one in (left, right)]
        raise refused(
            f"{shown[0]} {op} {shown[1]} has more than {MOST_DIGITS} digits; cast one to "
            "'float64', or to a decimal of fewer digits",
            place,
        )
    return wide.cast(kind)


def _widened(decimals: Any) -> Any:
    return decimals.cast(pa.decimal256(decimals.type.precision, decimals.type.scale))


def whole_of(decimals: pa.Array, name: str) -> npt.NDArray[np.int64]:
    """Return decimals as whole numbers of their last digit: 1.50 of two digits is 150.

    Args:
        decimals: without nulls.
        name: of the column, for the error.

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
