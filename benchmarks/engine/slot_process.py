"""A slot's loop in a process of its own, without Ray: `SlotHost` as it is, looked at from inside.

```
parent ──(method, arguments)──▶ child: SlotHost ──▶ its loop, a thread that the kernel can name
       ◀──────── answer ────────       (`child.py`)
```
"""

from __future__ import annotations

import cProfile
import gc
import marshal
import pstats
import sys
import threading
import time
import tracemalloc
from typing import Any, Literal

from benchmarks.engine.child import Child
from benchmarks.engine.live import name_thread
from benchmarks.engine.slot_parts import Parts
from slackwater.actors.slot.actor import import_arrow_functions
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.slot.keep_memory import keep_freed_memory
from slackwater.actors.slot.without_pandas import leave_out_pandas
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.plan.slot_plan import SlotPlan

__all__ = ["Look", "SlotProcess"]

Look = Literal["counts", "functions", "memory", "parts"]
"""What to look at: counts cost nothing; functions by cProfile; memory that is held, by line; parts
of the loop by the clock."""
LINES = 12


class SlotProcess(Child):
    """The parent's end of one slot's process; what is called is a method of its host or of `_Seen`.

    Args:
        plan: of the slot.
        keys: the job's.
        look: see there.
    """

    def __init__(self, plan: SlotPlan, keys: ChannelKeys, look: Look) -> None:
        super().__init__(_Seen, plan, keys, look)
        self.name = plan.name


class _Looker:
    """Names each thread as it begins, and profiles those of slots."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._parts = Parts() if look == "parts" else None
        self._profiles: list[cProfile.Profile] = []
        self._gc_ns = self._gc_began_ns = 0
        gc.callbacks.append(self._collects)
        if look == "memory":
            tracemalloc.start()
        runs = threading.Thread.run

        def run(thread: threading.Thread) -> None:
            name_thread(thread.name)
            if look == "functions" and thread.name.startswith("slot-"):
                profile = cProfile.Profile()
                self._profiles.append(profile)
                profile.runcall(runs, thread)
            else:
                runs(thread)

        setattr(threading.Thread, "run", run)  # noqa: B010  a thread runs what its class says

    def counted(self) -> dict[str, int]:
        """Return what Python counts as it stands now, and what parts took, if they are timed."""
        return {
            **(self._parts.totals() if self._parts is not None else {}),
            "blocks": sys.getallocatedblocks(),
            "collections": sum(one["collections"] for one in gc.get_stats()),
            "collections_ns": self._gc_ns,
        }

    def looked(self) -> Any:
        """Return the profile of the loop as pstats has it, or what holds memory, line by line."""
        if self._look == "memory":
            taken = tracemalloc.take_snapshot().statistics("lineno")
            return [(str(one.traceback), one.size, one.count) for one in taken[:LINES]]
        stats = pstats.Stats(*self._profiles) if self._profiles else None
        # Of the callers there is no need, and marshal is all that a profile needs.
        return None if stats is None else marshal.dumps(_plain(stats))

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began_ns = time.perf_counter_ns()
        else:
            self._gc_ns += time.perf_counter_ns() - self._gc_began_ns


def _plain(stats: pstats.Stats) -> dict[tuple[str, int, str], tuple[int, float, float]]:
    """Return {(file, line, function): (calls, own seconds, seconds with what it called)}."""
    found: dict[Any, Any] = stats.stats  # type: ignore[attr-defined]
    return {place: (calls, own, whole) for place, (_, calls, own, whole, _) in found.items()}


class _Seen:
    """The host of a slot, and what looks at it."""

    def __init__(self, plan: SlotPlan, keys: ChannelKeys, look: Look) -> None:
        looker = _Looker(look)
        self.counted, self.looked = looker.counted, looker.looked
        keep_freed_memory()
        leave_out_pandas()
        import_arrow_functions(plan.stages)
        self._host = SlotHost(plan, keys=keys)

    def __getattr__(self, method: str) -> Any:
        return getattr(self._host, method)
