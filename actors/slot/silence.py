"""End slots that stand still, by their node's supervisor.

```
loop turns                                       alive
loop stands still, its process computes          alive: a long function, also one that holds Python
loop stands still, and waits for a core          alive: a busy machine
loop stands still, and its process uses no CPU   silent; after the limit its process is killed
```

The page of last words has the turns, so a process that is stopped, or whose code holds Python,
need not answer. A process that is killed is replaced as after any death, and cannot wake later.

Time is counted by looks. So a pause of the whole machine, supervisor included, does not count.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from slackwater.actors.kernel.process_identity import ProcessIdentity, state_of
from slackwater.actors.slot.last_words import LastWords, last_words_of
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["SilenceWatch", "WatchedLoop"]

LOOKS = 40
"""Looks within the limit."""
MOST_LOOK_S = 1.0
"""Time between two looks, at most."""
LEAST_SHARE = 0.1
"""Share of a core below which a thread uses none. One that waits for Python's lock looks for it
each `TURN_S`, and uses 0.02 to 0.04: so several together say nothing, and each is looked at."""


class SilenceWatch:
    """Ends the slots of this host that stand still."""

    def __init__(self) -> None:
        self._over = threading.Event()

    def watch(self, pids: Sequence[int], lost_s: float) -> None:
        """Watch these processes, and no others, until another call or `end`.

        Args:
            pids: ids of the slots' processes.
            lost_s: silence after which a process is ended, in seconds.
        """
        self.end()
        self._over = over = threading.Event()
        pages = {pid: page for pid in pids if (page := last_words_of(pid)) is not None}
        _watch([WatchedLoop(pid, page) for pid, page in pages.items()], lost_s, over)
        over.wait()

    def end(self) -> None:
        """Watch no process any more."""
        self._over.set()


def _watch(loops: list[WatchedLoop], lost_s: float, over: threading.Event) -> None:
    every_s = min(lost_s / LOOKS, MOST_LOOK_S)
    looked_s = time.monotonic()
    while loops and not over.wait(every_s):
        now_s = time.monotonic()
        passed_s, looked_s = min(now_s - looked_s, 2 * every_s), now_s
        for loop in list(loops):
            if not loop.look(passed_s):
                loops.remove(loop)
            elif loop.silent_s >= lost_s:
                loop.kill()
                loops.remove(loop)


class WatchedLoop:
    """The loop of a slot, seen from another process of its host.

    Args:
        pid: id of the slot's process.
        page: its page of last words.

    Attributes:
        silent_s: seconds for which the loop has stood still, and its process has used no CPU.
    """

    def __init__(self, pid: int, page: LastWords) -> None:
        self.silent_s = 0.0
        self._page, self._turns = page, 0
        self._process = ProcessIdentity.of_pid(pid)
        self._cpu_ns: dict[str, int] | None = None  # by thread

    def look(self, passed_s: float) -> bool:
        """Look at the loop; return whether its process is there.

        Args:
            passed_s: seconds since the last look.
        """
        if self._process is None or not self._process.is_there():
            return False
        turns, thread = self._page.pulse
        if turns != self._turns or turns == 0:
            self._turns, self._cpu_ns, self.silent_s = turns, None, 0.0
            return True
        cpu_ns, before_ns = _cpu_ns(self._process.pid), self._cpu_ns
        self._cpu_ns = cpu_ns
        least_ns = LEAST_SHARE * passed_s * NS_PER_SECOND
        has_computed = before_ns is not None and any(
            ns - before_ns.get(thread, 0) >= least_ns for thread, ns in cpu_ns.items()
        )
        if has_computed or _is_at_work(self._process.pid, thread):
            self.silent_s = 0.0
        else:
            self.silent_s += passed_s
        return True

    def kill(self) -> None:
        """Kill the process; its last words say why."""
        assert self._process is not None, "it was there a moment ago"
        state = state_of(self._process.pid)
        waits = "it waits, perhaps in a function that holds the interpreter"
        self._page.say(
            "the supervisor of its node: its loop stood still, and its process used no CPU time, "
            f"for {self.silent_s:.3g} s (Limits.lost_ns); "
            f"{waits if state.is_running else state.text}"
        )
        self._process.end(grace_s=0)


def _is_at_work(pid: int, thread: int) -> bool:
    """Return whether a thread runs, or waits for a core."""
    try:
        text = Path(f"/proc/{pid}/task/{thread}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:  # it ends just now
        return False
    return text.rpartition(")")[2].split()[0] == "R"


def _cpu_ns(pid: int) -> dict[str, int]:
    """Return the CPU time of each thread of a process; none if it has ended.

    Of the process as one thread, where the kernel does not say it of each.
    """
    times_ns = {}
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                text = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text(encoding="ascii")
                times_ns[thread] = int(text.split()[0])
        if not times_ns:
            times_ns[""] = time.clock_gettime_ns((~pid << 3) | 2)  # the clock of another process
    return times_ns
