"""The step of `explode`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

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
