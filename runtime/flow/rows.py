"""What a stream's own rows can become, each alone: filter, assign, select, drop, map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import pyarrow as pa

from runtime.errors import FlowError
from runtime.expressions.expressions import Expr
from runtime.expressions.literals import Writable
from runtime.flow import checks
from runtime.flow.growing import GrowingFlow
from runtime.plan.steps import (
    AssignStep,
    BatchFunction,
    FilterStep,
    MapBatchesStep,
    MapRowsStep,
    RowFunction,
    SelectStep,
    Step,
)


class Rows:
    """What leaves one step of a flow, and the steps that look at each of its rows alone."""

    def __init__(self, flow: GrowingFlow, step: Step) -> None:
        self.flow = flow
        self.name = step.name
        self.schema: pa.Schema = step.schema

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        return f"<{type(self).__name__} {self.name!r} ({columns})>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.schema.names)

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

    def assign(
        self,
        columns: Mapping[str, Expr | Writable] | None = None,
        *,
        name: str | None = None,
        **named: Expr | Writable,
    ) -> Self:
        """Add or replace columns, each computed from the row as it came in.

        Args:
            columns: {column: expression}, for names that Python cannot spell.
            name: of the step.
            named: column=expression.

        Raises:
            ColumnError, TypeMismatch: an expression does not fit the columns there are.
        """
        name = self._step_name("assign", name)
        expressions = {
            column: checks.expression(value, step=name, what=column)
            for column, value in checks.together(columns, named, step=name).items()
        }
        if not expressions:
            raise FlowError(
                f"step {name!r}: there is nothing to assign; write kmh=col('mps') * 3.6"
            )
        types = {field.name: field.type for field in self.schema}
        types |= {
            column: each.type_in(self.schema, step=name) for column, each in expressions.items()
        }
        schema = pa.schema(list(types.items()))
        return self._add(AssignStep(name=name, inputs=self._in, schema=schema, columns=expressions))

    def select(
        self, *keep: str | Mapping[str, str], name: str | None = None, **renamed: str
    ) -> Self:
        """Keep these columns only, in this order, some under new names.

        Args:
            keep: columns that keep their names, or {new name: old name}.
            name: of the step.
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
        name = self._step_name("drop", name)
        for column in columns:
            checks.column_type(self.schema, column, step=name)
        return self.select(*[kept for kept in self.columns if kept not in columns], name=name)

    def map_batches(
        self,
        function: BatchFunction,
        schema: checks.Declared,
        *,
        name: str | None = None,
    ) -> Self:
        """Compute columns with a vectorised function: {name: column} in, {name: column} out.

        Numbers are NumPy arrays, text is an Arrow array. It returns a value for each row, in
        the same order, and only the columns of `schema` leave.

        Args:
            function: must give the same for a row whatever rows come with it; must pickle.
            schema: {column: type}, such as {"kmh": "float64"}, or a pyarrow schema.
            name: of the step.
        """
        name = self.flow.name_for("map", name)
        checks.function(function, step=name)
        declared = checks.declared_schema(schema, step=name)
        return self._add(
            MapBatchesStep(name=name, inputs=self._in, schema=declared, function=function)
        )

    def map_rows(
        self,
        function: RowFunction,
        schema: checks.Declared,
        *,
        name: str | None = None,
    ) -> Self:
        """Compute rows one at a time, the slow path: a dict in, a dict out, or None to drop it.

        Args:
            function: must pickle.
            schema: {column: type} of the rows it returns, or a pyarrow schema.
            name: of the step.
        """
        name = self.flow.name_for("map", name)
        checks.function(function, step=name)
        declared = checks.declared_schema(schema, step=name)
        return self._add(
            MapRowsStep(name=name, inputs=self._in, schema=declared, function=function)
        )

    @property
    def _in(self) -> tuple[str, ...]:
        return (self.name,)

    def _add(self, step: Step) -> Self:
        self.flow.put(step)
        return type(self)(self.flow, step)

    def _step_name(self, kind: str, name: Any) -> str:
        """Return the step's name, where `name=` could have been meant for a column."""
        if name is not None and (not isinstance(name, str) or name in self.columns):
            raise FlowError(
                f"{kind} on {self.name!r}: name={name} would name the step; for a column called "
                "'name' write {'name': ...} as the first argument"
            )
        return self.flow.name_for(kind, name)
