"""States of cells: the needs of a step's aggregates, and the columns made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Column, Int64Array
from slackwater.runtime.operators.aggregate.accumulators import Accumulator, Pairs
from slackwater.runtime.operators.aggregate.custom_aggregate import (
    CustomAggregate,
    CustomFunctions,
)
from slackwater.runtime.operators.aggregate.custom_states import CustomAccumulator
from slackwater.runtime.operators.aggregate.kinds import KINDS, Results
from slackwater.runtime.operators.aggregate.needs import Need
from slackwater.runtime.operators.aggregate.whole_sum import sum_of
from slackwater.runtime.operators.aggregate.written import Aggregate

Groups: TypeAlias = list[tuple[Expr | None, list[Accumulator]]]
"""Accumulators by the condition of their rows; None if they take all."""


class HasAggregates(Protocol):
    """A step that has aggregates, whose columns are in its schema."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def schema(self) -> pa.Schema:
        """Columns that leave it."""

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """{column: aggregate}."""

    @property
    def custom(self) -> Mapping[str, CustomFunctions] | None:
        """Functions of the custom aggregates."""


class States:
    """The states of the cells of one window, for all aggregates of a step.

    Its owner saves the accumulators, which are `all`.
    """

    def __init__(self, step: HasAggregates) -> None:
        self._step = step
        self._needs = {
            name: needs_of(aggregate, step.schema.field(name).type)
            for name, aggregate in step.aggregates.items()
        }
        each = dict.fromkeys(need for needs in self._needs.values() for need in needs)
        self._by_need = {need: self._accumulator(need) for need in each}

    def _accumulator(self, need: Need) -> Accumulator:
        if need.kind != "custom":
            return need.accumulator()
        name, step = need.column, self._step
        aggregate = step.aggregates[name]
        assert isinstance(aggregate, CustomAggregate), "only that needs a state of the user's"
        assert step.custom is not None, "a slot has the functions"
        return CustomAccumulator(aggregate, step.custom[name], step.name)

    @property
    def all(self) -> list[Accumulator]:
        """The accumulators, of all conditions."""
        return list(self._by_need.values())

    @property
    def keep_rows(self) -> bool:
        """Whether a cell may have as many values as rows."""
        return any(need.keeps_rows for need in self._by_need)

    @property
    def needs(self) -> Mapping[str, tuple[Need, ...]]:
        """{aggregate: its needs}."""
        return self._needs

    @property
    def step_name(self) -> str:
        """Name of the step, for errors."""
        return self._step.name

    def fresh(self) -> States:
        """Return states of the same aggregates, without a row."""
        return States(self._step)

    def groups(self, others: Sequence[Accumulator]) -> Groups:
        """Return all accumulators by their conditions, `others` among those without."""
        groups: Groups = [(None, [*others])]
        conditions = {
            each.condition_text: each.condition for each in self._step.aggregates.values()
        }
        for text, condition in conditions.items():
            own = [one for need, one in self._by_need.items() if need.condition == text]
            if condition is None:
                groups[0][1].extend(own)
            else:
                groups.append((condition, own))
        return groups

    def combined(self, pairs: Pairs) -> dict[Need, Any]:
        """Return {need: its state for each result}."""
        return {need: one.combined(pairs) for need, one in self._by_need.items()}

    def finished(self, name: str, states: Mapping[Need, Any], rows: Int64Array) -> Column:
        """Return a column of the results, shape (results,); null without any value.

        Args:
            name: the name of the column.
            states: {need: its state for each result}.
            rows: shape (results,): the number of rows of each result.
        """
        aggregate, needs = self._step.aggregates[name], self._needs[name]
        if needs and needs[0].kind == "rows":  # those for which its condition is true
            rows, needs = states[needs[0]], needs[1:]
        own: Any = states[needs[0]] if needs else None
        values = rows
        if needs and needs[-1].kind == "nulls":
            values = rows - states[needs[-1]]
        elif len(needs) > 1:  # counts of partial results
            values = sum_of(states[needs[-1]], needs[-1].column)
        elif needs:  # its state knows how many it has
            values = own.counts
        leaves_as = self._step.schema.field(name).type
        return KINDS[aggregate.kind].finish(Results(aggregate, leaves_as, own, values))


def needs_of(aggregate: Aggregate, leaves_as: Any) -> tuple[Need, ...]:
    """Return the states that an aggregate needs; with a condition first its number of rows.

    Args:
        aggregate: an aggregate of a step.
        leaves_as: the type in which its column leaves.
    """
    needs = KINDS[aggregate.kind].needs(aggregate, leaves_as)
    if aggregate.condition is None:
        return needs
    return Need("rows", "", "int64", aggregate.condition_text), *needs
