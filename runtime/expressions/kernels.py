"""Kernels of operators and of numbers, chosen once for known types.

NumPy for numbers, booleans and times, `pyarrow.compute` for text. The types have been
checked (`result_types.py`) when a kernel is chosen. Numbers follow NumPy, without its warnings:

- a whole number that does not fit 64 bits, `10 // 0` and `10 % 0` are refused (`whole.py`), so are
  casts that would change a whole number; `x / 0` is inf or NaN, as are results beyond floats;
- an integer to a fixed whole power ≥ 0 stays an integer, any other power is a float;
- whole numbers and floats are compared as they are, neither rounded to the other (`compared.py`);
- kernels see no nulls: a result is null where an operand is (`nulls.py`), as in SQL;
- NaN is a value: equal to itself, and greater than all others, as in DuckDB and Polars;
- rounding is to even: 0.5 → 0, 1.5 → 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.compared import comparison
from slackwater.runtime.expressions.decimals import (
    DECIMAL_FUNCTIONS,
    arithmetic,
    as_arrow,
    as_decimal,
    as_float,
    converted,
    literal_of,
)
from slackwater.runtime.expressions.function import Call
from slackwater.runtime.expressions.nulls import both, chosen, over_values
from slackwater.runtime.expressions.whole import Kernel, checked, of_numbers, unsigned, widened
from slackwater.runtime.model import Column
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nullable import Nullable, valid_of, without_mask
from slackwater.runtime.model.schema import number_dtype, values_of

Choice = Callable[[Call], Kernel]
"""Function that returns the kernel of a call."""


def always(kernel: Kernel) -> Choice:
    """Return the choice of one kernel for all types."""
    return lambda _call: kernel


def between(call: Call) -> Kernel:
    """Return the kernel of `between`, which takes nulls: `false & null` is false."""
    values, low, high = call.operands
    at_least = over_values(comparison(">=")(call._replace(operands=(values, low))))
    at_most = over_values(comparison("<=")(call._replace(operands=(values, high))))
    return lambda column, low, high: both(at_least(column, low), at_most(column, high))


def is_in(call: Call) -> Kernel:
    """Return the kernel of `is_in`."""
    kind, values = call.operands[0].type, [operand.value for operand in call.option]
    dtype = number_dtype(kind)
    return _among_arrow(kind, values) if dtype is None else _among_numbers(dtype, values)


def _among_numbers(dtype: np.dtype[Any], values: Sequence[Any]) -> Kernel:
    """Return the test of membership for a column of numbers."""
    fitting = list(values)
    if dtype.kind in "iu":  # A value that does not fit cannot be in the column.
        limits = np.iinfo(dtype)
        fitting = [
            int(value)
            for value in values
            if limits.min <= value <= limits.max and value == int(value)
        ]
    elif dtype.kind == "f":  # Nor can a whole number that floats would round.
        fitting = [
            value
            for value in values
            if not isinstance(value, int) or int(dtype.type(value)) == value
        ]
    with np.errstate(over="ignore"):  # beyond float32 is infinity there
        array = np.array(fitting, dtype=dtype)
    if dtype.kind == "f" and np.isnan(array).any():
        return lambda column: np.isin(column, array) | np.isnan(column)
    return lambda column: np.isin(column, array)


def _among_arrow(kind: pa.DataType, values: Sequence[Any]) -> Kernel:
    """Return the test of membership for a column of text, decimals or bytes."""
    fitting, floats = [], [value for value in values if isinstance(value, float)]
    for value in values:
        if not isinstance(value, float):
            with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
                fitting.append(literal_of(kind, value).as_py())
    is_among, value_set = arrow_functions().is_in, pa.array(fitting, kind)
    if not (floats and pa.types.is_decimal(kind)):
        return lambda column: values_of(is_among(column, value_set=value_set))
    return lambda column: (  # beside a float, decimals are floats
        values_of(is_among(column, value_set=value_set)) | np.isin(as_float(column), floats)
    )


def is_null(values: Column) -> Column:
    """Return which values are null."""
    valid = valid_of(values)
    return np.zeros(len(values), np.bool_) if valid is None else ~valid


def filled(values: Column, filling: Any) -> Column:
    """Return the values with another one in place of nulls."""
    valid = valid_of(values)
    if valid is not None:
        return without_mask(chosen(valid, values, filling))
    if isinstance(values, pa.Array):
        return values
    numbers = filling.values if isinstance(filling, Nullable) else filling
    wide = widened(values)  # its type must not depend on whether there were nulls
    return wide.astype(np.result_type(wide, widened(numbers)), copy=False)


def first_value(*values: Any) -> Column:
    """Return the first value that is not null."""
    return reduce(filled, values)


def plus(call: Call) -> Kernel:
    """Return the kernel of `+`, which texts have too."""
    if family(call.gives) == "text":
        join, nothing = arrow_functions().binary_join_element_wise, pa.scalar("")
        return converted(lambda *texts: join(*texts, nothing), as_arrow, *call.operands)
    return arithmetic_of("+", np.add)(call)


def arithmetic_of(op: str, ufunc: np.ufunc) -> Choice:
    """Return the choice of the kernel of an operation that decimals have too."""

    def kernel(call: Call) -> Kernel:
        if not _has_decimals(call):
            return checked(op, ufunc, call) if op in DECIMAL_FUNCTIONS else of_numbers(ufunc)(call)
        if pa.types.is_floating(call.gives):
            of_floats: Kernel = of_numbers(ufunc)(call)
            return converted(of_floats, as_float, *call.operands)
        return converted(partial(arithmetic, op), as_decimal, *call.operands)

    return kernel


def of_sign(name: str, op: str, ufunc: np.ufunc) -> Choice:
    """Return the choice of the kernel of negative or abs; `name` is that of Arrow."""

    def kernel(call: Call) -> Kernel:
        if _has_decimals(call):
            of_decimals: Kernel = getattr(arrow_functions(), name)
            return of_decimals
        return unsigned(op, ufunc, call)

    return kernel


def _has_decimals(call: Call) -> bool:
    return any(pa.types.is_decimal(each.type) for each in call.operands)
