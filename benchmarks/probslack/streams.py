"""[probslack] §4.2: streams that are generated, each of one type and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import Int64Array

MS = 1_000_000
EVENTS = 100_000
DISTRIBUTIONS = ("CB", "BB", "BZ", "ZB", "ZZ")

Draw = Callable[[np.random.Generator, int], Int64Array]
"""(generator, how many) -> whole ms."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Events in the order of their arrival. All of shape (events,)."""

    types: Int64Array
    event_time_ns: Int64Array
    arrival_ns: Int64Array


def binomial(p: float, low: int, high: int) -> Draw:
    """Return the paper's B(p, low, high): low + Bin(high − low, p)."""
    return lambda rng, count: low + rng.binomial(high - low, p, count)


def zipf(alpha: float, low: int, high: int) -> Draw:
    """Return the paper's Zipf(α) in [low, high]: the i-th value has a weight of i^−α."""
    values = np.arange(low, high + 1)
    weights = np.arange(1.0, len(values) + 1) ** -alpha
    return lambda rng, count: rng.choice(values, count, p=weights / weights.sum())


def geometric(mean: float) -> Draw:
    """Return whole ms from 1 on, each as many times less likely as the one before."""
    return lambda rng, count: rng.geometric(1.0 / mean, count)


def constant(value: int) -> Draw:
    """Return always the same."""
    return lambda _rng, count: np.full(count, value)


GAPS: dict[str, Draw] = {  # {letter: inter-generation times}
    "C": constant(20),
    "B": binomial(0.25, 15, 35),
    "Z": zipf(1.1, 15, 35),
}
DELAYS: dict[str, Draw] = {"B": binomial(0.5, 1, 11), "Z": zipf(0.2, 1, 11)}


def generated(name: str, seed: int, events: int = EVENTS) -> Stream:
    """Return the stream of a combination of distributions, "CB" to "ZZ"."""
    return stream_of([(GAPS[name[0]], DELAYS[name[1]], events)], seed)


def drifting(seed: int, events: int = EVENTS) -> Stream:
    """Return the stream of Fig. 9: three thirds of different distributions."""
    third = events // 3
    parts = [
        (GAPS["C"], DELAYS["B"], third),
        (binomial(0.25, 20, 40), binomial(0.5, 6, 15), third),
        (GAPS["B"], DELAYS["Z"], events - 2 * third),
    ]
    return stream_of(parts, seed)


def stream_of(parts: Sequence[tuple[Draw, Draw, int]], seed: int) -> Stream:
    """Return a stream of one type: for each part its gaps, its delays, and how many events."""
    rng = np.random.default_rng(seed)
    gaps = np.concatenate([gap(rng, count) for gap, _, count in parts])
    delays = np.concatenate([delay(rng, count) for _, delay, count in parts])
    event_time_ns = np.cumsum(gaps).astype(np.int64) * MS
    # Where distributions change an event might overtake the one before it: it is received after.
    arrival_ns = np.maximum.accumulate(event_time_ns + delays * MS)
    return Stream(np.zeros(len(gaps), dtype=np.int64), event_time_ns, arrival_ns)
