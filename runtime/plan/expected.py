"""What was predicted of a plan before it runs; it travels with the plan, to be held against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["ExpectedLatency", "RateRange"]


class RateRange(NamedTuple):
    """Events a second of a source, as they were given: the least, mean and most over 10 s."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True, kw_only=True)
class ExpectedLatency:
    """A prediction, as the job that it is of carries it. Source: [mace] §IX.

    Attributes:
        graph: a `QueryGraph`: what an event costs each stage, and what comes of
            it. What makes plans does not look into it.
        rates: {source: what was given}.
        width_s: w, length of a subinterval.
        latency_s: worst latency of each subinterval, from the start of the sources on.
        worst_s: of all results.
        p99_s: over the subintervals that have results.
        mean_s: likewise.
        is_unbounded: whether a slot would fall behind for ever, or a gate hold its rows too long.
        cores: {slot: CPU seconds a second that its stages need}.
        gate_s: of each subinterval, what results wait in gates; empty: nothing.
        machines: `SharedCores` that have fewer cores than slots.
        network: a `Network`: what lies between nodes; None: nothing.
        shares: {stage: how many of the rows that its inputs put out come to it}.
    """

    graph: Any
    rates: Mapping[str, RateRange]
    width_s: float
    latency_s: tuple[float, ...]
    worst_s: float
    p99_s: float
    mean_s: float
    is_unbounded: bool
    cores: Mapping[str, float] = field(default_factory=dict)
    gate_s: tuple[float, ...] = ()
    machines: tuple[Any, ...] = ()
    network: Any = None
    shares: Mapping[str, float] = field(default_factory=dict)
