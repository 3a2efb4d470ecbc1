"""A select keeps some columns."""

from __future__ import annotations

from slackwater.runtime.model import Batch
from slackwater.runtime.operators.ground.computed import ComputedColumns
from slackwater.runtime.operators.select.step import SelectStep


class SelectMachine:
    """A select keeps some columns, perhaps under new names, and computes others."""

    row_tests = None
    failed = None

    def __init__(self, step: SelectStep) -> None:
        self._computed = ComputedColumns(step.columns, step.schema, step=step.name)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        return Batch.like(batch, self._computed.of(batch))
