"""Control a detached job from other processes: its submitter, a later shell, a Ray client.

Each question goes to its coordinator (`actors/jobs/coordinator.py`), or, when that has ended, to
the record that it wrote (`actors/jobs/records.py`).
"""

from __future__ import annotations

import getpass
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.jobs.coordinator import POLL_S, THREADS, Coordinator
from slackwater.actors.jobs.lasting import Checkpointing
from slackwater.actors.jobs.named_actors import (
    NAMESPACE,
    actor_name,
    coordinator_of,
    end_processes,
)
from slackwater.actors.jobs.picklable import pickled
from slackwater.actors.jobs.ray_errors import unwrapped_ray_error
from slackwater.actors.jobs.records import JobRecord, Records, check_connected
from slackwater.actors.nodes.cluster_monitor import ClusterMonitor, own_cluster_monitor
from slackwater.actors.nodes.placement import NodeInfo, dead_nodes
from slackwater.actors.nodes.time_limits import attempt, within
from slackwater.runtime import errors
from slackwater.runtime.errors import ClusterError, FlowError, SlackwaterError, WorkerDied
from slackwater.runtime.life import lost_cluster
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan, collect_sinks
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["DetachedJob", "all_records", "new_job_id", "submit_detached"]

ANSWER_S = 20.0
"""A coordinator that is silent for longer is on a lost host."""
START_S = 300.0
STOP_S = 60.0
ABANDON_S = 5.0
FETCH_S = 300.0
REPLACE_S = 120.0
AGAIN_S = 60.0
"""Time for another coordinator to begin, in place of one that died."""
LOOK_S = 0.2
ID_LETTERS = 40


def submit_detached(
    plan: Plan,
    *,
    nodes: Mapping[str, NodeInfo],
    head_id: str | None,
    notes: Sequence[str] = (),
    checkpoints: Checkpointing | None = None,
) -> DetachedJob:
    """Start a job that outlives this process; return when its slots run.

    Args:
        plan: every stage in a slot, with the job's settings.
        nodes: {slot: name of its node}.
        head_id: node of the coordinator, which needs no CPU; None if any will do.
        notes: notes on these nodes, for the report.
        checkpoints: settings of its checkpoints; None if a failure ends it.

    Raises:
        SlackwaterError: the start failed. Nothing of the job is left then, nor after Ctrl-C.
    """
    record = JobRecord(
        id=new_job_id(plan.flow),
        flow=plan.flow,
        state="starting",
        submitter=f"{_user()}@{socket.gethostname()}",
        submitted_ns=time.time_ns(),
        nodes=list(dict.fromkeys(node.name for node in nodes.values())),
        placement=dict(plan.slots),
        collects=collect_sinks(plan),
        checkpoint_folder=None if checkpoints is None else checkpoints.folder,
    )
    cluster_monitor = own_cluster_monitor()
    place = NodeAffinitySchedulingStrategy(head_id, soft=False) if head_id else None
    remote: Any = ray.remote(Coordinator)
    chosen = remote.options(
        name=actor_name(record.id),
        namespace=NAMESPACE,
        lifetime="detached",
        num_cpus=0,
        max_restarts=0 if checkpoints is None else -1,
        max_concurrency=THREADS,
        scheduling_strategy=place,
    )
    data = pickled(plan)  # before an actor exists that could remain
    actor = within(START_S, chosen.remote, record, checkpoints, what=f"that job {record.id} may be")
    try:
        started = _got(
            actor.start.remote(
                data,
                nodes=dict(nodes),
                notes=list(notes),
                folder=os.getcwd(),
            ),
            record,
            cluster_monitor=cluster_monitor,
            timeout_s=START_S,
        )
    except BaseException:  # Ctrl-C too
        _abandon(actor, record.id)
        raise
    return DetachedJob(started, actor)


