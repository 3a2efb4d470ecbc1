"""What one process holds in memory, as its kernel counts it. Linux only: `/proc/<pid>/smaps`.

| word | what |
| --- | --- |
| RSS | all pages that are there for it, shared ones whole: of a library each has all |
| own | pages that it has written to, which no other can share: what one more of its kind takes |
| PSS | own pages, and its share of shared ones: over all processes, what the machine holds |
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Held", "by_mapping", "held"]

ARENA_BYTES = 64 * 2**20
"""glibc's malloc has one arena for some threads, each begins at a multiple of that."""
STACK_KB = 8_192
"""Of a thread, as glibc maps it."""


@dataclass(frozen=True)
class Held:
    """One process, or what it holds more than another.

    Attributes:
        threads: those that the kernel knows.
    """

    rss_mb: float
    own_mb: float
    pss_mb: float
    threads: int = 0

    def __sub__(self, other: Held) -> Held:
        return Held(
            self.rss_mb - other.rss_mb,
            self.own_mb - other.own_mb,
            self.pss_mb - other.pss_mb,
            self.threads - other.threads,
        )


def held(pid: int) -> Held:
    """Return what a process of this user holds now."""
    folder = Path(f"/proc/{pid}")
    found: dict[str, float] = {}  # {what: MB}
    for line in (folder / "smaps_rollup").read_text().splitlines()[1:]:
        name, _, value = line.partition(":")
        found[name] = int(value.split()[0]) / 1_024
    return Held(
        found["Rss"], found["Private_Dirty"], found["Pss"], len(os.listdir(folder / "task"))
    )


def by_mapping(pid: int) -> dict[str, dict[str, float]]:
    """Return {kind of mapping: {"mappings", "mapped_mb", "rss_mb", "own_mb"}} of a process."""
    sums: dict[str, dict[str, float]] = {}
    for kind, mapped, rss, own in _mappings(pid):
        one = sums.setdefault(kind, {"mappings": 0, "mapped_mb": 0, "rss_mb": 0, "own_mb": 0})
        one["mappings"] += 1
        one["mapped_mb"] += mapped / 1_024
        one["rss_mb"] += rss / 1_024
        one["own_mb"] += own / 1_024
    return sums


def _mappings(pid: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield (kind, mapped, resident, own), in kB."""
    header = ""
    kb: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, _, value = line.partition(":")
        if " " in name:  # "7f0c1000-7f0c2000 rw-p 00000000 00:00 0  [heap]"
            header, kb = line, {}
        elif name == "VmFlags":  # the last of a mapping
            yield _kind(header, kb["Size"]), kb["Size"], kb["Rss"], kb["Private_Dirty"]
        elif value.endswith("kB"):
            kb[name] = int(value.split()[0])


def _kind(header: str, size_kb: int) -> str:
    span, rights, _, _, _, *path = header.split()
    if path and path[0].startswith("/dev/shm/"):  # noqa: S108 Ray's, not ours to make
        return "object store, shared"
    if path and path[0].startswith("/"):
        return "files"
    if path and path[0] == "[heap]":
        return "malloc, main arena"
    if (path and path[0] == "[stack]") or (size_kb == STACK_KB and rights.startswith("rw")):
        return "stacks"
    if int(span.partition("-")[0], 16) % ARENA_BYTES == 0 and size_kb < ARENA_BYTES // 1_024:
        return "malloc, threads' arenas"
    return "other: Python's objects, Arrow's pool"
