"""`over`: its step, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import DuplicateName, SettingError
from slackwater.runtime.model import Duration, Release, duration_ns, format_ns
from slackwater.runtime.operators.aggregate.custom_aggregate import (
    CustomAggregate,
    CustomFunctions,
)
from slackwater.runtime.operators.aggregate.interval_words import MOST_ROWS
from slackwater.runtime.operators.aggregate.running import refuse_unscanned
from slackwater.runtime.operators.aggregate.schema import aggregate_types, bound
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.streams import AnyStream, Names, names_of
from slackwater.runtime.plan.promises import Summary
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import USERS, GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits
from slackwater.runtime.shown import shown

ClosedEnds = Literal["end", "start", "both", "none"]
"""Ends of a reach that are in it."""
_OPTIONS = ("last", "rows", "ahead", "closed", "by", "slack", "replicas", "name")


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The rows of its key that a row has aggregates of.

    Attributes:
        last_ns: how far back rows of its key are in reach; None if time does not limit it.
        ahead_ns: how much after the row's own time the reach ends; before it where negative.
        rows: number of rows up to the row; None if no number limits it.
        closed: the ends that are in reach. Without `last_ns`, "start" leaves the row itself out.
    """

    last_ns: int | None = None
    ahead_ns: int = 0
    rows: int | None = None
    closed: ClosedEnds = "end"

    @property
    def has_itself(self) -> bool:
        """Whether the row itself is in a reach that no time limits."""
        return self.closed == "end"

    @property
    def delay_ns(self) -> int:
        """How long a row waits for rows after it, in event time."""
        return max(self.ahead_ns, 0)

    @property
    def text(self) -> str:
        """The reach as `explain` shows it."""
        without = "" if self.closed == "end" else ", without the row itself"
        if self.rows is not None:
            return f"the last {self.rows} rows{without}"
        if self.last_ns is None:
            return f"all rows before{without}"
        ahead = f", up to {format_ns(abs(self.ahead_ns))} " if self.ahead_ns else ""
        ahead += ("after it" if self.ahead_ns > 0 else "before it") if ahead else ""
        return f"the last {format_ns(self.last_ns)}{ahead}, closed at {self.closed}"


