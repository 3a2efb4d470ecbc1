"""`asof`: its step, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import READY_ONLY, Duration, Release, duration_ns, format_ns
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.streams import (
    AnyStream,
    Names,
    check_own,
)
from slackwater.runtime.operators.join.how import keys_text, late_columns_of
from slackwater.runtime.operators.join.step import (
    joined_schema,
    pairwise_keys,
)
from slackwater.runtime.plan.promises import Summary
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Side, Step
from slackwater.runtime.plan.traits import (
    MARKS,
    Keep,
    Replica,
    Replicas,
    Role,
    Sharing,
    StepTraits,
)
from slackwater.runtime.shown import shown

Direction = Literal["backward", "forward", "nearest"]
AsofHow = Literal["left", "inner"]


@dataclass(frozen=True, kw_only=True)
class AsofStep(GatedStep):
    """Each left row leaves with the nearest right row of its key, or with nulls.

    Its columns are the left ones, then the right ones as of a join. Its event time is that of the
    left row.
    """

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    tolerance_ns: int | None
    """The most that the times of both may differ; None: any."""
    direction: Direction
    how: AsofHow
    strict: bool
    """Whether right rows of the left row's own time do not count."""
    right_names: Mapping[str, str]
    """{right column: name it leaves under}; the right keys are not in it."""
    release: Release
    keep: Keep = "promise"
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="asof",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=self.tolerance_ns or 0,
            release=self.release,
            ports=(0, 1),
            port_keys=(self.left_on, self.right_on),
            summaries=(Summary(delay_ns=self.delay_ns),) * 2,
            makes="on its time",
            keep_rule=self.keep,
            misses="their nearest rows",
            sharing=Sharing.of(self.replicas),
            result_keys=self.left_on,
            replica=self.replica,
        )

    @property
    def delay_ns(self) -> int:
        """How long a left row waits for right rows after it, in event time."""
        return 0 if self.direction == "backward" else self.tolerance_ns or 0

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        if position == 0:
            return needed | set(self.left_on)
        read = {column for column, name in self.right_names.items() if name in needed}
        return read | set(self.right_on)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # A filter on right columns before would choose other rows.
        return (None if column in self.right_names.values() else column, None)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> AsofStep:  # noqa: D102 - see Step
        schema = pa.schema([field for field in self.schema if field.name in needed])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def late_columns(  # noqa: D102 - see Step
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        return late_columns_of(self.left_on, self.right_on, inputs, side)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        most = "" if self.tolerance_ns is None else f", at most {format_ns(self.tolerance_ns)} away"
        own = ", none of its own time" if self.strict else ""
        equal = keys_text(self.left_on, self.right_on)
        yield f"on       {equal}; the nearest right row, {self.direction}{most}{own}"
        if self.how == "inner":
            yield "how      inner: left rows without such a row do not leave"
        if self.delay_ns:
            yield f"leaves   {format_ns(self.delay_ns)} after the promise has passed a row"

    def keeps(self, steps: Mapping[str, Step]) -> str:  # noqa: D102 - see Step
        by = "promised" if self.keep == "promise" or self.release == READY_ONLY else "released"
        newest = "" if self.direction == "forward" else "the newest right row of each key, and "
        return f"{newest}rows until all that they may meet is {by}"


class AsofJoining(AnyStream):
    """Streams can be joined as of a time."""

    @checked_call
    def asof(  # noqa: PLR0913 - each option is one word of what a join means
        self,
        other: Self,
        on: Names = (),
        *,
        tolerance: Duration | None = None,
        direction: Direction = "backward",
        how: AsofHow = "left",
        strict: bool = False,
        left_on: Names = (),
        right_on: Names = (),
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: Replicas = None,
        name: str | None = None,
    ) -> Self:
        """Give each row the newest row of another stream before it, by key.

        A right row of the same event time counts, too. Each left row leaves once, with its own
        event time, in the order of these. Of right rows of one key and time the last counts (with
        `direction="forward"` the first).

        Args:
            other: the right stream, such as prices; may be this one.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            tolerance: the most that the times of both may differ, "5s"; None if there is no limit.
            direction: "backward": the newest right row at or before the left one. "forward": the
                oldest at or after it. "nearest": the nearer of both, backward if they are equally
                near. The last two wait for later rows, so they need a `tolerance`.
            how: "left": a row without such a right row leaves with nulls; "inner": it does not.
            strict: whether a right row of exactly the left row's time does not count.
            left_on: keys of this stream.
            right_on: keys of the other; they do not leave, being equal to the left ones.
            suffix: suffix of right columns whose name the left has too.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            keep: "promise": a row leaves when no right row that it needs can follow. "slack": when
                what was released is past it; late rows may miss some. None if it is the flow's.
            replicas: the number of replicas, as of `join`.
            name: the name of the step.

        Raises:
            FlowError: no keys, or a stream of another flow.
            ColumnError, TypeMismatch: a key is not there, or two cannot be equal.
            DuplicateName: two columns would leave under one name.
            SettingError: `tolerance` is below 0, is missing where later rows count, or is 0 beside
                `strict`.
        """
        name = self.flow.name_for("asof", name)
        check_own(self.flow, other, step=name)
        checks.check_times_meet(self.flow.steps, self.name, other.name, step=name)
        left_keys, right_keys = pairwise_keys(on, left_on, right_on, step=name)
        schema, right_names = joined_schema(
            self.schema,
            other.schema,
            (left_keys, right_keys),
            suffix=suffix,
            step=name,
            kind="asof",
        )
        checks.replicas(replicas, keys=left_keys, step=name)
        tolerance_ns = None
        if tolerance is not None:
            tolerance_ns = duration_ns(tolerance, what=f"step {name!r}: tolerance")
        elif direction != "backward":
            raise SettingError(
                f"step {name!r}: direction={direction!r} waits for rows after the left one, and "
                "without a tolerance= for ever; write tolerance='5s'"
            )
        if strict and tolerance_ns == 0:
            raise SettingError(
                f"step {name!r}: tolerance={shown(tolerance)} with strict=True: only rows of equal "
                "times are so near, and strict= excludes them; omit one of the two"
            )
        inputs = (self.name, other.name)
        return self._add(
            AsofStep(
                name=name,
                inputs=inputs,
                schema=schema,
                left_on=left_keys,
                right_on=right_keys,
                tolerance_ns=tolerance_ns,
                direction=direction,
                how=how,
                strict=strict,
                right_names=right_names,
                release=self.flow.release_of(slack, step=name),
                keep=self.flow.keep_of(keep, inputs=inputs),
                replicas=replicas,
            )
        )
