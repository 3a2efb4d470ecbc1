"""Lock an output for one job: a file, made exclusively, that names its holder."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slackwater.actors.kernel.boot import boot_id
from slackwater.actors.kernel.plain_files import private, read_plain
from slackwater.actors.kernel.process_identity import start_of
from slackwater.runtime.errors import SinkError, SlackwaterError
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.lock import Holder, judged
from slackwater.runtime.sinks.output import HasEnded

__all__ = ["Lock", "LockGone", "here_as"]

_MACHINE = Path("/etc/machine-id")
_MOST_BYTES = 65_536
_HELD: set[str] = set()
"""Tokens of locks that sinks of this process hold: a file may stay that cannot be removed."""


class LockGone(FileNotFoundError):
    """Another program removed our lock, its folder or all files there."""


class Lock:
    """Lock at a path: `take` it, `check` that it is still ours, `release` it.

    Args:
        path: path of the lock.
        holder: the process that wants it.
        has_ended: says whether a run has ended.
        joins: says whether a lock there is of the same run, and is shared; None if none is.
        goes_on: whether the job goes on after a failure, so that its own lock is taken over.
        error: class of a refusal.
    """

    def __init__(
        self,
        path: Path,
        holder: Holder,
        *,
        has_ended: HasEnded,
        joins: Callable[[Holder], bool] | None = None,
        goes_on: bool = False,
        error: type[SlackwaterError] = SinkError,
    ) -> None:
        self._path, self._holder, self._has_ended = path, holder, has_ended
        self._joins, self._error, self._is_held = joins, error, False
        self._goes_on = goes_on

    @property
    def token(self) -> str:
        """Token of the lock, which is that of another sink if it is shared."""
        return self._holder.token

    def take(self) -> str | None:
        """Take the lock; return a note on its earlier holder, None if free.

        Raises:
            SlackwaterError: another job holds it, and may still write.
            OSError: the lock cannot be written.
        """
        with self.alone():
            if self._is_joined():
                return None
            note = self._judge()
            own = self._path.with_name(f"{self._path.name}.{self._holder.token}")
            data = json.dumps(self._holder.to_json()).encode()
            try:
                with open(own, "wb", opener=private) as file:
                    file.write(data)
                if note is None:
                    _put(own, self._path, data)
                else:
                    own.replace(self._path)
            except FileExistsError:
                raise self._error(self._refusal("another job", "it has just begun")) from None
            finally:
                with suppress(OSError):  # the next run tidies up; the lock is ours nevertheless
                    own.unlink(missing_ok=True)
            self._is_held = True
            _HELD.add(self._holder.token)
        return note

    def check(self) -> None:
        """Check that this job still holds the lock.

        Raises:
            SlackwaterError: another job has taken it over.
            LockGone: its file is gone.
        """
        try:
            holder = self._read()
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise self._error(
                f"{self._holder.writer}: the lock {self._path} was ours, and cannot be read "
                f"any more ({problem}); nothing more is published, what was stays; see which job "
                "writes there, and remove that file"
            ) from problem
        if holder is None:
            raise LockGone(errno.ENOENT, f"its lock {self._path} is gone")
        if holder.token != self._holder.token:
            raise self._error(
                f"{self._holder.writer}: the lock {self._path} was taken from us, and "
                f"belongs to {holder}; nothing more is published, what was stays; see which job "
                "writes there"
            )

    def release(self, *, is_last: bool = True) -> None:
        """Release the lock, if it is ours. Idempotent.

        Args:
            is_last: whether no other sink shares it any more; else it stays.
        """
        if not self._is_held:
            return
        self._is_held = False
        if not is_last:
            return
        _HELD.discard(self._holder.token)
        with suppress(OSError, self._error), self.alone():
            self.check()
            self._path.unlink()

    def _is_joined(self) -> bool:
        """Share a lock of the same run; return whether there is one."""
        if self._joins is None:
            return False
        with suppress(ValueError, KeyError, TypeError, RecursionError):  # it is judged then
            holder = self._read()
            if holder is not None and self._joins(holder):
                self._holder, self._is_held = holder, True
        return self._is_held

    def _judge(self) -> str | None:
        try:
            holder = self._read()
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            reason = f"it cannot be read ({problem})"
            raise self._error(self._refusal("an unknown job", reason)) from problem
        if holder is None:
            return None
        verdict = judged(
            holder,
            self._holder,
            start_of_pid=start_of(holder.pid),
            has_ended=self._has_ended(holder),
            is_held_here=holder.token in _HELD,
            goes_on=self._goes_on,
        )
        if not verdict.is_free:
            raise self._error(self._refusal(str(holder), verdict.reason))
        return f"took over the lock of {holder}: {verdict.reason}"

    def _read(self) -> Holder | None:
        try:
            return Holder.from_json(json.loads(read_plain(self._path, most_bytes=_MOST_BYTES)))
        except FileNotFoundError:
            return None

    def _refusal(self, holder: str, reason: str) -> str:
        return (
            f"{self._holder.writer}: {self._path} belongs to {holder}, and {reason}; two jobs "
            "must not write to one place: stop that job or choose another path; if you know that "
            "it is over, remove that file"
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude other processes while we judge and replace the lock, or write in turns.

        Raises:
            OSError: sinks share the output, and its file system has no locks.
        """
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
            except OSError:  # a file system without locks: the link alone decides
                if self._joins is not None:
                    raise
            yield
        finally:
            os.close(folder)


def _put(own: Path, path: Path, data: bytes) -> None:
    """Make a file, whole, unless there is one already; raises FileExistsError."""
    try:
        os.link(own, path)
    except PermissionError:  # a file system without links; a reader may briefly see half a lock
        with open(path, "xb", opener=private) as file:
            file.write(data)


def here_as(sink: str, run: SinkRun, *, since_ns: int) -> Holder:
    """Return this process as the holder of a lock."""
    try:
        pid_space = os.readlink("/proc/self/ns/pid")
    except OSError:
        pid_space = ""
    try:
        machine = _MACHINE.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        machine = ""
    return Holder(
        job=run.job,
        flow=run.flow,
        sink=sink,
        host=socket.gethostname(),
        machine=machine,
        boot=boot_id() or "",
        pid_space=pid_space,
        pid=os.getpid(),
        pid_start=start_of(os.getpid()) or 0,
        since_ns=since_ns,
        token=secrets.token_hex(8),
    )
