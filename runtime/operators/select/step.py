"""The step of a select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row


@dataclass(frozen=True, kw_only=True)
class SelectStep(EachRowStep):
    """A select keeps these columns, perhaps under new names: {new name: old name}."""

    columns: Mapping[str, str]

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return each_row("select")

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        del position, there, needed
        return set(self.columns.values())

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (self.columns[column],)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        del steps
        renamed = [f"{new} = {old}" for new, old in self.columns.items() if new != old]
        if renamed:
            yield f"renames  {', '.join(renamed)}"
