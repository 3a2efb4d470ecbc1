"""The method `explode` of streams."""

from __future__ import annotations

from typing import Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.model.schema import inside_type, is_list
from slackwater.runtime.operators.explode.machine import ExplodeMachine
from slackwater.runtime.operators.explode.step import ExplodeStep
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream


class Exploding(AnyStream):
    """Streams can have a row for each element of a list."""

    _entry = Entry(ExplodeStep, ExplodeMachine)

    @checked_call
    def explode(self, column: str, *, name: str | None = None) -> Self:
        """Make a row of each element of a list; the other columns are repeated.

        A list that is empty or null gives one row, with null. All rows have the event time of
        theirs. The ledger counts the further rows as copied.

        Args:
            column: a list; its elements take its place.
            name: the name of the step.

        Raises:
            ColumnError: the column is not there.
            TypeMismatch: it is no list.
        """
        name = self._step_name("explode", name)
        kind = checks.column_type(self.schema, column, step=name)
        if not is_list(kind):
            raise TypeMismatch(
                f"step {name!r}: explode takes a column of lists, and {column!r} has type {kind}"
            )
        types = {field.name: field.type for field in self.schema}
        types[column] = inside_type(column, kind.value_type)
        schema = pa.schema(list(types.items()))
        return self._add(ExplodeStep(name=name, inputs=self._in, schema=schema, column=column))
