"""Jobs whose slots share a host: they speak over Unix sockets and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

import slackwater as sw
from runtime.errors import OperatorError, SinkError, WorkerDied
from tests.support.endless import EndlessInput
from tests.support.waiting import until

pytestmark = pytest.mark.ray

SOON_S = 30.0
SPREAD = {"gate": "node-2"}  # the source and the sink have a node each by default
CONNECTED = "03"  # a state, in the words of /proc/net/unix


@pytest.fixture(autouse=True)
def nothing_stays(temp: Path) -> Iterator[None]:
    before = set(temp.glob("sw-*"))  # of other tests, whose processes died or are about to end
    yield
    until(lambda: set(temp.glob("sw-*")) <= before, within_s=SOON_S, what="sockets to go")


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


def refuse(rows: pa.RecordBatch) -> None:
    raise KeyError("no such phone")


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


def test_a_job_that_ends(cluster: sw.Cluster) -> None:
    flow = sw.Dataflow("short")
    events = pa.table({"ts": pa.array(range(5), pa.timestamp("ms"))})
    numbers = flow.source("numbers", sw.table(events), event_time="ts")
    numbers.merge(name="gate").sink("out", sw.collect_sink())
    job = cluster.submit(flow)
    assert job.wait(timeout=SOON_S).state == "done"
    assert len(job.result("out")) == 5


def test_a_job_that_fails(cluster: sw.Cluster) -> None:
    flow, kept = endless()
    kept.sink("calls", sw.callback_sink(refuse))
    job = cluster.submit(flow)
    with pytest.raises(OperatorError):
        job.wait(timeout=SOON_S)


def test_a_job_that_does_not_even_start(cluster: sw.Cluster) -> None:
    flow, kept = endless()
    kept.sink("lines", sw.jsonl_sink("/proc/nowhere/out.jsonl"))
    with pytest.raises(SinkError):
        cluster.submit(flow)


def test_a_job_whose_worker_is_killed(cluster: sw.Cluster) -> None:
    flow, kept = endless()
    kept.sink("out", sw.callback_sink(ignore))
    job = cluster.submit(flow, placement=SPREAD)
    psutil.Process(job.workers()["node-2"]).kill()
    with pytest.raises(WorkerDied):
        job.wait(timeout=SOON_S)
