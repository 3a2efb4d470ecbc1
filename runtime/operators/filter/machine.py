"""A filter keeps the rows where a predicate is true."""

from __future__ import annotations

from slackwater.runtime.expressions.row_tests import RowTests, row_tests
from slackwater.runtime.model import Batch
from slackwater.runtime.operators.filter.step import FilterStep
from slackwater.runtime.operators.ground.user_code import holds


class FilterMachine:
    """The filter keeps the rows where the predicate is true.

    Attributes:
        row_tests: the predicate row by row, for a caller with a few rows; None if there is no such
            form.
    """

    def __init__(self, step: FilterStep) -> None:
        self._name = step.name
        self._predicate = step.predicate
        self.row_tests: RowTests | None = row_tests(step.predicate)
        self._nothing: Batch | None = None  # the batch of no rows, made when first needed

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        mask = holds(self._predicate, batch, step=self._name)
        rows = mask.nonzero()[0]
        if len(rows) == 0:  # most batches where few rows pass, and batches are small
            if self._nothing is None:
                self._nothing = batch.take(rows)
            return self._nothing
        return batch if len(rows) == len(mask) else batch.take(rows)
