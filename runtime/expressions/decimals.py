"""Operands of operations over decimals, which are Arrow arrays.

Beside a float a decimal is a float, as in DuckDB; beside a whole number both are decimals.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.result_types import decimal_of
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model.nullable import bitmap_of

OF_ARROW = (pa.Array, str, bytes, Decimal)
"""Classes of operands that Arrow computes: columns and literals."""
_EXACT, _EXACT_POWER = 2**53, 22
"""Whole numbers and powers of ten up to these are floats without an error."""
__all__ = [
    "OF_ARROW",
    "as_decimal",
    "as_float",
    "beside_arrow",
    "decimals_of",
    "floats_of",
    "is_float",
    "whole_of",
]


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


def floats_of(decimals: pa.Array) -> npt.NDArray[np.float64]:
    """Return the floats nearest to decimals, 0 for null: Arrow's may be others."""
    if not len(decimals):
        return np.empty(0, np.float64)
    there = decimals.fill_null(pa.scalar(Decimal(0)).cast(decimals.type))
    (low, fits), scale = _last_digits(there), decimals.type.scale
    is_exact = fits & (low > -_EXACT) & (low < _EXACT) & (0 <= scale <= _EXACT_POWER)
    power = 10.0 ** min(max(scale, 0), _EXACT_POWER)
    floats: npt.NDArray[np.float64] = low / power  # one rounding, of exact numbers
    rest = np.flatnonzero(~is_exact)
    floats[rest] = [float(value) for value in there.take(pa.array(rest)).to_pylist()]
    return floats


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
    low, fits = _last_digits(decimals)
    if not fits.all():
        place = int(fits.argmin())
        raise refused(
            f"{name!r} is {decimals[place]}, which has too many digits to aggregate; cast it to "
            "'float64' before",
            place,
        )
    return low


def _last_digits(decimals: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return decimals without nulls as whole numbers, and which of them fit 64 bits."""
    words = decimals.type.bit_width // 64
    _, memory = decimals.buffers()
    parts = np.frombuffer(memory, np.int64, words * len(decimals), 8 * words * decimals.offset)
    parts = parts.reshape(-1, words)
    low = parts[:, 0]
    fits: npt.NDArray[np.bool_] = (parts[:, 1:] == (low >> 63)[:, np.newaxis]).all(axis=1)
    return low, fits


def decimals_of(
    whole: npt.NDArray[np.int64], kind: pa.DataType, *, valid: npt.NDArray[np.bool_]
) -> pa.Array:
    """Return whole numbers of the last digit as decimals, null where `valid` is false."""
    parts = np.empty((len(whole), kind.bit_width // 64), np.int64)
    parts[:, 0], parts[:, 1:] = whole, (whole >> 63)[:, np.newaxis]
    mask = None if valid.all() else bitmap_of(valid)
    return pa.Array.from_buffers(kind, len(whole), [mask, pa.py_buffer(parts)])
