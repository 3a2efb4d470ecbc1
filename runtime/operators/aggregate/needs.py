"""Needs: the states that aggregates are computed from; aggregates share equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.decimals import as_float, decimals_of, whole_of
from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.exact_casts import zero_for_null
from slackwater.runtime.model.nullable import Nullable, nulled, valid_of
from slackwater.runtime.model.schema import number_dtype
from slackwater.runtime.operators.aggregate.accumulators import (
    Accumulator,
    FoldAccumulator,
    ValueAccumulator,
    Values,
    quantile,
)
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.whole_sum import SumAccumulator, mean_of, sum_of
from slackwater.runtime.operators.aggregate.written import Aggregate, AggregateOfParts


class Need(NamedTuple):
    """A need is a state that one or more aggregates are computed from."""

    kind: str  # sum, min, max, values, nulls
    column: str
    dtype: str

    def accumulator(self) -> Accumulator:
        """Return a fresh accumulator of this state."""
        dtype = np.dtype(self.dtype)
        if self.kind == "nulls":
            return FoldAccumulator(np.add, dtype, 0, _nulls_of(self.column))
        if self.kind == "values":
            return ValueAccumulator(_values_there(self.column))
        if self.kind == "sum":
            return SumAccumulator(_values_or(0, self.column, dtype))
        ufunc, identity = fold_of(self.kind, dtype)
        return FoldAccumulator(ufunc, dtype, identity, _values_or(identity, self.column, dtype))


def fold_of(kind: str, dtype: np.dtype[Any]) -> tuple[np.ufunc, Any]:
    """Return the function of a minimum or maximum, and its identity."""
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
    if kind == "max":
        return np.maximum, -np.inf if limits is None else limits.min
    # NaN is the greatest float: the least only where there is no other.
    return (np.fmin, np.nan) if limits is None else (np.minimum, limits.max)


def accumulators_of(step: AggregateStep) -> dict[Need, Accumulator]:
    """Return fresh accumulators for all aggregates of a step: {need: accumulator}."""
    return {
        need: need.accumulator()
        for name, aggregate in step.aggregates.items()
        for need in needs_of(step, name, aggregate)
    }


def needs_of(step: AggregateStep, name: str, aggregate: Aggregate) -> tuple[Need, ...]:
    """Return the states that an aggregate needs: its own, then the number of its nulls.

    Empty for the count of rows, which is always kept; only the second for the count of a column.
    A quantile's state knows its size. A mean of partial results has a sum of counts instead.
    """
    if aggregate.column is None:
        return ()
    column, leaves_as = aggregate.column, step.schema.field(name).type
    nulls = Need("nulls", column, "int64")
    if aggregate.kind == "count":
        return (nulls,)
    if aggregate.kind == "quantile":
        return (Need("values", column, "float64"),)
    if aggregate.kind in ("sum", "mean"):
        counts = aggregate.counts if isinstance(aggregate, AggregateOfParts) else None
        return Need("sum", column, "float64"), Need("sum", counts, "int64") if counts else nulls
    if pa.types.is_floating(leaves_as):
        return Need(aggregate.kind, column, "float64"), nulls
    whole = "uint64" if leaves_as == pa.uint64() else "int64"
    return Need(aggregate.kind, column, whole), nulls


def finished(
    step: AggregateStep,
    name: str,
    aggregate: Aggregate,
    *,
    rows: Int64Array,
    states: Mapping[Need, Any],
) -> Column:
    """Return a column of the results, shape (results,); null without any value.

    Args:
        step: the step of the aggregate.
        name: the name of the column.
        aggregate: the aggregate of the column.
        rows: shape (results,): the number of rows of each result.
        states: {need: its state for each result}.
    """
    needs = needs_of(step, name, aggregate)
    there = rows  # the number of values that are not null
    if needs and needs[-1].kind == "nulls":
        there = rows - states[needs[-1]]
    elif len(needs) > 1:
        there = sum_of(states[needs[-1]], needs[-1].column)
    result: Any = there if aggregate.kind == "count" else states[needs[0]]
    if aggregate.kind == "sum":
        result = sum_of(result, aggregate.source_column or needs[0].column)
    elif aggregate.kind == "mean":
        result = mean_of(result, there, scale=aggregate.scale)
    elif aggregate.kind == "quantile":
        assert aggregate.level is not None
        there = states[needs[0]].counts
        result = quantile(states[needs[0]], aggregate.level)
    leaves_as = step.schema.field(name).type
    if aggregate.kind == "count":
        counts: npt.NDArray[Any] = there
        return counts
    if pa.types.is_decimal(leaves_as):
        return decimals_of(result, leaves_as, valid=there > 0)
    dtype = number_dtype(leaves_as)
    with np.errstate(invalid="ignore"):  # of what has no value
        return nulled(result.astype(dtype, copy=False), there > 0)


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


def _values_there(column: str) -> Values:
    """Return a function that gives a column's values as floats, without nulls."""

    def values(batch: Batch, cells: Int64Array) -> tuple[Int64Array, Any]:
        numbers, valid = batch.columns[column], valid_of(batch.columns[column])
        if isinstance(numbers, pa.Array):
            numbers = as_float(numbers)
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
