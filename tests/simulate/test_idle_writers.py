"""Silence in whole flows: idle writers of a source, and the gates behind it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OrderError
from slackwater.runtime.plan.plan import plan_stages

# b wakes up at 40 with an event that c and a have long passed.
FEED: dict[str, Any] = {
    "a": [0, 0, 20, 20, 40, 40, 41, 42],
    "w": ["b", "a", "a", "c", "a", "c", "b", "a"],
    "t": [0, 1, 19, 18, 39, 38, 5, 41],
}


def feed(flow: sw.Dataflow, name: str = "feed", **options: Any) -> sw.Stream:
    return flow.source(
        name,
        sw.table(pa.table(FEED)),
        **{"event_time": "t", "time_unit": "s", "writer": "w", "arrival": "a", **options},
    )


def twice_gated(**options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("silent")
    first = feed(flow, speed=1.0, **options).filter(sw.col("t") >= 0)
    counts = first.aggregate(by="w", window=sw.tumbling("100s"), n=sw.count(), name="counts")
    counts.sink("out", sw.collect_sink())
    merged = first.merge(feed(flow, "again", speed=1.0, **options), name="both")
    merged.aggregate(by="w", window=sw.tumbling("100s"), n=sw.count(), name="all").sink(
        "all-out", sw.collect_sink()
    )
    return flow


def test_an_awakened_writer_is_late_at_the_gate_and_counts_all_the_same() -> None:
    job = sw.Simulation().submit(twice_gated(idle="15s"))
    report = job.wait()
    stages = {stage.name: stage for stage in report.stages}
    assert stages["feed"].late_dropped == 0
    assert (stages["counts"].late, stages["counts"].ready) == (1, 7)
    assert (stages["both"].late, stages["both"].ready) == (2, 14)
    assert (stages["all"].late, stages["all"].late_dropped) == (2, 0)
    assert report.ledger.is_balanced
    rows = {row["w"]: row["n"] for row in job.result("all-out").to_pylist()}
    assert rows == {"a": 8, "b": 4, "c": 4}


def test_without_idle_the_same_flow_waits_and_nothing_is_late() -> None:
    report = sw.Simulation().submit(twice_gated()).wait()
    assert all(stage.late == 0 for stage in report.stages)


def test_what_a_gate_sends_on_is_mixed_if_its_sources_may_fall_silent() -> None:
    for idle, expected in (("15s", True), (None, False)):
        stages = {stage.name: stage for stage in plan_stages(twice_gated(idle=idle).graph)}
        (channel,) = stages["all"].inputs
        assert channel.is_mixed is expected
        assert all(c.is_mixed for c in stages["both"].inputs), "many writers either way"


def many(rows: int, **options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("many")
    data = pa.table({"t": list(range(rows)), "w": [row % 3 for row in range(rows)]})
    source = flow.source("feed", sw.table(data), event_time="t", time_unit="s", **options)
    counts = source.aggregate(window=sw.tumbling("10s"), n=sw.count(), name="counts")
    counts.sink("out", sw.collect_sink())
    return flow


LIMITS = sw.Limits(
    gate_rows=100, most_gate_rows=1_000, credit_rows=200, max_slice_rows=50, min_slice_rows=10
)


def test_a_source_that_promises_nothing_ends_the_job_before_it_fills_the_memory() -> None:
    flow = many(5_000, writer="w")
    assert "promises nothing before its end" in flow.explain()
    with pytest.raises(OrderError) as error:
        sw.Simulation(2).submit(flow, limits=LIMITS).wait()
    assert "the gate of 'counts' holds 1," in str(error.value)
    assert "rows of 'feed'" in str(error.value)
    assert "most_gate_rows=1,000" in str(error.value)
    assert "idle=, disorder= or promise=" in str(error.value)


def test_one_that_ends_before_or_promises_is_no_such_source() -> None:
    for flow in (many(900, writer="w"), many(5_000, writer="w", idle="5s"), many(5_000)):
        report = sw.Simulation(2).submit(flow, limits=LIMITS).wait()
        assert report.ledger.is_balanced
        assert report.ledger.out == report.ledger.entered
    assert "promises nothing" not in many(1, writer="w", idle="5s").explain()
