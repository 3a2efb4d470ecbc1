"""What a select is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from slackwater.runtime.plan.step import EachRowStep, Step


@dataclass(frozen=True, kw_only=True)
class SelectStep(EachRowStep):
    """Keeps these columns, perhaps under new names: {new name: old name}."""

    columns: Mapping[str, str]

    @property
    def kind(self) -> str:
        """It selects."""
        return "select"

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """The columns that it keeps."""
        del position, there, needed
        return set(self.columns.values())

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """By its old name."""
        return (self.columns[column],)

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the columns that have new names."""
        del steps
        renamed = [f"{new} = {old}" for new, old in self.columns.items() if new != old]
        if renamed:
            yield f"renames  {', '.join(renamed)}"

    def bare(self) -> SelectStep:
        """Return it: it has names only."""
        return self
