"""Kinds of aggregates, in one table: the columns each takes, its states, and its results.

```
kind     needs                     finish                       type
mean     sum of x, nulls of x      sum / (rows − nulls)         float64
first    the earliest row of x     its value                    that of x
```

An aggregate with a condition has the states of the rows for which it is true, and their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.decimals import decimals_of
from slackwater.runtime.model import Column, Int64Array
from slackwater.runtime.model.nullable import nulled
from slackwater.runtime.model.schema import column_to_arrow, inside_type, nulls_of, number_dtype
from slackwater.runtime.operators.aggregate.accumulators import quantile
from slackwater.runtime.operators.aggregate.custom_aggregate import CustomAggregate
from slackwater.runtime.operators.aggregate.custom_states import results_of
from slackwater.runtime.operators.aggregate.moments import variance
from slackwater.runtime.operators.aggregate.needs import Need
from slackwater.runtime.operators.aggregate.pair_moments import (
    FloatArray,
    PairMoments,
    correlation,
    covariance,
    intercept,
    slope,
)
from slackwater.runtime.operators.aggregate.whole_sum import mean_of, sum_of
from slackwater.runtime.operators.aggregate.written import Aggregate, AggregateOfParts
from slackwater.runtime.operators.ground.checks import is_whole


class Takes(NamedTuple):
    """The columns that an aggregate takes.

    Attributes:
        families: families of types; None if any may be one of its columns.
        text: text on these columns, for an error.
        way_out: advice for another column; `{0}` is the column, `{1}` the aggregate.
        is_whole: whether numbers must be whole ones.
        is_of_pairs: whether the second column is one of these, too.
    """

    families: tuple[str, ...] | None = None
    text: str = "any column"
    way_out: str = ""
    is_whole: bool = False
    is_of_pairs: bool = False

    def has(self, of: pa.DataType) -> bool:
        """Return whether a column of a type may be taken."""
        has_family = self.families is None or family(of) in self.families
        return has_family and (is_whole(of) or not self.is_whole)


class Results(NamedTuple):
    """The states of an aggregate's results, of which its column is made.

    Attributes:
        aggregate: the aggregate.
        type: type in which its column leaves.
        state: its first state, of each result.
        values: shape (results,), the number of values of each that are not null.
    """

    aggregate: Aggregate
    type: pa.DataType
    state: Any
    values: Int64Array


class Kind(NamedTuple):
    """A kind of aggregates.

    Attributes:
        takes: the columns that it takes.
        type: returns the type of its results, given the aggregate and the type of its column.
        needs: returns its states, given the aggregate and the type of its results: its own, and
            then the number of its nulls if its own does not know how many values it has.
        finish: returns the column of its results.
        has_parts: whether partial results of whole numbers change no bit.
    """

    takes: Takes
    type: Callable[[Aggregate, pa.DataType], pa.DataType]
    needs: Callable[[Aggregate, pa.DataType], tuple[Need, ...]]
    finish: Callable[[Results], Column]
    has_parts: bool = False


_CAST = "cast it with .with_columns(x=col(...).cast('int64'))"
PART_OF_IT = "take a part of it before: .with_columns(x=col({0!r})[0]), or ['field'] of a struct"
"""Advice for a list, struct or map."""
_ANY = Takes()
_NUMBERS = Takes(("number", "decimal"), "numbers", _CAST)
_PAIRS = _NUMBERS._replace(is_of_pairs=True)
_WHOLE = Takes(("number",), "whole numbers", _CAST, is_whole=True)
_SUMMED = Takes(("number", "decimal", "duration"), "numbers", _CAST)
_ORDERED = Takes(
    ("number", "decimal", "timestamp", "time", "duration"),
    "numbers and times",
    "write sw.arg_{1}({0!r}, {0!r}), which takes any column that has an order",
)
_FLAT = Takes(
    ("number", "decimal", "bool", "text", "timestamp", "time", "duration", "bytes"),
    "any column but lists, structs and maps",
    PART_OF_IT,
)
_TRUE_FALSE = Takes(("bool",), "true/false", "compare it before: .with_columns(x=col({0!r}) > 0)")


# -- types of results -------------------------------------------------------------------


def _of_type(kind: pa.DataType) -> Callable[[Aggregate, pa.DataType], pa.DataType]:
    return lambda _aggregate, _of: kind


def _as_it_came(_: Aggregate, of: pa.DataType) -> pa.DataType:
    return of


def _list_type(_: Aggregate, of: pa.DataType) -> pa.DataType:
    return inside_type("", pa.list_(of))  # texts of a dictionary are texts in a list


def _declared(aggregate: Aggregate, _: pa.DataType) -> pa.DataType:
    assert isinstance(aggregate, CustomAggregate), "only that has a type of the user's"
    return aggregate.returns


def _sum_type(_: Aggregate, of: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(of):
        return of
    if pa.types.is_decimal(of):
        is_wide = pa.types.is_decimal256(of)
        return pa.decimal256(76, of.scale) if is_wide else pa.decimal128(38, of.scale)
    return pa.int64() if is_whole(of) else pa.float64()


# -- states -----------------------------------------------------------------------------


def _own(aggregate: Aggregate, kind: str, dtype: str = "") -> Need:
    """Return a state of an aggregate's column."""
    return Need(kind, aggregate.column or "", dtype, aggregate.condition_text)


