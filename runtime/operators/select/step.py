"""The step of a select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from slackwater.runtime.expressions.expressions import ColumnRef, Expr
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row


@dataclass(frozen=True, kw_only=True)
class SelectStep(EachRowStep):
    """A select keeps these columns, each computed from the row as it came: {name: expression}."""

    columns: Mapping[str, Expr]

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        calls = any(each.runs_users_code for each in self.columns.values())
        return each_row("select", runs_users_code=calls)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return {name for each in self.columns.values() for name in each.columns()}

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        kept = self.columns[column]
        return (kept.name if isinstance(kept, ColumnRef) else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        refs = {new: each for new, each in self.columns.items() if isinstance(each, ColumnRef)}
        renamed = [f"{new} = {each.name}" for new, each in refs.items() if new != each.name]
        if renamed:
            yield f"renames  {', '.join(renamed)}"
        for new, each in self.columns.items():
            if new not in refs:
                yield f"assigns  {new} = {each!s}"
