"""Wait for channels, and for other threads, to the microsecond.

A ZeroMQ socket's file descriptor announces changes, not a state: it may be silent while messages
lie in the socket, once any call has taken note of the change. Asking the socket takes note of all
changes so far; only if the socket is empty then is it safe to sleep on its descriptor. `zmq.Poller`
does so each time, in whole milliseconds; a gate's deadline needs finer ones, and asking costs as
much as receiving. So an end knows whether it `may_hide` messages. Only such ends are asked; the
descriptors of the others tell, all in one call.

```
           sent, or read not to its end
  ┌──────────────────────────────────────▶ may hide ── its descriptor says nothing: ask
silent ◀── asked, or read to its end: nothing there      before you sleep
  └─ its descriptor tells of what comes
```
"""

from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

import zmq
from zmq import zmq_poll

_POLLIN = int(zmq.POLLIN)
_PR_SET_TIMERSLACK = 29
_SELECTABLE = 1_024
_MAX_WAIT_S = 3_600.0  # select refuses longer waits; an early wake-up is allowed


class Pollable(Protocol):
    """An end of a channel that a thread can wait for: a `Sender`, a `Receiver`."""

    may_hide: bool
    """Whether messages may lie in its socket that its descriptor does not announce."""

    @property
    def socket(self) -> zmq.Socket[bytes]:
        """ZeroMQ socket of the end."""
        ...


class Waker:
    """Lets any thread end the wait of another."""

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)
        self._lock = threading.Lock()  # no write may reach a reused descriptor
        self._is_set = False
        self._is_closed = False

    @property
    def is_ready(self) -> bool:
        """Whether a thread has called `wake` since the last `clear`."""
        return self._is_set

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._read_fd

    def wake(self) -> None:
        """End the current wait, or else the next one. From any thread; never blocks."""
        with self._lock:
            if not self._is_set and not self._is_closed:
                self._is_set = True
                os.write(self._write_fd, b"\0")

    def clear(self) -> None:
        """Forget the last `wake`. Check for work afterwards, not before."""
        if not self._is_set:
            return
        with self._lock:
            if self._is_set and not self._is_closed:
                self._is_set = False
                os.read(self._read_fd, 1)

    def close(self) -> None:
        """Close the descriptors. Idempotent; `wake` has no effect from then on."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._read_fd)
                os.close(self._write_fd)


def sharpen_timers() -> None:
    """Shorten this thread's sleeps by 50 µs, which Linux adds to each to save power.

    No effect on other systems.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_TIMERSLACK, 1_000, 0, 0, 0)  # nanoseconds


class ChannelPoller:
    """Lets one thread wait for several channels' ends, and for a waker.

    Args:
        ends: open ends, by name.
        waker: waker for other threads.
    """

    def __init__(self, ends: Mapping[str, Pollable], *, waker: Waker | None = None) -> None:
        self._polled = [(end, (end.socket, _POLLIN)) for end in ends.values()]
        self._ends = [(name, end, end.socket.fileno()) for name, end in ends.items()]
        self._fds = [fd for _, _, fd in self._ends]
        self._waker = waker
        if waker is not None:
            self._fds.append(waker.fileno())
        # Descriptors of the last wait, until `ready` takes them.
        self._known_fds: list[int] | None = None
        self._has_low_fds = max(self._fds, default=0) < _SELECTABLE

    def ready(self) -> list[str]:
        """Return the names of the ends with something to read, in their order.

        Right after a `wait` these are the ends that it saw. An end may be named that has nothing to
        read; an end with something to read is named at the next call at the latest.
        """
        ready_fds, self._known_fds = self._known_fds, None
        if not self._ends:
            return []
        if ready_fds is None:
            ready_fds = self._sleep(0.0)
        hiding = self._ask()
        if not ready_fds and not hiding:
            return []
        return [
            name
            for name, end, fd in self._ends
            if end in hiding or (fd in ready_fds and not end.may_hide)
        ]

    def wait(self, timeout_s: float) -> bool:
        """Return when an end can be read, a thread called `wake`, or time is over.

        It may return early: check all ends, then wait again. The waker is cleared.

        Args:
            timeout_s: seconds, to the microsecond; below zero is zero.

        Returns:
            Whether a thread has called `wake`.
        """
        # An end that hides messages is not the only one that may have some: `ready` checks all.
        self._known_fds = None
        if not self._ask():
            self._known_fds = self._sleep(min(max(timeout_s, 0.0), _MAX_WAIT_S))
        waker = self._waker
        if waker is None or not waker.is_ready:
            return False
        waker.clear()
        return True

    def _ask(self) -> list[Pollable]:
        """Ask the ends that may hide messages; return those that do."""
        suspects = [polled for polled in self._polled if polled[0].may_hide]
        if not suspects:
            return []
        # One call for all takes a third of the time of one call each.
        full = [socket for socket, _ in zmq_poll([item for _, item in suspects], 0)]
        hiding = []
        for end, (socket, _) in suspects:
            if socket in full:
                hiding.append(end)
            else:
                end.may_hide = False
        return hiding

    def _sleep(self, timeout_s: float) -> list[int]:
        """Sleep until a descriptor announces a change; return those that do."""
        if self._has_low_fds:
            return select.select(self._fds, (), (), timeout_s)[0]
        poll = select.poll()  # select cannot see such descriptors; poll can, in milliseconds
        for fd in self._fds:
            poll.register(fd, select.POLLIN)
        return [fd for fd, _ in poll.poll(timeout_s * 1_000)]


def wait(ends: Sequence[Pollable], timeout_s: float, *, waker: Waker | None = None) -> None:
    """Wait once; see `ChannelPoller.wait`."""
    ChannelPoller({str(n): end for n, end in enumerate(ends)}, waker=waker).wait(timeout_s)
