"""What the clocks of a run leave open in its report."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import slackwater as sw
from slackwater.jobs import latency_of
from slackwater.runtime.measure.assemble import job_report
from slackwater.runtime.measure.report import ChannelReport, ClockReport, JobReport, SinkReport
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from tests.support.streams import flow_with_streams

SLOTS = ["node-1", "node-2/0", "node-2/1", "node-3"]
PLACES = {"buses": "node-1", "loops": "node-2/0", "jams": "node-3", "jammed": "node-3"}
ERRORS = {"node-1": 0, "node-2/0": 70, "node-2/1": 50, "node-3": 200}


def report(errors: Mapping[str, int], **places: str) -> JobReport:
    """A run whose slots have clocks of these largest errors."""
    flow, buses, loops = flow_with_streams()
    buses.join(loops, on="area", within="5s", name="jams").sink("jammed", sw.collect_sink())
    buses.sink("raw", sw.collect_sink())
    loops.sink("counts", sw.collect_sink())
    places = {**PLACES, "raw": "node-1", "counts": "node-2/1", **places}
    plan = place("city", plan_stages(flow.graph), SLOTS, placement=places)
    clocks = {
        slot: ClockReport(
            slot.split("/")[0], largest_error_ns=error, is_reference=slot == "node-1", refused=1
        )
        for slot, error in errors.items()
    }
    return job_report(
        plan,
        state="done",
        host="ray",
        nodes=["node-1", "node-2", "node-3"],
        elapsed_s=1.0,
        stages=[],
        channels=[ChannelReport(one.name, one.source, one.target) for one in plan.channels],
        sinks=[SinkReport(name, "") for name in ("jammed", "raw", "counts")],
        clocks=clocks,
    )


def errors_of(made: JobReport) -> dict[str, int]:
    return {one.name: one.error_ns for one in [*made.channels, *made.sinks]}


def test_a_latency_is_off_by_its_sinks_clock_and_the_worst_of_its_sources() -> None:
    errors = errors_of(report(ERRORS))
    assert errors["jammed"] == 270  # of loops and the sink; buses have the reference's clock
    assert errors["raw"] == 0
    assert errors["counts"] == 120  # two slots of a node each have an estimate of their own


def test_a_time_on_the_wire_is_off_by_the_clocks_of_both_ends() -> None:
    errors = errors_of(report(ERRORS))
    assert errors["buses→jams"] == 200
    assert errors["loops→jams"] == 270
    assert errors["jams→jammed"] == 0  # one slot


def test_a_latency_within_one_slot_has_no_error() -> None:
    assert errors_of(report(ERRORS, counts="node-2/0"))["counts"] == 0


@pytest.mark.parametrize("errors", [{}, dict.fromkeys(SLOTS, 0)], ids=["no clocks", "one clock"])
def test_within_one_clock_there_is_no_error(errors: Mapping[str, int]) -> None:
    assert set(errors_of(report(errors)).values()) == {0}


def test_each_node_has_one_clock_the_worst_of_its_slots() -> None:
    clocks = {clock.node: clock for clock in report(ERRORS).clocks}
    assert list(clocks) == ["node-1", "node-2", "node-3"]
    assert clocks["node-2"].largest_error_ns == 70
    assert [clock.refused for clock in clocks.values()] == [1, 2, 1]


def test_a_jobs_latency_names_its_error() -> None:
    latency = latency_of(report(ERRORS))
    assert list(latency["jammed"]) == [
        *("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"),
        *("error_ms", "old_s", "rows"),
    ]
    assert latency["jammed"]["error_ms"] == pytest.approx(0.00027)