def new_job_id(flow: str) -> str:
    """Return a unique id: the flow's name in safe letters, and six digits."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", flow).strip("_.-")[:ID_LETTERS] or "flow"
    return f"{safe}-{secrets.token_hex(3)}"


def all_records() -> list[JobRecord]:
    """Return the records of all detached jobs of this cluster, newest first."""
    records = Records()
    return [_as_it_is(records, record) for record in records.all()]


class DetachedJob:
    """A job with a coordinator.

    Args:
        record: newest record of the job.
        actor: its coordinator; None if found by its name.

    Attributes:
        record: newest record of the job.
    """

    def __init__(self, record: JobRecord, actor: Any = None) -> None:
        self.record = record
        self.places: Mapping[str, SlotPlace] = {}  # known after a `replace`
        self._records = Records()
        self._line: ClusterMonitor | None = None
        self._actor = actor
        self._tables: dict[str, pa.Table] = {}

    @property
    def _cluster_monitor(self) -> ClusterMonitor:
        if self._line is None:
            self._line = own_cluster_monitor()
        return self._line

    @property
    def pids(self) -> dict[str, int]:
        """{slot: process id of its worker, on its node}."""
        return {slot: worker.pid for slot, worker in self.record.workers.items()}

    @property
    def status(self) -> str:
        """starting, running, done, stopped, failed, or lost."""
        self._look(0)
        return self.record.state

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, at most `timeout_s`; return whether the job has ended.

        Raises:
            SlackwaterError: the job failed, or is lost.
        """
        deadline_s = time.monotonic() + timeout_s
        self._look(timeout_s)
        while not self.record.has_ended and (left := deadline_s - time.monotonic()) > 0:
            self._look(left)
        if self.record.error is not None:
            kind = getattr(errors, self.record.error_type or "", SlackwaterError)
            raise kind(self.record.error)
        return self.record.has_ended

    def report(self) -> JobReport:
        """Return the present report; of a lost job, the last that it wrote.

        Raises:
            ClusterError: the job never wrote a report.
        """
        if not self.record.has_ended:
            data = self._ask("report")
            if data is not None:
                return JobReport.from_json(json.loads(data))
        report = self._records.report(self.record.id)
        if report is None or report.state != self.record.state:  # the last is not stored
            data = self._ask("report")
            if data is not None:
                return JobReport.from_json(json.loads(data))
        if report is None:
            raise ClusterError(
                f"job {self.record.id} is {self.record.state} and left no report; it ended within "
                "its first seconds, or newer jobs have replaced its report; submit it again"
            )
        if report.state != self.record.state:
            report.state, report.error = self.record.state, self.record.error
        return report

    @property
    def latest_report(self) -> JobReport:
        """The same as `report`: only the coordinator knows a detached job."""
        return self.report()

    def collected(self, sink: str) -> pa.Table:
        """Return the rows of a collect sink; an ended job gives them once.

        Raises:
            WorkerDied: the rows are gone: with their worker, fetched before, or too old (10 min).
        """
        if sink in self._tables:
            return self._tables[sink]
        self._look(0)
        data = self._ask("collected", sink, timeout_s=FETCH_S)
        if data is None:
            raise WorkerDied(
                f"the results of sink {sink!r} of job {self.record.id} are gone; they are kept "
                "until they are fetched, 10 minutes at most, and not after a failure of their "
                "host; use a file sink to keep them"
            )
        with pa.ipc.open_stream(data) as stream:
            table = stream.read_all()
        if self.record.has_ended:
            self._tables[sink] = table
            self._ask("fetched", sink)
        return table

    def replace(self, placement: Mapping[str, str]) -> Replaced:
        """Move stages to other slots; return the outcome.

        Raises:
            FlowError: the placement is not possible, or the job has ended.
            ClusterError: no room for a new slot, or the coordinator does not answer.
        """
        answer = self._ask("replace", dict(placement), timeout_s=REPLACE_S)
        if answer is None:
            raise FlowError(
                f"job {self.record.id} is {self.record.state}, so no stage of it can move; submit "
                "the flow again with this placement"
            )
        done: Replaced
        done, self.places, self.record = answer
        return done

    def stop(self) -> None:
        """End the job now; the sinks keep their whole batches."""
        record = self._ask("stop", timeout_s=STOP_S)
        if record is not None:
            self.record = record

    def _look(self, timeout_s: float) -> None:
        if not self.record.has_ended:
            record = self._ask("wait", timeout_s, timeout_s=POLL_S + ANSWER_S)
            if record is not None:
                self.record = record

    def _ask(self, method: str, *args: Any, timeout_s: float = ANSWER_S) -> Any:
        """Return the coordinator's answer; None if it has ended, as the record then says."""
        check_connected()
        until_s = time.monotonic() + (0 if self.record.checkpoint_folder is None else AGAIN_S)
        while True:
            try:
                if self._actor is None:
                    self._actor = coordinator_of(self.record.id)
                if self._actor is None:
                    break
                call = getattr(self._actor, method).remote(*args)
                monitor = self._cluster_monitor
                return _got(call, self.record, cluster_monitor=monitor, timeout_s=timeout_s)
            except RayActorError:
                if (gone := self._cluster_monitor.check()) is not None:
                    raise ClusterError(lost_cluster(gone)) from None
                if time.monotonic() > until_s or coordinator_of(self.record.id) is None:
                    break
                time.sleep(LOOK_S)  # another coordinator is made in its place
        self.record = _as_it_is(self._records, self.record, is_gone=True)
        return None


