"""`filter` and `split`: the rows where a predicate is true, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.row_tests import FEW_ROWS, RowTests, row_tests
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.streams import AnyStream
from slackwater.runtime.operators.ground.user_code import holds
from slackwater.runtime.plan.step import ChoosingStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row


@dataclass(frozen=True, kw_only=True)
class FilterStep(ChoosingStep):
    """A filter keeps the rows where the predicate is true, and counts the others."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("filter", runs_users_code=self.predicate.runs_users_code)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | self.predicate.columns()

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (column,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"keeps    {self.predicate!s}"


class FilterMachine(PlainStateless):
    """The filter keeps the rows where the predicate is true.

    Attributes:
        row_tests: the predicate row by row, for few rows; None if there is no such form.
    """

    def __init__(self, step: FilterStep) -> None:
        self._name = step.name
        self._predicate = step.predicate
        self.row_tests: RowTests | None = row_tests(step.predicate)
        self._nothing: Batch | None = None  # the batch of no rows, made when first needed

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        rows = self._passing(batch)
        if len(rows) == 0:  # most batches where few rows pass, and batches are small
            if self._nothing is None:
                self._nothing = batch.take(rows)
            return self._nothing
        return batch if len(rows) == len(batch.event_time_ns) else batch.take(rows)

    def _passing(self, batch: Batch) -> Int64Array:
        """Return the places of the rows that pass, ascending."""
        count = len(batch.event_time_ns)
        if count <= FEW_ROWS and self.row_tests is not None:
            tests = self.row_tests.over(batch)
            if tests is not None:
                return np.array(tests.passing(0, count), dtype=np.int64)
        return holds(self._predicate, batch, step=self._name).nonzero()[0]


class Filtering(AnyStream):
    """Streams can be filtered."""

    @checked_call
    def filter(self, predicate: Expr | bool, *, name: str | None = None) -> Self:
        """Keep the rows where the predicate is true.

        Raises:
            ColumnError, TypeMismatch: the predicate reads a column that is not there, or is neither
                true nor false.
        """
        name = self.flow.name_for("filter", name)
        checked = checks.predicate_of_row(predicate, self.schema, step=name, what="filter")
        return self._add(
            FilterStep(name=name, inputs=self._in, schema=self.schema, predicate=checked)
        )

    @checked_call
    def split(self, by: Expr | bool | Mapping[str, Expr | bool]) -> tuple[Self, ...]:
        """Return a stream of the rows for each condition, and of the others last.

        Each row goes to the first stream whose condition is true. Filters make them, one for each
        stream; a function in a condition (`map_elements`) is called by each filter after it.

        Args:
            by: a condition; or {name: condition}, where filters have these names.

        Raises:
            FlowError: no condition.
            ColumnError, TypeMismatch: a condition reads a column that is not there, or is neither
                true nor false.
        """
        conditions = by if isinstance(by, Mapping) else {None: by}
        if not conditions:
            raise FlowError(
                f"split of {self.name!r} has no condition; write one, such as sw.col('x') > 1"
            )
        streams: list[Self] = []
        others: Expr | None = None
        for name, condition in conditions.items():
            step = self.flow.name_for("split", name)
            own = checks.predicate_of_row(condition, self.schema, step=step, what="split")
            streams.append(self.filter(own if others is None else others & own, name=step))
            is_other = ~own.fill_null(False)
            others = is_other if others is None else others & is_other
        assert others is not None, "there is a condition"
        return (*streams, self.filter(others, name=self.flow.name_for("rest", None)))
