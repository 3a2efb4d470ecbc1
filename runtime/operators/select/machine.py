"""A select keeps some columns."""

from __future__ import annotations

from slackwater.runtime.model import Batch
from slackwater.runtime.operators.select.step import SelectStep


class SelectMachine:
    """A select keeps some columns, perhaps under new names."""

    row_tests = None
    failed = None

    def __init__(self, step: SelectStep) -> None:
        self._names = dict(step.columns)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        columns = batch.columns
        return batch.with_columns({new: columns[old] for new, old in self._names.items()})
