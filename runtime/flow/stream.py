"""A stream under construction: every method adds a step to its flow and returns what leaves it.

Nothing runs here. Each call checks names, columns and types at once, so an error points at
the line that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.errors import FlowError, TypeMismatch
from runtime.expressions.expressions import Expr
from runtime.flow import checks, late_rows
from runtime.flow.growing import GrowingFlow
from runtime.flow.rows import Rows
from runtime.model import Duration, duration_ns
from runtime.plan.slack import AS_FLOW, Slack
from runtime.plan.steps import (
    Aggregate,
    AggregateStep,
    JoinStep,
    Keep,
    Late,
    MergeStep,
    Share,
    SinkSpec,
    SinkStep,
    Window,
)

Names = str | Sequence[str]


class Stream(Rows):
    """What leaves one step of a flow. May feed any number of steps, one of them even twice."""

    def key_by(self, *keys: str) -> KeyedStream:
        """Say which columns tell rows apart, for the aggregate or join that follows. No step.

        Raises:
            ColumnError, TypeMismatch: a key is not there, or is neither text nor whole.
        """
        if not keys:
            raise FlowError(f"key_by on {self.name!r} needs a column, such as key_by('area')")
        checks.key_types(self.schema, keys, step=self.name)
        return KeyedStream(self, keys)

    def merge(self, *others: Stream, slack: Slack = AS_FLOW, name: str | None = None) -> Stream:
        """Put the rows of several streams into one, in event-time order; see Dataflow.merge."""
        return merged(self.flow, (self, *others), slack=slack, name=name)

    def aggregate(
        self,
        columns: Mapping[str, Aggregate] | None = None,
        *,
        window: Window,
        by: Names = (),
        slack: Slack = AS_FLOW,
        late: Late = "drop",
        replicas: int = 1,
        share: Share | None = None,
        name: str | None = None,
        **named: Aggregate,
    ) -> Stream:
        """Aggregate each key's rows in each window of event time.

        Args:
            columns: {column: aggregate}, for names that Python cannot spell.
            window: tumbling("1s") or sliding("10s", "2s").
            by: the key columns; none: all rows together.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            late: what becomes of a row that comes behind the close of its window. "drop": it is
                counted. "correct": the window's row leaves again, with a column `revision` (0
                the first time), as long as its source may still have sent it; no aggregate or
                join can follow.
            replicas: how many work on it, each on the rows of its keys; see `join`.
            share: goes with the next release: replicas of an aggregate share by keys.
            name: of the step.
            named: column=aggregate, such as n=count().
        """
        name = self._step_name("aggregate", name)
        checks.window(window, step=name)
        keys = _names(by)
        aggregates = checks.together(columns, named, step=name)
        checks.no_share(share, step=name, stacklevel=3)
        replicas, _ = checks.replicas(replicas, "keys", keys=keys, step=name)
        late_rows.refuse_corrected(self.flow.steps, self.name, step=name)
        schema = checks.aggregated_schema(self.schema, keys, aggregates, step=name)
        return self._add(
            AggregateStep(
                name=name,
                inputs=self._in,
                schema=late_rows.revised(schema, late, step=name),
                keys=keys,
                window=window,
                aggregates=aggregates,
                slack_ns=self.flow.slack_of(slack, step=name),
                late=late,
                replicas=replicas,
            )
        )

    def join(  # noqa: PLR0913 - each option is one word of what a join means
        self,
        other: Stream,
        on: Names = (),
        *,
        within: Duration,
        left_on: Names = (),
        right_on: Names = (),
        where: Expr | None = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
    ) -> Stream:
        """Pair rows of two streams with equal keys and event times at most `within` apart.

        Args:
            other: the right stream; may be this one.
            on: key columns of both; or `left_on` and `right_on`, pairwise.
            within: how far apart, "5s".
            left_on: keys of this stream.
            right_on: keys of the other; they do not leave, being equal to the left ones.
            where: what else a pair must satisfy, over the columns that leave.
            suffix: for right columns whose name the left has too.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            keep: "promise": a row stays until no partner of it can follow, so that late rows find
                all of theirs. "slack": until what was released is more than `within` past it, as
                in [ssg]; late rows may miss some. None: as the flow says.
            replicas: how many work on it, in slots of their own, behind one gate that is a
                stage of its own. 1: gate and join are one stage.
            share: "keys": each replica gets the rows of its keys. "all": each gets all rows,
                stores its share of them, and compares all with what it stores: for few keys,
                or some with most of the rows.
            name: of the step.
        """
        name = self.flow.name_for("join", name)
        _check_own(self.flow, other, step=name)
        late_rows.refuse_corrected(self.flow.steps, self.name, other.name, step=name)
        if on and (left_on or right_on):
            raise FlowError(f"step {name!r}: give on=, or left_on= and right_on=, not both")
        left_keys, right_keys = (_names(on),) * 2 if on else (_names(left_on), _names(right_on))
        schema, right_names = checks.joined_schema(
            self.schema, other.schema, (left_keys, right_keys), suffix=suffix, step=name
        )
        replicas, share = checks.replicas(replicas, share, keys=left_keys, step=name)
        if where is not None:
            where = checks.predicate(where, schema, step=name, what="where")
        inputs = (self.name, other.name)
        return self._add(
            JoinStep(
                name=name,
                inputs=inputs,
                schema=schema,
                left_on=left_keys,
                right_on=right_keys,
                within_ns=duration_ns(within, what=f"step {name!r}: within", positive=True),
                where=where,
                right_names=right_names,
                slack_ns=self.flow.slack_of(slack, step=name),
                keep=self.flow.keep_of(keep, inputs=inputs, step=name),
                replicas=replicas,
                share=share,
            )
        )

    def late(self, side: late_rows.Side | None = None, *, name: str | None = None) -> Stream:
        """Return the rows that could not count in full at this join or aggregate, as a stream.

        Args:
            side: of a join: the rows of its "left" or "right" with all their columns; None: the
                keys of both.
            name: of the step.

        Its columns are those, and `late_step`, `late_side` (of a join), `late_event_time`,
        `late_by_ns`, and `late_dropped`: false for a row that missed some of its windows or
        partners only. In the order of this stream it happens when it was found late.

        Raises:
            FlowError: this stream does not come from a join or an aggregate, or an aggregate has
                no sides.
            DuplicateName: a column has one of these names already.
        """
        name = self.flow.name_for("late", name)
        return self._add(late_rows.late_step(self.flow.steps, self.name, side=side, name=name))

    def sink(self, name: str, spec: SinkSpec) -> None:
        """End here: the rows go to parquet_sink(path), jsonl_sink, callback_sink or collect_sink.

        Raises:
            FlowError: a step has this name, or the sink cannot do here what its options say.
        """
        name = self.flow.name_for("sink", name)
        checks.sink(spec, step=name)
        self._add(SinkStep(name=name, inputs=self._in, schema=self.schema, sink=spec))


@dataclass(frozen=True)
class KeyedStream:
    """A stream and the columns that tell its rows apart."""

    stream: Stream
    keys: tuple[str, ...]

    def aggregate(
        self,
        columns: Mapping[str, Aggregate] | None = None,
        *,
        window: Window,
        slack: Slack = AS_FLOW,
        late: Late = "drop",
        replicas: int = 1,
        share: Share | None = None,
        name: str | None = None,
        **named: Aggregate,
    ) -> Stream:
        """Aggregate by these keys; see Stream.aggregate."""
        checks.no_share(share, step=name or "aggregate", stacklevel=3)
        return self.stream.aggregate(
            columns,
            window=window,
            by=self.keys,
            slack=slack,
            late=late,
            replicas=replicas,
            share=None,
            name=name,
            **named,
        )

    def join(  # noqa: PLR0913 - as Stream.join
        self,
        other: KeyedStream,
        *,
        within: Duration,
        where: Expr | None = None,
        suffix: str = "_right",
        slack: Slack = AS_FLOW,
        keep: Keep | None = None,
        replicas: int = 1,
        share: Share = "keys",
        name: str | None = None,
    ) -> Stream:
        """Join on these keys and the other's, pairwise; see Stream.join."""
        if not isinstance(other, KeyedStream):
            raise TypeMismatch(
                f"join on {self.stream.name!r} after key_by takes a stream after key_by, "
                f"not {other!r}; write other.key_by(...), or join before key_by with on="
            )
        return self.stream.join(
            other.stream,
            within=within,
            left_on=self.keys,
            right_on=other.keys,
            where=where,
            suffix=suffix,
            slack=slack,
            keep=keep,
            replicas=replicas,
            share=share,
            name=name,
        )


