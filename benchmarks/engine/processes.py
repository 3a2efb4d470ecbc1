"""How much memory the processes of a run hold: this one, and all below it."""

from __future__ import annotations

import threading
from collections import Counter

import psutil

SLOT_ACTOR = "ray::SlotActor"


def all_processes() -> list[psutil.Process]:
    """Return this process and all below it: driver, Ray's own, workers, actors."""
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def kind_of(process: psutil.Process) -> str:
    """Return what it is: driver, slot actors, raylet, gcs_server, and so on."""
    if process.pid == psutil.Process().pid:
        return "driver"
    words = process.cmdline() or [process.name()]
    if words[0].startswith(SLOT_ACTOR):
        return "slot actors"
    if words[0].startswith("ray::"):
        return str(words[0]).removeprefix("ray::").split()[0]
    for known in ("raylet", "gcs_server", "local_supervisor.py", "stub_agent.py"):
        if any(known in word for word in words[:6]):
            return known
    return str(process.name())


OURS = ("driver", "slot actors")


def memory_by_kind() -> dict[str, dict[str, float]]:
    """Return {kind: {"processes", "rss_mb", "pss_mb"}} as it is now; "all" and "ours" sum up.

    RSS counts a page that two processes share twice; PSS counts half of it for each.
    """
    found: dict[str, Counter[str]] = {}
    for process in all_processes():
        try:
            kind, memory = kind_of(process), process.memory_full_info()
        except psutil.NoSuchProcess:
            continue
        for name in (kind, "all", *(["ours"] if kind in OURS else [])):
            found.setdefault(name, Counter()).update(processes=1, rss=memory.rss, pss=memory.pss)
    return {
        kind: {
            "processes": sums["processes"],
            "rss_mb": round(sums["rss"] / 2**20, 1),
            "pss_mb": round(sums["pss"] / 2**20, 1),
        }
        for kind, sums in found.items()
    }


class MemoryOnce:
    """Takes `memory_by_kind` once, so many seconds from now, from a thread of its own."""

    def __init__(self, in_s: float) -> None:
        self._found: dict[str, dict[str, float]] = {}
        self._timer = threading.Timer(in_s, self._take)
        self._timer.daemon = True
        self._timer.start()

    def _take(self) -> None:
        self._found = memory_by_kind()

    def result(self) -> dict[str, dict[str, float]]:
        """Return it, when it has been taken."""
        self._timer.join()
        return self._found
