"""Keep records of detached jobs, also after their end: JSON in Ray's key-value store.

A coordinator (`actors/jobs/coordinator.py`) writes its job's record when it starts, every few
seconds, and when the job ends; anyone in the cluster reads it. The store lives as long as the head.
Nothing here is pickled: any later version can read a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from slackwater.actors.nodes.time_limits import ASK_S, within
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.json_form import JsonObject, json_bytes
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.nearest import choices, listed

__all__ = [
    "ENDED",
    "MOST_RECORDS",
    "JobRecord",
    "RayStore",
    "Records",
    "Store",
    "Worker",
    "check_connected",
    "find_record",
]

MOST_RECORDS = 100
"""Number of records kept. A report has tens of kilobytes, and the store is the head's memory."""
ENDED = frozenset({"done", "stopped", "failed", "lost"})

_NOT_OURS = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError),
    *(OverflowError, RecursionError),
)
"""Errors of reading bytes that are not a record or a report."""
_NAMESPACE = b"slackwater"
_RECORD = "job:"  # short: a list of jobs reads them all
_REPORT = "report:"


@dataclass(frozen=True)
class Worker(JsonObject):
    """A process of a job: a slot, or its coordinator."""

    node: str
    node_id: str
    host: str
    pid: int


@dataclass(frozen=True, kw_only=True)
class JobRecord(JsonObject):
    """A detached job, as last heard. Times are wall clock, ns."""

    id: str
    flow: str
    state: str
    """starting, running, done, stopped, failed; or lost: no process is left that knows more."""
    submitter: str
    """user@host."""
    submitted_ns: int
    started_ns: int | None = None
    ended_ns: int | None = None
    updated_ns: int = 0
    nodes: list[str] = field(default_factory=list)
    placement: dict[str, str] = field(default_factory=dict)  # {stage: slot}
    collects: list[str] = field(default_factory=list)  # its collect sinks
    checkpoint_folder: str | None = None
    """Folder of its checkpoints, from which it goes on without this coordinator."""
    coordinator: Worker | None = None
    workers: dict[str, Worker] = field(default_factory=dict)  # {slot: its worker}
    tuner_pids: list[int] = field(default_factory=list)  # on its coordinator's node; last: now
    error: str | None = None
    error_type: str | None = None
    is_stopping: bool = False
    """Whether it was told to stop: then no other coordinator goes on with it."""

    @property
    def has_ended(self) -> bool:
        """Whether the state is final."""
        return self.state in ENDED


class Store(Protocol):
    """Stores bytes by key."""

    def put(self, key: str, value: bytes) -> None:
        """Store a value, in place of an older one."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the value; None if the key is unknown."""
        ...

    def delete(self, key: str) -> None:
        """Remove a value, if present."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """Return the keys with a prefix."""
        ...


class RayStore:
    """Ray's internal key-value store, from a driver, a worker or a Ray client."""

    def put(self, key: str, value: bytes) -> None:  # noqa: D102
        put = _kv()._internal_kv_put
        within(ASK_S, put, key, value, overwrite=True, namespace=_NAMESPACE, what=f"it keeps {key}")

    def get(self, key: str) -> bytes | None:  # noqa: D102
        get = _kv()._internal_kv_get
        value: bytes | None = within(ASK_S, get, key, namespace=_NAMESPACE, what=f"what {key} is")
        return value

    def delete(self, key: str) -> None:  # noqa: D102
        within(ASK_S, _kv()._internal_kv_del, key, namespace=_NAMESPACE, what=f"it forgets {key}")

    def keys(self, prefix: str) -> list[str]:  # noqa: D102
        ask = _kv()._internal_kv_list
        what = f"which {prefix} there are"
        return [
            key.decode(errors="replace")
            for key in within(ASK_S, ask, prefix, namespace=_NAMESPACE, what=what)
        ]


