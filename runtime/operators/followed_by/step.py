"""The step of a pattern of two events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Role, Sharing, StepTraits

FIRST, THEN = 0, 1
"""The events of a match."""
PREFIXES = ("first_", "then_")
"""Prefixes of their columns, without the keys."""


@dataclass(frozen=True, kw_only=True)
class FollowedByStep(GatedStep):
    """Every event that is `first` leaves with the next of its key that is `then`.

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
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="followed_by",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            # Rows wait as long as another may follow, which clocks make longer.
            reach_ns=self.within_ns + (2 * self.drift.most_ns if self.drift else 0),
            release=self.release,
            port_keys=(self.keys,),
            # With drift another event may come before the later row of a match.
            makes="rows" if self.drift is None else "on its time",
            misses="matches",
            sharing=Sharing(self.replicas, "keys"),
            replica=self.replica,
        )

    @property
    def names(self) -> Mapping[str, tuple[int, str]]:
        """{column that leaves: (which event's, name it came under)}, without the keys."""
        return {
            field.name: (which, field.name.removeprefix(prefix))
            for field in self.schema
            if field.name not in self.keys and field.name != CERTAIN
            for which, prefix in enumerate(PREFIXES)
            if field.name.startswith(prefix)
        }

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        came = {old for name, (_, old) in self.names.items() if name in needed}
        bounds = self.drift.columns if self.drift else frozenset()
        return came | set(self.keys) | self.first.columns() | self.then.columns() | bounds

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # The rows of a key make its matches.
        return (column if column in self.keys else None,)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> FollowedByStep:  # noqa: D102 - see Step
        schema = pa.schema([field for field in self.schema if field.name in needed])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        yield f"first    {self.first!s}"
        yield f"then     {self.then!s}, within {format_ns(self.within_ns)}"
        if self.drift:
            yield f"drift    {self.drift.text}: each match that may be one, marked"
