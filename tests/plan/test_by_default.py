"""Which flows take checkpoints by default, and why others take none."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.plan.by_default import default_line, why_none
from tests.support.endless import EndlessInput, LoggedInput

LOG = LoggedInput(rows=10, began_s=0.0)


class WholeOutput(sw.connectors.Output):
    traits = sw.connectors.SinkTraits(only_whole=True)

    def describe(self) -> str:
        return "whole"

    def open(self, schema: Any, context: Any) -> Any:
        raise NotImplementedError


class DriverInput(LoggedInput):
    ends_with_driver = True


class OffsetsInput(DriverInput):
    keeps_offsets = True


def synced(given: Any) -> Any:
    return sw.clocks.synced(given, server="127.0.0.1:1", key="0" * 32)


def flow_of(
    given: Any = LOG,
    sink: sw.connectors.Output | None = None,
    *,
    ordered: bool = True,
    replicas: int | None = None,
    **options: Any,
) -> sw.Dataflow:
    flow = sw.Dataflow("city", **options)
    numbers = flow.source("numbers", given, event_time="ts", idle="1s")
    sums = numbers.aggregate(
        {"sum": sw.sum("n")}, by="n", window=sw.tumbling("1s"), replicas=replicas, name="sums"
    )
    sums.sink("out", sink or sw.collect_sink(), ordered=ordered)
    return flow


def why(flow: sw.Dataflow) -> str:
    return why_none(flow.steps, deadline_ns=flow.deadline_ns)


@pytest.mark.parametrize(
    ("flow", "reason"),
    [
        (flow_of(), ""),
        (flow_of(slack="1s"), ""),
        (flow_of(deadline="5s"), ""),
        (flow_of(sw.table({"ts": [1], "n": [1]})), "no source of the flow is live"),
        (flow_of(EndlessInput()), "'numbers' does not say whether it gives its rows again"),
        (flow_of(synced(LOG)), ""),
        (flow_of(DriverInput(10, 0.0)), "'numbers' begins again with each process"),
        (flow_of(OffsetsInput(10, 0.0)), ""),
        (flow_of(synced(OffsetsInput(10, 0.0))), ""),
        (flow_of(synced(DriverInput(10, 0.0))), "'numbers' begins again with each process"),
        (flow_of(sink=WholeOutput()), "sink 'out': it commits at its end alone"),
        (
            flow_of(deadline="200ms"),
            "would hold rows for 1.00 s, and the flow has a deadline",
        ),
        (
            flow_of(sink=sw.jsonl_sink("rows"), ordered=False, replicas=2),
            "replicas write parts of their own at sink 'out'",
        ),
    ],
)
def test_a_live_flow_takes_checkpoints_if_they_make_nothing_worse(
    flow: sw.Dataflow, reason: str
) -> None:
    assert reason in why(flow)
    assert bool(why(flow)) == bool(reason)
    assert flow.explain(checkpoints=True).splitlines()[-1] == default_line(
        flow.steps, deadline_ns=flow.deadline_ns
    )
