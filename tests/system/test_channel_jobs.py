"""Jobs whose slots share a host: they speak over Unix sockets and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from tests.support.endless import EndlessInput
from tests.support.waiting import until

pytestmark = pytest.mark.ray

SOON_S = 30.0
SPREAD = {"gate": "node-2"}  # the source and the sink have a node each by default
CONNECTED = "03"  # a state, in the words of /proc/net/unix


def connections(temp: Path) -> int:
    """How many accepted connections there are whose socket had a path in the temp folder."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    ours = [line.split() for line in lines if f"{temp}/sw-" in line]
    return sum(fields[5] == CONNECTED for fields in ours)


def endless() -> tuple[sw.Dataflow, sw.Stream]:
    """A source and a gate; with `SPREAD` they and the sink to come have a slot each."""
    flow = sw.Dataflow("endless")
    return flow, flow.source("numbers", EndlessInput(), event_time="ts").merge(name="gate")


def ignore(rows: pa.RecordBatch) -> None:
    pass


def test_a_job_that_is_stopped(cluster: sw.Cluster, temp: Path) -> None:
    flow, kept = endless()
    kept.sink("out", sw.callback_sink(ignore))
    job = cluster.submit(flow, placement=SPREAD)
    assert len(job.workers()) == 3
    # One that nobody has accepted yet is in another state.
    until(lambda: connections(temp) == 2, within_s=SOON_S, what="two connections")
    assert list(temp.glob("sw-*/channel")) == []  # while it runs, too
    until(lambda: job.report().sinks[0].rows > 0, within_s=SOON_S, what="a row")
    job.stop()
    assert job.status == "stopped"
    until(lambda: connections(temp) == 0, within_s=SOON_S, what="the workers to end")


def show(rows: pa.RecordBatch) -> None:
    print([str(row["at"]) for row in rows.to_pylist()])  # noqa: T201 - a slot shows what it prints


def test_a_callback_reads_nanoseconds_as_in_the_simulator(
    cluster: sw.Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """`to_pylist` needs pandas for them, which a slot loads only where it may be wanted."""
    at = pa.array([1_700_000_000_000_000_001], pa.timestamp("ns"))
    flow = sw.Dataflow("ns")
    rows = flow.source("rows", sw.table({"at": at}), event_time="at")
    rows.sink("out", sw.callback_sink(show))
    cluster.submit(flow, placement={"*": "node-1"}).wait()
    assert "['2023-11-14 22:13:20.000000001']" in capfd.readouterr().err
