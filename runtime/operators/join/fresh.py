"""Rows of a table that is read again count until the next reading alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slackwater.runtime.model import Batch
from slackwater.runtime.model.batch import concat_columns
from slackwater.runtime.model.nullable import NUMBERS, Nullable, valid_of, without_mask
from slackwater.runtime.model.schema import nulls_of
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row


@dataclass(frozen=True, kw_only=True)
class FreshStep(EachRowStep):
    """Rows leave with columns of the table while its row counts, else nulls."""

    until: str
    """Column of the event time from which the table's row counts no longer; null without one."""
    of_table: tuple[str, ...]
    """Columns of the table that leave."""
    is_inner: bool
    """Whether rows without a row of the table do not leave."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("lookup_again")

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | {self.until}

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (None if self.is_inner or column in self.of_table else column,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield "table    a row of it counts until the next reading"
        if self.is_inner:
            yield "how      inner: rows whose key the table lacks do not leave"


class FreshMachine(PlainStateless):
    """The machine compares event times with those until which the table's rows count."""

    def __init__(self, step: FreshStep) -> None:
        self._step = step
        self._nulls = {
            name: nulls_of(step.schema.field(name).type, 1)
            for name in step.of_table
            if name in step.schema.names
        }

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        step, rows = self._step, len(batch)
        until = batch.columns[step.until]
        assert isinstance(until, NUMBERS), "of whole numbers"
        valid = valid_of(until)
        until_ns = until.values if isinstance(until, Nullable) else until
        counts = batch.event_time_ns < until_ns
        if valid is not None:
            counts &= valid
        # A plan omits columns that no later step reads.
        columns = {name: batch.columns[name] for name in step.schema.names if name in batch.columns}
        if np.count_nonzero(counts) < rows:
            if step.is_inner:
                return Batch.like(batch, columns).keep(counts)
            places = np.where(counts, np.arange(rows), rows)
            for name in self._nulls.keys() & columns.keys():
                null = self._nulls[name]
                columns[name] = without_mask(concat_columns([columns[name], null]).take(places))
        return Batch.like(batch, columns)
