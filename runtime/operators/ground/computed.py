"""Columns that expressions make of rows."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Batch, Column
from slackwater.runtime.model.schema import kept_type
from slackwater.runtime.operators.ground.fit import fitted
from slackwater.runtime.operators.ground.user_code import evaluated


class ComputedColumns:
    """Columns of expressions, each computed from the row as it came.

    Args:
        columns: {name: expression}.
        schema: has their types.
        step: the name of the step.
    """

    def __init__(self, columns: Mapping[str, Expr], schema: pa.Schema, *, step: str) -> None:
        self._step = step
        self._columns = [
            (name, expression, kept_type(schema.field(name).type))
            for name, expression in columns.items()
        ]

    def of(self, batch: Batch) -> dict[str, Column]:
        """Return the columns of a batch, each of shape (rows,).

        Raises:
            OperatorError: one cannot be computed, or does not fit its type; names step and column.
        """
        made = {}
        for name, expression, leaves_as in self._columns:
            values = evaluated(expression, batch, step=self._step, column=name)
            if not isinstance(values, pa.Array) or values.type != leaves_as:
                values = fitted(values, leaves_as, name=name, step=self._step)
            made[name] = values  # of its type, it is our own: to look at all text is no use
        return made
