"""`select`, `drop`, `rename` and `with_columns`: columns computed from their row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.expressions.expressions import ColumnRef, Expr, col
from slackwater.runtime.expressions.literals import Writable
from slackwater.runtime.model import Batch, Column
from slackwater.runtime.model.nullable import without_mask
from slackwater.runtime.model.schema import number_dtype, storage_type
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.fit import fitted
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.ground.user_code import evaluated
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row
from slackwater.runtime.shown import shown


@dataclass(frozen=True, kw_only=True)
class ComputingStep(EachRowStep):
    """Step that computes columns, each from the row as it came: {name: expression}."""

    columns: Mapping[str, Expr]

    @property
    def _runs_users_code(self) -> bool:
        return any(each.runs_users_code for each in self.columns.values())

    @property
    def _read(self) -> frozenset[str]:
        return frozenset(name for each in self.columns.values() for name in each.columns())


@dataclass(frozen=True, kw_only=True)
class SelectStep(ComputingStep):
    """A select keeps these columns alone."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("select", runs_users_code=self._runs_users_code, may_drop=False)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return self._read

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        computed = self.columns[column]
        return (computed.name if isinstance(computed, ColumnRef) else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        refs = {new: each for new, each in self.columns.items() if isinstance(each, ColumnRef)}
        renamed = [f"{new} = {each.name}" for new, each in refs.items() if new != each.name]
        if renamed:
            yield f"renames  {', '.join(renamed)}"
        for new, each in self.columns.items():
            if new not in refs:
                yield f"assigns  {new} = {each!s}"


@dataclass(frozen=True, kw_only=True)
class WithColumnsStep(ComputingStep):
    """The step adds or replaces these columns."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("with_columns", runs_users_code=self._runs_users_code, may_drop=False)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return (needed - self.columns.keys()) | self._read

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (None if column in self.columns else column,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        for name, expression in self.columns.items():
            yield f"assigns  {name} = {expression!s}"


class SelectMachine(PlainStateless):
    """A select keeps some columns, perhaps under new names, and computes others."""

    def __init__(self, step: ComputingStep) -> None:
        self._step = step.name
        kinds = {name: storage_type(step.schema.field(name).type) for name in step.columns}
        self._columns = [
            (name, expression, kinds[name], number_dtype(kinds[name]))
            for name, expression in step.columns.items()
        ]

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        return Batch.like(batch, self._computed(batch))

    def _computed(self, batch: Batch) -> dict[str, Column]:
        """Return the columns of a batch, each of shape (rows,).

        Raises:
            OperatorError: one cannot be computed, or does not fit its type; names step and column.
        """
        made = {}
        for name, expression, leaves_as, dtype in self._columns:
            values = evaluated(expression, batch, step=self._step, column=name)
            is_of_type = (
                values.type == leaves_as if isinstance(values, pa.Array) else values.dtype == dtype
            )
            if is_of_type:  # it is our own: to look at all text is no use
                made[name] = without_mask(values)
            else:
                made[name] = fitted(values, leaves_as, name=name, step=self._step)
        return made


class WithColumnsMachine(SelectMachine):
    """The machine adds or replaces columns, each computed from the row as it came."""

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        return Batch.like(batch, {**batch.columns, **self._computed(batch)})


class Selecting(AnyStream):
    """Streams can be cut to some columns."""

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
            raise TypeMismatch(
                f"step {name!r}: {shown(wrong[0])} is not a column's name; write text"
            )
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
        return self.select(*[own for own in self.columns if own not in columns], name=name)

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


class WithColumns(AnyStream):
    """Streams can be given columns."""

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
            named: column=expression, such as kmh=col("mps") * 3.6.

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
        f"step {step!r}: {column!r} is not a column; write select('a', 'b'), or select(new='a')"
    )
