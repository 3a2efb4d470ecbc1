"""What a dedupe is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.keep import replicas_text, silent_text
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Role, Sharing, StepTraits


@dataclass(frozen=True, kw_only=True)
class DedupeStep(GatedStep):
    """Lets a row go on unless one with equal keys, at most `within` away in event time, has.

    In the order of the stream: so the first leaves, and the first that is further away again.
    """

    on: tuple[str, ...]
    within_ns: int
    release: Release
    replicas: int = 1
    replica: Replica | None = None
    """In a plan: which of several this is; they share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows of which nobody knows any more."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="dedupe",
            role=Role.AFTER_GATE,
            passes_on=True,
            reach_ns=self.within_ns,
            release=self.release,
            port_keys=(self.on,),
            kept_by="promise",  # so that a late row finds the row that it is like
            misses="the rows that they are like",
            sharing=Sharing(self.replicas, "keys"),
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """The keys, and what is needed behind it."""
        del position, there
        return needed | set(self.on)

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As here, if it is a key: rows of other keys are none of its own."""
        return (column if column in self.on else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its keys, and how long they are known."""
        yield f"on       {', '.join(self.on)}, within {format_ns(self.within_ns)}"
        yield f"gate     {self.release.text}"
        if silent := silent_text(steps, self.inputs):
            yield f"keeps    keys until all have promised more; {silent}: of most_kept_rows rows"
        if self.replicas > 1:
            yield replicas_text(self.traits.sharing)
