"""Identify a process that others start for us, so that we can end it.

```
the process, first of all ── its identity ──▶ a note in a folder of ours
                                               └──▶ we, when it is to end: is it still the same?
```

A process id alone identifies nothing: the system reuses it. So an identity is the boot, the
process namespace, the process id there and the start time. A process is killed through a descriptor
that was opened before its start time was checked, so that it cannot be another one by then.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from slackwater.actors.kernel.boot import boot_id
from slackwater.actors.kernel.plain_files import read_plain

__all__ = [
    "PidFile",
    "ProcessIdentity",
    "ProcessState",
    "start_of",
    "state_of",
    "take_pid_file",
]

_MOST_BYTES = 4_096
_STATES = {
    "T": "is stopped (SIGSTOP, a debugger); `kill -CONT` lets it go on",
    "t": "is stopped by a debugger",
    "Z": "has ended",
    "X": "has ended",
    "D": "waits for a disk, or for memory that is swapped out",
    "R": "runs now, so it stood still before (a snapshot of its machine, swap), or the link is cut",
}
"""States of Linux, by letter; other letters count as R."""
_KILLED_S = 2.0
"""How long the system may take to end a killed process: it frees the process's memory."""


@dataclass(frozen=True)
class ProcessIdentity:
    """Identifies one process.

    Attributes:
        boot, pid_space: boot and space of ids in which `pid` means anything.
        pid: process id there.
        start: when the process began, in ticks since the boot.
    """

    boot: str
    pid_space: str
    pid: int
    start: int

    @classmethod
    def here(cls) -> ProcessIdentity | None:
        """Return this process's identity; None if the system cannot say it (no Linux)."""
        return cls.of_pid(os.getpid())

    @classmethod
    def of_pid(cls, pid: int) -> ProcessIdentity | None:
        """Return the identity of a process on this host; None if no such process runs."""
        boot, start = boot_id(), start_of(pid)
        return None if boot is None or start is None else cls(boot, _pid_space(), pid, start)

    @classmethod
    def read(cls, path: Path) -> ProcessIdentity | None:
        """Return the identity in a note; None if no process has left one there (yet)."""
        try:
            return cls.of(json.loads(read_plain(path, most_bytes=_MOST_BYTES, is_own=True)))
        except (OSError, ValueError, RecursionError):
            return None

    @classmethod
    def of(cls, plain: Any) -> ProcessIdentity | None:
        """Return the identity in a dict that has its fields; None if none is there."""
        try:
            identity = cls(**{part.name: plain[part.name] for part in fields(cls)})
        except (KeyError, TypeError):
            return None
        return identity if type(identity.pid) is int and identity.pid > 1 else None

    def is_there(self) -> bool | None:
        """Return whether the process runs; None if its id means nothing here."""
        if (self.boot, self.pid_space) != (boot_id(), _pid_space()):
            return None
        return start_of(self.pid) == self.start

    def write(self, path: Path) -> None:
        """Leave a note for `read`, whole or not at all."""
        aside = path.with_name(f".{path.name}")
        with suppress(OSError):
            aside.write_text(json.dumps(asdict(self)), encoding="ascii")
            aside.replace(path)

    def end(self, *, grace_s: float) -> bool:
        """Wait `grace_s` for the process to end, then kill it; return whether it is gone.

        A process whose id belongs to another one by now, or means nothing here, counts as gone.
        """
        if self.is_there() is None:
            return True
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        except (OSError, AttributeError):  # an old kernel, or no Linux
            return False
        try:
            if start_of(self.pid) != self.start or _is_over(descriptor, grace_s):
                return True
            with suppress(OSError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            return _is_over(descriptor, _KILLED_S)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class PidFile:
    """Path of the note in which a process that others start names itself.

    The process leaves its note first of all. Its folder is ours, and we remove it when we no longer
    want the process. We end a process with a note; one that starts later finds no folder and exits.

    Attributes:
        path: path of the note.
        files: id of the path's mount namespace; empty if the system cannot say it.
    """

    path: str
    files: str

    @classmethod
    def at(cls, path: Path) -> PidFile:
        """Return the note's place in our own mount namespace."""
        return cls(str(path), _view_of_files())

    def write_or_exit(self) -> None:
        """Leave this process's note; exit at once if its folder is gone.

        In another mount namespace (with its own temp folder, say) the folder tells nothing.
        """
        here = ProcessIdentity.here()
        if here is not None:
            here.write(Path(self.path))
        if self.files and self.files == _view_of_files() and not Path(self.path).parent.is_dir():
            os._exit(0)


def take_pid_file(note: Path) -> ProcessIdentity | None:
    """Remove a note's folder; return the process that had left the note, if any.

    The folder is renamed first: by then a note is in it, or never will be.
    """
    over = note.parent.with_name(f"{note.parent.name}.over")
    try:
        note.parent.rename(over)
    except OSError:  # removed before
        return None
    process = ProcessIdentity.read(over / note.name)
    shutil.rmtree(over, ignore_errors=True)
    return process


def start_of(pid: int) -> int | None:
    """Return a process's start in ticks since the boot; None if not running."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # after the name, which may have spaces
    return None if fields[0] in ("Z", "X") else int(fields[19])


class ProcessState(NamedTuple):
    """State of a process.

    Attributes:
        text: state in words, for an error or a report.
        is_running: whether the process can act now.
    """

    text: str
    is_running: bool


def state_of(pid: int) -> ProcessState:
    """Return the state of a process on this host."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ProcessState(f"its process {pid} is gone", is_running=False)
    letter = text.rpartition(")")[2].split()[0]
    if letter not in _STATES:
        letter = "R"
    return ProcessState(f"its process {pid} {_STATES[letter]}", is_running=letter == "R")


def _is_over(descriptor: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(within_s * 1_000))


def _view_of_files() -> str:
    try:
        return f"{boot_id()} {os.readlink('/proc/self/ns/mnt')}"
    except OSError:
        return ""


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
