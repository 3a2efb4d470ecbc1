"""Who runs a detached job: a Ray actor of its own name, which no driver owns.

```
submit ──▶ Coordinator.start ──▶ RayJob ──▶ slots
                 │ a thread of its own looks after it
                 │ every 3 s, and at the end: the record (actors/jobs/records.py)
other processes ─┴─▶ wait, report, collected, stop (actors/jobs/detached.py)
```

It owns the slots, so they end with it, and it ends when the job has. Collected results stay with
it until they were fetched, 10 minutes at most.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import ray

from slackwater.actors.jobs.job import RayJob
from slackwater.actors.jobs.ray_errors import not_importable
from slackwater.actors.jobs.records import JobRecord, Records, Worker, json_bytes
from slackwater.actors.nodes.placement import NodeInfo, check_room, list_nodes
from slackwater.actors.nodes.time_limits import ASK_S, within
from slackwater.runtime.errors import ClusterError, FlowError, SlackwaterError, WorkerDied
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["NAMESPACE", "POLL_S", "THREADS", "Coordinator", "actor_name", "coordinator_of"]

NAMESPACE = "slackwater"
THREADS = 32
"""Calls that are answered at a time; each long poll holds one for `POLL_S` at most."""
POLL_S = 5.0
LOOK_S = 0.2
RECORD_EVERY_S = 3.0
KEEP_S = 600.0
"""How long collected results wait to be fetched."""
FRESH_S = 0.1
"""A report of this age is fresh enough for the next who asks."""
NOT_STARTED_S = 600.0
"""Nobody has started us by now, so nobody will: our submitter died."""
REPLY_S = 30.0
"""How long a submitter is given to hear what stopped the start."""
STOP_S = 50.0
"""How long a stop may take; who asked for it waits a little longer for our answer."""


def actor_name(job_id: str) -> str:
    """Return the name of a job's coordinator among Ray's actors."""
    return f"slackwater:{job_id}"


def coordinator_of(job_id: str) -> Any:
    """Return the actor that runs a job; None: there is none any more.

    Raises:
        ClusterError: the cluster's head does not say.
    """
    find = ray.get_actor
    try:
        return within(
            ASK_S, find, actor_name(job_id), namespace=NAMESPACE, what=f"who runs job {job_id}"
        )
    except ValueError:
        return None


class Coordinator:
    """Runs one job: call `start` once.

    Args:
        record: of the job, as its submitter knows it.
    """

    def __init__(self, record: JobRecord) -> None:
        self._record = record
        self._records = Records()
        self._me: Any = ray.get_runtime_context().current_actor
        self._job: RayJob | None = None
        self._lock = threading.Lock()  # around the report: many may ask for it at once
        self._report: JobReport | None = None
        self._reported_s = self._recorded_s = float("-inf")
        self._unfetched: set[str] = set()  # collect sinks whose rows nobody has yet
        self._unwritten = 0  # how often the store did not take the record
        self._is_unwanted = False
        self._is_running = False
        self._has_settled = threading.Event()  # the start has succeeded, or failed
        self._is_stopping = threading.Event()
        self._has_ended = threading.Event()
        self._may_leave = threading.Event()
        threading.Thread(target=self._live, name="coordinator", daemon=True).start()

    # -- calls from other processes ----------------------------------------------------------

    def start(
        self,
        pickled: bytes,
        *,
        nodes: Mapping[str, NodeInfo],
        notes: Sequence[str],
        folder: str,
    ) -> JobRecord:
        """Start the slots; return the record, which then says where they run.

        Args:
            pickled: the plan. A module that it needs may be missing here; so we unpickle it, and
                not Ray, whose client would lose its connection over that.
            nodes: {slot: the node it runs on}.
            notes: what the report must say about these nodes.
            folder: what sinks' relative paths are meant from.

        Raises:
            SlackwaterError: what stopped them. Nothing of the job is left then.
        """
        try:
            self._write()
            plan = _unpickled(pickled)
            check_room({slot: node.node_id for slot, node in nodes.items()})
            job = RayJob(
                plan,
                nodes=nodes,
                notes=notes,
                folder=folder,
                job_id=self._record.id,
            )
            self._job = job
            if not self._is_unwanted:
                job.start()
            if self._is_unwanted:
                job.give_up()
                raise ClusterError(f"job {self._record.id} was stopped before it had started")
            workers = {
                slot: Worker(nodes[slot].name, nodes[slot].node_id, nodes[slot].ip, pid)
                for slot, pid in job.pids.items()
            }
            self._write(
                state="running", started_ns=time.time_ns(), workers=workers, coordinator=_here()
            )
            self._records.prune(lives=_lives)
            self._is_running = True
        except BaseException:
            self._records.delete(self._record.id)
            raise
        finally:
            self._has_settled.set()
        return self._record

    def wait(self, timeout_s: float) -> JobRecord:
        """Return the record when the job has ended, or after this long, `POLL_S` at most."""
        self._has_ended.wait(min(timeout_s, POLL_S))
        return self._record

    def report(self) -> bytes:
        """Return the report as it stands, as JSON."""
        return json_bytes(self._fresh_report().to_json())

    def collected(self, sink: str) -> bytes:
        """Return what a collect sink has gathered, as an Arrow IPC stream.

        Raises:
            WorkerDied: it is gone with its worker, or was fetched before.
            ClusterError: it did not come within a minute.
        """
        assert self._job is not None, "only a started job has an id that others know"
        is_fetched = sink in self._job.gathered and sink not in self._unfetched
        if self._has_ended.is_set() and is_fetched:
            raise WorkerDied(
                f"the results of sink {sink!r} of job {self._record.id} are gone: they were "
                "fetched before; use a file sink to keep them"
            )
        return self._job.collected_stream(sink)

    def fetched(self, sink: str) -> None:
        """Take note that somebody has the rows of a collect sink of a job that has ended."""
        if self._has_ended.is_set():
            self._unfetched.discard(sink)
            if not self._unfetched:
                self._may_leave.set()

    def replace(
        self, placement: Mapping[str, str]
    ) -> tuple[Replaced, Mapping[str, SlotPlace], JobRecord]:
        """Let stages go on in other slots; return what came of it, the slots, and the record.

        Raises:
            SlackwaterError: see `RayJob.replace`.
        """
        if self._job is None or not self._is_running or self._has_ended.is_set():
            raise FlowError(
                f"job {self._record.id} is {self._record.state}, so no stage of it can move; "
                "submit the flow again with this placement"
            )
        done = self._job.replace(placement)
        plan, nodes = self._job.plan, {one.name: one for one in list_nodes()}
        workers = {
            slot: Worker(node.name, node.node_id, node.ip, self._job.pids[slot])
            for slot in plan.slot_names
            if (node := nodes.get(plan.places[slot].node)) is not None
        }
        with suppress(Exception):  # the store may fail for a while: the next one is written anyhow
            self._write(placement=dict(plan.slots), workers=workers)
        return done, plan.places, self._record

    def stop(self) -> JobRecord:
        """End the job; if it has ended, let go of collected results. Return the last record.

        Raises:
            ClusterError: it has not ended within `STOP_S`.
        """
        if self._has_ended.is_set():
            self._may_leave.set()
            return self._record
        self._is_unwanted = True
        if not self._is_running:
            if self._job is not None and not self._has_settled.is_set():
                self._job.give_up()
            return self._record
        self._is_stopping.set()
        if not self._has_ended.wait(STOP_S):
            raise ClusterError(
                f"job {self._record.id} is to stop, and has not within {STOP_S:.0f} s; its results "
                "may be many, or a host does not answer: see `slackwater logs`, then ask again"
            )
        return self._record

    def leave(self) -> None:
        """End this actor. Only it calls this."""
        exit_actor: Any = ray.actor.exit_actor  # untyped
        exit_actor()

    # -- the thread that watches -------------------------------------------------------------

    def _live(self) -> None:
        self._has_settled.wait(NOT_STARTED_S)
        try:
            if self._is_running:
                self._see_it_through()
            else:
                self._may_leave.wait(REPLY_S)
        finally:
            self._me.leave.remote()

    def _see_it_through(self) -> None:
        try:
            is_written = self._watch()
        except Exception as problem:  # a fault of ours must not look like a job that runs
            traceback.print_exc()
            is_written = self._fail(f"the coordinator of job {self._record.id} failed: {problem!r}")
        finally:
            self._has_ended.set()
        until_s = time.monotonic() + KEEP_S
        while not is_written and time.monotonic() < until_s:  # else we would look lost
            time.sleep(RECORD_EVERY_S)
            is_written = self._try_to_write(self._report)
        if self._unfetched:
            self._may_leave.wait(max(until_s - time.monotonic(), 0))

    def _watch(self) -> bool:
        """Run the job to its end; return whether the record of that is written."""
        job = self._job
        assert job is not None
        while job.status == "running":
            if self._is_stopping.is_set():
                job.stop()
                break
            if time.monotonic() - self._recorded_s >= RECORD_EVERY_S:
                self._try_to_write(self._fresh_report())
            self._is_stopping.wait(LOOK_S)
        with self._lock:
            self._report = job.report()
        self._unfetched = set(job.gathered)
        error: SlackwaterError | None = None
        try:
            job.wait(0)
        except SlackwaterError as problem:
            error = problem
        if self._unwritten:
            note = f"the record of this job could not be written {self._unwritten:,} times"
            self._report.notes = [*self._report.notes, f"{note}; the coordinator's log says why"]
        return self._try_to_write(
            self._report,
            state=job.status,
            ended_ns=time.time_ns(),
            error=None if error is None else str(error),
            error_type=None if error is None else type(error).__name__,
        )

    def _fail(self, error: str) -> bool:
        try:
            assert self._job is not None
            self._job.give_up()
        except Exception:  # its slots are ours, and end with us
            traceback.print_exc()
        return self._try_to_write(
            state="failed", ended_ns=time.time_ns(), error=error, error_type="SlackwaterError"
        )

    def _fresh_report(self) -> JobReport:
        with self._lock:
            assert self._job is not None
            is_old = time.monotonic() - self._reported_s >= FRESH_S
            if self._report is None or (is_old and not self._has_ended.is_set()):
                self._report = self._job.report()
                self._reported_s = time.monotonic()
            return self._report

    def _try_to_write(self, report: JobReport | None = None, **changes: Any) -> bool:
        """Keep the record; a store that fails for a while is no reason to end a job."""
        try:
            self._write(report, **changes)
        except Exception:  # whatever Ray finds wrong with its store
            self._unwritten += 1
            traceback.print_exc()
            return False
        return True

    def _write(self, report: JobReport | None = None, **changes: Any) -> None:
        self._recorded_s = time.monotonic()
        if self._job is not None:
            changes["tuner_pids"] = list(self._job.tuner.pids)
        record = replace(self._record, updated_ns=time.time_ns(), **changes)
        try:
            self._records.write(record, report)
        finally:  # only now: whom `wait` tells that the job has ended finds its last report
            self._record = record


def _unpickled(data: bytes) -> Plan:
    try:
        plan = pickle.loads(data)  # noqa: S301 from a submitter, who may run what he likes here
    except ImportError as problem:
        raise not_importable(problem.name or str(problem)) from problem
    assert isinstance(plan, Plan)
    return plan


def _here() -> Worker:
    node_id = ray.get_runtime_context().get_node_id()
    node = next(one for one in list_nodes() if one.node_id == node_id)
    return Worker(node.name, node_id, node.ip, os.getpid())


def _lives(record: JobRecord) -> bool:
    """Return whether a job's coordinator is there."""
    return coordinator_of(record.id) is not None
