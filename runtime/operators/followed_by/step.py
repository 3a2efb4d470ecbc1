"""`followed_by`: its step, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Duration, Release, duration_ns, format_ns
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift, DriftGiven, checked_drift
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits

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
    replicas: Replicas = None
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
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
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


class FollowedBy(AnyStream):
    """Streams can be searched for an event that follows another."""

    @checked_call
    def followed_by(
        self,
        *,
        first: Expr,
        then: Expr,
        within: Duration,
        by: Names = (),
        drift: DriftGiven = None,
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Pair every event that is `first` with the next one that is `then`.

        Both have equal keys. A `then` event may end several matches, and a row may be both: then it
        ends one and begins another. In the order of the stream, which for events of one time is
        that of the gate. A match leaves with the keys, and the columns of both events as `first_…`
        and `then_…`; its event time is the later one's.

        With `drift` the order of two events is sure only if they are further apart than both may
        be off. Then every event leaves that may be the first that follows, with a column `certain`:
        whether it follows, and `within` that time, whatever clocks were off by. So no match is
        lost; of `then` events that are close to each other several may leave, certain or not,
        where clocks do not tell which was the first. Matches that are not certain are also marked
        `uncertain`, and sinks count them. Source: [thesis] §3.2.3.2, Pseudocode 3.1.

        Args:
            first: an expression that is true for events that begin a match.
            then: an expression that is true for events that end a match.
            within: how much later the second event may be, "5s".
            by: the key columns; none: all rows together. Null keys equal nothing.
            drift: how far an event's time may be off, either way: "5ms", or the name of a column
                with each event's own bound in whole nanoseconds (see `clock_bound`). At most half
                of `within`.
            slack: how long its gate waits; AS_FLOW: as the flow says. A row that comes late is in
                no match: it is counted, and `.late()` has it.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.

        Raises:
            TypeMismatch: `first` or `then` is no predicate; a key is a list, struct or map.
            ColumnError: a column is not there.
            SettingError: `within` or `drift` is no length, or `drift` too long.
            FlowError: the input has windows that are corrected.
        """
        name = self.flow.name_for("followed_by", name)
        keys = names_of(by)
        checks.key_types(self.schema, keys, step=name)
        predicates = [
            checks.predicate(condition, self.schema, step=name, what=what)
            for what, condition in (("first", first), ("then", then))
        ]
        within_ns = duration_ns(within, what=f"step {name!r}: within", positive=True)
        allowed = checked_drift(drift, [self.schema], span_ns=within_ns, span="within=", step=name)
        return self._add(
            FollowedByStep(
                name=name,
                inputs=self._in,
                schema=_matched_schema(self.schema, keys, allowed, step=name),
                keys=keys,
                first=predicates[0],
                then=predicates[1],
                within_ns=within_ns,
                drift=allowed,
                **self._gate(slack, replicas, keys, step=name),
            )
        )


def _matched_schema(
    schema: pa.Schema, keys: Sequence[str], drift: Drift | None, *, step: str
) -> pa.Schema:
    """Return the columns that leave: keys, both events' columns, with drift `certain`.

    Raises:
        DuplicateName: two would leave under one name.
    """
    fields = [schema.field(key) for key in keys]
    for prefix in PREFIXES:
        fields += [own.with_name(prefix + own.name) for own in schema if own.name not in keys]
    if drift is not None:
        fields.append(pa.field(CERTAIN, pa.bool_()))
    way_out = "rename the key with .select(new='old') before"
    checks.unique_columns([field.name for field in fields], step=step, way_out=way_out)
    return pa.schema(fields)
