"""The step of a dedupe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.keep import silent_text
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Role, Sharing, StepTraits


@dataclass(frozen=True, kw_only=True)
class DedupeStep(GatedStep):
    """A dedupe drops a row if an equal one, at most `within` away, has left.

    In the order of the stream: so the first leaves, and the first that is further away again.
    """

    on: tuple[str, ...]
    within_ns: int
    release: Release
    replicas: int = 1
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that may equal forgotten ones."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="dedupe",
            role=Role.AFTER_GATE,
            passes_on=True,
            reach_ns=self.within_ns,
            release=self.release,
            port_keys=(self.on,),
            kept_by="promise",  # so that a late row finds the row that it equals
            misses="the rows that they are like",
            sharing=Sharing(self.replicas, "keys"),
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed | set(self.on)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # Rows of other keys do not matter to a row.
        return (column if column in self.on else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"on       {', '.join(self.on)}, within {format_ns(self.within_ns)}"

    def keeps(self, steps: Mapping[str, Step]) -> str:  # noqa: D102 - see Step
        silent = silent_text(steps, self.inputs)
        text = f"keys until all have promised more; {silent}: of most_kept_rows rows"
        return text if silent else ""