class Records:
    """Records of a cluster's detached jobs."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store if store is not None else RayStore()

    def write(self, record: JobRecord, report: JobReport | None = None) -> None:
        """Store a record, and a report if given."""
        if report is not None:
            self._store.put(_REPORT + record.id, json_bytes(report.to_json()))
        self._store.put(_RECORD + record.id, json_bytes(record.to_json()))

    def read(self, job_id: str) -> JobRecord | None:
        """Return a job's record; None if unknown.

        Raises:
            ClusterError: the stored value is not a record.
        """
        data = self._store.get(_RECORD + job_id)
        return None if data is None else _record(job_id, data)

    def all(self) -> list[JobRecord]:
        """Return all records, newest job first; an unreadable one counts as a lost job's."""
        keys = self._store.keys(_RECORD)
        records = [self._read_or_lost(key.removeprefix(_RECORD)) for key in keys]
        read = [record for record in records if record is not None]  # else removed meanwhile
        return sorted(read, key=lambda record: (-record.submitted_ns, record.id))

    def _read_or_lost(self, job_id: str) -> JobRecord | None:
        try:
            return self.read(job_id)
        except ClusterError as problem:  # the other jobs have records
            return JobRecord(
                id=job_id,
                flow="?",
                state="lost",
                submitter="?",
                submitted_ns=0,
                error=str(problem),
                error_type="ClusterError",
            )

    def report(self, job_id: str) -> JobReport | None:
        """Return a job's last report; None if it never wrote one.

        Raises:
            ClusterError: the stored value is not a report.
        """
        data = self._store.get(_REPORT + job_id)
        if data is None:
            return None
        try:
            return JobReport.from_json(json.loads(data))
        except _NOT_OURS as problem:
            raise _unreadable("report", job_id, problem) from problem

    def delete(self, job_id: str) -> None:
        """Remove a job's record and report."""
        self._store.delete(_RECORD + job_id)
        self._store.delete(_REPORT + job_id)

    def prune(self, *, lives: Callable[[JobRecord], bool], keep: int = MOST_RECORDS) -> None:
        """Remove all but the newest `keep` jobs; living ones stay."""
        for record in self.all()[keep:]:
            if record.has_ended or not lives(record):
                self.delete(record.id)


def find_record(records: Sequence[JobRecord], wanted: str) -> JobRecord:
    """Return the job of this id, of this flow, or of this unique prefix.

    Of several jobs of one flow, return the running one, else the newest.

    Args:
        records: records of jobs, newest first.
        wanted: an id, the beginning of one, or a flow's name.

    Raises:
        ClusterError: no job matches, or several do.
    """
    for record in records:
        if record.id == wanted:
            return record
    named = [record for record in records if record.flow == wanted]
    meant = [record for record in named if not record.has_ended] or named[:1]
    if not meant:
        meant = [record for record in records if record.id.startswith(wanted)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise ClusterError(
            f"{wanted!r} may mean {len(meant)} jobs: {listed(job.id for job in meant)}; give more "
            "of the id"
        )
    if not records:
        raise ClusterError(
            f"there is no job {wanted!r}: this cluster knows no jobs; start one with "
            "`slackwater submit FLOW.py`"
        )
    way_out = choices(wanted, [record.id for record in records])
    raise ClusterError(f"there is no job {wanted!r} in this cluster; {way_out}")


def _record(job_id: str, data: bytes) -> JobRecord:
    try:
        return JobRecord.from_json(json.loads(data))
    except _NOT_OURS as problem:
        raise _unreadable("record", job_id, problem) from problem


def _unreadable(what: str, job_id: str, problem: Exception) -> ClusterError:
    return ClusterError(
        f"the {what} of job {job_id!r} in the cluster's store cannot be read "
        f"({type(problem).__name__}: {problem!s:.300}); another version of slackwater wrote it; "
        "use that version for this cluster"
    )


def check_connected() -> None:
    """Raise ClusterError unless this process is connected; Ray would start a new cluster."""
    import ray  # noqa: PLC0415 (takes a second to import)

    if not ray.is_initialized():
        raise ClusterError(
            "this process is not connected to a cluster any more, where the job is known; open it "
            "again with Cluster.connect(…), and ask it for .job(id)"
        )


def _kv() -> Any:
    check_connected()
    from ray.experimental import internal_kv  # noqa: PLC0415 (Ray takes a second to import)

    return internal_kv
