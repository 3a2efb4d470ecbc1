"""Measure how long a thread is occupied: its CPU time, and its own waits.

```
wall      ├── CPU ──┤ waits for a core ├─ CPU ─┤── sleeps, reads, asks a service ──┤
occupied  ├─────────┤                  ├───────┤───────────────────────────────────┤
```

A slot is one thread, so a function that sleeps delays other work there as much as a function that
computes. A wait for a core, which other processes hold, is not work of the function. Nor is a wait
for Python's lock, which a thread that reads an input holds as it computes: up to the CPU time of
such threads, a wait counts as theirs. A thread that waits by itself gives its core back, which the
kernel counts; where it has not, the host of a virtual machine had the core.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable

__all__ = ["OccupiedClock", "queued_ns"]

LEAST_WAIT_NS = 200_000
"""Shorter waits in one stretch are ignored: two clocks that are read one after the other differ
by some microseconds."""


class OccupiedClock:
    """Clock of one thread: advances while the thread works, or waits by itself.

    Where the kernel does not say how long a thread has waited for a core, the clock shows CPU time.
    Only one thread may read it.

    Args:
        others_ns: CPU time of the threads of this process that may hold Python's lock.
    """

    def __init__(self, others_ns: Callable[[], int] = lambda: 0) -> None:
        self._others_ns, self._others_had_ns = others_ns, 0
        self._waited_ns = 0  # by its own code, so far
        self._file: int | None = None
        self._thread = 0
        self._wall_ns = self._cpu_ns = self._queued_ns = 0
        self._gave_back = 0  # how often it had given its core back

    def __call__(self) -> int:
        """Return how long the thread has been occupied, in ns since a fixed moment."""
        if self._thread != threading.get_native_id():
            self._open()
        wall_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        waited_ns = (wall_ns - self._wall_ns) - (cpu_ns - self._cpu_ns)
        others_ns = self._others_ns()
        others_took_ns, self._others_had_ns = others_ns - self._others_had_ns, others_ns
        if waited_ns >= LEAST_WAIT_NS and self._file is not None:
            queued_ns, gave_back = _queued_ns(self._file), _gave_back()
            waited_ns -= queued_ns - self._queued_ns
            waited_ns -= min(others_took_ns, waited_ns)
            if waited_ns >= LEAST_WAIT_NS and gave_back != self._gave_back:
                self._waited_ns += waited_ns
            self._queued_ns, self._gave_back = queued_ns, gave_back
        self._wall_ns, self._cpu_ns = wall_ns, cpu_ns
        return cpu_ns + self._waited_ns

    def idled(self) -> int:
        """Return the clock; the time since the last reading was idle and does not count."""
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        self._others_had_ns = self._others_ns()
        return self._cpu_ns + self._waited_ns

    def close(self) -> None:
        """Close the kernel's file. Idempotent."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _open(self) -> None:
        self.close()
        self._thread = threading.get_native_id()
        try:
            self._file = os.open(f"/proc/self/task/{self._thread}/schedstat", os.O_RDONLY)
            self._queued_ns, self._gave_back = _queued_ns(self._file), _gave_back()
        except (OSError, ValueError):  # no Linux, or a kernel that keeps no such account
            self.close()
        self._wall_ns, self._cpu_ns = time.monotonic_ns(), time.thread_time_ns()


def queued_ns() -> int:
    """Return how long this thread has waited for a core; 0 if unknown."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return _queued_ns(file.fileno())
    except (OSError, ValueError, IndexError):
        return 0


def _queued_ns(file: int) -> int:
    return int(os.pread(file, 96, 0).split()[1])


def _gave_back() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