def _got(call: Any, record: JobRecord, *, cluster_monitor: ClusterMonitor, timeout_s: float) -> Any:
    try:
        return cluster_monitor.get([call], timeout_s)[0]
    except GetTimeoutError as problem:
        where = record.coordinator
        place = f" on node {where.node} (host {where.host})" if where else ""
        raise ClusterError(
            f"the coordinator of job {record.id}{place} did not answer within {timeout_s:.0f} s; "
            "see with `ray status` whether its node is up, then ask again"
        ) from problem
    except ConnectionError as problem:  # of Ray's client
        raise ClusterError(
            f"the connection to the cluster broke: {str(problem).splitlines()[0]}; connect again, "
            f"and ask for job {record.id!r}"
        ) from problem
    except RayActorError:
        if record.state == "starting":
            raise ClusterError(
                f"the coordinator of job {record.id} died while it started the job; see "
                "`ray status` for memory and nodes, then submit again"
            ) from None
        raise
    except RayError as problem:
        raise unwrapped_ray_error(problem) from problem


def _as_it_is(records: Records, record: JobRecord, *, is_gone: bool = False) -> JobRecord:
    """Return an up-to-date record: without its coordinator a job has ended, or is lost."""
    if record.has_ended or not (is_gone or coordinator_of(record.id) is None):
        return record
    last = records.read(record.id) or record  # the coordinator may have recorded the end as it left
    if last.has_ended:
        return last
    lost = replace(
        last,
        state="lost",
        ended_ns=last.updated_ns,
        error=_why_lost(last),
        error_type="WorkerDied",
    )
    records.write(lost)
    return lost


def _why_lost(record: JobRecord) -> str:
    where = record.coordinator
    if where is None:
        who, why = "its coordinator", "it died as it started the job"
    else:
        who = f"its coordinator (process {where.pid} on node {where.node}, host {where.host})"
        dead = dead_nodes({where.node_id})
        why = dead.get(where.node_id, "it was killed or crashed; see `slackwater logs`")
    return (
        f"job {record.id} is lost: {who} is gone: {why}. Its slots ended with it; sinks keep "
        "their finished files. Submit the flow again"
    )


def _abandon(actor: Any, job_id: str) -> None:
    """Remove a job that did not start, or that its submitter has given up."""
    if not ray.is_initialized():  # the connection broke; the coordinator ends by itself
        return

    def end() -> None:
        ray.kill(actor, no_restart=True)
        end_processes(job_id)
        Records().delete(job_id)

    try:
        attempt(2 * ABANDON_S, lambda: ray.wait([actor.stop.remote()], timeout=ABANDON_S))
    finally:
        attempt(ABANDON_S, end)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return str(os.getuid())
