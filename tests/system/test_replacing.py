"""A running job that is placed anew on real nodes: nothing is lost, doubled, or out of order."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, WorkerDied
from slackwater.runtime.measure.ledger import imbalances
from tests.support.waiting import until

pytestmark = pytest.mark.ray

SOON_S = 30.0
A_SECOND = 500
PLACED = {"a": "node-1", "b": "node-2", "pairs": "node-2", "out": "node-2", "file": "node-1"}


def twins(path: Path) -> sw.Dataflow:
    """Two sources of the same numbers for a minute; each number once in the join of both."""
    count = 60 * A_SECOND
    times = pa.array([1_000 * n // A_SECOND for n in range(count)], pa.timestamp("ms"))
    rows = sw.table(pa.table({"ts": times, "n": range(count)}))
    flow = sw.Dataflow("twins")
    a = flow.source("a", rows, event_time="ts", speed=1.0)
    b = flow.source("b", rows, event_time="ts", speed=1.0)
    pairs = a.join(b, on="n", within="10ms", name="pairs")
    pairs.sink("out", sw.collect_sink())
    pairs.sink("file", sw.jsonl_sink(path, rows=100))
    return flow


def rows_out(job: sw.Job) -> int:
    return sum(sink.rows for sink in job.report().sinks)


def goes_on(job: sw.Job) -> None:
    before = rows_out(job)
    until(lambda: rows_out(job) > before + 50, within_s=SOON_S, what="more results")


def test_stages_move_while_they_work_and_every_number_comes_once_in_order(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    """Detached; stages of an attached job move in the tests below and of recovery."""
    job = cluster.submit(twins(tmp_path / "out"), placement=PLACED, detach=True)
    goes_on(job)
    elsewhere = cluster.predict(twins(tmp_path / "out"), 100, placement={"pairs": "node-1"})
    assert "it is not worth it" in (job.replace(elsewhere).problem or "")  # nothing waits
    first = job.replace({"pairs": "node-1", "out": "node-1"})  # between slots that there are
    goes_on(job)
    second = job.replace({"b": "node-3", "pairs": "node-3"})  # to a new one; node-2 has none then
    goes_on(job)
    third = job.replace({"pairs": "node-2"})  # which is used again
    goes_on(job)
    with pytest.raises(FlowError, match=r"its sink 'file' cannot move .* it holds the lock"):
        job.replace({"file": "node-2"})
    assert job.placement == PLACED | {"out": "node-1", "b": "node-3", "pairs": "node-2"}
    assert job.plan is not None
    assert set(job.plan.nodes) == {"node-1", "node-2", "node-3"}
    job.stop()
    report = job.wait()
    assert report.state == "stopped"
    assert [stage.slot for stage in report.stages if stage.name == "pairs"] == ["node-2"]
    assert report.replaced == [first, second, third]
    assert all(one.problem is None and 0 < one.gap_s < SOON_S for one in report.replaced)
    assert imbalances(report) == []
    numbers = job.result("out")["n"].to_pylist()
    assert len(numbers) > 150
    assert numbers == list(range(len(numbers)))
    parts = sorted((tmp_path / "out").glob("*.jsonl"))
    lines = [line for part in parts for line in part.read_text().splitlines()]
    written = [json.loads(line)["n"] for line in lines]
    assert written == list(range(len(written)))
    channels = {one.name: one for one in report.channels}
    assert channels["b→pairs"].bytes_sent > 8 * 50  # on three connections in turn
    job.close()


def test_a_worker_that_is_killed_meanwhile_ends_the_job_as_ever(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    job = cluster.submit(twins(tmp_path / "out"), placement=PLACED, detach=False)
    goes_on(job)
    os.kill(job.workers()["node-2"], signal.SIGKILL)
    try:
        assert job.replace({"pairs": "node-1"}).problem is not None
    except FlowError as problem:  # the job knew already
        assert "ends, or has ended" in str(problem)  # noqa: PT017
    with pytest.raises(WorkerDied, match="the worker of slot 'node-2'"):
        job.wait(SOON_S)
    with pytest.raises(FlowError, match="ends, or has ended, so no stage of it can move"):
        job.replace({"pairs": "node-1"})
