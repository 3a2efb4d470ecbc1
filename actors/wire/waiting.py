"""Waiting for channels, and for other threads, to the microsecond.

A ZeroMQ socket's file descriptor tells of changes, not of a state: it may be silent while
messages lie in the socket, once any call has taken note of the change. To ask a socket takes note
of all changes so far; only if it says then that nothing is there is it safe to sleep on its
descriptor. `zmq.Poller` does so each time, with whole milliseconds; a gate's deadline needs finer
ones, and to ask costs as much as to receive. So an end knows whether it `may_hide` messages, and
only such are asked; of the others the descriptors tell, all of them in one call.

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
_MAX_WAIT_S = 3_600.0  # select refuses what does not fit its clock; waking for nothing is allowed


class Pollable(Protocol):
    """What can be waited for: a `Sender`, a `Receiver`."""

    may_hide: bool
    """Whether messages may lie in its socket of which its descriptor does not tell."""

    @property
    def socket(self) -> zmq.Socket[bytes]:
        """Its socket."""
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
        if not self._is_set:
            return
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


def sharpen_timers() -> None:
    """Let this thread's sleeps end 50 µs sooner: Linux adds that much to each, to save power.

    Elsewhere nothing happens.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_TIMERSLACK, 1_000, 0, 0, 0)  # nanoseconds


class ChannelPoller:
    """Some channels' ends, and a waker, that one thread waits for.

    Args:
        ends: open ones, by name.
        waker: for other threads.
    """

    def __init__(self, ends: Mapping[str, Pollable], *, waker: Waker | None = None) -> None:
        self._polled = [(end, (end.socket, _POLLIN)) for end in ends.values()]
        self._ends = [(name, end, end.socket.fileno()) for name, end in ends.items()]
        self._fds = [fd for _, _, fd in self._ends]
        self._waker = waker
        if waker is not None:
            self._fds.append(waker.fileno())
        # Of the last wait, until they are asked for.
        self._told: list[int] | None = None
        self._has_low_fds = max(self._fds, default=0) < _SELECTABLE

    def ready(self) -> list[str]:
        """Return the names of the ends where something is there to be read, in their order.

        Straight behind a `wait` these are the ones that it was told of. One may be among them
        where nothing is there after all; none is left out for longer than until the next call.
        """
        told, self._told = self._told, None
        if not self._ends:
            return []
        if told is None:
            told = self._sleep(0.0)
        hiding = self._asked()
        if not told and not hiding:
            return []
        return [
            name
            for name, end, fd in self._ends
            if end in hiding or (fd in told and not end.may_hide)
        ]

    def wait(self, timeout_s: float) -> bool:
        """Return when something is there to be read, someone woke us, or the time is over.

        It may return early: look at everything, then wait again. The waker is cleared.

        Args:
            timeout_s: seconds, to the microsecond; below zero is zero.

        Returns:
            Whether someone woke us.
        """
        # What hides is not all that may be there: then `ready` looks at everything.
        self._told = None
        if not self._asked():
            self._told = self._sleep(min(max(timeout_s, 0.0), _MAX_WAIT_S))
        waker = self._waker
        if waker is None or not waker.is_ready:
            return False
        waker.clear()
        return True

    def _asked(self) -> list[Pollable]:
        """Ask those that may hide messages; return those that do."""
        asked = [one for one in self._polled if one[0].may_hide]
        if not asked:
            return []
        # All in one call, which takes a third of the time of asking each.
        full = [socket for socket, _ in zmq_poll([item for _, item in asked], 0)]
        hiding = []
        for end, (socket, _) in asked:
            if socket in full:
                hiding.append(end)
            else:
                end.may_hide = False
        return hiding

    def _sleep(self, timeout_s: float) -> list[int]:
        """Sleep until a descriptor has something to tell; return those that have."""
        if self._has_low_fds:
            return select.select(self._fds, (), (), timeout_s)[0]
        poll = select.poll()  # select cannot see such descriptors; poll can, in milliseconds
        for fd in self._fds:
            poll.register(fd, select.POLLIN)
        return [fd for fd, _ in poll.poll(timeout_s * 1_000)]


def wait(ends: Sequence[Pollable], timeout_s: float, *, waker: Waker | None = None) -> None:
    """Wait once; see `ChannelPoller.wait`."""
    ChannelPoller({str(n): end for n, end in enumerate(ends)}, waker=waker).wait(timeout_s)
