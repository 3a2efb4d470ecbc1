"""A detached job as other processes hold it: its submitter, a later shell, a Ray client.

All that is asked goes to its coordinator (`actors/jobs/coordinator.py`), or, when that has left, to
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

from slackwater.actors.jobs.coordinator import (
    NAMESPACE,
    POLL_S,
    THREADS,
    Coordinator,
    actor_name,
    coordinator_of,
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
"""A coordinator that is silent so long is on a host that is gone."""
START_S = 300.0
STOP_S = 60.0
ABANDON_S = 5.0
FETCH_S = 300.0
REPLACE_S = 120.0
ID_LETTERS = 40


def submit_detached(
    plan: Plan,
    *,
    nodes: Mapping[str, NodeInfo],
    head_id: str | None,
    notes: Sequence[str] = (),
) -> DetachedJob:
    """Start a job that outlives this process; return when its slots run.

    Args:
        plan: every stage in a slot, with the job's settings.
        nodes: {slot: the node it runs on}.
        head_id: the node where the coordinator runs: it needs no CPU. None: any.
        notes: what the report must say about these nodes.

    Raises:
        SlackwaterError: what stopped it. Nothing of it is left then, nor after Ctrl-C.
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
    )
    cluster_monitor = own_cluster_monitor()
    place = NodeAffinitySchedulingStrategy(head_id, soft=False) if head_id else None
    made: Any = ray.remote(Coordinator)
    chosen = made.options(
        name=actor_name(record.id),
        namespace=NAMESPACE,
        lifetime="detached",
        num_cpus=0,
        max_restarts=0,
        max_concurrency=THREADS,
        scheduling_strategy=place,
    )
    data = pickled(plan)  # before there is anybody to be left behind
    actor = within(START_S, chosen.remote, record, what=f"that job {record.id} may be")
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
    """Return an id that nobody else has: the flow's name in safe letters, and six digits."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", flow).strip("_.-")[:ID_LETTERS] or "flow"
    return f"{safe}-{secrets.token_hex(3)}"


def all_records() -> list[JobRecord]:
    """Return the records of all detached jobs of this cluster, the newest first; lost ones so."""
    records = Records()
    return [_as_it_is(records, record) for record in records.all()]


class DetachedJob:
    """A job with a coordinator of its own.

    Args:
        record: the latest that is known.
        actor: its coordinator; looked up by its name when not given.

    Attributes:
        record: the latest that is known.
    """

    def __init__(self, record: JobRecord, actor: Any = None) -> None:
        self.record = record
        self.places: Mapping[str, SlotPlace] = {}  # known behind a `replace`
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
        """Wait for the end at most so long; return whether it has come.

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
        """Return the report as it stands; of a lost job, the last that it wrote.

        Raises:
            ClusterError: it never wrote one.
        """
        if not self.record.has_ended:
            data = self._ask("report")
            if data is not None:
                return JobReport.from_json(json.loads(data))
        found = self._records.report(self.record.id)
        if found is None or found.state != self.record.state:  # the store has not taken the last
            data = self._ask("report")
            if data is not None:
                return JobReport.from_json(json.loads(data))
        if found is None:
            raise ClusterError(
                f"job {self.record.id} is {self.record.state} and left no report: it ended within "
                "its first seconds, or newer jobs have taken its place; submit it again"
            )
        if found.state != self.record.state:
            found.state, found.error = self.record.state, self.record.error
        return found

    @property
    def seen(self) -> JobReport:
        """The same: what is known of a detached job, its coordinator knows."""
        return self.report()

    def collected(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered. A job that has ended hands it out once.

        Raises:
            WorkerDied: it is gone: with its worker, fetched by another, or 10 minutes are over.
        """
        if sink in self._tables:
            return self._tables[sink]
        self._look(0)
        data = self._ask("collected", sink, timeout_s=FETCH_S)
        if data is None:
            raise WorkerDied(
                f"the results of sink {sink!r} of job {self.record.id} are gone: they are kept "
                "until they are fetched, 10 minutes at most, and not beyond a failure of their "
                "host; use a file sink to keep them"
            )
        with pa.ipc.open_stream(data) as stream:
            table = stream.read_all()
        if self.record.has_ended:
            self._tables[sink] = table
            self._ask("fetched", sink)
        return table

    def replace(self, placement: Mapping[str, str]) -> Replaced:
        """Let stages go on in other slots; return what came of it.

        Raises:
            FlowError: what of the placement cannot be, or the job has ended.
            ClusterError: there is no room for a new slot, or the coordinator does not answer.
        """
        found = self._ask("replace", dict(placement), timeout_s=REPLACE_S)
        if found is None:
            raise FlowError(
                f"job {self.record.id} is {self.record.state}, so no stage of it can move; submit "
                "the flow again with this placement"
            )
        done: Replaced
        done, self.places, self.record = found
        return done

    def stop(self) -> None:
        """End it now; the sinks keep the whole batches that they have."""
        found = self._ask("stop", timeout_s=STOP_S)
        if found is not None:
            self.record = found

    def _look(self, timeout_s: float) -> None:
        if not self.record.has_ended:
            found = self._ask("wait", timeout_s, timeout_s=POLL_S + ANSWER_S)
            if found is not None:
                self.record = found

    def _ask(self, method: str, *args: Any, timeout_s: float = ANSWER_S) -> Any:
        """Return the coordinator's answer; None: it has left, and the record says why."""
        check_connected()
        try:
            if self._actor is None:
                self._actor = coordinator_of(self.record.id)
            if self._actor is not None:
                call = getattr(self._actor, method).remote(*args)
                return _got(
                    call, self.record, cluster_monitor=self._cluster_monitor, timeout_s=timeout_s
                )
        except RayActorError:
            if (gone := self._cluster_monitor.check()) is not None:
                raise ClusterError(lost_cluster(gone)) from None
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
    """Return a record that is true now: whose coordinator is gone has ended, or is lost."""
    if record.has_ended or not (is_gone or coordinator_of(record.id) is None):
        return record
    last = records.read(record.id) or record  # it may have written its end as it left
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
        f"job {record.id} is lost: {who} is gone: {why}. Its slots ended with it; sinks keep the "
        "files they had finished. Submit the flow again"
    )


def _abandon(actor: Any, job_id: str) -> None:
    """Leave nothing of a job that did not start, or that its submitter does not want any more."""
    if not ray.is_initialized():  # the connection broke; the coordinator leaves by itself
        return

    def end() -> None:
        ray.kill(actor, no_restart=True)
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
