"""How a stream is filtered."""

from __future__ import annotations

from typing import Self

from runtime.expressions.expressions import Expr
from runtime.operators.filter.machine import FilterMachine
from runtime.operators.filter.step import FilterStep
from runtime.operators.ground import checks
from runtime.operators.ground.contract import Entry
from runtime.operators.ground.streams import AnyStream


class Filtering(AnyStream):
    """Streams can be filtered."""

    _entry = Entry(FilterStep, FilterMachine)

    def filter(self, predicate: Expr | bool, *, name: str | None = None) -> Self:
        """Keep the rows where the predicate is true.

        Raises:
            ColumnError, TypeMismatch: it reads what is not there, or is not true or false.
        """
        name = self.flow.name_for("filter", name)
        checked = checks.predicate(predicate, self.schema, step=name, what="filter")
        return self._add(
            FilterStep(name=name, inputs=self._in, schema=self.schema, predicate=checked)
        )
