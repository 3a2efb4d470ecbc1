"""What each part of a slot takes of its CPU and of a result's latency; what is left without it.

All of it is estimated, by subtraction: parts are timed in a run of their own (`slot_parts.py`), and
their share of that run's CPU is taken of the CPU of the runs that nobody looked into. What would be
compiled counts as if it took no time, nor the call of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.engine.compiled_run import Measured
from benchmarks.engine.slot_parts import AWAKE, HANDED, REACHED, STAGE, STEP, TAKE, WITH_ROWS

__all__ = [
    "COMPILED",
    "JOIN",
    "SINK",
    "SLEEPING",
    "SOURCES",
    "Part",
    "awake_ms",
    "left_without",
    "parts_of",
]

SLEEPING = "sleeping and waking"
SOURCES, JOIN, SINK = "source rows at a look", "gate and join of a row", "sink of a row"
FRAME, SLOT, LOOP = "a source's stage around it", "the slot around its stages", "the loop around it"
COMPILED: Mapping[str, Sequence[str]] = {
    SOURCES: (SOURCES,),
    JOIN: (JOIN,),
    SINK: (SINK,),
    "these three": (SOURCES, JOIN, SINK),
    "all that the loop calls": (SOURCES, JOIN, SINK, FRAME, SLOT),
}
"""{what could be compiled, the Python around it as it is: the parts of it}."""
SOURCE_RUN, JOIN_RUN, SINK_RUN = (f"{STAGE} {kind}" for kind in ("source", "join", "sink"))
SLICES = 3
"""Of a result's way: of a source, of the join, of the sink."""


@dataclass(frozen=True)
class Part:
    """One part of a slot.

    Attributes:
        cores: what it takes, estimated.
        calls_per_s: how often it is called; of sleeping, how often it sleeps; 0: not known.
        in_latency_ms: what a result waits for it, on average; 0 where that is not known.
    """

    cores: float
    calls_per_s: float = 0.0
    in_latency_ms: float = 0.0


def parts_of(timed: Measured, *, cores: float, sleeping: float) -> dict[str, Part]:
    """Return {part: what it takes}; all together they are `cores`.

    Args:
        timed: a run whose parts were timed.
        cores: of runs that nobody looked into.
        sleeping: what of that the sleeps take.
    """
    parts = timed.parts
    calls = {
        name: _both(parts, name, ", calls") for name in (TAKE, STEP, SOURCE_RUN, JOIN_RUN, SINK_RUN)
    }
    ns = {name: _both(parts, name) for name in calls}
    own = {  # {part: (ns, calls)}
        SOURCES: (ns[TAKE], calls[TAKE]),
        FRAME: (ns[SOURCE_RUN] - ns[TAKE], calls[SOURCE_RUN]),
        JOIN: (ns[JOIN_RUN], calls[JOIN_RUN]),
        SINK: (ns[SINK_RUN] + parts.get(HANDED, 0), calls[SINK_RUN]),
        SLOT: (ns[STEP] - ns[SOURCE_RUN] - ns[JOIN_RUN] - ns[SINK_RUN], calls[STEP]),
    }
    each = {name: _each(parts, f"{name}{WITH_ROWS}") for name in calls}
    in_stages_ns = sum(
        parts.get(f"{name}{WITH_ROWS}", 0) for name in (SOURCE_RUN, JOIN_RUN, SINK_RUN)
    )
    steps = parts.get(f"{STEP}{WITH_ROWS}, calls", 0)
    waits_ns = {
        SOURCES: each[TAKE],
        FRAME: each[SOURCE_RUN] - each[TAKE],
        JOIN: each[JOIN_RUN],
        SINK: each[SINK_RUN] + _each(parts, REACHED),
        SLOT: SLICES * (each[STEP] - in_stages_ns / max(steps, 1)),
    }
    scale = cores / (timed.cores * timed.passed_s)
    found = {SLEEPING: Part(sleeping, timed.sleeps_per_s)} | {
        name: Part(spent / 1e9 * scale, times / timed.passed_s, waits_ns.get(name, 0.0) / 1e6)
        for name, (spent, times) in own.items()
    }
    return found | {LOOP: Part(cores - sum(part.cores for part in found.values()))}


def left_without(
    parts: Mapping[str, Part], names: Sequence[str], *, p50_ms: float
) -> dict[str, float]:
    """Return cores and p50 of a slot some of whose parts take nothing.

    Args:
        parts: as `parts_of` has them.
        names: of those that take nothing.
        p50_ms: of the slot as it is.
    """
    return {
        "cores": sum(part.cores for name, part in parts.items() if name not in names),
        "p50_ms": p50_ms - sum(parts[name].in_latency_ms for name in names),
    }


def awake_ms(timed: Measured) -> float:
    """Return how long it is from when the loop woke until the user's function has the rows."""
    return _each(timed.parts, AWAKE) / 1e6


def _both(parts: Mapping[str, int], name: str, what: str = "") -> int:
    """Return what calls of a part took, or their number, whether they gave rows or not."""
    return parts.get(f"{name}{what}", 0) + parts.get(f"{name}{WITH_ROWS}{what}", 0)


def _each(parts: Mapping[str, int], name: str) -> float:
    """Return the mean of a call, ns; 0 if there was none."""
    return parts.get(name, 0) / max(parts.get(f"{name}, calls", 0), 1)
