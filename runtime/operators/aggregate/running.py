"""Running aggregates: the states of cells after each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from slackwater.runtime.errors import FlowError, OperatorError
from slackwater.runtime.model import Batch, Columns
from slackwater.runtime.operators.aggregate.accumulators import Accumulator, RunningAccumulator
from slackwater.runtime.operators.aggregate.counted_values import CountedValues
from slackwater.runtime.operators.aggregate.needs import Need
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.aggregate.states import States
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.user_code import holds, row_of

SCANNED = frozenset(
    {"count", "sum", "mean", "min", "max", "any", "all", "first", "last", "count_distinct"}
)
"""Kinds of aggregates whose next state follows from the last one and a row."""


def refuse_unscanned(aggregates: Mapping[str, Aggregate], way_out: str, *, step: str) -> None:
    """Check that the aggregates follow from their last state and a row.

    Raises:
        FlowError: one needs all rows each time.
    """
    for name, aggregate in aggregates.items():
        if aggregate.kind not in SCANNED:
            raise FlowError(
                f"step {step!r}: {name}={aggregate.text} needs all rows of its key again for each "
                f"row, and without a window they are never fewer; {way_out}, or use "
                f"{', '.join(sorted(SCANNED))}"
            )


class RunningStates(States):
    """States of cells, which are known after each row."""

    def _accumulator(self, need: Need) -> Accumulator:
        if need.kind == "count_distinct":
            return cast(Accumulator, CountedValues(need.column))
        return super()._accumulator(need)

    def running(self, batch: Batch, runs: Runs, size: int) -> dict[Need, Any]:
        """Take rows, and return {need: its state after each entry of their runs}.

        Raises:
            OperatorError: a condition or value could not be used; names the row.
        """
        states: dict[Need, Any] = {}
        of_conditions = {
            each.condition_text: each.condition for each in self._step.aggregates.values()
        }
        for text, condition in of_conditions.items():
            rows, places = batch, np.arange(len(batch))
            if condition is not None:
                places = holds(condition, batch, step=self._step.name).nonzero()[0]
                rows = batch.take(places)
            own = [(need, state) for need, state in self._by_need.items() if need.condition == text]
            try:
                with np.errstate(all="ignore"):
                    for need, accumulator in own:
                        running = cast(RunningAccumulator, accumulator)
                        states[need] = running.running(rows, places, runs, size)
            except OperatorError as problem:
                row = "" if problem.place is None else f"\n{row_of(rows, problem.place)}"
                who = f"step {self._step.name!r}: "
                raise OperatorError(f"{who}{str(problem).removeprefix(who)}{row}") from problem
        return states

    def columns(self, states: Mapping[Need, Any], rows: Any) -> Columns:
        """Return the aggregates after each entry; `rows` has the number of rows up to it."""
        return {name: self.finished(name, states, rows) for name in self._step.aggregates}
