"""`merge`: several streams of one schema, in event-time order; and a chain of K-slack buffers.

```
            K 1 s          1 s more         3 s more
stream ─▶ buffer ──┬──▶ buffer ──┬──▶ buffer ──▶ within 5 s
                   └▶ within 1 s └▶ within 2 s
```

A row is in one buffer at a time, so all of them together hold what the longest alone would. Source:
[thesis] §2.3.5, Fig. 2.10(c). Differs: the slacks are given; it has AQ-K-slack find each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Self, TypeVar

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions.expressions import NullLiteral
from slackwater.runtime.model import (
    Duration,
    GateRead,
    Release,
    ReleaseRule,
    concat_batches,
    duration_ns,
)
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.contract import PlainOperator, Result
from slackwater.runtime.operators.ground.flow_builder import FlowBuilder
from slackwater.runtime.operators.ground.streams import AnyStream, check_own
from slackwater.runtime.plan.slack import AS_FLOW, Slack
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Role, StepTraits


@dataclass(frozen=True, kw_only=True)
class MergeStep(GatedStep):
    """Several streams of one schema, in event-time order."""

    release: Release

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="merge",
            role=Role.AFTER_GATE,
            passes_on=True,
            release=self.release,
            ports=(0,) * len(self.inputs),  # rows of all inputs become one order
            takes_changes="any",
            has_late_rows=False,  # late rows leave like others
            misses="their place",
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return needed

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        return (column,) * len(self.inputs)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield from ()


class MergeMachine(PlainOperator):
    """The machine of a `MergeStep`: its gate does all the work.

    Attributes:
        rows_held: none.
        late_dropped: none: late rows leave, too.
    """

    STATE = Fields()

    def __init__(self, step: MergeStep, *, most_kept_rows: int) -> None:
        self.rows_held = 0
        self.late_dropped = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        late, batch = released.late[0], released.ports[0]
        if late is not None:
            batch = late if batch is None else concat_batches([late, batch])
        return Result(batch, released.progress.promise_ns)


S = TypeVar("S", bound=AnyStream)


class FlowMerging(FlowBuilder):
    """Flows can merge their streams."""

    @checked_call
    def merge(
        self, *streams: S, fill: bool = False, slack: Slack = AS_FLOW, name: str | None = None
    ) -> S:
        """Put the rows of streams with the same columns into one, in event-time order.

        Columns meet by name, in the order of the first stream.

        Args:
            streams: streams of this flow.
            fill: whether columns that a stream lacks are null in its rows; else they are an error.
            slack: how long its gate waits; AS_FLOW: as the flow says.
            name: the name of the step.

        Raises:
            TypeMismatch: the columns differ; says which one.
            FlowError: no streams, or a stream of another flow.
        """
        return _merged(self, streams, fill=fill, slack=slack, name=name)


class Merging(AnyStream):
    """Streams can be merged."""

    @checked_call
    def merge(
        self, *others: Self, fill: bool = False, slack: Slack = AS_FLOW, name: str | None = None
    ) -> Self:
        """Put the rows of several streams into one, in event-time order; see Dataflow.merge."""
        return _merged(self.flow, (self, *others), fill=fill, slack=slack, name=name)

    @checked_call
    def k_slack_chain(self, *slacks: Duration) -> tuple[Self, ...]:
        """Return this stream in order within each slack.

        Together the buffers hold what the longest does. This stream has to come as it is, with
        `out_of_order="late"` and a `disorder` of at least the longest slack: no buffer mends rows
        that a source drops.

        Args:
            slacks: "1s", "2s", "5s": of event time, ascending. A row leaves the first buffer when
                the newest is a second ahead of it, the next when it is two, whatever is ready. A
                row older than those that left leaves at once, and the next buffer mends it if it
                can. Which rows are late depends on how many a read takes.

        Raises:
            SettingError: none, zero, no length of time, or not ascending.
        """
        lengths_ns = _ascending_ns(slacks)
        buffer, buffers = self, []
        for before_ns, slack_ns in pairwise([0, *lengths_ns]):
            # A gate releases a row once the newest is *more* than its slack ahead: hence 1 ns less.
            step = MergeStep(
                name=self.flow.name_for("in-order", None),
                inputs=buffer._in,
                schema=self.schema,
                release=ReleaseRule.in_full(slack_ns - before_ns - 1),
            )
            buffer = buffer._add(step)
            buffers.append(buffer)
        return tuple(buffers)


def _merged(
    flow: FlowBuilder, streams: Sequence[S], *, fill: bool, slack: Slack, name: str | None
) -> S:
    name = flow.name_for("merge", name)
    if not streams:
        raise FlowError(f"step {name!r}: merge has no streams; give at least one")
    for stream in streams:
        check_own(flow, stream, step=name)
    if fill:
        every: dict[str, pa.Field] = {}
        for field in chain.from_iterable(stream.schema for stream in streams):
            every.setdefault(field.name, field)
        merged_schema(
            {stream.name: _with(stream.schema, every.values()) for stream in streams}, step=name
        )
        streams = [_filled(stream, every.values()) for stream in streams]
    step = MergeStep(
        name=name,
        inputs=tuple(stream.name for stream in streams),
        schema=merged_schema({stream.name: stream.schema for stream in streams}, step=name),
        release=flow.release_of(slack, step=name),
    )
    return streams[0]._add(step)


def _with(schema: pa.Schema, every: Iterable[pa.Field]) -> pa.Schema:
    """Return a schema, then the fields of those whose names it lacks."""
    return pa.schema([*schema, *(field for field in every if field.name not in schema.names)])


def _filled(stream: S, every: Iterable[pa.Field]) -> S:
    """Return a stream, with nulls in the columns that it lacks."""
    lacking = {f.name: NullLiteral(f.type, "null") for f in every if f.name not in stream.columns}
    a_stream: Any = stream  # which has the methods of all operators
    filled: S = a_stream.with_columns(lacking) if lacking else stream
    return filled


def merged_schema(inputs: Mapping[str, pa.Schema], *, step: str) -> pa.Schema:
    """Return the schema that all inputs ({name: schema}) share, columns in the first one's order.

    Raises:
        FlowError: they differ; names the column and both inputs.
    """
    (first, schema), *others = inputs.items()
    for name, other in others:
        for column in dict.fromkeys([*schema.names, *other.names]):
            kinds = [
                str(each.field(column).type) if column in each.names else "missing"
                for each in (schema, other)
            ]
            if kinds[0] != kinds[1]:
                way_out = f"make them alike before, .with_columns({column}=…), or .drop it"
                if "missing" in kinds:
                    way_out += "; fill=True makes missing columns null"
                raise TypeMismatch(
                    f"step {step!r}: merged streams must have the same columns, and {column!r} "
                    f"is {kinds[0]} in {first!r} and {kinds[1]} in {name!r}; {way_out}"
                )
    return schema


def _ascending_ns(slacks: Sequence[Duration]) -> list[int]:
    lengths_ns = [
        duration_ns(slack, what=f"k_slack_chain: slack {place + 1}", positive=True)
        for place, slack in enumerate(slacks)
    ]
    if not slacks or any(after <= first for first, after in pairwise(lengths_ns)):
        raise SettingError(
            f"k_slack_chain: slacks {', '.join(map(repr, slacks)) or 'are missing'}; give at least "
            "one, each longer than the one before it, such as '1s', '2s', '5s'"
        )
    return lengths_ns
