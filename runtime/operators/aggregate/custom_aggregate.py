"""Users write a custom aggregate: functions that make a state, and a result of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SchemaError, TypeMismatch
from slackwater.runtime.expressions.expressions import checked_condition
from slackwater.runtime.expressions.result_types import type_declared
from slackwater.runtime.operators.aggregate.aggregate_functions import Where
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.user_code import Units
from slackwater.runtime.shown import shown


@dataclass(frozen=True)
class CustomFunctions:
    """The user's functions of a custom aggregate."""

    init: Callable[[], Any]
    add: Callable[[Any, dict[str, Any]], Any]
    merge: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]


@dataclass(frozen=True)
class CustomAggregate(Aggregate):
    """A custom aggregate; a step has its functions elsewhere, where only slots read them."""

    functions: CustomFunctions | None = None
    returns: pa.DataType | None = None
    """Type of its results."""
    row_columns: tuple[str, ...] | None = None
    """Columns that its rows have; None if all, until the step is made."""
    leaves_as: str = ""
    """Column of its results, known once the step is made."""
    units: Units = ()

    @property
    def text(self) -> str:  # noqa: D102
        where = "" if self.condition is None else f" where {self.condition!s}"
        return f"custom({', '.join(self.row_columns or ('all columns',))}){where}"

    @property
    def columns(self) -> tuple[str, ...]:  # noqa: D102
        return (*super().columns, *(self.row_columns or ()))


@checked_call
def custom(
    init: Callable[[], Any],
    add: Callable[[Any, dict[str, Any]], Any],
    merge: Callable[[Any, Any], Any],
    result: Callable[[Any], Any],
    type: str | pa.DataType,  # noqa: A002 - as in a schema
    *,
    columns: Sequence[str] | None = None,
    where: Where = None,
) -> Aggregate:
    """Return a custom aggregate, computed a row at a time: slow.

    Each key and pane has a state: numbers, text, lists, dicts, arrays. Rows are added in the order
    of the stream. States of the panes of a window are merged in the order of time. A window without
    rows that count gives null.

    Args:
        init: function that returns a fresh state.
        add: function of a state and a row, {column: value}, that returns the state with the row.
            Nulls are None, times whole nanoseconds.
        merge: function of two states, the earlier one first, that returns the state of both.
        result: function of a state that returns the value that leaves; None is null.
        type: type of the results, such as "float64".
        columns: names of the columns that rows have; all if it is None.
        where: condition of the rows that count; all rows if it is None.

    Raises:
        TypeMismatch: a part is not a function, or the type does not exist.
    """
    functions = CustomFunctions(init, add, merge, result)
    for name, function in vars(functions).items():
        if not callable(function):
            raise TypeMismatch(
                f"custom(): {name}={shown(function)} is not a function; write one, such as "
                "init=list"
            )
    try:
        returns = type_declared("custom", type)
    except (TypeMismatch, SchemaError) as problem:
        raise TypeMismatch(f"custom(): type={shown(type)}: {problem}") from None
    return CustomAggregate(
        "custom",
        condition=checked_condition(where, "where="),
        functions=functions,
        returns=returns,
        row_columns=None if columns is None else tuple(columns),
    )
