"""A process of ours that others start for us, known for certain: it can be ended without them.

```
it, first of all ── who it is ──▶ a note in a folder of ours
                                   └──▶ we, when it is to end: is that process still this one?
```

A number alone is nobody's name: the system gives it to others again. A process is named by its
boot, its process namespace, its number there and its start; and it is killed through a descriptor
that was opened before its start was looked at, so that it cannot become another one in between.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from slackwater.actors.kernel.boot import boot_id
from slackwater.actors.kernel.plain_files import read_plain

__all__ = ["PidFile", "ProcessIdentity", "start_of", "take_pid_file"]

_MOST_BYTES = 4_096
_KILLED_S = 2.0
"""How long the system may take to end what was killed: it gives its memory back."""


@dataclass(frozen=True)
class ProcessIdentity:
    """Which process it is.

    Attributes:
        boot, pid_space: where `pid` means anything.
        pid: its number there.
        start: when it began, in ticks since the boot.
    """

    boot: str
    pid_space: str
    pid: int
    start: int

    @classmethod
    def here(cls) -> ProcessIdentity | None:
        """Return this process; None: the system cannot say it, such as one that is not Linux."""
        boot, start = boot_id(), start_of(os.getpid())
        if boot is None or start is None:
            return None
        return cls(boot, _pid_space(), os.getpid(), start)

    @classmethod
    def read(cls, path: Path) -> ProcessIdentity | None:
        """Return who has left its note there; None: nobody (yet)."""
        try:
            found = cls(**json.loads(read_plain(path, most_bytes=_MOST_BYTES, is_own=True)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        return found if type(found.pid) is int and found.pid > 1 else None

    def write(self, path: Path) -> None:
        """Leave a note for `read`, whole or not at all. It does without if there is no room."""
        aside = path.with_name(f".{path.name}")
        with suppress(OSError):
            aside.write_text(json.dumps(asdict(self)), encoding="ascii")
            aside.replace(path)

    def end(self, *, grace_s: float) -> bool:
        """Wait for its end, at most so long, then kill it; return whether it is gone.

        It is taken for gone if its number is another's by now, or means another one here.
        """
        if (self.boot, self.pid_space) != (boot_id(), _pid_space()):
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
    """Where a process that others start for us is to leave its note, first of all.

    Its folder is ours. When we want the process no more the folder goes, so that one that comes up
    later ends by itself: with a note we end it, without a folder it does.

    Attributes:
        path: of the note.
        files: which view of the files that is in; empty: the system cannot say.
    """

    path: str
    files: str

    @classmethod
    def at(cls, path: Path) -> PidFile:
        """Return a place in our own view of the files."""
        return cls(str(path), _view_of_files())

    def write_or_exit(self) -> None:
        """Leave this process's note; end it, at once, if nobody waits for it any more.

        Where the files are other ones (a temp folder of its own, say) nobody can tell.
        """
        here = ProcessIdentity.here()
        if here is not None:
            here.write(Path(self.path))
        if self.files and self.files == _view_of_files() and not Path(self.path).parent.is_dir():
            os._exit(0)


def take_pid_file(note: Path) -> ProcessIdentity | None:
    """Take the folder of a note away; return who had left the note there, if anybody had.

    It goes at once, under another name: a note is in it by then, or never will be.
    """
    over = note.parent.with_name(f"{note.parent.name}.over")
    try:
        note.parent.rename(over)
    except OSError:  # it has gone before
        return None
    process = ProcessIdentity.read(over / note.name)
    shutil.rmtree(over, ignore_errors=True)
    return process


def start_of(pid: int) -> int | None:
    """Return when a process began, in ticks since the boot; None: there is none, or it is over."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # behind the name, which may have spaces
    return None if fields[0] in ("Z", "X") else int(fields[19])


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
