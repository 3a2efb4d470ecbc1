"""Jobs that outlive their driver: run to their end, and found by whoever comes later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from ray.util import list_named_actors

import slackwater as sw
from slackwater.actors.jobs.named_actors import NAMESPACE, actor_name
from slackwater.actors.jobs.records import Records
from slackwater.runtime.errors import ClusterError, FlowError, OperatorError, SinkError, WorkerDied
from tests.support.crowds import crowd
from tests.support.flows import ticking
from tests.support.processes import (
    command_line,
    driver,
    environment_of,
    wait_for_free_cpus,
)
from tests.support.waiting import until

pytestmark = pytest.mark.ray

LIMIT_S = 60.0
SOON_S = 20.0
CPUS = 12.0


@pytest.fixture(autouse=True)
def nothing_is_left(cluster: sw.Cluster) -> Iterator[None]:
    """Before and after each test: no coordinator; after it, every CPU is free again."""
    no_coordinator_stays(cluster)  # those of other tests may keep what was collected
    yield
    no_coordinator_stays(cluster)
    until(lambda: free_cpus() == CPUS, within_s=SOON_S, what="free CPUs")


def no_coordinator_stays(cluster: sw.Cluster) -> None:
    for job in cluster.jobs():
        job.stop()
    until(lambda: not coordinators(), within_s=SOON_S, what="coordinators to leave")


def coordinators() -> list[str]:
    return [one["name"] for one in list_named_actors(True) if one["namespace"] == NAMESPACE]


def free_cpus() -> float:
    return float(ray.available_resources().get("CPU", 0.0))


def counting(name: str, **sinks: sw.connectors.Output) -> sw.Dataflow:
    flow, numbers = ticking(name)
    gate = numbers.merge(name="gate")
    for sink, spec in sinks.items():
        gate.sink(sink, spec)
    return flow


def ignore(rows: pa.RecordBatch) -> None:
    pass


def sink_rows(job: sw.Job) -> int:
    return max((sink.rows for sink in job.report().sinks), default=0)


SUBMITS_AND_DIES = """
import os, signal, sys
from pathlib import Path
import slackwater as sw
from tests.support.flows import ticking

def tell(rows):
    print("told of", len(rows), "rows", flush=True)

