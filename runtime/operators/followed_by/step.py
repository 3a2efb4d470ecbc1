"""What a pattern of two events is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift
from slackwater.runtime.operators.ground.keep import replicas_text
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.step import GatedStep, Keep, Replica, Sharing, Side, Step, all_columns

FIRST, THEN = 0, 1
"""Which event of a match."""
PREFIXES = ("first_", "then_")
"""Of their columns, keys apart."""


@dataclass(frozen=True, kw_only=True)
class FollowedByStep(GatedStep):
    """Every event that is `first`, with the first one behind it of its key that is `then`.

    They are at most `within` apart. The row that leaves has the keys, the columns of both with
    their prefixes, and with drift `certain`: whether the one follows the other, and within that
    time, whatever clocks were off by. Its event time is the later of the two.
    """

    keys: tuple[str, ...]
    first: Expr
    then: Expr
    within_ns: int
    release: Release
    drift: Drift | None = None
    replicas: int = 1
    replica: Replica | None = None
    """In a plan: which of several this is; they share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""

    @property
    def kind(self) -> str:
        """It looks for a pattern."""
        return "followed_by"

    @property
    def names(self) -> Mapping[str, tuple[int, str]]:
        """{column that leaves: (which event's, name it came under)}, keys apart."""
        return {
            field.name: (which, field.name.removeprefix(prefix))
            for field in self.schema
            if field.name not in self.keys and field.name != CERTAIN
            for which, prefix in enumerate(PREFIXES)
            if field.name.startswith(prefix)
        }

    @property
    def ports(self) -> tuple[int, ...]:
        """One."""
        return (0,)

    @property
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """One follows another only if these are equal."""
        return (self.keys,)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """The keys, what tells which event a row is, bounds, and what is needed of either."""
        del position, there
        came = {old for name, (_, old) in self.names.items() if name in needed}
        bounds = self.drift.columns if self.drift else frozenset()
        return came | set(self.keys) | self.first.columns() | self.then.columns() | bounds

    @property
    def span_ns(self) -> int:
        """As long as another may follow; and from where a clock is behind to where it is ahead."""
        return self.within_ns + (2 * self.drift.most_ns if self.drift else 0)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """As they come: a match is as old as its later row."""
        return (PASSES,)

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As here, if it is a key: the rows of a key make its matches."""
        return (column if column in self.keys else None,)

    @property
    def passes_on(self) -> bool:
        """It makes new rows."""
        return False

    @property
    def leaves_with_rows(self) -> bool:
        """Whether a match leaves with its later row; with drift others may come before it."""
        return self.drift is None

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def kept_by(self) -> Keep | None:
        """Neither: late rows are in no match."""
        return None

    @property
    def misses(self) -> str:
        """What they would have been in."""
        return "matches"

    @property
    def sharing(self) -> Sharing:
        """By keys."""
        return Sharing(self.replicas, "keys")

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> FollowedByStep:
        """Return it without columns that nobody needs."""
        schema = pa.schema([field for field in self.schema if field.name in needed])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """All columns of its rows."""
        return all_columns(self, inputs, side=side, who=who)

    @property
    def counters(self) -> tuple[str, ...]:
        """Of bounds that were cut, if rows have their own."""
        return self.drift.counters if self.drift else ()

    @property
    def has_time(self) -> bool:
        """It goes by event time only."""
        return False

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its keys, what is to follow what, and how soon."""
        del steps
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        yield f"first    {self.first}"
        yield f"then     {self.then}, within {format_ns(self.within_ns)}"
        if self.drift:
            yield f"drift    {self.drift.text}: each match that may be one, marked"
        yield f"gate     {self.release.text}"
        if self.replicas > 1:
            yield replicas_text(self.sharing)

    def bare(self) -> FollowedByStep:
        """Return it: all it has is ours."""
        return self
