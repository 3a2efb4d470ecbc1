"""What a filter is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from slackwater.runtime.plan.step import ChoosingStep, Step


@dataclass(frozen=True, kw_only=True)
class FilterStep(ChoosingStep):
    """Keeps the rows where the predicate is true; the others are counted as filtered."""

    @property
    def kind(self) -> str:
        """It filters."""
        return "filter"

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """What is needed behind it, and what the predicate reads."""
        del position, there
        return needed | self.predicate.columns()

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As here."""
        return (column,)

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield which rows stay."""
        del steps
        yield f"keeps    {self.predicate}"

    def bare(self) -> FilterStep:
        """Return it: expressions are ours."""
        return self
