"""Operations over columns with nulls, as in SQL: kernels see values only.

```
x       3  null  5   x < 4   of values   true  true  false    a filter keeps what is true
valid   ■   □    ■      ─▶   valid        ■     □     ■
values  3   0    5           so it is    true  null  false
```

`&`, `|` and `~` have three values: `null & false` is false, `null | true` is true, all else with a
null is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.decimals import OF_ARROW
from slackwater.runtime.expressions.whole import Kernel, widened
from slackwater.runtime.model import BoolArray, Column, Int64Array
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nullable import Nullable, Numbers, is_true, valid_of

__all__ = [
    "both",
    "chosen",
    "either",
    "errors_among",
    "is_false",
    "not_true",
    "over_values",
    "refused_rows",
    "spread",
]


def over_values(kernel: Kernel) -> Kernel:
    """Return a kernel that is null where an operand is.

    It computes all rows: a null's value is 0, and its result is dropped. If that is refused for a
    row, such as `10 // null`, it computes the other rows alone.
    """

    def compute(*operands: Any) -> Column:
        masks = [mask for operand in operands if (mask := valid_of(operand)) is not None]
        if not masks:
            return kernel(*operands)
        valid: BoolArray = reduce(np.logical_and, masks)
        try:
            own = list(map(_values_of, operands))
            values = kernel(*own)
            is_new = not any(values is operand for operand in own)
            return _nulled(values, valid, is_new=is_new)
        except OperatorError:
            rows = valid.nonzero()[0]
            with errors_among(rows):
                return spread(
                    kernel(*[_of_rows(operand, rows) for operand in operands]), valid, rows
                )

    return compute


def _values_of(operand: Any) -> Any:
    return operand.values if isinstance(operand, Nullable) else operand


def _nulled(values: Column, valid: BoolArray, *, is_new: bool) -> Column:
    """Return a kernel's results, null where `valid` is false; `is_new`: they may be changed."""
    if isinstance(values, pa.Array):
        return arrow_functions().if_else(pa.array(valid), values, None)
    if isinstance(values, Nullable):  # try_cast makes nulls of its own
        return _nulled(values.values, values.valid & valid, is_new=False)
    if values.dtype.kind == "b":
        return Nullable(values & valid, valid)
    if not is_new or values.base is not None:
        values = values.copy()
    values[(~valid).nonzero()[0]] = 0
    return Nullable(values, valid)


@contextmanager
def errors_among(rows: Int64Array) -> Iterator[None]:
    """Let an error name its row among all rows, where some of them are computed."""
    try:
        yield
    except OperatorError as problem:
        if problem.place is not None:
            problem.place = int(rows[problem.place])
        raise


def _of_rows(operand: Any, rows: Int64Array) -> Any:
    """Return the values of some rows, none of them null; a literal as it is."""
    if isinstance(operand, Nullable):
        return operand.values.take(rows)
    return operand.take(rows) if isinstance(operand, np.ndarray | pa.Array) else operand


def refused_rows(
    works: Callable[[int, int], object], rows: int, error: type[Exception]
) -> Int64Array:
    """Return the places of rows for which a computation raises, found by halves.

    Args:
        works: computes the rows from one place up to another.
        rows: number of all rows.
        error: type of the exception that `works` raises.
    """
    starts: list[int] = []
    waiting = [(0, rows)] if rows else []
    while waiting:
        start, stop = waiting.pop()
        try:
            works(start, stop)
        except error:
            middle = (start + stop) // 2
            if middle == start:
                starts.append(start)
            else:
                waiting += [(middle, stop), (start, middle)]
    return np.array(starts, np.int64)


def spread(values: Column, valid: BoolArray, rows: Int64Array) -> Column:
    """Return a column of all rows, with values where the mask is true.

    Args:
        values: shape (values,), of the true rows in order.
        valid: shape (rows,), False for a null.
        rows: positions of the true rows.
    """
    if isinstance(values, pa.Array):
        places = np.zeros(len(valid), np.int64)
        places[rows] = np.arange(len(rows))
        return values.take(pa.array(places, mask=~valid))
    whole = np.zeros(len(valid), values.dtype)
    if isinstance(values, Nullable):
        is_valid = np.zeros(len(valid), np.bool_)
        whole[rows], is_valid[rows] = values.values, values.valid
        return Nullable(whole, is_valid)
    whole[rows] = values
    return Nullable(whole, valid)


def is_false(mask: Numbers) -> BoolArray:
    """Return the rows where a true/false column is false: neither true nor null."""
    if isinstance(mask, Nullable):
        rows: BoolArray = np.greater(mask.valid, mask.values)
        return rows
    return np.logical_not(mask)


def not_true(mask: Numbers) -> Numbers:
    """Return `~mask`."""
    if isinstance(mask, Nullable):
        return Nullable(is_false(mask), mask.valid)
    return np.logical_not(mask)


def both(left: Numbers, right: Numbers) -> Numbers:
    """Return `left & right`."""
    if not (isinstance(left, Nullable) or isinstance(right, Nullable)):
        return np.logical_and(left, right)
    yes = is_true(left) & is_true(right)
    return Nullable(yes, yes | is_false(left) | is_false(right))


def either(left: Numbers, right: Numbers) -> Numbers:
    """Return `left | right`."""
    if not (isinstance(left, Nullable) or isinstance(right, Nullable)):
        return np.logical_or(left, right)
    yes = is_true(left) | is_true(right)
    return Nullable(yes, yes | (is_false(left) & is_false(right)))


def chosen(mask: BoolArray, yes: Any, no: Any) -> Column:
    """Return `yes` where the mask is true, else `no`: columns or literals."""
    if isinstance(yes, OF_ARROW) or isinstance(no, OF_ARROW):
        kinds = [operand.type for operand in (yes, no) if isinstance(operand, pa.Array)]
        sides = [
            operand if isinstance(operand, pa.Array) or not kinds else pa.scalar(operand, kinds[0])
            for operand in (yes, no)
        ]
        return arrow_functions().if_else(pa.array(mask), *sides)
    if isinstance(yes, Nullable) or isinstance(no, Nullable):
        valid = np.where(
            mask,
            *[operand.valid if isinstance(operand, Nullable) else True for operand in (yes, no)],
        )
        yes, no = (
            operand.values if isinstance(operand, Nullable) else operand for operand in (yes, no)
        )
        return Nullable(np.where(mask, widened(yes), widened(no)), valid)
    return np.where(mask, widened(yes), widened(no))
