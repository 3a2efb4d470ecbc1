"""What is said of a slot whose loop does not answer."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot.report import SlotReport, stuck
from slackwater.runtime.plan.plan import plan_stages
from tests.support.reports import stage

S = 10**9


def test_the_last_report_of_a_slot_that_hangs_grows_old_and_names_the_stage_at_work() -> None:
    report = SlotReport(
        "node-1", "running", [stage("m", "stateless", 1, 1), stage("out", "sink", 1, 1)]
    )
    report.at_ns, report.stages[0].still_ns = 10 * S, 2 * S
    told = stuck(report, "out", 50 * S)
    states = [(one.still_ns, one.is_stuck) for one in told.stages]
    assert states == [(42 * S, False), (40 * S, True)]
    assert not report.stages[1].is_stuck
    assert [one.still_ns for one in stuck(report, None, 50 * S).stages] == [42 * S, None]


@pytest.mark.parametrize("call", ["open", "commit", "close", "abort"])
def test_a_sink_whose_output_does_not_return_is_known_meanwhile(call: str) -> None:
    seen: dict[str, str | None] = {}

    class Own(sw.connectors.Output, sw.connectors.Sink):
        """An output, and its sink."""

        def describe(self) -> str:
            return "own"

        def open(self, *_: object) -> Own:
            seen["open"] = sinks.at_work
            return self

        def write(self, rows: object, first_ordinal: int) -> None: ...

        def commit(self) -> None:
            seen["commit"] = sinks.at_work

        def close(self) -> None:
            seen["close"] = sinks.at_work

        def abort(self, _: str) -> None:
            seen["abort"] = sinks.at_work

    flow = sw.Dataflow("own")
    rows = flow.source("rows", sw.table({"ts": [1], "n": [1]}), event_time="ts")
    rows.sink("out", Own())
    stages = plan_stages(flow.graph)
    sinks = SlotSinks()
    sinks.open(stages, folder="", runs={})
    sinks.begin()
    match call:
        case "commit":
            sinks.commit("out")
        case "close":
            sinks.close("out")
        case "abort":
            sinks.abort("out", "it failed")
    assert seen[call] == "out"
    assert sinks.at_work is None
