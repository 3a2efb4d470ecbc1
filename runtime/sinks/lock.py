"""Locks of result folders: their holder, and when another job may take one over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slackwater.runtime.json_form import JsonObject

__all__ = ["Holder", "Verdict", "judged"]


@dataclass(frozen=True, kw_only=True)
class Holder(JsonObject):
    """Holder of a lock: the job that writes, and its process.

    Attributes:
        job, flow, sink: names of the writer; the sink is "" where checkpoints are written.
        host: its name, for people.
        machine: id of the host that survives restarts; "" if the host has none.
        boot: id of the host's current boot; "" if the host has none.
        pid_space: id of the space of process ids: of the host, or of a container on it.
        pid, pid_start: the process, and its start in the clock of that boot, to distinguish a
            later process with the same id.
        since_ns: wall clock.
        token: unique to this lock.
    """

    job: str
    flow: str
    sink: str
    host: str
    machine: str
    boot: str
    pid_space: str
    pid: int
    pid_start: int
    since_ns: int
    token: str

    def to_json(self) -> dict[str, Any]:
        """Return the holder as plain JSON values."""
        return {"slackwater_lock": 1, **super().to_json()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Holder:
        """Return the holder that `to_json` described.

        Raises:
            ValueError, KeyError, TypeError: `plain` is not a lock of this format.
        """
        if plain["slackwater_lock"] != 1:
            raise ValueError("it is not a lock of format 1")
        return super().from_json(plain)

    @property
    def writer(self) -> str:
        """The writer's part in its job, in words."""
        return f"sink {self.sink!r}" if self.sink else "checkpoints"

    def __str__(self) -> str:
        return f"job {self.job!r} ({self.writer}, process {self.pid} on {self.host})"


@dataclass(frozen=True)
class Verdict:
    """Verdict on a lock: whether it may be taken over, and why."""

    is_free: bool
    reason: str


def judged(
    holder: Holder,
    here: Holder,
    *,
    start_of_pid: int | None,
    has_ended: bool,
    is_held_here: bool,
    goes_on: bool = False,
) -> Verdict:
    """Return whether a lock may be taken over.

    Args:
        holder: holder of the lock.
        here: the process that wants the lock.
        start_of_pid: start of the process that now has the holder's id, on this host and in this
            space of process ids; None if no process has it.
        has_ended: whether the end of the holder's job is on record.
        is_held_here: whether a sink of the process that wants the lock still holds it.
        goes_on: whether the job that wants the lock goes on after a failure.
    """
    is_own = goes_on and (holder.job, holder.sink) == (here.job, here.sink)
    if is_own or has_ended:
        own = "this job goes on after a failure"
        return Verdict(True, own if is_own else "the end of that job is on record")
    if holder.boot and (holder.boot, holder.pid_space) == (here.boot, here.pid_space):
        if (holder.pid, holder.pid_start) == (here.pid, here.pid_start) and not is_held_here:
            return Verdict(True, "that job has ended, in this very process")
        if start_of_pid == holder.pid_start:
            return Verdict(False, "that process runs on this very host")
        return Verdict(True, "that process is gone")
    is_same = bool(holder.machine) and (holder.machine, holder.host) == (here.machine, here.host)
    if is_same and holder.boot and here.boot and holder.boot != here.boot:
        return Verdict(True, "its host was restarted since")
    return Verdict(False, f"whether its process lives cannot be seen from {here.host}")
