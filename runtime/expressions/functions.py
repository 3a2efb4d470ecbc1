"""`map_elements`: a user's function on each value of an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.fit import NOT_FITTING, as_column, described
from slackwater.runtime.expressions.function import (
    Call,
    Function,
    Operand,
    Over,
    Results,
    anything,
    with_call,
)
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model import Column
from slackwater.runtime.model.copies import copied_value
from slackwater.runtime.model.nested import nested_times_in_ns
from slackwater.runtime.model.whose_code import let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.shown import shown, text_of

__all__ = ["MAPPING", "MAP_ELEMENTS", "OfFunction", "values_of_column"]

MAP_ELEMENTS = "map_elements"
"""The operation's name."""


class OfFunction(NamedTuple):
    """Argument of `map_elements`.

    Attributes:
        function: function of one value.
        returns: type of the results.
    """

    function: Callable[[Any], Any]
    returns: pa.DataType


@with_call
def _of_function(call: Call, values: Column) -> Column:
    """Return the function's results, null where a value is null.

    Raises:
        OperatorError: the function raised, or returned what is not of its type; with the row's
            place.
    """
    option: OfFunction = call.option
    plain = values_of_column(values, "its value")
    results = [
        None if value is None else _result(option.function, value, place)
        for place, value in enumerate(plain)
    ]
    try:
        return _fitted(results, option.returns)
    except NOT_FITTING as problem:
        wrong = problem
    for place, result in enumerate(results):
        try:
            _fitted([result], option.returns)
        except NOT_FITTING as problem:
            raise refused(_unfit([result], option, problem), place) from problem
    raise OperatorError(_unfit(results, option, wrong)) from wrong


def values_of_column(column: Column, name: str) -> list[Any]:
    """Return a column's values in Python, with all times in nanoseconds.

    Args:
        column: times that are not parts are in nanoseconds.
        name: name of the column, for the error.

    Raises:
        OperatorError: a part has no value in Python; with the place of its row.
    """
    if not isinstance(column, pa.Array):
        return list(column.tolist())
    try:
        return list(nested_times_in_ns(column).to_pylist())
    except NOT_FITTING:
        place = next(filter(partial(_has_no_value, column), range(len(column))), 0)
        raise refused(
            f"{name} is {shown(column[place])}, and functions of rows get times in nanoseconds, "
            "1677 to 2262 (292 years)\nleave it out with select, skip such rows with "
            "map_rows(on_error='skip'), or use map_batches, which gets Arrow arrays",
            place,
        ) from None


def _has_no_value(column: pa.Array, place: int) -> bool:
    try:
        nested_times_in_ns(column.slice(place, 1)).to_pylist()
    except NOT_FITTING:
        return True
    return False


def _result(function: Callable[[Any], Any], value: Any, place: int) -> Any:
    try:
        return copied_value(function(value))  # it may fill the same list for the next value
    except BaseException as problem:
        let_ctrl_c_pass(problem)
        words = f"its function {raised(problem)}\n{where_raised(problem)[1]}"
        raise refused(words, place) from problem


def _fitted(results: list[Any], to: pa.DataType) -> Column:
    return as_column(list(results), to, name=MAP_ELEMENTS, who="its function")


def _unfit(results: list[Any], option: OfFunction, problem: BaseException) -> str:
    return (
        f"its function returned {described(results)}, and {option.returns} was declared: "
        f"{text_of(problem)}"
    )


def _declared(_op: str, _operands: Sequence[Operand], option: OfFunction) -> pa.DataType:
    return option.returns


MAPPING = Function(
    MAP_ELEMENTS, anything, _declared, _of_function, over=Over.COLUMNS, refuses=Results.ALL
)
"""Row of the table."""
