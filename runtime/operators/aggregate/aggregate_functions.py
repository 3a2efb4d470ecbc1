"""Users write an aggregate function of a column: `sw.mean("x")`, or `sw.count(where=…)`."""

from __future__ import annotations

from typing import Any, TypeAlias

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError, TypeMismatch
from slackwater.runtime.expressions.expressions import Expr, checked_condition
from slackwater.runtime.operators.aggregate.written import Aggregate, AggregateName
from slackwater.runtime.shown import shown

Where: TypeAlias = Expr | None
"""Condition of the rows that count: those for which it is true, neither false nor null."""
_WHERE = "where="
_MOST_DDOF = 10**9


@checked_call
def count(column: str | None = None, *, where: Where = None) -> Aggregate:
    """Return the number of rows, or of a column's values that are not null. int64.

    Args:
        column: name of the column; rows are counted if it is None.
        where: condition of the rows that count; all rows if it is None.
    """
    if column is None:
        return Aggregate("count", condition=checked_condition(where, _WHERE))
    return _of("count", column, where)


@checked_call
def sum(column: str, *, where: Where = None) -> Aggregate:  # noqa: A001 - read as sw.sum("flow"), as in every data library
    """Return the sum of a column: int64 for integers, float64 for floats."""
    return _of("sum", column, where)


@checked_call
def mean(column: str, *, where: Where = None) -> Aggregate:
    """Return the mean of a column, float64."""
    return _of("mean", column, where)


@checked_call
def min(column: str, *, where: Where = None) -> Aggregate:  # noqa: A001 - read as sw.min("speed")
    """Return the least value of a column, of its own type."""
    return _of("min", column, where)


@checked_call
def max(column: str, *, where: Where = None) -> Aggregate:  # noqa: A001 - read as sw.max("speed")
    """Return the greatest value of a column, of its own type."""
    return _of("max", column, where)


@checked_call
def quantile(column: str, level: float, *, where: Where = None) -> Aggregate:
    """Return the value below which a share `level` of the rows lies, float64.

    Raises:
        SettingError: level is not between 0 and 1, both apart.
    """
    if not 0 < level < 1:
        raise SettingError(
            f"quantile({column!r}, {shown(level)}): the level must lie between 0 and 1, such as "
            "0.95; for the ends take min and max"
        )
    return _of("quantile", column, where, level=float(level))


@checked_call
def median(column: str, *, where: Where = None) -> Aggregate:
    """Return the median of a column, float64: the quantile at 0.5."""
    return _of("quantile", column, where, level=0.5)


@checked_call
def var(column: str, *, ddof: int = 1, where: Where = None) -> Aggregate:
    """Return the variance of a column, float64; null of `ddof` values or fewer.

    Args:
        column: name of the column.
        ddof: number that the divisor is less than the number of values: 1, as SQL's `var_samp`
            and pandas have it, for a sample; 0, as NumPy has it, for all values that exist.
        where: condition of the rows that count; all rows if it is None.

    Raises:
        SettingError: ddof is below 0, or more than a billion.
    """
    return _of("var", column, where, ddof=_checked_ddof("var", column, ddof))


@checked_call
def std(column: str, *, ddof: int = 1, where: Where = None) -> Aggregate:
    """Return the standard deviation of a column, float64: the root of `var`.

    Args:
        column: name of the column.
        ddof: option of this name of `var`.
        where: condition of the rows that count; all rows if it is None.

    Raises:
        SettingError: ddof is below 0, or more than a billion.
    """
    return _of("std", column, where, ddof=_checked_ddof("std", column, ddof))


@checked_call
def covar(column: str, by: str, *, ddof: int = 1, where: Where = None) -> Aggregate:
    """Return the covariance of two columns, float64; null of `ddof` pairs or fewer.

    Rows in which one of the two is null do not count.

    Args:
        column: name of the first column of numbers.
        by: name of the second column of numbers.
        ddof: option of this name of `var`: 1 as SQL's `covar_samp`, 0 as `covar_pop`.
        where: condition of the rows that count; all rows if it is None.

    Raises:
        SettingError: ddof is below 0, or more than a billion.
    """
    ddof = _checked_ddof("covar", column, ddof)
    return _of("covar", column, where, by=_checked_column("covar", by), ddof=ddof)


@checked_call
def corr(column: str, by: str, *, where: Where = None) -> Aggregate:
    """Return the correlation of two columns by Pearson, float64 from −1 to 1.

    Rows in which one of the two is null do not count. Null where a column has one value alone.

    Args:
        column: name of the first column of numbers.
        by: name of the second column of numbers.
        where: condition of the rows that count; all rows if it is None.
    """
    return _of("corr", column, where, by=_checked_column("corr", by))


