"""What a dedupe is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa

from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.keep import replicas_text, silent_text
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.step import GatedStep, Keep, Replica, Sharing, Side, Step, all_columns


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

    @property
    def kind(self) -> str:
        """It dedupes."""
        return "dedupe"

    @property
    def ports(self) -> tuple[int, ...]:
        """One."""
        return (0,)

    @property
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """Rows are alike only if these are equal."""
        return (self.on,)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """The keys, and what is needed behind it."""
        del position, there
        return needed | set(self.on)

    @property
    def span_ns(self) -> int:
        """As long as another may be like it."""
        return self.within_ns

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """As they come: a row leaves with its own time."""
        return (PASSES,)

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As here, if it is a key: rows of other keys are none of its own."""
        return (column if column in self.on else None,)

    @property
    def passes_on(self) -> bool:
        """It does: the others count as filtered."""
        return True

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def kept_by(self) -> Keep | None:
        """By what is promised, so that a late row finds whom it is like."""
        return "promise"

    @property
    def misses(self) -> str:
        """Which rows it is like."""
        return "the rows that they are like"

    @property
    def sharing(self) -> Sharing:
        """By keys."""
        return Sharing(self.replicas, "keys")

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> DedupeStep:
        """Return it as it is run: it makes no columns."""
        del needed
        return replace(self, keeps_late=keeps_late)

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """All columns of its rows."""
        return all_columns(self, inputs, side=side, who=who)

    @property
    def counters(self) -> tuple[str, ...]:
        """Rows like one that has left; and those forgotten too soon, there being too many."""
        return ("duplicates", "let_go")

    @property
    def has_time(self) -> bool:
        """It goes by event time only."""
        return False

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its keys, and how long they are known."""
        yield f"on       {', '.join(self.on)}, within {format_ns(self.within_ns)}"
        yield f"gate     {self.release.text}"
        if silent := silent_text(steps, self.inputs):
            yield f"keeps    keys until all have promised more; {silent}: of most_kept_rows rows"
        if self.replicas > 1:
            yield replicas_text(self.sharing)

    def bare(self) -> DedupeStep:
        """Return it: all it has is ours."""
        return self
