"""What `join-latency` claims, from the figures of its runs and of the bare messages beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.frame import Claim

__all__ = ["RATE", "latency_claims", "ratio_to_bare", "run_name"]

RATE = 10_000  # of the claims about time
MOST_P50_MS = {"one slot": 0.2, "three nodes": 0.6}
MOST_P99_MS = 3.0
OVER_FLOOR_MS = 0.3
MOST_BARE = 3.0  # × a bare message


def run_name(mode: str, place: str, rate: int) -> str:
    """Return the key of a run's figures."""
    return f"{mode}, {place}, {rate:,} events/s"


def latency_claims(figures: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about what was run.

    Args:
        figures: {name of a run: its figures}; {"bare, <place>": {pace: its figures}}.
    """
    claims = [
        Claim(
            f"{name}: pairs missing, of all that the offline query finds", run["missing"], "<=", 0
        )
        for name, run in figures.items()
        if name.startswith("on arrival")
    ]
    for place, most_ms in MOST_P50_MS.items():
        found = figures[run_name("on arrival", place, RATE)]["stimulus"]
        where = f"on arrival, {place}, 10k/s"
        claims.append(Claim(f"{where}: p50 ms", found["p50_ms"], "<=", most_ms))
        claims.append(Claim(f"{where}: p99 ms", found["p99_ms"], "<=", MOST_P99_MS))
        claims += [
            Claim(
                f"{where}: p50 / p50 of a bare message, as many as {pace}",
                ratio_to_bare(found["p50_ms"], bare["p50_ms"]),
                "<=",
                MOST_BARE,
            )
            for pace, bare in figures[f"bare, {place}"].items()
        ]
    order = figures[run_name("in order", "one slot", RATE)]
    over_ms = order["stimulus"]["p50_ms"] - order["floor: stimulus to determined"]["p50_ms"]
    claims.append(Claim("in order, one slot, 10k/s: p50 ms − floor", over_ms, "<=", OVER_FLOOR_MS))
    for name, run in figures.items():
        if "memory" in run:
            held_gib = run["memory"]["all"]["rss_mb"] / 1_024
            claims.append(Claim(f"{name}: RSS of all processes, GiB", held_gib, "<=", 2))
    return claims


def ratio_to_bare(p50_ms: float, bare_p50_ms: Sequence[float]) -> float:
    """Return how many times as long it took as the bare messages before it and after it.

    Their mean: what the machine was like in between.
    """
    return p50_ms / (sum(bare_p50_ms) / len(bare_p50_ms))
