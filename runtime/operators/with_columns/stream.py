"""The method `with_columns` of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.literals import Writable
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.with_columns.machine import WithColumnsMachine
from slackwater.runtime.operators.with_columns.step import WithColumnsStep


class WithColumns(AnyStream):
    """Streams can be given columns."""

    _entry = Entry(WithColumnsStep, WithColumnsMachine)

    @checked_call
    def with_columns(
        self,
        columns: Mapping[str, Expr | Writable] | None = None,
        *,
        name: str | None = None,
        **named: Expr | Writable,
    ) -> Self:
        """Add or replace columns, each computed from the row as it came in.

        Args:
            columns: {column: expression}, for names that Python cannot spell.
            name: the name of the step.
            named: column=expression.

        Raises:
            ColumnError, TypeMismatch: an expression does not fit the columns there are.
        """
        name = self._step_name("with_columns", name)
        expressions = {
            column: checks.expression(value, step=name, what=column)
            for column, value in checks.together(columns, named, step=name).items()
        }
        if not expressions:
            raise FlowError(
                f"step {name!r}: with_columns has no columns; write one, such as "
                "kmh=col('mps') * 3.6"
            )
        types = {field.name: field.type for field in self.schema}
        types |= {
            column: each.type_in(self.schema, step=name) for column, each in expressions.items()
        }
        schema = pa.schema(list(types.items()))
        bound = {column: each.bound(self.schema) for column, each in expressions.items()}
        return self._add(WithColumnsStep(name=name, inputs=self._in, schema=schema, columns=bound))
