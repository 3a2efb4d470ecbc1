"""Silence in whole flows: idle writers of a source, and the gates behind it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import slackwater as sw
from runtime.flow.plan import plan_stages

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
        stages = {stage.name: stage for stage in plan_stages(twice_gated(idle=idle))}
        (channel,) = stages["all"].inputs
        assert channel.is_mixed is expected
        assert all(c.is_mixed for c in stages["both"].inputs), "many writers either way"
