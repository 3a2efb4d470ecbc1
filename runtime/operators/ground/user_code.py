"""Calls of the user's code, with errors that name the step whose code failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.functions import values_of_column
from slackwater.runtime.expressions.times import in_nanoseconds
from slackwater.runtime.model import Batch, BoolArray, Column
from slackwater.runtime.model.nullable import is_true
from slackwater.runtime.model.schema import coarse_unit
from slackwater.runtime.model.whose_code import RUNNING, let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.nearest import listed
from slackwater.runtime.shown import MOST_SHOWN, cut, text_of
from slackwater.runtime.shown import shown as value_shown
from slackwater.runtime.shown_rows import row_shown

_T = TypeVar("_T")
_SAMPLE_ROWS = 3


def _as_it_is(returned: Any) -> Any:
    return returned


def called(
    function: Callable[..., _T],
    *arguments: object,
    step: str,
    shown: Callable[[], str],
    read: Callable[[_T], _T] = _as_it_is,
) -> _T:
    """Return what the user's function returns, as `read` makes it.

    Args:
        function: function of the user.
        arguments: arguments of the function.
        step: name of the step.
        shown: returns the arguments as text, for errors: too slow for each call.
        read: returns a copy of the result, where the function may change it later.

    Raises:
        OperatorError: it raised, or called `sys.exit()`; with the step's name, the traceback from
            the function on, and the text of `shown`.
    """
    token = RUNNING.set(step)
    try:
        return read(function(*arguments))
    except BaseException as problem:
        let_ctrl_c_pass(problem)
        _, lines = where_raised(problem)
        raise OperatorError(
            f"step {step!r}: its function {raised(problem)}\n{lines}\n{shown()}"
        ) from problem
    finally:
        RUNNING.reset(token)


def evaluated(expression: Expr, batch: Batch, *, step: str, column: str | None = None) -> Column:
    """Return the values of an expression, shape (rows,).

    Raises:
        OperatorError: it could not be computed (a sum that does not fit its type). The error has
            the step's name, the column to be made, the expression, and the row; or, if no single
            row is at fault, the first rows.
    """
    try:
        return expression.evaluate(batch)
    except Exception as problem:
        what = str(expression) if column is None else f"column {column!r}, {expression!s},"
        place = getattr(problem, "place", None)
        shown = sample_of(batch) if place is None else row_of(batch, place)
        raise OperatorError(
            f"step {step!r}: {what} could not be computed: {text_of(problem)}\n{shown}"
        ) from problem


def holds(predicate: Expr, batch: Batch, *, step: str) -> BoolArray:
    """Return the rows for which a predicate is true: neither false nor null.

    Raises:
        OperatorError: as `evaluated`.
    """
    return is_true(evaluated(predicate, batch, step=step))


Units: TypeAlias = tuple[tuple[str, str], ...]
"""(column, its unit) of times that are not kept in nanoseconds."""


def units_of(schema: pa.Schema) -> Units:
    """Return the columns of times that a user's function is given in nanoseconds."""
    units = [(field.name, coarse_unit(field.type)) for field in schema]
    return tuple((name, unit) for name, unit in units if unit is not None)


def given(batch: Batch, units: Units, *, step: str) -> Batch:
    """Return a batch as a user's function is given it: with times in nanoseconds.

    Raises:
        OperatorError: a time is too far away for nanoseconds; names the row.
    """
    if not units:
        return batch
    columns = dict(batch.columns)
    for name, unit in units:
        try:
            columns[name] = in_nanoseconds(columns[name], unit, f"col({name!r})")
        except OperatorError as problem:
            row = row_of(batch, problem.place or 0)
            raise OperatorError(f"step {step!r}: {problem}\n{row}") from None
    return Batch.like(batch, columns)


def sample_of(batch: Batch, start: int = 0, stop: int | None = None) -> str:
    """Return the first rows from `start` up to `stop` as text, one a line.

    Args:
        batch: rows.
        start: place of the first row.
        stop: place after the last row; that of the batch's end if it is None.
    """
    stop = len(batch) if stop is None else stop
    few = range(start, min(stop, start + _SAMPLE_ROWS))
    rows = [row_shown(batch.columns, place) for place in few]
    return "\n".join(
        [f"first {len(rows)} of its {stop - start} rows:", *(f"  {row}" for row in rows)]
    )


def row_of(batch: Batch, place: int) -> str:
    """Return one row as text, with its event time."""
    time_ns = int(batch.event_time_ns[place])
    row = row_shown(batch.columns, place)
    return f"row with event_time_ns={time_ns}:\n  {row}"


def rows_of(batch: Batch, *, step: str) -> list[dict[str, object]]:
    """Return the rows of `given` as Python's values, nested times in nanoseconds.

    Raises:
        OperatorError: a time inside is too far away for nanoseconds; names the row.
    """
    if not batch.columns:
        return [{} for _ in range(len(batch))]
    values = []
    for name, column in batch.columns.items():
        try:
            values.append(values_of_column(column, f"col({name!r})"))
        except OperatorError as problem:
            row = row_of(batch, getattr(problem, "place", None) or 0)
            raise OperatorError(f"step {step!r}: {problem}\n{row}") from None
    return [dict(zip(batch.columns, row, strict=True)) for row in zip(*values, strict=True)]


def check_names(
    returned: Mapping[str, Any], names: list[str], *, step: str, shown: Callable[[], str]
) -> None:
    """Check that what a user's function returned has exactly the columns of its schema.

    Raises:
        OperatorError: it has not; with the text of `shown` on its arguments.
    """
    if list(returned) == names:
        return
    missing = [name for name in names if name not in returned]
    extra = [_name_shown(name) for name in returned if name not in names]
    if missing or extra:
        wrong = [
            f"{what} {listed(which)}"
            for what, which in (("lacks", missing), ("has besides", extra))
            if which
        ]
        raise OperatorError(
            f"step {step!r}: what its function returned {' and '.join(wrong)}; its schema, "
            f"given when the step was made, is {', '.join(names)}\n{shown()}"
        )


def _name_shown(name: object) -> str:
    return cut(name, MOST_SHOWN) if isinstance(name, str) else value_shown(name)
