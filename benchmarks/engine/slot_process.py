"""A slot's loop in a process of its own, without Ray: `SlotHost` as it is, looked at from inside.

```
parent ──(method, arguments)──▶ child: SlotHost ──▶ its loop, a thread that the kernel can name
       ◀──────── answer ────────
```
"""

from __future__ import annotations

import cProfile
import gc
import marshal
import multiprocessing
import pstats
import sys
import threading
import time
import tracemalloc
from multiprocessing.connection import Connection
from typing import Any, Literal

from actors.slot.arrow_ahead import import_arrow_functions
from actors.slot.host import SlotHost
from actors.slot.without_pandas import leave_out_pandas
from actors.wire.channel import ChannelKeys
from benchmarks.engine.live import name_thread
from runtime.plan.slot_plan import SlotPlan

__all__ = ["Look", "SlotProcess"]

Look = Literal["counts", "functions", "memory"]
"""What to look at: counts cost nothing; functions by cProfile; memory that is held, by line."""
LINES = 12


class SlotProcess:
    """The parent's end of one slot's process."""

    def __init__(self, plan: SlotPlan, keys: ChannelKeys, look: Look) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.name = plan.name
        self._process = context.Process(target=_serve, args=(theirs, plan, keys, look), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Return its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def ask(self, method: str, *args: Any) -> None:
        """Begin a call; `answer` has what it returns."""
        self._pipe.send((method, args))

    def answer(self) -> Any:
        """Return what the call returned, or raise what it raised."""
        is_fine, answer = self._pipe.recv()
        if not is_fine:
            raise answer
        return answer

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the host, or `counted` or `looked` of here."""
        self.ask(method, *args)
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.terminate()
        self._process.join()


class _Looker:
    """Names each thread as it begins, and profiles those of slots."""

    def __init__(self, look: Look) -> None:
        self._look = look
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
        """Return what Python counts, as it stands now."""
        return {
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


def _serve(pipe: Connection, plan: SlotPlan, keys: ChannelKeys, look: Look) -> None:
    looker = _Looker(look)
    leave_out_pandas()
    import_arrow_functions(plan.stages)
    host = SlotHost(plan, keys=keys)
    while True:
        try:
            method, args = pipe.recv()
        except EOFError:
            return
        mine = method in ("counted", "looked")
        try:
            answer = getattr(looker if mine else host, method)(*args)
        except Exception as problem:  # to be raised in the parent
            pipe.send((False, problem))
        else:
            pipe.send((True, answer))
