"""`join`: its step, the columns that leave, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.function import Operand
from slackwater.runtime.expressions.holding import cast_of_both
from slackwater.runtime.model import READY_ONLY, Duration, Release, duration_ns, format_ns
from slackwater.runtime.model.schema import is_text
from slackwater.runtime.operators.ground import checks
from slackwater.runtime.operators.ground.checks import is_whole, key_types, unique_columns
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift, DriftGiven, checked_drift
from slackwater.runtime.operators.ground.keep import silent_text
from slackwater.runtime.operators.ground.streams import (
    AnyStream,
    Names,
    check_own,
    names_of,
    refuse_revised,
)
from slackwater.runtime.plan.promises import PASSES
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Side, Step
from slackwater.runtime.plan.traits import (
    MARKS,
    Keep,
    Replica,
    Replicas,
    Role,
    Share,
    Sharing,
    StepTraits,
)


@dataclass(frozen=True, kw_only=True)
class JoinStep(GatedStep):
    """Sliding-window join of two streams: pairs with equal keys, |Δ event time| ≤ within.

    The row that leaves has the left columns, then the right ones; a right column whose name
    the left has too, keys apart, gets `suffix`. Its event time is the later of the two. With drift
    there is a last column, `certain`: whether they are near enough whatever clocks were off by.
    """

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    within_ns: int
    where: Expr | None
    """Over the columns that leave."""
    right_names: Mapping[str, str]
    """{right column: name it leaves under}; the right keys are not in it."""
    release: Release
    drift: Drift | None = None
    keep: Keep = "promise"
    replicas: Replicas = None
    share: Share = "keys"
    replica: Replica | None = None
    """In a plan: the number of this replica among several."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="join",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=self.widest_ns,
            release=self.release,
            ports=(0, 1),
            port_keys=(self.left_on, self.right_on),
            summaries=(PASSES, PASSES),  # a pair has the times of its later row
            makes="pairs",
            keep_rule=self.keep,
            misses="partners",
            sharing=Sharing.of(self.replicas, self.share),
            result_keys=self.left_on,
            replica=self.replica,
            needs_rows=True,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        wanted = needed | self._of_where
        bounds = self.drift.columns if self.drift else frozenset()
        if position == 0:
            return wanted | set(self.left_on) | bounds
        read = {column for column, name in self.right_names.items() if name in wanted}
        return read | set(self.right_on) | bounds

    @property
    def _of_where(self) -> frozenset[str]:
        return frozenset() if self.where is None else self.where.columns()

    @property
    def widest_ns(self) -> int:
        """The most that the times of a pair may differ, by their clocks."""
        return self.within_ns + (2 * self.drift.most_ns if self.drift else 0)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # A left key was that of the right, too.
        if column in self.left_on:
            right = self.right_on[self.left_on.index(column)]
            return (column, right)
        if self.drift and column == CERTAIN:
            return (None, None)
        came = {name: old for old, name in self.right_names.items()}
        return (None, came[column]) if column in came else (column, None)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> JoinStep:  # noqa: D102 - see Step
        wanted = needed | self._of_where
        schema = pa.schema([field for field in self.schema if field.name in wanted])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def late_columns(  # noqa: D102 - see Step
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        if side is None:
            return tuple(
                dict(zip(self.left_on, keys, strict=True)) for keys in (self.left_on, self.right_on)
            )
        return tuple(
            {column: column for column in schema.names} if side == own else None
            for own, schema in zip(("left", "right"), inputs, strict=True)
        )

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        keys = zip(self.left_on, self.right_on, strict=True)
        equal = ", ".join(a if a == b else f"{a} = {b}" for a, b in keys)
        yield f"on       {equal}, within {format_ns(self.within_ns)}"
        if self.drift:
            yield f"drift    {self.drift.text}: each pair that may be near enough, marked"
        if self.where is not None:
            yield f"where    {self.where!s}"

    def keeps(self, steps: Mapping[str, Step]) -> str:  # noqa: D102 - see Step
        if self.release == READY_ONLY:
            return ""
        within = format_ns(self.widest_ns)
        silent = silent_text(steps, self.inputs)
        if self.keep == "promise":
            text = (
                f"rows until all have promised {within} more, so that late ones find all partners"
            )
            return f"{text}; {silent}: as many as most_kept_rows" if silent else text
        text = f"rows until {within} more were released; late ones may miss partners"
        return f"{text} ({silent}; keep='promise' would keep all)" if silent else text


def joined_schema(
    left: pa.Schema,
    right: pa.Schema,
    on: tuple[Sequence[str], Sequence[str]],
    *,
    suffix: str,
    step: str,
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of pairs, and {right column: name it leaves under}, without keys.

    Args:
        left: columns of the left rows; they keep their names.
        right: columns of the right rows; a name that the left has too gets `suffix`.
        on: keys of the left, keys of the right, pairwise.
        suffix: suffix of right columns.
        step: the step's name, for errors.

    Raises:
        FlowError: no keys, or not pairwise.
        ColumnError, TypeMismatch: a key is not there, or two cannot be equal.
        DuplicateName: two columns would leave under one name.
    """
    left_on, right_on = on
    if not left_on or len(left_on) != len(right_on):
        raise FlowError(
            f"step {step!r}: a join needs keys, as many on the left ({len(left_on)}) as on the "
            f"right ({len(right_on)}): on='area', or left_on= and right_on=; to pair every row "
            "with every other, assign the same literal to both sides"
        )
    pairs = zip(
        left_on,
        key_types(left, left_on, step=step),
        right_on,
        key_types(right, right_on, step=step),
        strict=True,
    )
    for left_key, left_type, right_key, right_type in pairs:
        if left_type == right_type or (is_text(left_type) and is_text(right_type)):
            continue
        if not (is_whole(left_type) and is_whole(right_type)):
            raise TypeMismatch(
                f"step {step!r}: left key {left_key!r} is {left_type} and right key "
                f"{right_key!r} is {right_type}; keys need one type on both sides: before the join "
                f"{cast_of_both(Operand(left_type), Operand(right_type))}, in with_columns"
            )
    right_names = {
        name: name + suffix if name in left.names else name
        for name in right.names
        if name not in right_on
    }
    way_out = "choose another suffix=, or rename with .select(new='old') before the join"
    unique_columns([*left.names, *right_names.values()], step=step, way_out=way_out)
    fields = [pa.field(leaves, right.field(name).type) for name, leaves in right_names.items()]
    return pa.schema([*left, *fields]), right_names


def judged(schema: pa.Schema, drift: Drift | None, *, step: str) -> pa.Schema:
    """Return the schema of pairs: with drift= there is a last column, `certain`.

    Raises:
        DuplicateName: there is a column of that name.
    """
    if drift is None:
        return schema
    way_out = "drift= adds one of that name: rename it with .select(new='old') before"
    unique_columns([*schema.names, CERTAIN], step=step, way_out=way_out)
    return schema.append(pa.field(CERTAIN, pa.bool_()))


class Joining(AnyStream):
    """Streams can be joined."""

    @checked_call
    def join(  # noqa: PLR0913 - each option is one word of what a join means
        self,
        other: Self,
        on: Names = (),
        *,
        within: Duration,
        left_on: Names = (),
        right_on: Names = (),
        where: Expr | None = None,
        drift: DriftGiven = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: Replicas = None,
        share: Share = "keys",
        name: str | None = None,
    ) -> Self:
        """Pair rows of two streams with equal keys and event times at most `within` apart.

        Args:
            other: the right stream; may be this one.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            within: longest distance of partners, "5s".
            left_on: keys of this stream.
            right_on: keys of the other; they do not leave, being equal to the left ones.
            where: a further condition on pairs, over the columns that leave.
            drift: how far an event's time may be off, either way: "5ms", or the name of a column
                that both streams have, with each event's own bound in whole nanoseconds (see
                `clock_bound`). A pair that may be at most `within` apart leaves, with a column
                `certain`: whether it surely is. A pair that is not is also marked `uncertain`, and
                sinks count those. At most half of `within`. Source: [thesis] §3.2.3, §6.2.
            suffix: suffix of right columns whose name the left has too.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            keep: "promise": a row stays until no partner of it can follow, so that late rows find
                all of theirs. "slack": until what was released is more than `within` past it, as
                in [ssg]; late rows may miss some. None: as the flow says.
            replicas: the number of replicas, 128 at most, in slots of their own. Each has a gate,
                and owns keys. Pairs leave by event time, then by the hash of their key: the same
                rows in the same order for any number, 1 included. None: one stage, and pairs leave
                in the order of their later rows.
            share: "keys": each replica gets the rows of its keys. "all": each gets all rows,
                stores its share of them, and compares all with what it stores: for few keys,
                or if a few keys have most of the rows.
            name: the name of the step.
        """
        name = self.flow.name_for("join", name)
        check_own(self.flow, other, step=name)
        refuse_revised(self.flow, self.name, other.name, step=name)
        both, left_keys, right_keys = map(names_of, (on, left_on, right_on))
        if both and (left_keys or right_keys):
            raise FlowError(f"step {name!r}: give on=, or left_on= and right_on=, not both")
        if both:
            left_keys = right_keys = both
        schema, right_names = joined_schema(
            self.schema, other.schema, (left_keys, right_keys), suffix=suffix, step=name
        )
        checks.replicas(replicas, keys=left_keys, step=name)
        if where is not None:
            where = checks.predicate(where, schema, step=name, what="where")
        within_ns = duration_ns(within, what=f"step {name!r}: within", positive=True)
        schemas = [self.schema, other.schema]
        allowed = checked_drift(drift, schemas, span_ns=within_ns, span="within=", step=name)
        inputs = (self.name, other.name)
        return self._add(
            JoinStep(
                name=name,
                inputs=inputs,
                schema=judged(schema, allowed, step=name),
                left_on=left_keys,
                right_on=right_keys,
                within_ns=within_ns,
                where=where,
                drift=allowed,
                right_names=right_names,
                release=self.flow.release_of(slack, step=name),
                keep=self.flow.keep_of(keep, inputs=inputs),
                replicas=replicas,
                share=share,
            )
        )
