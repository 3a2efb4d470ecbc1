"""The step of a merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from slackwater.runtime.model import Release
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Role, StepTraits


@dataclass(frozen=True, kw_only=True)
class MergeStep(GatedStep):
    """Several streams of one schema, in event-time order."""

    release: Release

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="merge",
            role=Role.AFTER_GATE,
            passes_on=True,
            release=self.release,
            ports=(0,) * len(self.inputs),  # rows of all inputs become one order
            has_late_rows=False,  # late rows leave like others
            misses="their place",
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (column,) * len(self.inputs)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield from ()
