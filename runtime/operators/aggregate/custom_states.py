"""States of a custom aggregate, by cell, and calls of the user's functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.fit import NOT_FITTING, as_column
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.copies import copied_value
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.whose_code import RUNNING, let_ctrl_c_pass, raised, where_raised
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.custom_aggregate import CustomAggregate, CustomFunctions
from slackwater.runtime.operators.ground.user_code import given, rows_of
from slackwater.runtime.shown import a_kind, shown, text_of


class CustomResults(NamedTuple):
    """States of results: copies that the user's functions may change; None if without rows."""

    states: list[Any]
    counts: Int64Array
    functions: CustomFunctions
    step: str


class CustomAccumulator:
    """A CustomAccumulator holds the user's state of each cell. It packs itself.

    Args:
        aggregate: the aggregate of a step.
        functions: functions of the user.
        step: name of the step.
    """

    def __init__(self, aggregate: CustomAggregate, functions: CustomFunctions, step: str) -> None:
        self._columns = aggregate.row_columns or ()
        self._name, self._units = aggregate.leaves_as, aggregate.units
        self._functions, self._step = functions, step
        self._states: dict[int, Any] = {}  # {cell: state}

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - no state per cell
        part = given(batch.part(self._columns, ()), self._units, step=self._step)
        states, functions = self._states, self._functions
        rows = zip(cells.tolist(), rows_of(part, step=self._step), strict=True)
        for place, (cell, row) in enumerate(rows):
            if cell not in states:
                states[cell] = self._called("init of", functions.init, place=place)
            states[cell] = self._called("add of", functions.add, states[cell], row, place=place)

    def combined(self, pairs: Pairs) -> CustomResults:
        """Return the state of each result, merged of its cells."""
        made: list[Any] = [None] * pairs.size
        counts = np.zeros(pairs.size, dtype=np.int64)
        for cell, place in zip(pairs.cells.tolist(), pairs.results.tolist(), strict=True):
            if cell not in self._states:
                continue
            # A cell may be in other windows, and merge may change what it is given.
            state = self._called("copy of", copy.deepcopy, self._states[cell], place=place)
            if counts[place]:
                merge = self._functions.merge
                state = self._called("merge of", merge, made[place], state, place=place)
            made[place] = state
            counts[place] += 1
        return CustomResults(made, counts, self._functions, self._step)

    def keep(self, stay: Int64Array) -> None:
        """Forget all cells but these, which ascend and get the next numbers."""
        numbers = {cell: number for number, cell in enumerate(stay.tolist())}
        self._states = {
            numbers[cell]: state for cell, state in self._states.items() if cell in numbers
        }

    def snapshot(self) -> dict[str, Any]:
        """Return the states as plain values.

        Raises:
            OperatorError: a state is not plain; names the aggregate.
        """
        cells = np.fromiter(self._states, np.int64, len(self._states))
        try:
            states = [copy.deepcopy(to_plain(state)) for state in self._states.values()]
        except TypeError as problem:
            raise OperatorError(
                f"step {self._step!r}: a state of {self._name!r} cannot be saved: "
                f"{text_of(problem)}; make it of numbers, text, lists, dicts and arrays"
            ) from problem
        return {"cells": cells, "states": states}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        states = copy.deepcopy(from_plain(state["states"]))
        self._states = dict(zip(state["cells"].tolist(), states, strict=True))

    def _called(self, what: str, function: Callable[..., Any], *arguments: Any, place: int) -> Any:
        state = _called(self._step, f"{what} {self._name!r}", function, *arguments, place=place)
        if state is None:
            raise refused(
                f"{what} {self._name!r} returned None, and it must return a state; write "
                "return in front of it",
                place,
            )
        return state


def results_of(of: CustomResults, name: str, kind: pa.DataType) -> Column:
    """Return the column of the user's results; null without rows.

    Args:
        of: states of the results.
        name: the name of the column.
        kind: type of the column.

    Raises:
        OperatorError: a function raised, or returned a value of another type; its `place` is that
            of the result.
    """
    values: list[Any] = [None] * len(of.states)
    for place, state in enumerate(of.states):
        if of.counts[place]:
            what = f"result of {name!r}"
            value = _called(of.step, what, of.functions.result, state, place=place)
            values[place] = copied_value(value)
    try:
        return as_column(values, kind, name=name, who="")
    except NOT_FITTING:
        for place, value in enumerate(values):
            try:
                as_column([value], kind, name=name, who="")
            except NOT_FITTING as problem:
                raise refused(
                    f"result of {name!r} returned {shown(value)}, {a_kind(value)}, and its type is "
                    f"{kind}: {text_of(problem)}; return such a value, or give another type=",
                    place,
                ) from problem
        raise


def _called(step: str, what: str, function: Callable[..., Any], *arguments: Any, place: int) -> Any:
    """Return what the user's function returns.

    Raises:
        OperatorError: it raised; with the user's traceback, and the place of its row.
    """
    token = RUNNING.set(step)
    try:
        return function(*arguments)
    except BaseException as problem:
        let_ctrl_c_pass(problem)
        _, lines = where_raised(problem)
        raise refused(f"{what} {raised(problem)}\n{lines}", place) from problem
    finally:
        RUNNING.reset(token)
