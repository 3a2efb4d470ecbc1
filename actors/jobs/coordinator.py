"""Run a detached job: a Ray actor with a known name, which no driver owns.

```
submit ──▶ Coordinator.start ──▶ RayJob ──▶ slots
                 │ its thread looks after the job
                 │ every 3 s, and at the end: the record (actors/jobs/records.py)
other processes ─┴─▶ wait, report, collected, stop (actors/jobs/detached.py)
```

The actor owns the slots, so they end with it, and it ends when the job has. Slots of a job with
checkpoints live on: Ray makes another coordinator, which lets them go back to the newest one.
Collected results stay with it until fetched, for 10 minutes at most.
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
from pathlib import Path
from typing import Any

import ray

from slackwater.actors.checkpoints.folder import remove_empty
from slackwater.actors.jobs.job import RayJob
from slackwater.actors.jobs.lasting import Checkpointing, LastingJob, Predecessor, remove_left
from slackwater.actors.jobs.named_actors import coordinator_of, end_processes
from slackwater.actors.jobs.ray_errors import not_importable
from slackwater.actors.jobs.records import JobRecord, Records, Worker
from slackwater.actors.jobs.slot_actors import living_processes
from slackwater.actors.jobs.start_order import (
    StartOrder,
    forget_order,
    has_order,
    read_order,
    save_order,
)
from slackwater.actors.nodes.placement import NodeInfo, check_room, list_nodes
from slackwater.runtime.errors import ClusterError, FlowError, SlackwaterError, WorkerDied
from slackwater.runtime.json_form import json_bytes
from slackwater.runtime.life import Cause
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["POLL_S", "THREADS", "Coordinator", "predecessor_of"]

THREADS = 32
"""Calls that are answered at a time; each long poll holds a thread for `POLL_S` at most."""
POLL_S = 5.0
LOOK_S = 0.2
RECORD_EVERY_S = 3.0
KEEP_S = 600.0
"""How long collected results wait to be fetched."""
FRESH_S = 0.1
"""A report of this age is fresh enough for the next caller."""
NOT_STARTED_S = 600.0
"""Time without a `start` after which the submitter must have died."""
REPLY_S = 30.0
"""Time for a submitter to read the error of a failed start."""
STOP_S = 50.0
"""Longest time of a stop; its caller waits a little longer for our answer."""


class Coordinator:
    """Runs one job: call `start` once.

    Args:
        record: record of the job, from its submitter.
        checkpoints: settings of its checkpoints; None if a failure ends it. With them, Ray makes
            another coordinator in place of one that died, and that goes on from the newest.
    """

    def __init__(self, record: JobRecord, checkpoints: Checkpointing | None = None) -> None:
        self._record, self._checkpoints = record, checkpoints
        self._records = Records()
        context = ray.get_runtime_context()
        self._me: Any = context.current_actor
        self._is_again = context.was_current_actor_reconstructed
        self._job: RayJob | LastingJob | None = None
        self._lock = threading.Lock()  # guards the report: many callers may ask at once
        self._report: JobReport | None = None
        self._reported_s = self._recorded_s = float("-inf")
        self._unfetched: set[str] = set()  # collect sinks whose rows were not fetched yet
        self._writing = threading.RLock()  # of the record
        self._is_done = False  # whether the record says so, whatever is written after it
        self._unwritten = 0  # how often writing the record failed
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
        """Start the slots; return the record, which then names their workers.

        Args:
            pickled: the plan. A module that it needs may be missing here. So we unpickle it, not
                Ray, whose client would lose its connection over that.
            nodes: {slot: name of its node}.
            notes: notes of these nodes, for the report.
            folder: start of sinks' relative paths.

        Raises:
            SlackwaterError: the start failed; nothing of the job is left then.
        """
        try:
            self._write()
            order = StartOrder(pickled, dict(nodes), list(notes), folder)
            if self._checkpoints is not None:
                save_order(self._checkpoints.folder, self._record.id, order)
            self._start(order)
        except BaseException:
            self._forget_order()
            self._records.delete(self._record.id)
            raise
        finally:
            self._has_settled.set()
        return self._record

    def _start(self, order: StartOrder, predecessor: Predecessor | None = None) -> None:
        job = self._job = self._job_of(order, predecessor)
        if not self._is_unwanted:
            job.start()
        if self._is_unwanted:
            job.give_up()
            raise ClusterError(
                f"job {self._record.id} was stopped before it had started; submit it again"
            )
        self._write(
            state="running",
            started_ns=self._record.started_ns or time.time_ns(),
            workers=self._workers(),
            coordinator=_here(),
        )
        self._records.prune(lives=_lives)
        self._is_running = True

    def _job_of(self, order: StartOrder, predecessor: Predecessor | None) -> RayJob | LastingJob:
        plan, nodes = _unpickled(order.pickled), order.nodes
        own: dict[str, Any] = {
            "nodes": nodes,
            "notes": order.notes,
            "folder": order.folder,
            "job_id": self._record.id,
        }
        if self._checkpoints is not None:
            return LastingJob(
                plan,
                checkpoints=self._checkpoints,
                lives_on=self._record.id,
                predecessor=predecessor,
                record_end=self._record_done,
                **own,
            )
        check_room({slot: node.node_id for slot, node in nodes.items()})
        return RayJob(plan, **own)

    def _workers(self) -> dict[str, Worker]:
        assert self._job is not None, "it has begun"
        pids = self._job.pids
        return {
            slot: Worker(node.name, node.node_id, node.ip, pids[slot])
            for slot, node in self._job.nodes.items()
            if slot in pids
        }

    def wait(self, timeout_s: float) -> JobRecord:
        """Return the record when the job has ended, or after this long, `POLL_S` at most."""
        self._has_ended.wait(min(timeout_s, POLL_S))
        return self._record

    def report(self) -> bytes:
        """Return the present report as JSON."""
        return json_bytes(self._fresh_report().to_json())

    def collected(self, sink: str) -> bytes:
        """Return the rows of a collect sink, as an Arrow IPC stream.

        Raises:
            WorkerDied: the rows died with their worker, or were fetched before.
            ClusterError: the rows did not come within a minute.
        """
        assert self._job is not None, "others know the id of a started job only"
        is_fetched = sink in self._job.gathered and sink not in self._unfetched
        if self._has_ended.is_set() and is_fetched:
            raise WorkerDied(
                f"the results of sink {sink!r} of job {self._record.id} are gone; they were "
                "fetched before; use a file sink to keep them"
            )
        return self._job.collected_stream(sink)

    def fetched(self, sink: str) -> None:
        """Note that a caller has fetched a collect sink of an ended job."""
        if self._has_ended.is_set():
            self._unfetched.discard(sink)
            if not self._unfetched:
                self._may_leave.set()

    def replace(
        self, placement: Mapping[str, str]
    ) -> tuple[Replaced, Mapping[str, SlotPlace], JobRecord]:
        """Move stages to other slots; return the outcome, the slots, and the record.

        Raises:
            SlackwaterError: see `RayJob.replace`.
        """
        if self._job is None or not self._is_running or self._has_ended.is_set():
            raise FlowError(
                f"job {self._record.id} is {self._record.state}, so no stage of it can move; "
                "submit the flow again with this placement"
            )
        done = self._job.replace(placement)
        plan = self._job.plan
        with suppress(Exception):  # the store may fail for a while: the next one is written
            self._write(placement=dict(plan.slots), workers=self._workers())
        return done, plan.places, self._record

    def stop(self) -> JobRecord:
        """End the job; drop an ended job's collected results. Return the last record.

        Raises:
            ClusterError: the job did not end within `STOP_S`.
        """
        if self._has_ended.is_set():
            self._may_leave.set()
            return self._record
        self._is_unwanted = True
        if not self._is_running:
            if self._job is not None and not self._has_settled.is_set():
                self._job.give_up()
            if self._is_again:  # no submitter hears of a start that is given up
                self._has_ended.wait(STOP_S)
            return self._record
        self._try_to_write(is_stopping=True)  # known to a coordinator that follows, before any act
        self._is_stopping.set()
        if not self._has_ended.wait(STOP_S):
            raise ClusterError(
                f"job {self._record.id} did not stop within {STOP_S:.0f} s; its results "
                "may be many, or a host does not answer: see `slackwater logs`, then ask again"
            )
        return self._record

    def leave(self) -> None:
        """End this actor. Only the actor calls this."""
        exit_actor: Any = ray.actor.exit_actor  # untyped
        exit_actor()

    # -- the thread that watches -------------------------------------------------------------

    def _live(self) -> None:
        if self._is_again:
            self._start_again()
        self._has_settled.wait(NOT_STARTED_S)
        try:
            if self._is_running:
                self._see_it_through()
            else:
                self._may_leave.wait(REPLY_S)
        finally:
            if self._checkpoints is not None:  # no checkpoint is left, whatever has failed
                end_processes(self._record.id)
            self._me.leave.remote()

    def _start_again(self) -> None:
        """Go on with a lost coordinator's job, unless it had ended or was stopped."""
        assert self._checkpoints is not None, "else none is made in its place"
        folder = self._checkpoints.folder
        try:
            record = self._record = self._records.read(self._record.id) or self._record
            if record.has_ended:
                if record.state == "done" and has_order(folder, record.id):
                    remove_left(self._checkpoints, job=record.id, flow=record.flow)
                self._forget_order()
                self._end_again()
            elif record.is_stopping:
                self._forget_order()
                self._try_to_write(state="stopped", ended_ns=time.time_ns())
                self._end_again()
            else:
                self._start(read_order(folder, record.id), self._predecessor())
        except Exception as problem:
            traceback.print_exc()
            self._forget_order()
            end: dict[str, Any] = {"state": "stopped"}
            if not self._is_unwanted:
                error = f"job {self._record.id} could not go on without its coordinator: {problem}"
                end = {"state": "failed", "error": error, "error_type": "ClusterError"}
            self._try_to_write(ended_ns=time.time_ns(), **end)
            self._has_ended.set()
        finally:
            self._has_settled.set()

    def _end_again(self) -> None:
        """End without a job; its processes, if any are left, end as this actor leaves."""
        self._has_ended.set()
        self._may_leave.set()

    def _predecessor(self) -> Predecessor:
        report = None
        with suppress(SlackwaterError):  # its recoveries and counts are not known then
            report = self._records.report(self._record.id)
        known = predecessor_of(self._record, report, now_ns=time.time_ns())
        return known._replace(processes=living_processes(self._record.id))

    def _record_done(self) -> bool:
        """Record that the job is done, while its checkpoints are still there."""
        assert self._job is not None, "it has ended"
        report = self._job.report()
        report.state = "done"
        with self._writing:
            self._is_done = True
        return self._try_to_write(report)

    def _forget_order(self) -> None:
        if self._checkpoints is not None:
            forget_order(self._checkpoints.folder, self._record.id)
            if self._checkpoints.is_by_default:
                remove_empty(Path(self._checkpoints.folder))

    def _see_it_through(self) -> None:
        try:
            is_written = self._watch()
        except Exception as problem:  # a fault of ours must not look like a job that runs
            traceback.print_exc()
            is_written = self._fail(f"the coordinator of job {self._record.id} failed: {problem!r}")
        finally:
            self._has_ended.set()
            self._forget_order()
        until_s = time.monotonic() + KEEP_S
        while not is_written and time.monotonic() < until_s:  # else the job would seem lost
            time.sleep(RECORD_EVERY_S)
            is_written = self._try_to_write(self._report)
        if self._unfetched:
            self._may_leave.wait(max(until_s - time.monotonic(), 0))

    def _watch(self) -> bool:
        """Run the job to its end; return whether its last record is written."""
        job = self._job
        assert job is not None
        while job.status == "running":
            if self._is_stopping.is_set():
                job.stop()
                break
            if time.monotonic() - self._recorded_s >= RECORD_EVERY_S:
                self._try_to_write(self._fresh_report(), workers=self._workers())
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
        except Exception:  # its slots belong to this actor, and end with it
            traceback.print_exc()
        return self._try_to_write(
            state="failed", ended_ns=time.time_ns(), error=error, error_type="SlackwaterError"
        )

    def _fresh_report(self) -> JobReport:
        self._has_settled.wait(REPLY_S)
        with self._lock:
            assert self._job is not None
            is_old = time.monotonic() - self._reported_s >= FRESH_S
            if self._report is None or (is_old and not self._has_ended.is_set()):
                self._report = self._job.report()
                self._reported_s = time.monotonic()
            return self._report

    def _try_to_write(self, report: JobReport | None = None, **changes: Any) -> bool:
        """Write the record; a store that fails for a while ends no job."""
        try:
            self._write(report, **changes)
        except Exception:  # any error of Ray's store
            self._unwritten += 1
            traceback.print_exc()
            return False
        return True

    def _write(self, report: JobReport | None = None, **changes: Any) -> None:
        self._recorded_s = time.monotonic()
        if self._job is not None:
            changes["tuner_pids"] = list(self._job.tuner.pids)
        with self._writing:
            record = replace(self._record, updated_ns=time.time_ns(), **changes)
            stored = record
            if self._is_done and not record.has_ended:  # its slots have ended
                stored = replace(record, state="done", ended_ns=record.updated_ns)
            try:
                self._records.write(stored, report)
            finally:  # only now: after `wait` reports the end, the last report is there
                self._record = record


def predecessor_of(record: JobRecord, report: JobReport | None, *, now_ns: int) -> Predecessor:
    """Return what is known of a job whose coordinator has ended, without its processes.

    Args:
        record: last record of the job.
        report: last report of the job; None if none is known.
        now_ns: time by the wall clock.
    """
    if record.started_ns is None:
        return Predecessor()
    who = "the coordinator of the job"
    if (own := record.coordinator) is not None:
        who += f" (process {own.pid} on node {own.node}, host {own.host})"
    cause = Cause("WorkerDied", f"{who} has ended; another one goes on")
    return Predecessor(cause, max(now_ns - record.started_ns, 0), report)


def _unpickled(data: bytes) -> Plan:
    try:
        plan = pickle.loads(data)  # noqa: S301 from a submitter, who may run any code here
    except ImportError as problem:
        raise not_importable(problem.name or str(problem)) from problem
    assert isinstance(plan, Plan)
    return plan


def _here() -> Worker:
    node_id = ray.get_runtime_context().get_node_id()
    node = next(node for node in list_nodes() if node.node_id == node_id)
    return Worker(node.name, node_id, node.ip, os.getpid())


def _lives(record: JobRecord) -> bool:
    return coordinator_of(record.id) is not None
