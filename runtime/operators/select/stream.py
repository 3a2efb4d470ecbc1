"""The methods `select`, `drop` and `rename` of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.expressions.expressions import ColumnRef, Expr, col
from slackwater.runtime.expressions.literals import Writable
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.select.machine import SelectMachine
from slackwater.runtime.operators.select.step import SelectStep
from slackwater.runtime.shown import shown


class Selecting(AnyStream):
    """Streams can be cut to some columns."""

    _entry = Entry(SelectStep, SelectMachine)

    @checked_call
    def select(
        self,
        *keep: str | Expr | Mapping[str, str | Expr | Writable],
        name: str | None = None,
        **named: str | Expr | Writable,
    ) -> Self:
        """Keep these columns only, in this order, some under new names or computed.

        Args:
            keep: columns that keep their names, such as "a" or col("a"), or {new name: column}.
            name: the name of the step.
            named: new_name="old name", or new_name=expression.

        Raises:
            ColumnError: a column is not there.
            DuplicateName: two columns would have one name.
            TypeMismatch: an expression has no name, or does not fit the columns there are.
        """
        name = self._step_name("select", name)
        pairs = [
            pair
            for each in (*keep, named)
            for pair in (
                each.items() if isinstance(each, Mapping) else [(_own_name(each, name), each)]
            )
        ]
        if wrong := [new for new, _ in pairs if not isinstance(new, str)]:
            raise TypeMismatch(f"step {name!r}: {shown(wrong[0])} is no name of a column")
        checks.unique_columns(
            [new for new, _ in pairs], step=name, way_out="keep it once, or rename one"
        )
        if not pairs:
            raise FlowError(f"step {name!r}: no column would be left; name one to keep")
        columns = {
            new: col(each)
            if isinstance(each, str)
            else checks.expression(each, step=name, what=new)
            for new, each in pairs
        }
        schema = pa.schema(
            [(new, each.type_in(self.schema, step=name)) for new, each in columns.items()]
        )
        bound = {new: each.bound(self.schema) for new, each in columns.items()}
        return self._add(SelectStep(name=name, inputs=self._in, schema=schema, columns=bound))

    @checked_call
    def drop(self, *columns: str, name: str | None = None) -> Self:
        """Keep all columns but these.

        Raises:
            ColumnError: a column is not there.
        """
        name = self.flow.name_for("drop", name)
        for column in columns:
            checks.column_type(self.schema, column, step=name)
        return self.select(*[kept for kept in self.columns if kept not in columns], name=name)

    @checked_call
    def rename(self, names: Mapping[str, str], *, name: str | None = None) -> Self:
        """Give columns other names, in their places; the others keep theirs.

        Args:
            names: {old name: new name}.
            name: the name of the step.

        Raises:
            ColumnError: a column is not there.
            DuplicateName: two columns would have one name.
        """
        name = self.flow.name_for("rename", name)
        for column in names:
            checks.column_type(self.schema, column, step=name)
        return self.select(*[{names.get(old, old): old} for old in self.columns], name=name)


def _own_name(column: Any, step: str) -> str:
    if isinstance(column, str):
        return column
    if isinstance(column, ColumnRef):
        return column.name
    if isinstance(column, Expr):
        raise TypeMismatch(
            f"step {step!r}: {column!s} has no name; give it one, such as select(x={column!s})"
        )
    raise TypeMismatch(
        f"step {step!r}: {column!r} is no column; write select('a', 'b'), or select(new='a')"
    )
