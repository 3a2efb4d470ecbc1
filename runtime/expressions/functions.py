"""`map_elements`: a user's function on each value of an expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.fit import NOT_FITTING, as_column, described
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model import Column
from slackwater.runtime.model.copies import copied_value
from slackwater.runtime.model.whose_code import let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.shown import text_of

__all__ = ["MAP_ELEMENTS", "OfFunction", "of_function"]

MAP_ELEMENTS = "map_elements"
"""The operation's name."""


class OfFunction(NamedTuple):
    """Argument of `map_elements`.

    Attributes:
        function: of one value.
        returns: type of the results.
    """

    function: Callable[[Any], Any]
    returns: pa.DataType


def of_function(option: OfFunction, values: Column) -> Column:
    """Return the function's results, null where a value is null.

    Raises:
        OperatorError: the function raised, or returned what is not of its type; with the row's
            place.
    """
    plain = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
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
