"""The methods `select`, `drop` and `rename` of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import pyarrow as pa

from slackwater.runtime.errors import FlowError
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.select.machine import SelectMachine
from slackwater.runtime.operators.select.step import SelectStep


class Selecting(AnyStream):
    """Streams can be cut to some columns."""

    _entry = Entry(SelectStep, SelectMachine)

    def select(
        self, *keep: str | Mapping[str, str], name: str | None = None, **renamed: str
    ) -> Self:
        """Keep these columns only, in this order, some under new names.

        Args:
            keep: columns that keep their names, or {new name: old name}.
            name: the name of the step.
            renamed: new_name="old name".

        Raises:
            ColumnError: a column is not there.
            DuplicateName: two columns would have one name.
        """
        name = self._step_name("select", name)
        pairs = [
            pair
            for each in (*keep, renamed)
            for pair in (each.items() if isinstance(each, Mapping) else [(each, each)])
        ]
        checks.unique_columns(
            [new for new, _ in pairs], step=name, way_out="keep it once, or rename one"
        )
        if not pairs:
            raise FlowError(f"step {name!r}: no column would be left; name one to keep")
        schema = pa.schema(
            [(new, checks.column_type(self.schema, old, step=name)) for new, old in pairs]
        )
        return self._add(SelectStep(name=name, inputs=self._in, schema=schema, columns=dict(pairs)))

    def drop(self, *columns: str, name: str | None = None) -> Self:
        """Keep all columns but these.

        Raises:
            ColumnError: a column is not there.
        """
        name = self.flow.name_for("drop", name)
        for column in columns:
            checks.column_type(self.schema, column, step=name)
        return self.select(*[kept for kept in self.columns if kept not in columns], name=name)

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
