"""`lookup` and `cross`: rows with those of a table, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, Self

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SchemaError, TypeMismatch
from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.batch import concat_columns
from slackwater.runtime.model.schema import inside_schema, nulls_of
from slackwater.runtime.operators.ground.checks import unique_columns
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.streams import Names
from slackwater.runtime.operators.join.asof import AsofJoining
from slackwater.runtime.operators.join.fresh import FreshStep
from slackwater.runtime.operators.join.how import keys_text
from slackwater.runtime.operators.join.key_places import KeyPlaces
from slackwater.runtime.operators.join.step import joined_schema, pairwise_keys
from slackwater.runtime.operators.join.table_rows import TableRows, table_rows
from slackwater.runtime.plan.step import USERS, EachRowStep, Step
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.plan.traits import StepTraits, each_row
from slackwater.runtime.plurals import count_of
from slackwater.runtime.sources.named_reader import called_by_name
from slackwater.runtime.sources.read_whole import READ_NS, UNTIL_NS, doubled_key
from slackwater.runtime.sources.spec import Input, SourceSpec

LookupHow = Literal["left", "inner"]


@dataclass(frozen=True, kw_only=True)
class LookupStep(EachRowStep):
    """Each row leaves with the table's row of its key, or with nulls.

    Its columns are those that came, then those of the table as of a join. Without keys all rows
    have the table's one row.
    """

    table: TableRows = field(metadata=USERS)
    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    right_names: Mapping[str, str]
    """{column of the table: name it leaves under}; its keys are not in it."""
    how: LookupHow

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("lookup" if self.left_on else "cross")

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | set(self.left_on)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        # An inner lookup drops rows, which a filter before it would see.
        is_changed = self.how == "inner" or column in self.right_names.values()
        return (None if is_changed else column,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"table    {self.table.text}, read when the flow was built"
        if self.left_on:
            yield f"on       {keys_text(self.left_on, self.right_on)}"
        if self.how == "inner":
            yield "how      inner: rows whose key the table lacks do not leave"


class LookupMachine(PlainStateless):
    """The machine finds the table's row of each key."""

    def __init__(self, step: LookupStep) -> None:
        self._on, self._is_inner = step.left_on, step.how == "inner"
        own = [step.table.column(name, step=step.name) for name in step.right_on]
        self._places = KeyPlaces(own, len(step.table))
        names = {leaves: name for name, leaves in step.right_names.items()}
        self._columns: list[tuple[str, Column]] = []
        for each in step.schema:
            if each.name in names:
                column = step.table.column(names[each.name], step=step.name)
                self._columns.append((each.name, concat_columns([column, nulls_of(each.type, 1)])))
        self._values = [(name, column[:-1]) for name, column in self._columns]
        """Columns without the row of nulls, which needs a mask."""

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        rows = len(batch)
        if not self._on:
            places = np.zeros(rows, dtype=np.int64)
        else:
            places = self._places.find([batch.columns[name] for name in self._on], rows)
        is_there = places >= 0
        if np.count_nonzero(is_there) == rows:
            return Batch.like(batch, {**batch.columns, **_rows_at(self._values, places)})
        if self._is_inner:
            batch, places = batch.keep(is_there), places.compress(is_there)
            return Batch.like(batch, {**batch.columns, **_rows_at(self._values, places)})
        places = np.where(is_there, places, self._places.rows)
        return Batch.like(batch, {**batch.columns, **_rows_at(self._columns, places)})


def _rows_at(columns: list[tuple[str, Column]], places: Int64Array) -> dict[str, Column]:
    return {name: column.take(places) for name, column in columns}


class Reread(Protocol):
    """Table that is read again from time to time; `sw.reread` makes it."""

    @property
    def every_ns(self) -> int:
        """Time between two readings."""
        ...

    def with_keys(self, keys: tuple[str, ...], *, step: str) -> Input:
        """Return the input of its readings, with its key columns and its step's name."""
        ...


