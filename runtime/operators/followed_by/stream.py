"""The method `followed_by` of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Duration, duration_ns
from slackwater.runtime.operators.followed_by.machine import FollowedByMachine
from slackwater.runtime.operators.followed_by.step import PREFIXES, FollowedByStep
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift, DriftGiven, checked_drift
from slackwater.runtime.operators.ground.streams import (
    AnyStream,
    Names,
    names_of,
    refuse_revised,
)
from slackwater.runtime.plan.slack import AS_FLOW, Slack


class FollowedBy(AnyStream):
    """Streams can be searched for an event that follows another."""

    _entry = Entry(FollowedByStep, FollowedByMachine)

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
        replicas: int = 1,
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
            checks.predicate(one, self.schema, step=name, what=what)
            for what, one in (("first", first), ("then", then))
        ]
        replicas, _ = checks.replicas(replicas, "keys", keys=keys, step=name)
        refuse_revised(self.flow, self.name, step=name)
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
                release=self.flow.release_of(slack, step=name),
                replicas=replicas,
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
        fields += [one.with_name(prefix + one.name) for one in schema if one.name not in keys]
    if drift is not None:
        fields.append(pa.field(CERTAIN, pa.bool_()))
    way_out = "rename the key with .select(new='old') before"
    checks.unique_columns([one.name for one in fields], step=step, way_out=way_out)
    return pa.schema(fields)
