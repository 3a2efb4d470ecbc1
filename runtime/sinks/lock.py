"""Whose folder it is: what a lock says of its holder, and when another may take it over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["Holder", "Verdict", "judged"]


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A job that writes, and the process that does.

    Attributes:
        job, flow, sink: who writes.
        host: its name, for people.
        machine: what stays the same when the host starts anew; "" if it does not say.
        boot: what all processes have in common until then; "" if it does not say.
        pid_space: whose process ids these are: of the host, or of a container on it.
        pid, pid_start: the process, and when it began in the clock of that boot, so that a
            later process of the same id is told from it.
        since_ns: wall clock.
        token: of this lock alone.
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
        """Return it as plain JSON values."""
        return {"slackwater_lock": 1, **asdict(self)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Holder:
        """Return what `to_json` described.

        Raises:
            ValueError, KeyError, TypeError: it is no lock of this format.
        """
        if plain["slackwater_lock"] != 1:
            raise ValueError("it is no lock of format 1")
        made = cls(**{one.name: plain[one.name] for one in fields(cls)})
        for one in fields(cls):
            value = getattr(made, one.name)
            if type(value) is not (int if one.type == "int" else str):
                raise TypeError(f"{one.name}={value!r} is a {type(value).__name__}")
        return made

    def __str__(self) -> str:
        return f"job {self.job!r} (sink {self.sink!r}, process {self.pid} on {self.host})"


@dataclass(frozen=True)
class Verdict:
    """Whether a lock may be taken over, and why, or why not."""

    is_free: bool
    reason: str


def judged(holder: Holder, here: Holder, *, start_of_pid: int | None, has_ended: bool) -> Verdict:
    """Return whether we may take a lock over.

    Args:
        holder: who has it.
        here: who asks.
        start_of_pid: when the process that now has the holder's id began, on our host and in our
            space of process ids; None: there is none.
        has_ended: whether the end of the holder's job is on record.
    """
    if has_ended:
        return Verdict(True, "the end of that job is on record")
    if holder.boot and (holder.boot, holder.pid_space) == (here.boot, here.pid_space):
        if start_of_pid == holder.pid_start:
            return Verdict(False, "that process runs on this very host")
        return Verdict(True, "that process is gone")
    is_same = bool(holder.machine) and (holder.machine, holder.host) == (here.machine, here.host)
    if is_same and holder.boot and here.boot and holder.boot != here.boot:
        return Verdict(True, "its host was started anew since")
    return Verdict(False, f"whether its process lives cannot be seen from {here.host}")
