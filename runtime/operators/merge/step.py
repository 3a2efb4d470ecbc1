"""What a merge is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import Release
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.step import NO_LATE, GatedStep, Keep, Sharing, Side, Step


@dataclass(frozen=True, kw_only=True)
class MergeStep(GatedStep):
    """Several streams of one schema, in event-time order."""

    release: Release

    @property
    def kind(self) -> str:
        """It merges."""
        return "merge"

    @property
    def ports(self) -> tuple[int, ...]:
        """One for all: their rows become one order."""
        return (0,) * len(self.inputs)

    @property
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """None: any two rows may be apart."""
        return ((),)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """What is needed behind it."""
        del position, there
        return needed

    @property
    def span_ns(self) -> int:
        """It has no state."""
        return 0

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Promises go out as they came."""
        return (PASSES,)

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As here."""
        return (column,) * len(self.inputs)

    @property
    def passes_on(self) -> bool:
        """It does."""
        return True

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def kept_by(self) -> Keep | None:
        """It keeps nothing."""
        return None

    @property
    def misses(self) -> str:
        """Late rows leave as others do, out of order."""
        return "their place"

    @property
    def sharing(self) -> Sharing:
        """It is one: several could not put rows into one order."""
        return Sharing(1, "keys")

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> MergeStep:
        """It makes no columns."""
        del needed, keeps_late
        return self

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """It has none: they count as all do.

        Raises:
            FlowError: always.
        """
        del inputs, side
        raise FlowError(NO_LATE.format(who=who, of=self.name))

    @property
    def counters(self) -> tuple[str, ...]:
        """None."""
        return ()

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield how long it waits."""
        del steps
        yield f"gate     {self.release.text}"

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    @property
    def has_time(self) -> bool:
        """It goes by event time only."""
        return False

    def bare(self) -> MergeStep:
        """Return it: all it has is ours."""
        return self
