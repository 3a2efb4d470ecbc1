"""What the kernel counts for each thread of a process: CPU time, and how often it gave way.

Linux only: from `/proc/<pid>/task`. CPU time is `schedstat`'s, to the nanosecond; where the
kernel keeps none it is `stat`'s, in ticks of 10 ms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "RAYS_MAIN",
    "ThreadCounts",
    "cpu_of_stat_ns",
    "cpu_of_threads_ns",
    "group_of",
    "grouped",
    "switches_of",
    "thread_counts",
]

SHARP_NS = "1000"
RAYS_MAIN = "Ray's main"
"""The first thread of an actor's process: Ray's loop, which looks for signals every 10 ms."""
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ThreadCounts:
    """What one thread has used, or several together.

    Attributes:
        cpu_ns: on a core, in user and in kernel mode.
        voluntary: how often it went to sleep.
        involuntary: how often a core was taken from it.
    """

    cpu_ns: int = 0
    voluntary: int = 0
    involuntary: int = 0

    def __add__(self, other: ThreadCounts) -> ThreadCounts:
        return ThreadCounts(
            self.cpu_ns + other.cpu_ns,
            self.voluntary + other.voluntary,
            self.involuntary + other.involuntary,
        )

    def __sub__(self, before: ThreadCounts) -> ThreadCounts:
        return ThreadCounts(
            self.cpu_ns - before.cpu_ns,
            self.voluntary - before.voluntary,
            self.involuntary - before.involuntary,
        )


def thread_counts(pid: int) -> dict[int, tuple[str, ThreadCounts]]:
    """Return {thread's id: (its name, what it has used)} of a process; none if it is gone."""
    found = {}
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return {}
    for task in tasks:
        try:
            name = "slot-loop" if _is_loop(task.name) else (task / "comm").read_text().strip()
            if name.startswith("ray::") and task.name == str(pid):
                name = RAYS_MAIN
            voluntary, involuntary = switches_of((task / "status").read_text())
            found[int(task.name)] = (name, ThreadCounts(_cpu_ns(task), voluntary, involuntary))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return found


def cpu_of_threads_ns(pid: int) -> int:
    """Return the CPU time of all threads that a process has had; 0 if it is gone."""
    try:
        return cpu_of_stat_ns(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def cpu_of_stat_ns(text: str) -> int:
    """Return user and system time in a `stat` file, whose second field may hold any character."""
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_NS


def switches_of(text: str) -> tuple[int, int]:
    """Return the voluntary and the involuntary context switches in a `status` file."""
    said = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(said["voluntary_ctxt_switches"]), int(said["nonvoluntary_ctxt_switches"])


def grouped(
    before: Mapping[int, tuple[str, ThreadCounts]],
    after: Mapping[int, tuple[str, ThreadCounts]],
    *,
    group: Callable[[str], str],
) -> dict[str, ThreadCounts]:
    """Return {group: what its threads used between two looks}.

    A thread that came in between counts from 0; one that went cannot be known, and is left out.
    """
    found: dict[str, ThreadCounts] = {}
    for thread, (name, counts) in after.items():
        used = counts - before[thread][1] if thread in before else counts
        found[group(name)] = found.get(group(name), ThreadCounts()) + used
    return found


def group_of(name: str) -> str:
    """Return which threads of a slot's process one of this name belongs to.

    Python's own names of threads do not reach the kernel (3.11), and a thread has its maker's:
    so a benchmark's own code names those that it runs in (`live.name_thread`), to root a loop also
    shows by its sharp timers, and what is left of Python's is "Python, unnamed".
    """
    if name in ("slot-loop", "slot-source"):
        return name.removeprefix("slot-")
    if name.startswith(("ZMQbg", "ZMQ")):
        return "libzmq"
    if name.startswith("ray::"):
        return "Python, unnamed"
    return "Ray's own"


def _is_loop(thread: str) -> bool:
    """Whether it is a slot's loop: no other thread has sharpened its timers (`actors/wire`)."""
    try:
        return Path(f"/proc/{thread}/timerslack_ns").read_text().strip() == SHARP_NS
    except OSError:  # only root may ask
        return False


def _cpu_ns(task: Path) -> int:
    try:
        return int((task / "schedstat").read_text().split()[0])
    except FileNotFoundError:
        return cpu_of_stat_ns((task / "stat").read_text())
