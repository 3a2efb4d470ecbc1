"""Late rows in whole flows: counted, corrected, and as a stream of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.config import Limits
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import READY_ONLY

MS = 1_000_000
N = 400


def feeds(flow: sw.Dataflow, *, lag_ms: int = 700) -> sw.Stream:
    """Return a merge of readings on time and readings up to 0.7 s late, 100 a second each."""
    n = np.arange(N)
    at_ns = n * 10 * MS
    lag_ns = (np.abs(np.sin(n / 9)) * lag_ms * MS).astype(np.int64)
    arrival_ns = np.maximum.accumulate(at_ns + lag_ns)
    rows = {"ts": pa.array(at_ns, pa.timestamp("ns")), "line": n % 3, "n": n}
    slow = pa.table({**rows, "arrival": pa.array(arrival_ns, pa.timestamp("ns"))})
    fast = flow.source("fast", sw.table(pa.table(rows)), event_time="ts", speed=1)
    return fast.merge(
        flow.source("slow", sw.table(slow), event_time="ts", arrival="arrival", speed=1).drop(
            "arrival"
        ),
        slack=None if flow.release == READY_ONLY else "0s",
        name="both",
    )


def counting(late: Any, *, slack: str | None, replicas: int = 1) -> sw.Dataflow:
    flow = sw.Dataflow("counting", slack=slack)
    counts = feeds(flow).aggregate(
        by="line",
        window=sw.sliding("500ms", "250ms"),
        n=sw.count(),
        total=sw.sum("n"),
        late=late,
        replicas=replicas,
        name="counts",
    )
    counts.sink("out", sw.collect_sink())
    counts.late(name="missed").sink("late", sw.collect_sink())
    return flow


def last_rows(table: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = table.to_pylist()
    return {(row["line"], row["window_end"]): (row["n"], row["total"]) for row in rows}


@pytest.mark.parametrize("replicas", [1, 3])
def test_corrected_windows_end_as_the_complete_ones(replicas: int) -> None:
    complete = sw.Simulation().submit(counting("drop", slack=None))
    complete.wait()
    job = sw.Simulation().submit(counting("correct", slack="0s", replicas=replicas))
    report = job.wait()
    assert last_rows(job.result("out")) == last_rows(complete.result("out"))
    revisions = job.result("out")["revision"].to_pylist()
    assert max(revisions) > 0
    marked = {sink.name: sink.marked for sink in report.sinks}
    assert marked == {"out": {"revision": sum(n > 0 for n in revisions)}, "late": {}}
    assert {sink.name: sink.marked for sink in complete.report().sinks} == {"out": {}, "late": {}}
    assert job.result("late").num_rows == 0
    assert report.ledger.is_balanced


def test_revisions_keep_their_mark_through_steps_a_merge_and_other_nodes() -> None:
    flow = sw.Dataflow("marks", slack="0s")
    rows = feeds(flow)
    by_line, whole = (
        rows.aggregate(
            by=by, window=sw.tumbling("250ms"), n=sw.count(), late="correct", name=name
        ).select("n", "revision")
        for by, name in (("line", "by_line"), ((), "whole"))
    )
    merged = by_line.merge(whole, name="all").filter(sw.col("n") > 1)
    merged.with_columns(twice=sw.col("n") * 2).sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=3).submit(flow)
    (sink,) = job.wait().sinks
    revised = sum(n > 0 for n in job.result("out")["revision"].to_pylist())
    assert sink.marked == {"revision": revised}
    assert 0 < revised < sink.rows
    text = report_text(job.report())
    assert "revi-" in text
    assert JobReport.from_json(job.report().to_json()).sinks[0].marked == sink.marked


def test_rows_that_miss_a_window_leave_as_a_stream_that_names_them() -> None:
    job = sw.Simulation().submit(counting("drop", slack="0s"))
    report = job.wait()
    late = job.result("late")
    stage = next(stage for stage in report.stages if stage.name == "counts")
    assert stage.late_dropped > 0
    assert sum(late["late_dropped"].to_pylist()) == stage.late_dropped
    assert set(late["late_step"].to_pylist()) == {"counts"}
    assert min(late["late_by_ns"].to_pylist()) > 0
    counted = sum(job.result("out")["n"].to_pylist())
    missed = 2 * 2 * N - counted  # each row is in two windows
    assert late.num_rows <= missed <= 2 * late.num_rows


def test_late_rows_can_be_counted_as_they_were_found() -> None:
    flow = sw.Dataflow("late", slack="0s")
    counts = feeds(flow).aggregate(window=sw.tumbling("250ms"), n=sw.count(), name="counts")
    counts.sink("out", sw.collect_sink())
    late = counts.late()
    late.sink("late", sw.collect_sink())
    late.aggregate(window=sw.tumbling("1s"), n=sw.count(), slack=None).sink(
        "by-second", sw.collect_sink()
    )
    job = sw.Simulation(nodes=3).submit(flow)
    report = job.wait()
    found = job.result("late").num_rows
    assert found > 0
    assert sum(job.result("by-second")["n"].to_pylist()) == found
    assert report.ledger.is_balanced


def test_windows_that_are_let_go_too_soon_are_counted_and_said() -> None:
    job = sw.Simulation().submit(counting("correct", slack="0s"), limits=Limits(most_kept_rows=50))
    report = job.wait()
    stage = next(stage for stage in report.stages if stage.name == "counts")
    assert stage.dropped_early > 0
    assert any("'counts' dropped" in note and "missed windows" in note for note in report.notes)
    assert sum(job.result("late")["late_dropped"].to_pylist()) == stage.late_dropped > 0