@checked_call
def slope(column: str, by: str, *, where: Where = None) -> Aggregate:
    """Return the slope of the line of least squares through a column by another, float64.

    Rows in which one of the two is null do not count. Null where `by` has one value alone.

    Args:
        column: name of the column that depends on the other, y.
        by: name of the other column, x.
        where: condition of the rows that count; all rows if it is None.
    """
    return _of("slope", column, where, by=_checked_column("slope", by))


@checked_call
def intercept(column: str, by: str, *, where: Where = None) -> Aggregate:
    """Return the value of the line of least squares where `by` is 0; see `slope`.

    Args:
        column: name of the column that depends on the other, y.
        by: name of the other column, x.
        where: condition of the rows that count; all rows if it is None.
    """
    return _of("intercept", column, where, by=_checked_column("intercept", by))


@checked_call
def bit_and(column: str, *, where: Where = None) -> Aggregate:
    """Return the bits that all of a column's whole numbers have."""
    return _of("bit_and", column, where)


@checked_call
def bit_or(column: str, *, where: Where = None) -> Aggregate:
    """Return the bits that any of a column's whole numbers has."""
    return _of("bit_or", column, where)


@checked_call
def bit_xor(column: str, *, where: Where = None) -> Aggregate:
    """Return the bits that an odd number of whole numbers have."""
    return _of("bit_xor", column, where)


@checked_call
def any(column: str, *, where: Where = None) -> Aggregate:  # noqa: A001 - read as sw.any("late")
    """Return whether a true/false column is true in any row; null without any value."""
    return _of("any", column, where)


@checked_call
def all(column: str, *, where: Where = None) -> Aggregate:  # noqa: A001 - read as sw.all("paid")
    """Return whether a true/false column is true in all rows; null without any value."""
    return _of("all", column, where)


@checked_call
def first(column: str, *, where: Where = None) -> Aggregate:
    """Return the first value of a column by event time, of its own type.

    Nulls do not count. Of rows of one event time it is that of the row that came first.
    """
    return _of("first", column, where)


@checked_call
def last(column: str, *, where: Where = None) -> Aggregate:
    """Return the last value of a column by event time, of its own type.

    Nulls do not count. Of rows of one event time it is that of the row that came last.
    """
    return _of("last", column, where)


@checked_call
def arg_max(column: str, by: str, *, where: Where = None) -> Aggregate:
    """Return the value of a column where another is greatest.

    Rows in which one of the two is null do not count. Of equal ones it is the first row, by event
    time and then as rows came.

    Args:
        column: name of the column of the value.
        by: name of the column that is greatest there; NaN is greater than all other floats.
        where: condition of the rows that count; all rows if it is None.
    """
    return _of("arg_max", column, where, by=_checked_column("arg_max", by))


@checked_call
def arg_min(column: str, by: str, *, where: Where = None) -> Aggregate:
    """Return the value of a column where another is least; see `arg_max`.

    Args:
        column: name of the column of the value.
        by: name of the column that is least there.
        where: condition of the rows that count; all rows if it is None.
    """
    return _of("arg_min", column, where, by=_checked_column("arg_min", by))


@checked_call
def top_k(column: str, k: int, *, distinct: bool = False, where: Where = None) -> Aggregate:
    """Return the greatest k values of a column as a list, the greatest first.

    The list is shorter where there are fewer values.

    Args:
        column: name of the column; its values may be text.
        k: number of values at most.
        distinct: whether equal values are in the list once; else they count each.
        where: condition of the rows that count; all rows if it is None.

    Raises:
        SettingError: k is below 1.
    """
    if k < 1:
        raise SettingError(f"top_k({column!r}, {shown(k)}): k must be a whole number, 1 or more")
    return _of("top_k", column, where, size=int(k), distinct=distinct)


@checked_call
def count_distinct(column: str, *, where: Where = None) -> Aggregate:
    """Return the exact number of different values of a column that are not null, int64."""
    return _of("count_distinct", column, where)


@checked_call
def collect(column: str, *, where: Where = None) -> Aggregate:
    """Return a column's values that are not null as a list, by event time."""
    return _of("collect", column, where)


def _checked_ddof(kind: str, column: str, ddof: int) -> int:
    if not 0 <= ddof <= _MOST_DDOF:
        raise SettingError(
            f"{kind}({column!r}, ddof={shown(ddof)}): ddof must be from 0 to {_MOST_DDOF:,}: 1 for "
            "a sample, 0 for all values that exist"
        )
    return int(ddof)


def _of(kind: AggregateName, column: str, where: Where, **options: Any) -> Aggregate:
    column = _checked_column(kind, column)
    return Aggregate(kind, column, condition=checked_condition(where, _WHERE), **options)


def _checked_column(kind: str, column: str) -> str:
    if not isinstance(column, str):
        raise TypeMismatch(
            f"{kind}({column!s}) takes a column's name; give the expression a name first, "
            "with .with_columns(x=...)"
        )
    return column
