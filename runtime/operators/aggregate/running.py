"""Running aggregates: the states of cells after each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from slackwater.runtime.errors import FlowError, OperatorError
from slackwater.runtime.model import Batch, Columns, Int64Array
from slackwater.runtime.operators.aggregate.accumulators import (
    Accumulator,
    RangeAccumulator,
    RunningAccumulator,
)
from slackwater.runtime.operators.aggregate.counted_values import CountedValues
from slackwater.runtime.operators.aggregate.needs import Need
from slackwater.runtime.operators.aggregate.ranges import Ranges
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.aggregate.states import HasAggregates, States
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.user_code import holds, row_of

SCANNED = frozenset(
    {"count", "sum", "mean", "min", "max", "any", "all", "first", "last", "count_distinct"}
)
"""Kinds of aggregates whose next state follows from the last one and a row."""


RowText = Callable[[int], str]
"""Returns the row of a result as text, given the result's place."""
_OF_RANGES = frozenset({"rows", "nulls", "sum", "min", "max", "first", "last"})
"""Kinds of needs whose state is known of rows that lie side by side."""
RETRACTED = SCANNED - {"first", "last"}
"""Kinds of aggregates from which a row can be taken out."""


def refuse_unretracted(aggregates: Mapping[str, Aggregate], *, step: str) -> None:
    """Check that a row can be taken out of the aggregates.

    Raises:
        FlowError: one would need all rows of its key.
    """
    for name, aggregate in aggregates.items():
        if aggregate.kind not in RETRACTED:
            raise FlowError(
                f"step {step!r}: {name}={aggregate.text} would need all rows of its key, as the "
                "input takes rows back; aggregate before rows change, or use "
                f"{', '.join(sorted(RETRACTED))}"
            )


def refuse_unscanned(aggregates: Mapping[str, Aggregate], way_out: str, *, step: str) -> None:
    """Check that the aggregates follow from their last state and a row.

    Raises:
        FlowError: one needs all rows each time.
    """
    for name, aggregate in aggregates.items():
        if aggregate.kind not in SCANNED:
            raise FlowError(
                f"step {step!r}: {name}={aggregate.text} needs all rows of its key again for each "
                f"row, and without a window they are never fewer; {way_out}; or use "
                f"{', '.join(sorted(SCANNED))}"
            )


class ConditionPart(NamedTuple):
    """Rows of a condition, their places, and the states that they count in."""

    rows: Batch
    places: Int64Array
    states: list[tuple[Need, Accumulator]]


class RunningStates(States):
    """States of cells, which are known after each row.

    Args:
        step: the step that has the aggregates.
        retracts: whether rows may be taken out.
    """

    def __init__(self, step: HasAggregates, *, retracts: bool = False) -> None:
        self._retracts = retracts
        super().__init__(step)

    def _accumulator(self, need: Need) -> Accumulator:
        if self._retracts or need.kind == "count_distinct":
            counted = need.counted()
            if counted is not None:
                return cast(Accumulator, counted)
        return super()._accumulator(need)

    @property
    def values_held(self) -> int:
        """Counted values that are held, of all cells."""
        return sum(len(each) for each in self.all if isinstance(each, CountedValues))

    def tidy(self) -> None:
        """Forget counted values without rows."""
        for state in self.all:
            if isinstance(state, CountedValues):
                state.tidy()

    def unknown(self, batch: Batch, cells: Int64Array) -> Int64Array:
        """Return places of rows that take out a value which is not there."""
        unknown = [np.empty(0, dtype=np.int64)]
        for rows, places, own in self.parts(batch):
            for _, state in own:
                if isinstance(state, CountedValues):
                    unknown.append(state.unknown(rows, places, cells.take(places)))
        return np.concatenate(unknown)

    def running(self, batch: Batch, runs: Runs, size: int) -> dict[Need, Any]:
        """Take rows, and return {need: its state after each entry of their runs}.

        Raises:
            OperatorError: a condition or value could not be used; names the row.
        """
        states: dict[Need, Any] = {}
        for rows, places, own in self.parts(batch):
            with np.errstate(all="ignore"), naming_rows(rows, step=self._step.name):
                for need, accumulator in own:
                    running = cast(RunningAccumulator, accumulator)
                    states[need] = running.running(rows, places, runs, size)
        return states

    def parts(self, batch: Batch) -> Iterator[ConditionPart]:
        """Yield the rows of each condition, their places, and the states that they count in."""
        of_conditions = {
            each.condition_text: each.condition for each in self._step.aggregates.values()
        }
        for text, condition in of_conditions.items():
            rows, places = batch, np.arange(len(batch))
            if condition is not None:
                places = holds(condition, batch, step=self._step.name).nonzero()[0]
                rows = batch.take(places)
            own = [(need, state) for need, state in self._by_need.items() if need.condition == text]
            yield ConditionPart(rows, places, own)


@contextmanager
def naming_rows(rows: Batch, *, step: str) -> Iterator[None]:
    """Name the step and the row in errors of values.

    Raises:
        OperatorError: as in the block.
    """
    try:
        yield
    except OperatorError as problem:
        raise _named(problem, partial(row_of, rows), step) from problem


def _named(problem: OperatorError, row_text: RowText | None, step: str) -> OperatorError:
    who, row = f"step {step!r}: ", ""
    if row_text is not None and problem.place is not None:
        row = row_text(problem.place)
    return OperatorError(f"{who}{str(problem).removeprefix(who)}" + (f"\n{row}" if row else ""))


def aggregates_of_ranges(
    step: HasAggregates, rows: Batch, ranges: Ranges, row_text: RowText
) -> Columns:
    """Return the aggregates that are known of ranges of rows, without a copy of these.

    Args:
        step: the step that has the aggregates.
        rows: rows of the read, all of them.
        ranges: ranges of these rows, a result each.
        row_text: the row of a result, for errors.

    Raises:
        OperatorError: a value or an aggregate does not fit its type; names the row.
    """
    known: dict[Need, Any] = {}
    running = RunningStates(step)
    for part in running.parts(rows):
        with np.errstate(all="ignore"), naming_rows(part.rows, step=step.name):
            for need, state in part.states:
                if need.kind in _OF_RANGES:
                    own = cast(RangeAccumulator, state)
                    known[need] = own.over(part.rows, part.places, len(rows), ranges)
    return columns_of(running, known, ranges.counts, row_text)


def columns_of(
    states: States,
    of_needs: Mapping[Need, Any],
    rows: Int64Array,
    row_text: RowText | None = None,
) -> Columns:
    """Return those aggregates of results whose needs are known.

    Args:
        states: states of the step.
        of_needs: {need: its state for each result}.
        rows: shape (results,): the number of rows of each.
        row_text: the row of a result, for errors; None if results have no row.

    Raises:
        OperatorError: an aggregate does not fit its type.
    """
    try:
        with np.errstate(all="ignore"):
            return {
                name: states.finished(name, of_needs, rows)
                for name, needs in states.needs.items()
                if all(need in of_needs for need in needs)
            }
    except OperatorError as problem:
        raise _named(problem, row_text, states.step_name) from problem
