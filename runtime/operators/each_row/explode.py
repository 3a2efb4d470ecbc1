"""`explode`: a row for each element of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.nested_methods import lists_of
from slackwater.runtime.model import Batch
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.schema import column_of_arrow, inside_type, is_list
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row


@dataclass(frozen=True, kw_only=True)
class ExplodeStep(EachRowStep):
    """An explode makes a row of each element of a list."""

    column: str

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("explode")

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | {self.column}

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (None if column == self.column else column,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"makes    a row of each element of {self.column}"


class ExplodeMachine(PlainStateless):
    """An explode repeats a row for each element of its list, or once, with null.

    ```
    id  readings        id  readings
    1   [7, 9]     ─▶   1   7
    2   []              1   9
                        2   null
    ```
    """

    def __init__(self, step: ExplodeStep) -> None:
        self._column = step.column

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        values, starts, ends = lists_of(batch.columns[self._column])
        sizes = ends - starts
        repeats = np.maximum(sizes, 1)
        rows, places = unfold(starts, repeats)
        elements = values.take(pa.array(places, mask=np.repeat(sizes == 0, repeats)))
        exploded = batch.take(rows)
        return Batch.like(exploded, {**exploded.columns, self._column: column_of_arrow(elements)})


class Exploding(AnyStream):
    """Streams can have a row for each element of a list."""

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
