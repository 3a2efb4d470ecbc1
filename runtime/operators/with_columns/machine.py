"""The machine of `with_columns`."""

from __future__ import annotations

from slackwater.runtime.model import Batch
from slackwater.runtime.model.schema import kept_type
from slackwater.runtime.operators.ground.fit import fitted
from slackwater.runtime.operators.ground.user_code import evaluated
from slackwater.runtime.operators.with_columns.step import WithColumnsStep


class WithColumnsMachine:
    """The machine adds or replaces columns, each computed from the row as it came."""

    row_tests = None
    failed = None

    def __init__(self, step: WithColumnsStep) -> None:
        self._step = step
        self._assigned = [
            (name, expression, kept_type(step.schema.field(name).type))
            for name, expression in step.columns.items()
        ]

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        columns = dict(batch.columns)
        for name, expression, leaves_as in self._assigned:
            values = evaluated(expression, batch, step=self._step.name, column=name)
            columns[name] = fitted(values, leaves_as, name=name, step=self._step.name)
        return batch.with_columns(columns)
