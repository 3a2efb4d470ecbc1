"""A predicate asked row by row: of a row or two that takes a tenth of what arrays take.

At the speed of the clock a source hands over a row or two at a time, and a filter behind it lets
few of them through. To cut their columns out, and to compare arrays of one element, was half of
what such an event cost.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from slackwater.runtime.expressions.expressions import ColumnRef, Expr, Literal, Operation
from slackwater.runtime.model import Batch

__all__ = ["FEW_ROWS", "RowTests", "RowTestsOver", "is_alike", "row_tests", "still_passing"]

_Compare = Callable[[Any, Any], bool]
FEW_ROWS = 16
"""Of more rows an array is asked sooner."""
_COMPARE: dict[str, _Compare] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
"""Not `!=`: by the rules of expressions NaN does not differ from anything."""


class RowTests:
    """Comparisons of columns with numbers, all of which must hold.

    Attributes:
        each: (column, comparison, number), at least one.
    """

    def __init__(self, each: list[tuple[str, _Compare, int | float]]) -> None:
        self.each = each

    def over(self, batch: Batch) -> RowTestsOver | None:
        """Return the tests of a batch's rows; None: a column is not compared as Python does it."""
        views = []
        for name, compare, number in self.each:
            values = batch.columns[name]
            if not isinstance(values, np.ndarray) or not is_alike(values.dtype):
                return None
            views.append((values.data, compare, number))
        return RowTestsOver(views)


class RowTestsOver:
    """The tests over the rows of one batch.

    Args:
        views: (column, comparison, number), of each test; the column as a memoryview, of which an
            element costs a third of an array's.
    """

    def __init__(self, views: list[tuple[memoryview, _Compare, int | float]]) -> None:
        self._views = views

    def passing(self, start: int, stop: int) -> Sequence[int]:
        """Return which of the rows [start, stop) pass, ascending."""
        return still_passing(range(start, stop), self._views)


def still_passing(
    rows: Sequence[int], tests: Iterable[tuple[Sequence[Any], _Compare, int | float]]
) -> Sequence[int]:
    """Return which rows pass all tests, in their order; no test is looked at that none is left for.

    Args:
        rows: positions.
        tests: (values of a column by position, comparison, number), each.
    """
    for values, compare, number in tests:
        rows = [row for row in rows if compare(values[row], number)]
        if not rows:
            break
    return rows


def row_tests(predicate: Expr) -> RowTests | None:
    """Return the predicate as comparisons row by row; None: it is something else."""
    tests: list[tuple[str, _Compare, int | float]] = []
    for part in _parts(predicate):
        if not isinstance(part, Operation) or part.op not in _COMPARE:
            return None
        column, literal = part.operands
        if not isinstance(column, ColumnRef) or not isinstance(literal, Literal):
            return None
        if isinstance(literal.value, bool) or not isinstance(literal.value, int | float):
            return None
        tests.append((column.name, _COMPARE[part.op], literal.value))
    return RowTests(tests)


def _parts(predicate: Expr) -> Iterator[Expr]:
    """Yield what must all be true."""
    if isinstance(predicate, Operation) and predicate.op == "&":
        for part in predicate.operands:
            yield from _parts(part)
    else:
        yield predicate


def is_alike(dtype: np.dtype[Any]) -> bool:
    """Return whether a column of this type is compared exactly, as Python does it."""
    return dtype.kind in "iu" or dtype == np.float64
