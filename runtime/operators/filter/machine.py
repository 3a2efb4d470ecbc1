"""A filter keeps the rows where a predicate is true."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.expressions.row_tests import FEW_ROWS, RowTests, row_tests
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.operators.filter.step import FilterStep
from slackwater.runtime.operators.ground.user_code import holds


class FilterMachine:
    """The filter keeps the rows where the predicate is true.

    Attributes:
        row_tests: the predicate row by row, for few rows; None if there is no such form.
    """

    def __init__(self, step: FilterStep) -> None:
        self._name = step.name
        self._predicate = step.predicate
        self.failed = None
        self.row_tests: RowTests | None = row_tests(step.predicate)
        self._nothing: Batch | None = None  # the batch of no rows, made when first needed

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        rows = self._passing(batch)
        if len(rows) == 0:  # most batches where few rows pass, and batches are small
            if self._nothing is None:
                self._nothing = batch.take(rows)
            return self._nothing
        return batch if len(rows) == len(batch.event_time_ns) else batch.take(rows)

    def _passing(self, batch: Batch) -> Int64Array:
        """Return the places of the rows that pass, ascending."""
        count = len(batch.event_time_ns)
        if count <= FEW_ROWS and self.row_tests is not None:
            tests = self.row_tests.over(batch)
            if tests is not None:
                return np.array(tests.passing(0, count), dtype=np.int64)
        return holds(self._predicate, batch, step=self._name).nonzero()[0]
