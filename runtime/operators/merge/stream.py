"""The methods `merge` of flows and of streams, and `k_slack_chain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, TypeVar

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.model import Duration
from slackwater.runtime.operators.ground.contract import Entry
from slackwater.runtime.operators.ground.flow_builder import FlowBuilder
from slackwater.runtime.operators.ground.streams import AnyStream, check_own
from slackwater.runtime.operators.merge.chain import k_slack_chain
from slackwater.runtime.operators.merge.machine import MergeMachine
from slackwater.runtime.operators.merge.step import MergeStep
from slackwater.runtime.plan.slack import AS_FLOW, Slack

S = TypeVar("S", bound=AnyStream)


class FlowMerging(FlowBuilder):
    """Flows can merge their streams."""

    def merge(self, *streams: S, slack: Slack = AS_FLOW, name: str | None = None) -> S:
        """Put the rows of streams with the same columns into one, in event-time order.

        Raises:
            TypeMismatch: the columns differ; says which one.
            FlowError: no streams, or a stream of another flow.
        """
        return _merged(self, streams, slack=slack, name=name)


class Merging(AnyStream):
    """Streams can be merged."""

    _entry = Entry(MergeStep, MergeMachine)

    @checked_call
    def merge(self, *others: Self, slack: Slack = AS_FLOW, name: str | None = None) -> Self:
        """Put the rows of several streams into one, in event-time order; see Dataflow.merge."""
        return _merged(self.flow, (self, *others), slack=slack, name=name)

    @checked_call
    def k_slack_chain(self, *slacks: Duration) -> tuple[Self, ...]:
        """Return this stream in order within each slack.

        Together the buffers hold what the longest does.

        Args:
            slacks: "1s", "2s", "5s": of event time, ascending. A row leaves the first buffer when
                the newest is a second ahead of it, the next when it is two, whatever is ready. A
                row older than those that left leaves at once, and the next buffer mends it if it
                can. Which rows are late depends on how many a read takes.

        Raises:
            SettingError: none, zero, no length of time, or not ascending.
        """
        return k_slack_chain(self, *slacks)


def _merged(flow: FlowBuilder, streams: Sequence[S], *, slack: Slack, name: str | None) -> S:
    name = flow.name_for("merge", name)
    if not streams:
        raise FlowError(f"step {name!r}: merge has no streams; give at least one")
    for stream in streams:
        check_own(flow, stream, step=name)
    step = MergeStep(
        name=name,
        inputs=tuple(stream.name for stream in streams),
        schema=merged_schema({stream.name: stream.schema for stream in streams}, step=name),
        release=flow.release_of(slack, step=name),
    )
    flow.put(step)
    return type(streams[0])(flow, step)


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
                raise TypeMismatch(
                    f"step {step!r}: merged streams must have the same columns, and {column!r} "
                    f"is {kinds[0]} in {first!r} and {kinds[1]} in {name!r}; "
                    "select or with_columns before the merge"
                )
    return schema
