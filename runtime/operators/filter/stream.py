"""The method `filter` of streams."""

from __future__ import annotations

from typing import Self

from slackwater.runtime.calls import checked_call
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.operators.filter.machine import FilterMachine
from slackwater.runtime.operators.filter.step import FilterStep
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream


class Filtering(AnyStream):
    """Streams can be filtered."""

    _entry = Entry(FilterStep, FilterMachine)

    @checked_call
    def filter(self, predicate: Expr | bool, *, name: str | None = None) -> Self:
        """Keep the rows where the predicate is true.

        Raises:
            ColumnError, TypeMismatch: the predicate reads a column that is not there, or is neither
                true nor false.
        """
        name = self.flow.name_for("filter", name)
        checked = checks.predicate_of_row(predicate, self.schema, step=name, what="filter")
        return self._add(
            FilterStep(name=name, inputs=self._in, schema=self.schema, predicate=checked)
        )
