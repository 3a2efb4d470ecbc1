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
from slackwater.runtime.model.exact_casts import cast_of_decimals, floats_of, last_digits
from slackwater.runtime.model.nullable import bitmap_of

OF_ARROW = (pa.Array, str, bytes, Decimal)
"""Classes of operands that Arrow computes: columns and literals."""
__all__ = [
    "OF_ARROW",
    "as_decimal",
    "as_float",
    "beside_arrow",
    "decimal_of",
    "decimals_of",
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
    to = as_float if is_float(left) or is_float(right) else as_decimal
    return to(left), to(right)


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
