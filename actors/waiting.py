"""Waiting for channels, and for other threads, to the microsecond.

A ZeroMQ socket's file descriptor tells of changes, not of a state: it may be silent while
messages lie in the socket. So `is_ready` asks the socket first, which also takes note of all
changes so far; only then is it safe to sleep on the descriptor. `zmq.Poller` would do the
same with whole milliseconds; a gate's deadline needs finer ones.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Sequence
from typing import Protocol

_MAX_WAIT_S = 3_600.0  # select refuses what does not fit its clock; waking for nothing is allowed


class Waitable(Protocol):
    """What can be waited for: a `Sender`, a `Receiver`, a `Waker`."""

    @property
    def is_ready(self) -> bool:
        """Whether something is there to be read now."""
        ...

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when that may have changed."""
        ...


class Waker:
    """Lets any thread end the wait of another."""

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._lock = threading.Lock()  # no write may meet a descriptor that is another's by now
        self._is_set = False
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether someone woke us since the last `clear`."""
        return self._is_set

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._read_fd

    def wake(self) -> None:
        """End the wait, or the next one if nobody waits now. From any thread; never blocks."""
        with self._lock:
            if not self._is_set and not self._is_closed:
                self._is_set = True
                os.write(self._write_fd, b"\0")

    def clear(self) -> None:
        """Forget that someone woke us. Look at everything afterwards, not before."""
        with self._lock:
            if self._is_set and not self._is_closed:
                self._is_set = False
                os.read(self._read_fd, 1)

    def close(self) -> None:
        """Let go of the descriptors. Safe to call twice; waking goes nowhere from then on."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._read_fd)
                os.close(self._write_fd)


def wait(ends: Sequence[Waitable], timeout_s: float, *, waker: Waker | None = None) -> None:
    """Return when something is there to be read, someone woke us, or the time is over.

    It may return early: look at everything, then wait again. The waker is cleared.

    Args:
        ends: open channels' ends.
        timeout_s: seconds, to the microsecond; below zero is zero.
        waker: for other threads.
    """
    if not any(end.is_ready for end in ends):
        fds = [end.fileno() for end in ends]
        if waker is not None:
            fds.append(waker.fileno())
        _sleep_on(fds, min(max(timeout_s, 0.0), _MAX_WAIT_S))
    if waker is not None:
        waker.clear()


def _sleep_on(fds: list[int], timeout_s: float) -> None:
    if max(fds, default=0) < 1_024:
        select.select(fds, (), (), timeout_s)
        return
    poll = select.poll()  # select cannot see such descriptors; poll can, in milliseconds
    for fd in fds:
        poll.register(fd, select.POLLIN)
    poll.poll(timeout_s * 1_000)
