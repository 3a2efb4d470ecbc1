"""Kernels of expressions: one vectorised function per operation.

NumPy for numbers, booleans and times, `pyarrow.compute` for text. The types have been
checked (`result_types.py`) when a kernel runs. Numbers follow NumPy, without its warnings:

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
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.casts import cast, try_cast
from slackwater.runtime.expressions.compared import COMPARISONS, comparison
from slackwater.runtime.expressions.decimals import (
    DECIMAL_FUNCTIONS,
    OF_ARROW,
    arithmetic,
    as_decimal,
    as_float,
    is_float,
    literal_of,
)
from slackwater.runtime.expressions.functions import MAP_ELEMENTS, of_function
from slackwater.runtime.expressions.nested_methods import NESTED
from slackwater.runtime.expressions.nulls import both, chosen, over_values
from slackwater.runtime.expressions.result_types import FLOATS
from slackwater.runtime.expressions.text_methods import TEXT
from slackwater.runtime.expressions.time_methods import TIMES
from slackwater.runtime.expressions.whole import (
    Kernel,
    checked,
    divided,
    power,
    rounded,
    unsigned,
    widened,
)
from slackwater.runtime.model import Column
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.hashes import hashed
from slackwater.runtime.model.nullable import Nullable, valid_of, without_mask
from slackwater.runtime.model.schema import is_text, values_of

MAY_WARN = frozenset(
    {"+", "-", "*", "/", "//", "%", "**", "round", "cast", "try_cast", *FLOATS}
    | {"list.sum", "list.mean"}
)
"""Operations that may make NumPy warn: division by zero, overflow, NaN."""


def kernel_for(op: str, option: Any = None) -> Kernel:
    """Return the function of `op`; `option` is a type, digits or values."""
    if op == "is_in":
        return over_values(Membership([operand.value for operand in option]))
    if op in ("cast", "try_cast"):
        arrow_functions()  # loaded now, not in the first row's latency: Arrow casts with them
    of_nulls = op in _OF_NULLS
    kernel = _OF_NULLS[op] if of_nulls else KERNELS[op]
    bound = kernel if option is None else partial(kernel, option)
    return bound if of_nulls else over_values(bound)


def _between(values: Any, low: Any, high: Any) -> Column:
    return both(_AT_LEAST(values, low), _AT_MOST(values, high))


class Membership:
    """Test of membership in a few values, kept as an array of the column's type."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values
        self._floats = [value for value in values if isinstance(value, float)]
        self._has_nan = any(value != value for value in values)  # noqa: PLR0124 - NaN
        self._arrays: dict[np.dtype[Any], npt.NDArray[Any]] = {}

    def __call__(self, column: Column) -> Column:
        """Return a mask of shape (rows,)."""
        if not isinstance(column, pa.Array):
            assert isinstance(column, np.ndarray), "a kernel sees no nulls"
            found = np.isin(column, self._array(column.dtype))
            return found | np.isnan(column) if self._has_nan and column.dtype.kind == "f" else found
        found = values_of(arrow_functions().is_in(column, value_set=self._of_type(column.type)))
        if self._floats and pa.types.is_decimal(column.type):  # beside a float, they are floats
            found = found | np.isin(as_float(column), self._floats)
        return found

    def _of_type(self, kind: pa.DataType) -> pa.Array:
        """Return the values that a column of text, decimals or bytes can have."""
        fitting = []
        for value in self._values:
            if isinstance(value, float):
                continue
            with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
                fitting.append(literal_of(kind, value).as_py())
        return pa.array(fitting, kind)

    def _array(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        if dtype not in self._arrays:
            values = self._values
            if dtype.kind in "iu":  # A value that does not fit cannot be in the column.
                limits = np.iinfo(dtype)
                values = [
                    int(value)
                    for value in values
                    if limits.min <= value <= limits.max and value == int(value)
                ]
            elif dtype.kind == "f":  # Nor can a whole number that floats would round.
                values = [
                    value
                    for value in values
                    if not isinstance(value, int) or int(dtype.type(value)) == value
                ]
            with np.errstate(over="ignore"):  # beyond float32 is infinity there
                self._arrays[dtype] = np.array(values, dtype=dtype)
        return self._arrays[dtype]


def _number(operation: Callable[..., Any]) -> Kernel:

    def compute(*operands: Any) -> Column:
        return operation(*map(widened, operands))

    return compute


def _is_null(values: Column) -> Column:
    valid = valid_of(values)
    return np.zeros(len(values), np.bool_) if valid is None else ~valid


def _fill_null(values: Column, filling: Any) -> Column:
    valid = valid_of(values)
    if valid is not None:
        return without_mask(chosen(valid, values, filling))
    if isinstance(values, pa.Array):
        return values
    numbers = filling.values if isinstance(filling, Nullable) else filling
    wide = widened(values)  # its type must not depend on whether there were nulls
    return wide.astype(np.result_type(wide, widened(numbers)), copy=False)


def _is_text(operand: Any) -> bool:
    return isinstance(operand, str) or (isinstance(operand, pa.Array) and is_text(operand.type))


def _of_arrow_too(op: str, kernel: Kernel) -> Kernel:
    """Return the kernel of an operation that decimals, or texts, have too."""

    def compute(*operands: Any) -> Column:
        if not any(isinstance(one, OF_ARROW) for one in operands):
            return kernel(*operands)
        if any(map(_is_text, operands)):  # only + takes it
            return arrow_functions().binary_join_element_wise(*operands, "")
        if op not in DECIMAL_FUNCTIONS or any(map(is_float, operands)):
            return kernel(*map(as_float, operands))
        return arithmetic(op, *map(as_decimal, operands))

    return compute


def _of_sign(name: str, kernel: Kernel) -> Kernel:
    def compute(values: Any) -> Column:
        if isinstance(values, pa.Array):
            return getattr(arrow_functions(), name)(values)
        return kernel(values)

    return compute


KERNELS: dict[str, Kernel] = {
    **{op: comparison(op) for op in COMPARISONS},
    "+": _of_arrow_too("+", checked("+", np.add)),
    "-": _of_arrow_too("-", checked("-", np.subtract)),
    "*": _of_arrow_too("*", checked("*", np.multiply)),
    "/": _of_arrow_too("/", _number(np.true_divide)),
    "//": divided("//", np.floor_divide),
    "%": divided("%", np.remainder),
    "**": power,
    "negative": _of_sign("negate", unsigned("the negative", np.negative)),
    "abs": _of_sign("abs", unsigned("abs", np.abs)),
    "floor": _number(np.floor),
    "round": rounded,
    "cast": cast,
    "try_cast": try_cast,
    **{op: function.kernel for op, function in {**TEXT, **TIMES}.items()},
    **{op: function.kernel for op, function in NESTED.items()},
    **{op: _number(getattr(np, ufunc)) for op, ufunc in FLOATS.items()},
    "ceil": _number(np.ceil),
    "sign": _number(np.sign),
    "is_nan": np.isnan,
}

_AT_LEAST, _AT_MOST = over_values(KERNELS[">="]), over_values(KERNELS["<="])
_OF_NULLS: dict[str, Kernel] = {
    "between": _between,
    "is_null": _is_null,
    "hash": hashed,
    "fill_null": _fill_null,
    "coalesce": lambda *values: reduce(_fill_null, values),
    MAP_ELEMENTS: of_function,
}
"""Kernels that take columns with their nulls."""
