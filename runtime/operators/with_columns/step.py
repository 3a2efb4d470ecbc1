"""The step of `with_columns`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row


@dataclass(frozen=True, kw_only=True)
class WithColumnsStep(EachRowStep):
    """The step adds or replaces columns, each computed from the row as it came."""

    columns: Mapping[str, Expr]

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        calls = any(each.runs_users_code for each in self.columns.values())
        return each_row("with_columns", runs_users_code=calls)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        computed = {name for each in self.columns.values() for name in each.columns()}
        return (needed - self.columns.keys()) | computed

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (None if column in self.columns else column,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        for name, expression in self.columns.items():
            yield f"assigns  {name} = {expression!s}"