flow, numbers = ticking("outlives", over=Path(sys.argv[1], "over"))
with sw.Cluster.connect() as cluster:
    gate = numbers.merge(name="gate")
    gate.sink("folder", sw.parquet_sink(sys.argv[1] + "/out"))
    gate.sink("kept", sw.collect_sink())
    gate.sink("told", sw.callback_sink(tell))
    job = cluster.submit(flow, placement={"gate": "node-2"})
    assert job.status == "running", job.status
    print(job.id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_job_runs_to_its_end_though_its_driver_was_killed_and_gives_everything_away(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    died = driver(cluster, SUBMITS_AND_DIES, str(tmp_path))
    assert died.returncode == -signal.SIGKILL, died.stderr
    name = died.stdout.strip()
    job = cluster.job("outlives")
    assert (job.id, job.flow) == (name, "outlives")
    assert job.placement["gate"] == "node-2"
    assert job.status == "running"
    before = sink_rows(job)
    until(lambda: sink_rows(job) > before + 100, within_s=SOON_S, what="rows without a driver")
    (tmp_path / "over").touch()
    report = job.wait(timeout=LIMIT_S)
    assert report.state == "done"
    assert report.ledger.is_balanced
    rows = report.ledger.entered
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == list(range(rows))
    assert coordinators() == [actor_name(name)]  # it keeps what was collected
    assert job.result("kept")["n"].to_pylist() == list(range(rows))
    assert job.result("kept").num_rows == rows
    until(lambda: not coordinators(), within_s=SOON_S, what="the coordinator to leave")
    with pytest.raises(WorkerDied, match="kept until they are fetched"):
        cluster.job(name).result("kept")
    with pytest.raises(FlowError, match=r"no collect sink 'folder' \(there are: kept\)"):
        job.result("folder")
    later = cluster.job(name)
    assert later.report().to_json() == report.to_json()
    told = [line for part in later.logs(stage="told") for line in part.lines]
    assert sum(int(line.split()[3]) for line in told if "[told] told of" in line) == rows
    assert later.logs(stage="gate", tail=0)[0].lines == []
    with pytest.raises(FlowError, match="no stage 'tell'; the nearest is 'told'"):
        later.logs(stage="tell")
    record = later.record
    assert record.submitted_ns < (record.started_ns or 0) < (record.ended_ns or 0)
    assert record.coordinator is not None
    assert record.coordinator.node == "node-1"


A_LATER_SHELL = """
import json
import sys
from typer.testing import CliRunner
from slackwater.cli.main import app

for words in json.loads(sys.argv[1]):  # one process for all: to load Ray for each takes seconds
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    print(json.dumps(json.loads(done.stdout)))
"""


def test_a_later_shell_lists_a_job_and_reads_and_stops_it(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    job = cluster.submit(counting("lines", out=sw.jsonl_sink(tmp_path / "out.jsonl")), detach=True)
    until(lambda: sink_rows(job) > 100, within_s=SOON_S, what="rows at the sink")
    commands = ["jobs"], ["status", job.id[:-2]], ["logs", job.id], ["stop", job.id]
    lines = json.dumps([[*words, "--json"] for words in commands])
    done = driver(cluster, A_LATER_SHELL, lines)
    assert done.returncode == 0, done.stderr
    jobs, status, logs, stopped = map(json.loads, done.stdout.splitlines())
    assert jobs["jobs"][0]["id"] == job.id
    assert status["job"]["state"] == status["report"]["state"] == "running"
    assert {part["who"] for part in logs["logs"]} == {*job.workers(), "coordinator"}
    assert stopped == {"job": job.id, "was": "running", "state": "stopped"}
    assert job.status == "stopped"
    text = (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line)["n"] for line in text.splitlines()] == list(range(sink_rows(job)))


FLOW = """
import pyarrow as pa
import slackwater as sw
from tests.support.endless import EndlessInput

def breaks_at_1000(columns):
    if columns["n"].max() >= 1_000:
        raise ZeroDivisionError("the user's own fault")
    return columns

columns = {"ts": pa.timestamp("ns"), "n": "int64"}
flow = sw.Dataflow("breaks")
numbers = flow.source("numbers", EndlessInput(), event_time="ts")
numbers.map_batches(breaks_at_1000, schema=columns, name="halve").sink(
    "calls", sw.callback_sink(print)
)
"""


def test_what_failed_a_submitted_file_is_told_to_whoever_asks_later(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    (tmp_path / "flow.py").write_text(FLOW, encoding="utf-8")
    done = command_line(cluster, "submit", str(tmp_path / "flow.py"), "--placement", "*=node-3")
    assert done.returncode == 0, done.stderr
    job = cluster.job(done.stdout.strip())
    assert set(job.placement.values()) == {"node-3"}
    with pytest.raises(OperatorError) as caught:
        job.wait(timeout=LIMIT_S)
    assert str(caught.value).startswith("step 'halve': its function raised ZeroDivisionError")
    assert job.status == "failed"
    assert job.report().error == str(caught.value)
    until(lambda: not coordinators(), within_s=SOON_S, what="the coordinator to leave")
    with pytest.raises(OperatorError, match="the user's own fault"):
        cluster.job("breaks").wait()


CLOSES = """
import slackwater as sw
from tests.support.flows import ticking

def ticks(name):
    flow, numbers = ticking(name)
    numbers.sink("out", sw.callback_sink(print))
    return flow

with sw.Cluster.connect() as cluster:
    stays = cluster.submit(ticks("stays"))
    goes = cluster.submit(ticks("goes"), detach=False)
    assert (stays.is_detached, goes.is_detached) == (True, False)
try:
    stays.status
except sw.SlackwaterError as problem:
    print(problem)
"""


def test_a_cluster_that_closes_stops_attached_jobs_and_lets_go_of_detached_ones(
    cluster: sw.Cluster,
) -> None:
    closed = driver(cluster, CLOSES)
    assert closed.returncode == 0, closed.stderr
    assert closed.stdout.startswith("this process is not connected to a cluster any more")
    found = [job for job in cluster.jobs() if job.status == "running"]
    assert [job.flow for job in found] == ["stays"]
    until(lambda: free_cpus() == CPUS - 1, within_s=SOON_S, what="the attached job's CPU")


def test_a_job_whose_coordinator_was_killed_is_lost_and_holds_no_cpu(cluster: sw.Cluster) -> None:
    job = cluster.submit(counting("orphan", calls=sw.callback_sink(ignore)), detach=True)
    until(lambda: Records().report(job.id), within_s=SOON_S, what="a report in the store")
    where = job.record.coordinator
    assert where is not None
    workers = [psutil.Process(pid) for pid in job.workers().values()]
    psutil.Process(where.pid).kill()
    assert psutil.wait_procs(workers, timeout=SOON_S)[1] == []
    until(lambda: free_cpus() == CPUS, within_s=SOON_S, what="free CPUs")
    said = rf"job {job.id} is lost.*process {where.pid} on node.*Submit the flow again"
    with pytest.raises(WorkerDied, match=said):
        cluster.job(job.id).wait(timeout=LIMIT_S)
    assert job.status == "lost"
    assert job.report().state == "lost"


def test_a_job_that_cannot_start_raises_the_same_error_and_leaves_nothing(
    cluster: sw.Cluster,
) -> None:
    flow = counting("nowhere", out=sw.jsonl_sink("/proc/nowhere/out.jsonl"))
    with pytest.raises(SinkError) as detached:
        cluster.submit(flow, detach=True)
    with pytest.raises(SinkError) as attached:
        cluster.submit(flow, detach=False)
    assert str(detached.value) == str(attached.value)
    with pytest.raises(ClusterError, match="there is no job 'nowhere'"):
        cluster.job("nowhere")
    flow = counting("crowded", calls=sw.callback_sink(ignore))
    with crowd("node-2", cpus=4):
        wait_for_free_cpus("node-2", 0)
        with pytest.raises(ClusterError, match="node-2 lacks 1 of 1 CPUs"):
            cluster.submit(flow, detach=True, placement={"*": "node-2"})


HANGS = """
import signal, sys, threading
import slackwater as sw
from tests.support.flows import ticking

class Hangs:
    def __init__(self, folder):
        self.folder = folder
    def __setstate__(self, state):
        self.folder = state["folder"]
        try:
            open(state["folder"] + "/read once", "x").close()
        except FileExistsError:  # now by a slot, no more by the coordinator
            open(state["folder"] + "/hangs", "w").close()
            threading.Event().wait()
    def __call__(self, rows):
        pass

flow, numbers = ticking("hangs")
numbers.sink("out", sw.callback_sink(Hangs(sys.argv[1])))
signal.signal(signal.SIGINT, signal.default_int_handler)  # our shell may have it ignored
with sw.Cluster.connect() as cluster:
    try:
        cluster.submit(flow)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_while_a_job_starts_leaves_nothing(cluster: sw.Cluster, tmp_path: Path) -> None:
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-c", HANGS, str(tmp_path)],
        env=environment_of(cluster),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as submitter:
        try:
            until((tmp_path / "hangs").exists, within_s=LIMIT_S, what="a slot to hang")
            os.kill(submitter.pid, signal.SIGINT)
            out, errors = submitter.communicate(timeout=LIMIT_S)
        finally:
            submitter.kill()
    assert out == "interrupted\n", errors
    assert "hangs" not in {job.flow for job in cluster.jobs()}
    until(lambda: not coordinators(), within_s=SOON_S, what="the coordinator to leave")
