"""Needs: the states that aggregates are computed from; aggregates share equal ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.decimals import as_float, whole_of
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.exact_casts import zero_for_null
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.operators.aggregate.accumulators import (
    Accumulator,
    FoldAccumulator,
    ValueAccumulator,
    Values,
)
from slackwater.runtime.operators.aggregate.chosen_rows import ChosenRows, rule_of
from slackwater.runtime.operators.aggregate.counted_values import (
    CountedExtremes,
    CountedValues,
)
from slackwater.runtime.operators.aggregate.exact_sums import ExactSums
from slackwater.runtime.operators.aggregate.moments import MomentAccumulator
from slackwater.runtime.operators.aggregate.pair_moments import PairAccumulator
from slackwater.runtime.operators.aggregate.whole_sum import SumAccumulator

_BITS = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}
_FOLDS = ("min", "max", *_BITS)


class Need(NamedTuple):
    """A need is a state that one or more aggregates are computed from."""

    kind: str  # rows, nulls, sum, min, …, values, moments, pairs, or a kind of chosen rows
    column: str
    dtype: str = ""
    condition: str = ""
    """Text of the condition whose rows it has; "" if all."""
    by: str = ""
    """Of chosen rows: the column that they are chosen by; of pairs the second column."""
    size: int | None = None
    """Of chosen rows: how many of each cell, if the user says it."""

    @property
    def keeps_rows(self) -> bool:
        """Whether a cell may have as many values as rows."""
        return self.kind in ("values", "top_k", "collect", "count_distinct")

    def counted(self) -> CountedValues | ExactSums | None:
        """Return an accumulator from which rows can be taken out; None if `accumulator` is one."""
        if self.kind == "count_distinct":
            return CountedValues(self.column)
        if self.kind == "sum":
            return ExactSums(_values_or(0, self.column, np.dtype(np.float64)))
        if self.kind not in ("min", "max"):
            return None
        dtype = np.dtype(self.dtype)
        _, identity = fold_of(self.kind, dtype)
        return CountedExtremes(
            self.column,
            is_least=self.kind == "min",
            identity=identity,
            dtype=dtype,
            values=_values_or(identity, self.column, dtype),
        )

    def accumulator(self) -> Accumulator:
        """Return a fresh accumulator of this state."""
        if self.kind == "pairs":
            return PairAccumulator(self.column, self.by)
        if self.by:
            columns = tuple(dict.fromkeys((self.column, self.by)))
            return ChosenRows(rule_of(self.kind, self.size), columns, self.by)
        if self.kind in _FOLDS:
            dtype = np.dtype(self.dtype)
            ufunc, identity = fold_of(self.kind, dtype)
            return FoldAccumulator(ufunc, dtype, identity, _values_or(identity, self.column, dtype))
        return _MADE_BY[self.kind](self.column)


def fold_of(kind: str, dtype: np.dtype[Any]) -> tuple[np.ufunc, Any]:
    """Return the function of a minimum, a maximum or of bits, and its identity."""
    if kind in _BITS:
        return _BITS[kind], np.invert(dtype.type(0)) if kind == "bit_and" else dtype.type(0)
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
    if kind == "max":
        return np.maximum, -np.inf if limits is None else limits.min
    # NaN is the greatest float: the least only where there is no other.
    return (np.fmin, np.nan) if limits is None else (np.minimum, limits.max)


def _values_or(identity: Any, column: str, dtype: np.dtype[Any]) -> Values:
    """Return a function that gives the values of a column, `identity` for a null.

    So no row has to be left out, which would take longer. Those of a decimal are whole numbers
    of its last digit.
    """

    def values(batch: Batch, cells: Int64Array) -> tuple[Int64Array, Any]:
        numbers, valid = batch.columns[column], valid_of(batch.columns[column])
        if isinstance(numbers, pa.Array):
            numbers = whole_of(zero_for_null(numbers), column)
        elif isinstance(numbers, Nullable):
            numbers = numbers.values
        if valid is not None and identity != 0:
            numbers = numbers.astype(dtype)
            numbers[~valid] = identity
        return cells, numbers

    return values


def _values_there(column: str, of_decimals: Callable[[pa.Array], Any]) -> Values:
    """Return a function that gives a column's values without nulls.

    Args:
        column: name of the column.
        of_decimals: returns decimals as numbers.
    """

    def values(batch: Batch, cells: Int64Array) -> tuple[Int64Array, Any]:
        numbers, valid = batch.columns[column], valid_of(batch.columns[column])
        if isinstance(numbers, pa.Array):
            numbers = of_decimals(zero_for_null(numbers))
        elif isinstance(numbers, Nullable):
            numbers = numbers.values
        return (cells, numbers) if valid is None else (cells[valid], numbers[valid])

    return values


def _nulls_of(column: str) -> Values:
    """Return a function that gives a 1 for each null of a column.

    Usually it gives none, at no cost.
    """

    def nulls(batch: Batch, cells: Int64Array) -> tuple[Int64Array, Any]:
        valid = valid_of(batch.columns[column])
        return (cells[:0], 1) if valid is None else (cells[~valid], 1)

    return nulls


def _one(_: Batch, cells: Int64Array) -> tuple[Int64Array, Any]:
    return cells, 1


_MADE_BY: Mapping[str, Callable[[str], Accumulator]] = {
    "rows": lambda _: FoldAccumulator(np.add, np.int64, 0, _one),
    "nulls": lambda column: FoldAccumulator(np.add, np.int64, 0, _nulls_of(column)),
    "sum": lambda column: SumAccumulator(_values_or(0, column, np.dtype(np.float64))),
    "values": lambda column: ValueAccumulator(_values_there(column, as_float)),
    "moments": lambda column: MomentAccumulator(
        _values_there(column, partial(whole_of, name=column))
    ),
}
"""{kind of a state without a type of its own: what makes it}."""
