"""The machine of `with_columns`."""

from __future__ import annotations

from slackwater.runtime.model import Batch
from slackwater.runtime.operators.ground.computed import ComputedColumns
from slackwater.runtime.operators.with_columns.step import WithColumnsStep


class WithColumnsMachine:
    """The machine adds or replaces columns, each computed from the row as it came."""

    row_tests = None
    failed = None

    def __init__(self, step: WithColumnsStep) -> None:
        self._computed = ComputedColumns(step.columns, step.schema, step=step.name)

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        return Batch.like(batch, {**batch.columns, **self._computed.of(batch)})
