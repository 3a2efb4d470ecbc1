"""Comparisons of numbers, exact where a whole number meets a float.

NumPy compares both as float64, which rounds whole numbers beyond 2**53: two ids that differ would
be equal to one float. Rounding keeps the order, so only values that are equal once rounded are
compared again. NaN equals itself, and is greater than all other floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.decimals import as_arrow, as_float, converted, to_equal_scale
from slackwater.runtime.expressions.function import Call, Operand
from slackwater.runtime.expressions.literals import Value
from slackwater.runtime.expressions.whole import Kernel, ends_of
from slackwater.runtime.model import BoolArray
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import number_dtype, values_of

__all__ = ["COMPARISONS", "comparison"]

_EXACT = 1 << 53
"""Whole numbers up to this one are exact in float64."""

COMPARISONS = {
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
}
"""{operation: its name in NumPy and Arrow}"""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""{comparison: its equivalent with the sides exchanged}"""
_PLAIN: dict[str, Kernel] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_WITH_NUMBER: dict[str, Kernel] = {
    **_PLAIN,
    ">": lambda floats, number: np.logical_not(np.less_equal(floats, number)),
    ">=": lambda floats, number: np.logical_not(np.less(floats, number)),
}
"""Comparisons of floats, perhaps NaN, with a number that is none."""
_OF_FLOATS: dict[str, Kernel] = {
    "<": lambda left, right: ~(np.greater_equal(left, right) | np.isnan(left)),
    "<=": lambda left, right: np.less_equal(left, right) | np.isnan(right),
    ">": lambda left, right: ~(np.less_equal(left, right) | np.isnan(right)),
    ">=": lambda left, right: np.greater_equal(left, right) | np.isnan(left),
    "==": lambda left, right: np.equal(left, right) | (np.isnan(left) & np.isnan(right)),
    "!=": lambda left, right: ~(np.equal(left, right) | (np.isnan(left) & np.isnan(right))),
}
"""Comparisons where both sides may be NaN."""
_TO_WHOLE: dict[str, Callable[[Any], int]] = {
    "<": math.ceil,
    ">=": math.ceil,
    ">": math.floor,
    "<=": math.floor,
}


def comparison(op: str) -> Callable[[Call], Kernel]:
    """Return the choice of a kernel that compares two operands."""

    def kernel(call: Call) -> Kernel:
        left, right = call.operands
        of_left, of_right = number_dtype(left.type), number_dtype(right.type)
        if of_left is None or of_right is None:
            return _of_arrow(op, left, right)
        if right.value is not None:
            compare, literal = _bound_comparison(op, right.value, of_left)
            return lambda column, _: compare(column, literal)
        if left.value is not None:
            compare, literal = _bound_comparison(_MIRRORED[op], left.value, of_right)
            return lambda _, column: compare(column, literal)
        return partial(_compared_columns, op)

    return kernel


def _of_arrow(op: str, left: Operand, right: Operand) -> Kernel:
    """Return the comparison of text, bytes or decimals; beside a float, decimals are floats."""
    kinds = [each.type for each in (left, right)]
    has_decimal = any(map(pa.types.is_decimal, kinds))
    if has_decimal and any(map(pa.types.is_floating, kinds)):
        floats = [
            Operand(pa.float64(), None if each.value is None else as_float(each.value))
            for each in (left, right)
        ]
        of_floats = comparison(op)(Call((floats[0], floats[1]), None, pa.bool_()))
        return lambda first, second: of_floats(as_float(first), as_float(second))
    compare = getattr(arrow_functions(), COMPARISONS[op])
    convert = to_equal_scale(left, right) if has_decimal else as_arrow
    return converted(lambda *sides: values_of(compare(*sides)), convert, left, right)


def _bound_comparison(op: str, value: Value, dtype: np.dtype[Any]) -> tuple[Kernel, Any]:
    """Return the kernel that compares a column with a number, and the number for NumPy.

    To convert a number for every batch costs more than to compare a few rows.

    Args:
        op: the comparison, the column on its left.
        value: number to compare with.
        dtype: type of the column.
    """
    if isinstance(value, float) and math.isnan(value):
        return _OF_FLOATS[op], np.asarray(value)
    if dtype.kind in "iu" and isinstance(value, float | Fraction) and math.isfinite(value):
        if value == int(value):
            value = int(value)
        elif op in _TO_WHOLE:  # x > 8.5 is x > 8
            value = _TO_WHOLE[op](value)
        else:
            return _never_equal(op), None
    elif dtype.kind == "f" and isinstance(value, int) and not isinstance(value, bool):
        return _with_whole(op, value, dtype)
    return (_WITH_NUMBER if dtype.kind == "f" else _PLAIN)[op], _as_array(value, dtype)


def _never_equal(op: str) -> Kernel:
    """Return == or != with a number that no value of the column equals."""
    return lambda column, _: np.full(len(column), op == "!=")


def _as_array(value: Value, dtype: np.dtype[Any]) -> Any:
    """Return a literal as an array without dimensions, of the type of the comparison."""
    assert not isinstance(value, bytes | Decimal), "Arrow compares those"
    assert not isinstance(value, Fraction), "times are whole numbers"
    try:
        with np.errstate(over="ignore"):
            return np.asarray(value, np.result_type(dtype, value))
    except OverflowError:
        return value  # outside the type's range, which NumPy compares correctly


def _with_whole(op: str, value: int, dtype: np.dtype[Any]) -> tuple[Kernel, Any]:
    """Return the comparison of floats with a whole number, by the nearest float."""
    near = np.asarray(value, dtype)
    if int(near) == value:
        return _WITH_NUMBER[op], near
    if op in ("==", "!="):
        return _never_equal(op), near
    # No float lies between the whole number and its nearest float.
    if op in ("<", "<="):
        return _WITH_NUMBER["<" if int(near) > value else "<="], near
    return _WITH_NUMBER[">=" if int(near) > value else ">"], near


def _compared_columns(op: str, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> BoolArray:
    """Return the comparison of two columns of numbers, shape (rows,)."""
    may_be_nan = _has_nan(left) or _has_nan(right)
    mask: BoolArray = np.asarray((_OF_FLOATS if may_be_nan else _PLAIN)[op](left, right))
    if _is_long(left) and right.dtype.kind == "f":
        _correct(op, left, right, mask, is_exchanged=False)
    elif _is_long(right) and left.dtype.kind == "f":
        _correct(op, right, left, mask, is_exchanged=True)
    return mask


def _correct(
    op: str,
    whole: npt.NDArray[Any],
    floats: npt.NDArray[Any],
    mask: BoolArray,
    *,
    is_exchanged: bool,
) -> None:
    """Correct `mask` where a whole number equals a float only once rounded."""
    if not len(whole):
        return
    least, most = ends_of(whole)
    if least >= -_EXACT and most <= _EXACT:
        return
    floats = floats.astype(np.float64, copy=False)
    tied = np.flatnonzero((whole.astype(np.float64) == floats) & (np.abs(floats) >= _EXACT))
    for row in tied.tolist():
        pair = whole.item(row), int(floats.item(row))
        mask[row] = _PLAIN[op](*(reversed(pair) if is_exchanged else pair))


def _is_long(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" and values.dtype.itemsize == 8


def _has_nan(values: npt.NDArray[Any]) -> bool:
    # The least of all is NaN if one is: a pass that writes nothing.
    return values.dtype.kind == "f" and len(values) > 0 and np.isnan(np.minimum.reduce(values))
