"""Expected latency: the prediction of a plan, which travels with it for a later comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["ExpectedLatency", "RateRange"]


class RateRange(NamedTuple):
    """Rates of a source in events a second: least, mean and most over 10 s."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True, kw_only=True)
class ExpectedLatency:
    """Prediction of a plan, as its job carries it. Source: [mace] §IX.

    Attributes:
        graph: a `QueryGraph`: cost and selectivity of each stage. The plan room does not read it.
        rates: {source: its rates}.
        width_s: w, length of a subinterval.
        latency_s: worst latency of each subinterval, from the start of the sources on.
        worst_s: worst latency of all results.
        p99_s: 99th percentile over the subintervals that have results.
        mean_s: mean over the same subintervals.
        is_unbounded: whether a slot's backlog would grow for ever, or a gate hold rows too long.
        cores: {slot: CPU seconds a second that its stages need}.
        gate_s: wait in gates of each subinterval's results; empty: no wait.
        machines: `SharedCores` that have fewer cores than slots.
        network: a `Network`: delays between nodes; None if there are no delays.
        shares: {stage: the share of its inputs' output rows that reach it}.
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
