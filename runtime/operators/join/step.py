"""`join`: its step, the columns that leave, and the method that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self, cast

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.expressions.function import Operand
from slackwater.runtime.expressions.holding import cast_of_both, holding_type
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
)
from slackwater.runtime.operators.ground.untouched import keep_length_ns
from slackwater.runtime.operators.join.how import (
    IF_TABLES,
    How,
    IfTables,
    alone_of,
    how_text,
    keys_text,
    late_columns_of,
)
from slackwater.runtime.operators.join.table_join import (
    OnMissing,
    TableJoinStep,
    check_table_join,
)
from slackwater.runtime.plan.changes import carried_by
from slackwater.runtime.plan.promises import Summary
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
from slackwater.runtime.shown import shown


@dataclass(frozen=True, kw_only=True)
class JoinStep(GatedStep):
    """Sliding-window join of two streams: pairs with equal keys, |Δ event time| ≤ within.

    The row that leaves has the left columns, then the right ones; a right column whose name
    the left has too, keys apart, gets `suffix`. Its event time is the later of the two. With drift
    there is a last column, `certain`: whether they are near enough whatever clocks were off by.

    A row without a partner has nulls for the other side, and its own event time.
    """

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    within_ns: int
    """The most that the times of a pair may differ."""
    where: Expr | None
    """Over the columns of pairs, which are those that leave unless `how` is semi or anti."""
    right_names: Mapping[str, str]
    """{right column: name it leaves under}; the right keys are not in it."""
    release: Release
    how: How = "inner"
    between_ns: tuple[int, int] | None = None
    """How far a right row may be older, and newer, than the left; None: `within_ns` both."""
    drift: Drift | None = None
    keep: Keep = "promise"
    replicas: Replicas = None
    share: Share = "keys"
    replica: Replica | None = None
    """In a plan: the number of this replica among several."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""
    result_time: Side | None = None
    """The side whose row has the event time of a pair; None: the later of the two."""

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
            # A pair has the times of its later row, a row without a partner has its own.
            summaries=(Summary(delay_ns=self.delay_ns),) * 2,
            makes="pairs",
            keep_rule=self.keep,
            misses="partners",
            sharing=Sharing.of(self.replicas, self.share),
            result_keys=self.left_on,
            replica=self.replica,
            needs_rows=not self.waits,
        )

    @property
    def alone(self) -> tuple[int, ...]:
        """Sides whose rows leave without a partner: 0 left, 1 right."""
        return alone_of(self.how)

    @property
    def reaches_ns(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """How far a left row looks back and ahead, and a right row."""
        before_ns, after_ns = self.between_ns or (self.within_ns, self.within_ns)
        return (before_ns, after_ns), (after_ns, before_ns)

    @property
    def delay_ns(self) -> int:
        """How long rows wait, in event time, for older ones that may leave yet."""
        sides = {*self.alone} | ({_SIDES[self.result_time]} if self.result_time else set())
        return max([self.reaches_ns[side][1] for side in sides], default=0)

    @property
    def waits(self) -> bool:
        """Whether pairs wait for older results, to leave in order."""
        return bool(self.alone) or self.result_time is not None

    def columns_alone(self, side: int) -> Mapping[str, str]:
        """Return {name it leaves under: column} of a row of one side without a partner."""
        came = {leaves: name for name, leaves in self.right_names.items()}
        if side == 0:
            gives_right = self.how not in ("semi", "anti")
            names = [name for name in self.schema.names if not (gives_right and name in came)]
            return {name: name for name in names}
        keys = dict(zip(self.left_on, self.right_on, strict=True))
        both = {**keys, **came}
        return {name: both[name] for name in self.schema.names if name in both}

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
        # Without a row on the other side a row would leave alone, so only its own may be filtered.
        of_left, of_right = (1 not in self.alone), (0 not in self.alone)
        if column in self.left_on:  # a left key was that of the right, too
            right = self.right_on[self.left_on.index(column)]
            return (column if of_left else None, right if of_right else None)
        if self.drift and column == CERTAIN:
            return (None, None)
        came = {name: old for old, name in self.right_names.items()}
        if column in came and self.how not in ("semi", "anti"):
            return (None, came[column] if of_right else None)
        return (column if of_left else None, None)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> JoinStep:  # noqa: D102 - see Step
        wanted = needed | self._of_where
        schema = pa.schema([field for field in self.schema if field.name in wanted])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def late_columns(  # noqa: D102 - see Step
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        return late_columns_of(self.left_on, self.right_on, inputs, side)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"on       {keys_text(self.left_on, self.right_on)}, within {self._within_text}"
        if self.how != "inner":
            yield f"how      {self.how}: {how_text(self.how)}"
        if self.alone:
            delay = f"{format_ns(self.delay_ns)} " if self.delay_ns else ""
            yield f"leaves   {delay}after the promise has passed a row: no partner can follow then"
        if self.result_time is not None:
            yield f"time     that of the {self.result_time} row of a pair"
        if self.drift:
            yield f"drift    {self.drift.text}: each pair that may be near enough, marked"
        if self.where is not None:
            yield f"where    {self.where!s}"

    @property
    def _within_text(self) -> str:
        if self.between_ns is None:
            return format_ns(self.within_ns)
        before, after = map(format_ns, self.between_ns)
        return f"{before} before and {after} after the left row"

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


def pairwise_keys(
    on: Names, left_on: Names, right_on: Names, *, step: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of both sides as a user has written them.

    Raises:
        FlowError: they are written both ways.
    """
    both, left_keys, right_keys = map(names_of, (on, left_on, right_on))
    if both and (left_keys or right_keys):
        raise FlowError(f"step {step!r}: give on=, or left_on= and right_on=, not both")
    return (both, both) if both else (left_keys, right_keys)


def joined_schema(
    left: pa.Schema,
    right: pa.Schema,
    on: tuple[Sequence[str], Sequence[str]],
    *,
    suffix: str,
    step: str,
    kind: Literal["a join", "asof", "a lookup"] = "a join",
) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of pairs, and {right column: name it leaves under}, without keys.

    Args:
        left: columns of the left rows; they keep their names.
        right: columns of the right rows; a name that the left has too gets `suffix`.
        on: keys of the left, keys of the right, pairwise.
        suffix: suffix of right columns.
        step: the step's name, for errors.
        kind: kind of the step, for errors.

    Raises:
        FlowError: no keys, or not pairwise.
        ColumnError, TypeMismatch: a key is not there, or two cannot be equal.
        DuplicateName: two columns would leave under one name.
    """
    left_on, right_on = on
    if not left_on or len(left_on) != len(right_on):
        all_rows = "pair every row with every other" if kind == "a join" else "do without keys"
        way_out = f"to {all_rows}, assign the same literal to both sides"
        if kind == "a lookup":
            way_out = "for a table of one row, without keys, write cross"
        raise FlowError(
            f"step {step!r}: {kind} needs keys, as many on the left ({len(left_on)}) as on the "
            f"right ({len(right_on)}): on='area', or left_on= and right_on=; {way_out}"
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
                f"{right_key!r} is {right_type}; keys need one type on both sides: "
                f"{cast_of_both(Operand(left_type), Operand(right_type))}, in with_columns before"
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


def lengths_ns(within: Duration | tuple[Duration, Duration], *, step: str) -> tuple[int, int]:
    """Return how far a right row may be before the left one, and after.

    Raises:
        SettingError: it is neither a length of time nor two, or it is zero.
    """
    if not isinstance(within, tuple | list):
        length_ns = duration_ns(within, what=f"step {step!r}: within", positive=True)
        return length_ns, length_ns
    if len(within) != 2:
        raise SettingError(
            f"step {step!r}: within={shown(within, 60)} has {len(within)} lengths; give one, or "
            "two: how far the right row may be before the left, and after: within=('5s', '0s')"
        )
    before_ns, after_ns = (
        duration_ns(length, what=f"step {step!r}: within, {which}")
        for which, length in zip(("before", "after"), within, strict=True)
    )
    if not before_ns and not after_ns:
        raise SettingError(
            f"step {step!r}: within={shown(within, 60)} pairs rows of equal times alone; one of "
            "both must be more than zero: within=('1ns', '0s')"
        )
    return before_ns, after_ns


def check_how(how: How, *, drift: bool, is_even: bool, share: Share, step: str) -> None:
    """Check that a join can do what `how=` and `within=` say.

    Raises:
        FlowError: it is not "inner", and `drift=` or `share="all"` is given; or `drift=` and a
            `within=` that differs before and after.
    """
    if drift and not is_even:
        raise FlowError(
            f"step {step!r}: drift= with within=(before, after): clocks that are off have one "
            "distance either way; write within='5s', and a where= on times of your own"
        )
    if how == "inner":
        return
    if drift:
        raise FlowError(
            f"step {step!r}: how={how!r} with drift=: whether a row has a partner is not certain "
            "where clocks are off; omit drift=, or write how='inner'"
        )
    if share == "all":
        raise FlowError(
            f"step {step!r}: how={how!r} with share='all': no replica knows whether a row has a "
            "partner at another; write share='keys'"
        )


class Sides(NamedTuple):
    """Columns of both sides of a join, and the keys of each."""

    left: tuple[pa.Schema, Sequence[str]]
    right: tuple[pa.Schema, Sequence[str]]
    streams: tuple[str, str]
    """Names of both streams, for errors."""


def leaving_schema(pairs: pa.Schema, sides: Sides, how: How, *, step: str) -> pa.Schema:
    """Return the columns that leave a join; `pairs` has those of pairs.

    Raises:
        TypeMismatch: a right row may leave alone, and a key of it is not of the left key's type.
    """
    (left, left_on), (right, right_on), streams = sides
    if how in ("semi", "anti"):
        return left
    if 1 not in alone_of(how):
        return pairs
    for left_key, right_key in zip(left_on, right_on, strict=True):
        kinds = left.field(left_key).type, right.field(right_key).type
        if kinds[0] != kinds[1]:
            casts = _casts_of(zip(streams, (left_key, right_key), kinds, strict=True))
            raise TypeMismatch(
                f"step {step!r}: how={how!r}: left key {left_key!r} is {kinds[0]}, and right key "
                f"{right_key!r} is {kinds[1]}; rows of either side leave with it, so it needs one "
                f"type: {casts}"
            )
    return pairs


def _casts_of(keys: Iterable[tuple[str, str, pa.DataType]]) -> str:
    """Return the casts that give two keys one type; each key is (stream, column, type)."""
    every = [*keys]
    meeting = holding_type(*(Operand(kind) for _, _, kind in every))
    if meeting is None:
        return "no type holds the values of both, so cast one where its values fit the other"
    casts = [
        f"that of stream {stream!r} by .with_columns({key}=sw.col({key!r}).cast('{meeting}'))"
        for stream, key, kind in every
        if kind != meeting
    ]
    return f"before the join cast {', and '.join(casts)}"


_SIDES: Mapping[Side, int] = {"left": 0, "right": 1}


class Joining(AnyStream):
    """Streams can be joined."""

    @checked_call
    def join(  # noqa: PLR0913 - each option is one word of what a join means
        self,
        other: Self,
        on: Names = (),
        *,
        within: Duration | tuple[Duration, Duration] | IfTables | None = IF_TABLES,
        how: How = "inner",
        left_on: Names = (),
        right_on: Names = (),
        where: Expr | None = None,
        drift: DriftGiven = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | Duration | None = None,
        replicas: Replicas = None,
        share: Share = "keys",
        on_missing: OnMissing = "error",
        time: Literal["later", "left", "right"] = "later",
        name: str | None = None,
    ) -> Self:
        """Pair rows of two streams with equal keys and event times at most `within` apart.

        Without `within` both sides are tables, one of which changes: all their rows stay, and rows
        of this join change as those do. Results have the event time of the row that caused them.

        With `how="left"`, `"right"` or `"outer"` rows of that side or both that have no partner
        leave too, once, with nulls for the other side. Keys have the left names. Such a row has its
        own event time. It leaves when the promise has passed that by as long as a partner may
        follow, and pairs wait with it, so that all leave in event-time order.
        `"semi"` gives each left row with a partner, at its first; `"anti"` each without. Both have
        the left columns alone.

        Args:
            other: the right stream; may be this one.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            within: longest distance of partners, "5s"; or a pair, how far the right row may be
                before the left one, and how far after: ("5s", "0s"). With None,
                as without it where a side changes, any distance.
            how: rows that leave: "inner", "left", "right", "outer", "semi" or "anti".
            left_on: keys of this stream.
            right_on: keys of the other; they do not leave, being equal to the left ones.
            where: a further condition on pairs, over the columns of pairs. Rows for which it holds
                with no other row have no partner.
            drift: how far an event's time may be off, either way: "5ms", or the name of a column
                that both streams have, with each event's own bound in whole nanoseconds (see
                `clock_bound`). A pair that may be at most `within` apart leaves, with a column
                `certain`: whether it surely is. A pair that is not is also marked `uncertain`, and
                sinks count those. At most half of `within`. Source: [thesis] §3.2.3, §6.2.
            suffix: suffix of right columns whose name the left has too.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            keep: "promise": a row stays until no partner of it can follow, so that late rows find
                all of theirs. "slack": until what was released is more than `within` past it, as
                in [ssg]; late rows may miss some. Omitted, it is that of the flow.
                Of tables a length of event time, "30d": the rows of a key stay at least so long
                after its newest. Then they are taken out, at the last moment before a multiple of
                that length, and the key counts as one of `forgotten_keys`, once the inputs have
                reached that.
            replicas: the number of replicas, 128 at most, in slots of their own. Each has a gate,
                and owns keys. Pairs leave by event time, then by the hash of their key: the same
                rows in the same order for any number, 1 included. None: one stage, and pairs leave
                in the order of their later rows.
            share: "keys": each replica gets the rows of its keys. "all": each gets all rows,
                stores its share of them, and compares all with what it stores: for few keys,
                or if a few keys have most of the rows; only for `how="inner"`.
            on_missing: fate of a row that takes out one that is not there, without `within`:
                "error" ends the job, "count" counts it as `missing_rows`.
            time: event time of a pair: that of its "later" row, of its "left" or its "right" one.
                With these a pair waits until no older one can follow, as far as `within` reaches;
                not with `drift=`, `share="all"`, and `how="semi"` or `"anti"`.
            name: the name of the step.

        Raises:
            FlowError: no keys; or `drift=` or `share="all"` with a `how` other than "inner".
            ColumnError, TypeMismatch: a key is not there, or two cannot be equal.
            DuplicateName: two columns would leave under one name.
            SettingError: an unknown `how`; a length of `within` is none, or it is omitted and
                neither side changes.
        """
        name = self.flow.name_for("join", name)
        check_own(self.flow, other, step=name)
        left_keys, right_keys = pairwise_keys(on, left_on, right_on, step=name)
        schema, right_names = joined_schema(
            self.schema, other.schema, (left_keys, right_keys), suffix=suffix, step=name
        )
        checks.replicas(replicas, keys=left_keys, step=name)
        if where is not None:
            where = checks.predicate(where, schema, step=name, what="where")
        schemas, inputs = [self.schema, other.schema], (self.name, other.name)
        sides = Sides((self.schema, left_keys), (other.schema, right_keys), inputs)
        if within is None or isinstance(within, IfTables):
            _check_time(time, how=how, drift=False, share="keys", step=name, is_table=True)
            changes = [carried_by(self.flow.steps, side).changes for side in inputs]
            retracts = (changes[0] != "none", changes[1] != "none")
            if within is IF_TABLES and not any(retracts):
                raise SettingError(
                    f"step {name!r}: no row of either side changes or goes, so say how far apart "
                    "partners are: write .join(other, on='key', within='5s'); within=None pairs "
                    "rows of all times, and all rows stay"
                )
            if not any(retracts):
                checks.none_missing(on_missing, step=name)
            check_table_join(
                how, schemas, retracts, where=where, share=share, step=name, drift=drift
            )
            return self._add(
                TableJoinStep(
                    name=name,
                    inputs=inputs,
                    schema=leaving_schema(schema, sides, how, step=name),
                    left_on=left_keys,
                    right_on=right_keys,
                    where=where,
                    right_names=right_names,
                    retracts=retracts,
                    how=how,
                    on_missing=on_missing,
                    keep_ns=keep_length_ns(keep, step=name),
                    release=self.flow.release_of(slack, step=name),
                    replicas=replicas,
                )
            )
        checks.none_missing(on_missing, step=name)
        if keep not in (None, "promise", "slack"):
            raise SettingError(
                f"step {name!r}: with within=, keep={shown(keep)} must be 'promise' or 'slack'; "
                "a length of time is for a join of tables, whose rows stay"
            )
        between_ns = lengths_ns(within, step=name)
        within_ns = max(between_ns)
        is_even = min(between_ns) == within_ns
        check_how(how, drift=drift is not None, is_even=is_even, share=share, step=name)
        checks.check_times_meet(self.flow.steps, self.name, other.name, step=name)
        checks.check_times_meet(self.flow.steps, other.name, self.name, step=name)
        _check_time(time, how=how, drift=drift is not None, share=share, step=name)
        allowed = checked_drift(drift, schemas, span_ns=within_ns, span="within=", step=name)
        return self._add(
            JoinStep(
                name=name,
                inputs=inputs,
                schema=leaving_schema(judged(schema, allowed, step=name), sides, how, step=name),
                left_on=left_keys,
                right_on=right_keys,
                within_ns=within_ns,
                where=where,
                how=how,
                between_ns=None if is_even else between_ns,
                drift=allowed,
                right_names=right_names,
                release=self.flow.release_of(slack, step=name),
                keep=self.flow.keep_of(cast("Keep | None", keep), inputs=inputs),
                replicas=replicas,
                share=share,
                result_time=None if time == "later" else time,
            )
        )


def _check_time(
    time: str, *, how: How, drift: bool, share: Share, step: str, is_table: bool = False
) -> None:
    """Check that the event time of pairs may be that of one side.

    Raises:
        SettingError: another option forbids it.
    """
    if time == "later":
        return
    others = {
        f"how={how!r}": how in ("semi", "anti"),
        "drift=": drift,
        "share='all'": share != "keys",
        "no within=": is_table,
    }
    if written := [name for name, is_written in others.items() if is_written]:
        raise SettingError(
            f"step {step!r}: time={time!r} makes pairs wait for older ones, and with {written[0]} "
            "none waits; omit one of the two"
        )