def merged(
    flow: GrowingFlow, streams: Sequence[Stream], *, slack: Slack, name: str | None
) -> Stream:
    """Put the rows of streams with the same columns into one, in event-time order.

    Raises:
        TypeMismatch: the columns differ; says which one.
        FlowError: no streams, or a stream of another flow.
    """
    name = flow.name_for("merge", name)
    if not streams:
        raise FlowError(f"step {name!r}: there is nothing to merge")
    for stream in streams:
        _check_own(flow, stream, step=name)
    schemas = {stream.name: stream.schema for stream in streams}
    step = MergeStep(
        name=name,
        inputs=tuple(stream.name for stream in streams),
        schema=checks.merged_schema(schemas, step=name),
        slack_ns=flow.slack_of(slack, step=name),
    )
    flow.put(step)
    return Stream(flow, step)


def _check_own(flow: GrowingFlow, stream: Any, *, step: str) -> None:
    """Check that a stream belongs to this flow.

    Raises:
        FlowError: it does not.
        TypeMismatch: it is no stream.
    """
    if isinstance(stream, KeyedStream):
        raise TypeMismatch(
            f"step {step!r}: {stream.stream.name!r} is keyed; key both streams of a join by "
            "key_by, or none; a merge takes none that is keyed"
        )
    if not isinstance(stream, Stream):
        raise TypeMismatch(f"step {step!r}: {stream!r} is no stream")
    if stream.flow is not flow:
        raise FlowError(
            f"step {step!r}: stream {stream.name!r} belongs to dataflow "
            f"{stream.flow.name!r}, not to {flow.name!r}; build both in one flow"
        )


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
