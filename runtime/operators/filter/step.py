"""The step of a filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

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