@dataclass(frozen=True, kw_only=True)
class OverStep(GatedStep):
    """Each row leaves with aggregates of the rows of its key within reach.

    Its event time is its own. Rows leave in the order of the stream.
    """

    keys: tuple[str, ...]
    reach: Reach
    aggregates: Mapping[str, Aggregate]
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""
    custom: Mapping[str, CustomFunctions] | None = field(default=None, metadata=USERS)
    """Functions of the custom aggregates; None if no aggregate is custom."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        reach = self.reach
        return StepTraits(
            kind="over",
            role=Role.AFTER_GATE,
            runs_users_code=self.custom is not None,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=max((reach.last_ns or 0) + reach.ahead_ns, reach.last_ns or 0),
            release=self.release,
            port_keys=(self.keys,),
            summaries=(Summary(delay_ns=reach.delay_ns),),
            makes="rows" if reach.last_ns is None else "on its time",
            result_delay_ns=reach.delay_ns,
            misses="the rows that they are before",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        own = {column for each in self.aggregates.values() for column in each.columns}
        return (needed - self.aggregates.keys()) | own | {*self.keys}

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> OverStep:  # noqa: D102 - see Step
        schema = pa.schema([field for field in self.schema if field.name in needed])
        own = {name: each for name, each in self.aggregates.items() if name in needed}
        return replace(self, schema=schema, aggregates=own, keeps_late=keeps_late)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        # Rows of other keys do not matter to a row.
        return (column if column in self.keys else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        yield f"over     {self.reach.text}"
        for name, aggregate in self.aggregates.items():
            yield f"gives    {name} = {aggregate.text}"


class RowsOver(AnyStream):
    """Rows of a stream can have aggregates of the rows before them."""

    @checked_call
    def over(  # noqa: PLR0913 - each option is one word of what a reach means
        self,
        /,
        columns: Mapping[str, Aggregate] | None = None,
        *,
        by: Names = (),
        last: Duration | None = None,
        rows: int | None = None,
        ahead: Duration = "0s",
        closed: ClosedEnds = "end",
        slack: Slack = AS_FLOW,
        replicas: Replicas = None,
        name: str | None = None,
        **named: Aggregate,
    ) -> Self:
        """Give each row aggregates of the rows of its key within reach, itself among them.

        Rows leave as they came, in the order of the stream, each with one more column for each
        aggregate. With neither `last` nor `rows` all rows of the key up to the row are in reach.
        A late row is dropped and counted, see `.late()`.

        Args:
            columns: {column: aggregate}, for names that Python cannot spell.
            by: the key columns; none: all rows together.
            last: how far back in event time the reach begins, "5m". A row then waits until the
                promise has passed it, since rows of its own time count.
            rows: number of rows in reach, the row itself and those before it.
            ahead: how far after the row the reach of `last` ends, "1m"; the row waits so much
                longer. Negative where it ends before the row, "-1m".
            closed: ends that are in reach. Of `last`: "end" (t − last, t + ahead], "start"
                [t − last, t + ahead), "both" or "none". Else "start" leaves the row itself out.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            replicas: the number of replicas, each with the rows of its keys; see `join`.
            name: the name of the step.
            named: column=aggregate, such as balance=sum("amount").

        Raises:
            FlowError: no aggregate, or one that needs all rows of a reach without an end.
            ColumnError, TypeMismatch: a column is not there, or of another type.
            DuplicateName: an aggregate has the name of a column.
            SettingError: both `last` and `rows`, or a length or number out of range.
        """
        name = self._step_name("over", name)
        reach = _reach_of(last, rows, ahead, closed, step=name)
        keys = names_of(by)
        checks.key_types(self.schema, keys, step=name)
        aggregates = checks.together(columns, named, step=name)
        types = aggregate_types(self.schema, aggregates, options=_OPTIONS, of="over", step=name)
        if twice := [column for column in types if column in self.schema.names]:
            raise DuplicateName(
                f"step {name!r}: {twice[0]!r} is a column already, and rows leave with all that "
                "they have; give the aggregate another name"
            )
        if reach.last_ns is None and reach.rows is None:
            refuse_unscanned(aggregates, "give over() last= or rows=", step=name)
        custom = {
            column: each.functions
            for column, each in aggregates.items()
            if isinstance(each, CustomAggregate) and each.functions is not None
        }
        return self._add(
            OverStep(
                name=name,
                inputs=self._in,
                schema=pa.schema([*self.schema, *types.items()]),
                keys=keys,
                reach=reach,
                aggregates=bound(aggregates, self.schema, step=name),
                custom=custom or None,
                **self._gate(slack, replicas, keys, step=name),
            )
        )


def _reach_of(
    last: Duration | None, rows: int | None, ahead: Duration, closed: ClosedEnds, *, step: str
) -> Reach:
    """Return the reach that a user wrote.

    Raises:
        SettingError: options that exclude each other, or numbers out of range.
    """
    who = f"step {step!r}: "
    ahead_ns = _signed_ns(ahead, what=f"{who}ahead")
    if last is not None and rows is not None:
        raise SettingError(
            f"{who}last={shown(last)} and rows={shown(rows)} are two reaches; omit one of the two"
        )
    if last is None:
        if ahead_ns:
            raise SettingError(
                f"{who}ahead={shown(ahead)} moves the end of last=, which is not written; "
                "write last='0s' for the rows ahead alone"
            )
        if closed not in ("end", "start"):
            raise SettingError(
                f"{who}closed={closed!r} is for last=; write 'end' with the row itself, "
                "or 'start' without it"
            )
        if rows is not None and (isinstance(rows, bool) or rows < 1):
            raise SettingError(f"{who}rows={shown(rows)} must be a whole number, 1 or more")
        if rows is not None and rows > MOST_ROWS:
            raise SettingError(
                f"{who}rows={shown(rows)} must be {MOST_ROWS:,} at most; omit it for all rows"
            )
        return Reach(rows=None if rows is None else int(rows), closed=closed)
    last_ns = duration_ns(last, what=f"{who}last")
    if last_ns + ahead_ns < (0 if closed == "both" else 1):
        raise SettingError(
            f"{who}last={shown(last)} and ahead={shown(ahead)} are an empty reach; it begins last "
            "before the row and ends ahead after it, so make last longer"
        )
    return Reach(last_ns=last_ns, ahead_ns=ahead_ns, closed=closed)


def _signed_ns(value: Duration, *, what: str) -> int:
    if isinstance(value, str) and value.startswith("-"):
        return -duration_ns(value[1:], what=what)
    if isinstance(value, int | float) and value < 0:
        return -duration_ns(-value, what=what)
    return duration_ns(value, what=what)
