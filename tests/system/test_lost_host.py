"""Worker hosts that fall silent in mid-run: named within seconds, and the rest is stopped.

A host is a local node whose processes are frozen: what was sent to it is never answered, and
no connection breaks. Ray itself takes longer than this test to notice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import WorkerDied
from tests.support.flows import ticking
from tests.support.processes import below, command_lines
from tests.support.waiting import until

pytestmark = pytest.mark.ray

WITHIN_S = 15.0  # the limit, a fifth of it, 2.5 s; the rest is for a busy machine
SOON_S = 30.0
LIMITS = Limits(lost_ns=5_000_000_000)
SILENT = {"node-2": "detached", "node-3": "attached"}  # {host: the job that loses it}


@contextmanager
def frozen(node: str) -> Iterator[None]:
    """Stop the raylet of a local node and all its workers, as if its host were gone."""
    raylets = [
        one
        for one, line in command_lines(below()).items()
        if line.split(" ")[0].endswith("raylet") and f"--node-name={node}" in line
    ]
    assert len(raylets) == 1
    there = [*raylets, *below(raylets[0].pid)]
    try:
        for process in there:
            with suppress(psutil.NoSuchProcess):  # it may end by itself, here and below
                process.suspend()
        yield
    finally:
        for process in there:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def ignore(rows: pa.RecordBatch) -> None:
    pass


def has_rows(job: sw.Job) -> bool:
    return job.report().sinks[0].rows > 0


def test_hosts_that_fall_silent_fail_their_jobs_by_name_and_the_same_flow_runs_again(
    cluster: sw.Cluster,
) -> None:
    flow, numbers = ticking("three hosts")
    numbers.merge(name="gate").sink("calls", sw.callback_sink(ignore))
    jobs, workers = {}, {}
    for silent, how in SILENT.items():
        places = {"numbers": "node-1", "gate": silent, "calls": "node-1"}
        jobs[silent] = cluster.submit(
            flow, placement=places, detach=how == "detached", limits=LIMITS
        )
    for silent, job in jobs.items():
        until(lambda: has_rows(job), within_s=SOON_S, what="rows at the sink")  # noqa: B023
        workers[silent] = {slot: psutil.Process(pid) for slot, pid in job.workers().items()}
    with ExitStack() as stack:
        for silent in SILENT:
            stack.enter_context(frozen(silent))
        began_s = time.monotonic()
        for silent, job in jobs.items():
            with pytest.raises(WorkerDied) as caught:
                job.wait(timeout=SOON_S)
            assert time.monotonic() - began_s < WITHIN_S
            said = str(caught.value)
            # Either the limit or Ray notices first: a host that is gone may only stand still.
            assert f"the worker of slot {silent!r} (stages: gate) " in said
            assert f"on node {silent} (host " in said
            assert f"Bring {silent} back, or do without" in said or "Limits(lost_ns=" in said
            assert job.status == job.report().state == "failed"
        for silent in SILENT:
            assert psutil.wait_procs([workers[silent]["node-1"]], timeout=SOON_S)[1] == []
        again = cluster.submit(flow, placement={"*": "node-1"})
        until(lambda: has_rows(again), within_s=SOON_S, what="rows again")
        again.stop()
    for silent in SILENT:
        assert psutil.wait_procs([workers[silent][silent]], timeout=SOON_S)[1] == []
