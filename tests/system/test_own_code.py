"""What users write themselves, on Ray: it is heard, and a source that waits holds up nobody."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

import slackwater as sw
from tests.support.own_inputs import Feed, stuck, talking

pytestmark = pytest.mark.ray


def test_prints_are_heard_by_step_and_a_source_that_never_returns_holds_up_nobody(
    cluster: sw.Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    flow = sw.Dataflow("own-code")
    numbers = flow.source("numbers", sw.table({"t": list(range(50))}), event_time="t")
    numbers.map_rows(talking, pa.schema([("t", pa.int64())]), name="talk").sink(
        "out", sw.collect_sink()
    )
    flow.source("feed", Feed(stuck), event_time="t").sink("more", sw.collect_sink())
    job = cluster.submit(flow, placement={"*": "node-1"})
    deadline_s = time.monotonic() + 30
    while any(sink.rows < rows for sink, rows in zip(job.report().sinks, (50, 2), strict=True)):
        assert time.monotonic() < deadline_s, "rows pass while a poll of the same slot waits"
    job.stop()
    report = job.report()
    assert report.state == "stopped"
    (note,) = [note for note in report.notes if "'feed'" in note]
    assert "Feed, an input of your own" in note
    assert "has ended without it" in note
    assert job.result("out").num_rows == 50
    printed = capfd.readouterr()
    assert printed.out == "", "that is the driver's own"
    lines = printed.err.splitlines()
    assert lines.count("[feed] reading two rows") == 1
    assert [line for line in lines if line.startswith("[talk]")] == [
        f"[talk] {said} {n}" for n in range(3) for said in ("seen", "odd:")
    ]
