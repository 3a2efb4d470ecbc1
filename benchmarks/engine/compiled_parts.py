"""What each part of a slot takes of its CPU and of a result's latency; what is left without it.

All of it is estimated, by subtraction: parts are timed in a run of their own (`slot_parts.py`), and
their share of that run's CPU is taken of the CPU of the runs that nobody looked into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.engine.compiled_run import Measured
from benchmarks.engine.slot_parts import HANDED, STAGE, STEP, TAKE

__all__ = ["ALONE", "Part", "parts_of"]

SOURCES, JOIN, SINK = "source rows at a look", "gate and join of a row", "sink of a row"
ALONE = (SOURCES, JOIN, SINK)
"""Parts that could be compiled each by itself, with the loop around them as it is."""


@dataclass(frozen=True)
class Part:
    """One part of a slot.

    Attributes:
        cores: what it takes, estimated.
        us_each: of a call, in microseconds; 0 where that is not known.
        per_s: calls a second.
        in_latency_ms: what it takes of a result's latency: a call of it; 0 where it has none, or
            where that is not known.
    """

    cores: float
    us_each: float = 0.0
    per_s: float = 0.0
    in_latency_ms: float = 0.0


def parts_of(timed: Measured, *, cores: float, sleeping: float) -> dict[str, Part]:
    """Return {part: what it takes}; all together they are `cores`.

    Args:
        timed: a run whose parts were timed.
        cores: of runs that nobody looked into.
        sleeping: what of that the sleeps take.
    """
    spent_s = {name: ns / 1e9 for name, ns in timed.parts.items() if not name.endswith(", calls")}
    source, join, sink = (
        spent_s.get(f"{STAGE} {kind}", 0.0) for kind in ("source", "join", "sink")
    )
    take, handed = spent_s.get(TAKE, 0.0), spent_s.get(HANDED, 0.0)
    inner = {
        SOURCES: (take, _calls(timed.parts, TAKE)),
        "a source's stage around it": (source - take, _calls(timed.parts, f"{STAGE} source")),
        JOIN: (join, _calls(timed.parts, f"{STAGE} join")),
        SINK: (sink + handed, _calls(timed.parts, HANDED)),
        "the slot around its stages": (
            spent_s.get(STEP, 0.0) - source - join - sink,
            _calls(timed.parts, STEP),
        ),
    }
    scale = cores / (timed.cores * timed.passed_s)
    found = {
        name: Part(
            seconds * scale,
            seconds * scale * timed.passed_s / calls * 1e6 if calls else 0.0,
            calls / timed.passed_s,
            seconds / calls * 1e3 if calls and name in ALONE else 0.0,
        )
        for name, (seconds, calls) in inner.items()
    }
    rest = cores - sleeping - sum(part.cores for part in found.values())
    return {
        "sleeping and waking": Part(sleeping, per_s=timed.sleeps_per_s),
        **found,
        "the loop around the slot": Part(rest),
    }


def _calls(parts: Mapping[str, int], name: str) -> int:
    return parts.get(f"{name}, calls", 0)
