"""A gate with a slack, and one of its three writers an hour ahead of the others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.measure.report import JobReport, StageReport

HOUR = 3_600
SECONDS = 60


def ticks(writer: str, *, ahead: int = 0, right_at: int | None = None) -> dict[str, list[Any]]:
    """A row each second, `ahead` of its arrival; at last perhaps one that is right."""
    arrivals = list(range(SECONDS))
    times = [arrival + ahead for arrival in arrivals]
    if right_at is not None:
        arrivals.append(right_at)
        times.append(right_at)
    return {"a": arrivals, "t": times, "w": [writer] * len(arrivals)}


def source(flow: sw.Dataflow, name: str, rows: pa.Table, **options: Any) -> sw.Stream:
    fixed: dict[str, Any] = {"event_time": "t", "arrival": "a", "time_unit": "s", "speed": 1.0}
    return flow.source(name, sw.table(rows), **fixed, **options)


def run(flow: sw.Dataflow) -> tuple[JobReport, dict[str, StageReport], list[int]]:
    job = sw.Simulation().submit(flow)
    report = job.wait()
    assert report.ledger.is_balanced
    return (
        report,
        {stage.name: stage for stage in report.stages},
        job.result("out")["t"].to_pylist(),
    )


def of_one_source(**options: Any) -> sw.Dataflow:
    tables = [pa.table(ticks("a")), pa.table(ticks("b")), pa.table(ticks("c", ahead=HOUR))]
    rows = pa.concat_tables(tables).sort_by("a")
    flow = sw.Dataflow("one", slack="20s")
    feed = source(flow, "feed", rows, writer="w", idle="10s", **options)
    other = source(flow, "other", pa.table(ticks("d")), **options)
    feed.merge(other, name="both").sink("out", sw.collect_sink())
    return flow


def test_within_one_source_its_clock_makes_nobody_slack_ready() -> None:
    _, stages, unguarded = run(of_one_source())
    assert stages["both"].slack_ready + stages["both"].late > 2 * SECONDS
    _, stages, guarded = run(of_one_source(ahead="2s"))
    assert (stages["both"].slack_ready, stages["both"].late) == (0, 0)
    assert stages["feed"].early == SECONDS
    assert stages["feed"].in_flight == 0
    assert sorted(guarded) == sorted(unguarded)
    assert guarded == sorted(guarded)


def of_three_sources(**options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("three", slack="20s")
    first, *others = (
        source(flow, name, pa.table(rows), idle="5s", out_of_order="late", **options)
        for name, rows in {
            "a": ticks("a"),
            "b": ticks("b"),
            "c": ticks("c", ahead=HOUR, right_at=2 * SECONDS),
        }.items()
    )
    first.merge(*others, name="both").sink("out", sw.collect_sink())
    return flow


def test_between_sources_neither() -> None:
    _, stages, _ = run(of_three_sources())
    assert stages["both"].slack_ready + stages["both"].late > SECONDS
    assert stages["c"].late_dropped == 1, "the one that was right"
    report, stages, times = run(of_three_sources(ahead="2s"))
    assert (stages["both"].slack_ready, stages["both"].late) == (0, 0)
    assert stages["c"].early == SECONDS
    assert stages["both"].idle_marks["c"] >= 1, "all that it has is held"
    assert times == sorted(times)
    assert report.ledger.out == report.ledger.entered == 3 * SECONDS + 1