class LookingUp(AsofJoining):
    """Streams can be given columns of a table."""

    @checked_call
    def lookup(
        self,
        table: Any,
        on: Names = (),
        *,
        how: LookupHow = "left",
        left_on: Names = (),
        right_on: Names = (),
        suffix: str = "_right",
        name: str | None = None,
    ) -> Self:
        """Give each row the columns of a table's row of its key.

        The table is read whole at this call, so no row waits for it, and each slot has a copy. Rows
        keep their event times and their order. A null key equals nothing.

        Args:
            table: a table of pyarrow, a frame of pandas, Polars or DuckDB, {column: values}, or an
                input that ends, such as `sw.csv("zones.csv")`. With `sw.reread` it is read again:
                then a row waits until the reading that counts at its event time.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            how: "left": a row whose key the table lacks leaves with nulls; "inner": it does not
                leave, and counts as filtered.
            left_on: keys of this stream.
            right_on: keys of the table; they do not leave, being equal to the left ones.
            suffix: suffix of the table's columns whose name the stream has too.
            name: the name of the step.

        Raises:
            FlowError: no keys, or not pairwise.
            ColumnError, TypeMismatch: a key is not there, two cannot be equal, or not a table.
            SchemaError: two rows of the table have one key, or a column does not travel.
            DuplicateName: two columns would leave under one name.
            IngestError: the table cannot be read.
        """
        name = self.flow.name_for("lookup", name)
        keys = pairwise_keys(on, left_on, right_on, step=name)
        if _is_reread(table):
            return self._looked_up_again(table, keys, how=how, suffix=suffix, name=name)
        rows = table_rows(table, step=name)
        schema, right_names = joined_schema(
            self.schema, rows.schema, keys, suffix=suffix, step=name, kind="a lookup"
        )
        _refuse_doubled(rows, keys[1], step=name)
        return self._add(
            LookupStep(
                name=name,
                inputs=self._in,
                schema=schema,
                table=rows,
                left_on=keys[0],
                right_on=keys[1],
                right_names=right_names,
                how=how,
            )
        )

    def _looked_up_again(
        self,
        table: Reread,
        keys: tuple[tuple[str, ...], tuple[str, ...]],
        *,
        how: LookupHow,
        suffix: str,
        name: str,
    ) -> Self:
        """Look up in a table that is read again: `asof` in its readings."""
        given = table.with_keys(keys[1], step=name)
        source = self.flow.name_for("source", f"{name}.table")
        schema = inside_schema(called_by_name(source, given, "schema"), source=source)
        joined_schema(self.schema, schema, keys, suffix=suffix, step=name, kind="a lookup")
        spec = SourceSpec(input=given, event_time=READ_NS, time_unit="ns")
        readings = self._add(SourceStep(name=source, inputs=(), schema=schema, source=spec))
        newest = self.asof(
            readings,
            left_on=keys[0],
            right_on=keys[1],
            suffix=suffix,
            keep="promise",
            name=f"{name}.rows",
        )
        left = [each for each in newest.schema if each.name not in (READ_NS, UNTIL_NS)]
        return self._add(
            FreshStep(
                name=name,
                inputs=(newest.name,),
                schema=pa.schema(left),
                until=UNTIL_NS,
                of_table=tuple(each.name for each in left[len(self.columns) :]),
                is_inner=how == "inner",
            )
        )

    @checked_call
    def cross(self, table: Any, *, suffix: str = "_right", name: str | None = None) -> Self:
        """Give each row the columns of a table of one row.

        The table is read whole at this call. Rows keep their event times and their order.

        Args:
            table: a table of one row, as of `lookup`; but none of `sw.reread`.
            suffix: suffix of the table's columns whose name the stream has too.
            name: the name of the step.

        Raises:
            SchemaError: the table has no row, or more than one.
            TypeMismatch: the argument is not a table.
            DuplicateName: two columns would leave under one name.
            IngestError: the table cannot be read.
        """
        name = self.flow.name_for("cross", name)
        if _is_reread(table):
            raise TypeMismatch(
                f"step {name!r}: cross reads its table once, when the flow is built, and takes no "
                "sw.reread(…); give it the input alone, or give stream and table a column of one "
                "value, and write lookup(sw.reread(…), on=…)"
            )
        rows = table_rows(table, step=name)
        if len(rows) != 1:
            way_out = "for several rows write lookup with a key"
            if not len(rows):
                way_out = "without a row there is nothing to give: write with_columns of nulls"
            raise SchemaError(
                f"step {name!r}: cross takes a table of one row, and got "
                f"{count_of(len(rows), 'row')}; {way_out}"
            )
        names = rows.schema.names
        right_names = {own: own + suffix if own in self.schema.names else own for own in names}
        way_out = "choose another suffix=, or rename a column before"
        unique_columns([*self.columns, *right_names.values()], step=name, way_out=way_out)
        fields = [pa.field(new, rows.schema.field(own).type) for own, new in right_names.items()]
        return self._add(
            LookupStep(
                name=name,
                inputs=self._in,
                schema=pa.schema([*self.schema, *fields]),
                table=rows,
                left_on=(),
                right_on=(),
                right_names=right_names,
                how="left",
            )
        )


def _is_reread(table: object) -> bool:
    return hasattr(table, "every_ns") and hasattr(table, "with_keys")


def _refuse_doubled(rows: TableRows, keys: tuple[str, ...], *, step: str) -> None:
    """Check that no two rows of a table have one key.

    Raises:
        SchemaError: some have; shows the first.
    """
    places = KeyPlaces([rows.column(key, step=step) for key in keys], len(rows))
    if len(places.doubled):
        raise doubled_key(rows.rows, keys, places.doubled, who=step, table=rows.text)