def _counted(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    return () if aggregate.column is None else (_own(aggregate, "nulls", "int64"),)


def _summed(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    # A mean of partial results has a sum of counts in place of a number of nulls.
    counts = aggregate.counts if isinstance(aggregate, AggregateOfParts) else None
    nulls = _own(aggregate, "nulls", "int64")
    return _own(aggregate, "sum", "float64"), Need("sum", counts, "int64") if counts else nulls


def _folded(aggregate: Aggregate, leaves_as: pa.DataType) -> tuple[Need, ...]:
    whole = "uint64" if leaves_as == pa.uint64() else "int64"
    dtype = "float64" if pa.types.is_floating(leaves_as) else whole
    return _own(aggregate, aggregate.kind, dtype), _own(aggregate, "nulls", "int64")


def _of_bools(fold: str) -> Callable[[Aggregate, pa.DataType], tuple[Need, ...]]:
    def needs(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
        return _own(aggregate, fold, "uint8"), _own(aggregate, "nulls", "int64")

    return needs


def _all_values(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    return (_own(aggregate, "values", "float64"),)


def _moments(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    return (_own(aggregate, "moments"),)


def _pairs(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    column, by = aggregate.column or "", aggregate.by or ""
    return (Need("pairs", column, "", aggregate.condition_text, by),)


def _chosen(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    column = aggregate.column or ""
    by = aggregate.by or column
    kind = "top_distinct" if aggregate.distinct else aggregate.kind
    own = Need(kind, column, "", aggregate.condition_text, by, aggregate.size)
    return (own,)


def _custom_state(aggregate: Aggregate, _: pa.DataType) -> tuple[Need, ...]:
    assert isinstance(aggregate, CustomAggregate), "only that has a state of the user's"
    return (Need("custom", aggregate.leaves_as, "", aggregate.condition_text),)


# -- results ----------------------------------------------------------------------------


def _count(results: Results) -> Column:
    return results.values


def _sum(results: Results) -> Column:
    aggregate = results.aggregate
    return _numbers(sum_of(results.state, aggregate.source_column or ""), results)


def _mean(results: Results) -> Column:
    means = mean_of(results.state, results.values, scale=results.aggregate.scale)
    return _numbers(means, results)


def _fold(results: Results) -> Column:
    return _numbers(results.state, results)


def _quantile(results: Results) -> Column:
    assert results.aggregate.level is not None
    return _numbers(quantile(results.state, results.aggregate.level), results)


def _spread(results: Results) -> Column:
    """Return variances or standard deviations; null of `ddof` values or fewer."""
    aggregate, counts = results.aggregate, results.values
    assert aggregate.ddof is not None
    spread = variance(results.state, aggregate.ddof, scale=aggregate.scale)
    return nulled(np.sqrt(spread) if aggregate.kind == "std" else spread, counts > aggregate.ddof)


def _covariance(results: Results) -> Column:
    """Return covariances; null of `ddof` pairs or fewer."""
    ddof, of = results.aggregate.ddof, results.state
    assert ddof is not None
    with np.errstate(all="ignore"):  # of what has too few
        return nulled(covariance(of, ddof), of.counts > ddof)


def _of_line(number: Callable[[PairMoments], FloatArray]) -> Callable[[Results], Column]:
    """Return a function of results that are null where a column has one value."""

    def finish(results: Results) -> Column:
        with np.errstate(all="ignore"):
            values = number(results.state)
        # Without pairs it is null too; NaN of infinite values stays.
        return nulled(values, results.state.has_line(results.aggregate.kind))

    return finish


def _value(results: Results) -> Column:
    """Return the value of the one row that is chosen of each result."""
    rows, starts, counts = results.state
    there = counts > 0
    if rows is None or not there.any():
        return nulls_of(results.type, len(counts))
    column: Column = rows.columns[results.aggregate.column or ""]
    if isinstance(column, pa.Array):
        return column.take(pa.array(starts, mask=~there))
    assert isinstance(column, np.ndarray), "rows with nulls are not chosen"
    return nulled(column.take(starts, mode="clip"), there)


def _list(results: Results) -> Column:
    """Return the values of each result as a list, in the order of its rows."""
    rows, _, counts = results.state
    if rows is None:
        return nulls_of(results.type, len(counts))
    ends = np.concatenate(([0], counts.cumsum()))
    values = column_to_arrow(rows.columns[results.aggregate.column or ""], results.type.value_type)
    is_null = pa.array(counts == 0)
    offsets = pa.array(ends, pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=results.type, mask=is_null)


def _custom_result(results: Results) -> Column:
    assert isinstance(results.aggregate, CustomAggregate), "as above"
    return results_of(results.state, results.aggregate.leaves_as, results.type)


def _numbers(numbers: npt.NDArray[Any], results: Results) -> Column:
    """Return numbers in their type, null where a result has no value."""
    there = results.values > 0
    if pa.types.is_decimal(results.type):
        return decimals_of(numbers, results.type, valid=there)
    dtype = number_dtype(results.type)
    with np.errstate(invalid="ignore"):  # of what has no value
        return nulled(numbers.astype(dtype, copy=False), there)


_FLOATS = _of_type(pa.float64())
_INT64 = _of_type(pa.int64())
_BOOLS = _of_type(pa.bool_())

KINDS: Mapping[str, Kind] = {
    "count": Kind(_ANY, _INT64, _counted, _count, has_parts=True),
    "sum": Kind(_SUMMED, _sum_type, _summed, _sum, has_parts=True),
    "mean": Kind(_NUMBERS, _FLOATS, _summed, _mean, has_parts=True),
    "min": Kind(_ORDERED, _as_it_came, _folded, _fold, has_parts=True),
    "max": Kind(_ORDERED, _as_it_came, _folded, _fold, has_parts=True),
    "quantile": Kind(_NUMBERS, _FLOATS, _all_values, _quantile),
    "std": Kind(_NUMBERS, _FLOATS, _moments, _spread),
    "var": Kind(_NUMBERS, _FLOATS, _moments, _spread),
    "covar": Kind(_PAIRS, _FLOATS, _pairs, _covariance),
    "corr": Kind(_PAIRS, _FLOATS, _pairs, _of_line(correlation)),
    "slope": Kind(_PAIRS, _FLOATS, _pairs, _of_line(slope)),
    "intercept": Kind(_PAIRS, _FLOATS, _pairs, _of_line(intercept)),
    "bit_and": Kind(_WHOLE, _as_it_came, _folded, _fold),
    "bit_or": Kind(_WHOLE, _as_it_came, _folded, _fold),
    "bit_xor": Kind(_WHOLE, _as_it_came, _folded, _fold),
    "any": Kind(_TRUE_FALSE, _BOOLS, _of_bools("max"), _fold),
    "all": Kind(_TRUE_FALSE, _BOOLS, _of_bools("min"), _fold),
    "first": Kind(_ANY, _as_it_came, _chosen, _value),
    "last": Kind(_ANY, _as_it_came, _chosen, _value),
    "arg_max": Kind(_ANY, _as_it_came, _chosen, _value),
    "arg_min": Kind(_ANY, _as_it_came, _chosen, _value),
    "top_k": Kind(_FLAT, _list_type, _chosen, _list),
    "count_distinct": Kind(_FLAT, _INT64, _chosen, _count),
    "collect": Kind(_ANY, _list_type, _chosen, _list),
    "custom": Kind(_ANY, _declared, _custom_state, _custom_result),
}
"""{kind: the columns that it takes, its type, its states, its results}."""
