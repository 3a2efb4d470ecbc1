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


def lognormal(median: float, sigma: float) -> Draw:
    """Return whole ms, rounded up; a few are many times the median."""
    return lambda rng, count: np.ceil(rng.lognormal(np.log(median), sigma, count)).astype(np.int64)


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


DELAYED = ("geometric", "lognormal", "bursts")
CALM_MS, HELD_MS = 4_000, 300
"""Mean times between bursts, and how long a burst holds rows up."""


def delayed(kind: str, *, in_order: bool, sources: int, seed: int, events: int = EVENTS) -> Stream:
    """Return events of sources with geometric gaps, whose delays need not be independent.

    Args:
        kind: of `DELAYED`. In bursts rows are held up, and then come at once.
        in_order: whether events of a source wait for those before them; else of a burst some come
            before it is over.
        sources: each is a type; the first event of each comes at the beginning.
        seed: of all that is drawn.
        events: of all sources together, nearly.
    """
    rng = np.random.default_rng([seed, DELAYED.index(kind), in_order, sources])
    parts = [_delayed(kind, rng, events // sources, in_order=in_order) for _ in range(sources)]
    until = min(int(made[-1]) for made, _ in parts)  # else the rest has a source that has gone
    kept = [(made[made <= until], came[made <= until]) for made, came in parts]
    types = np.repeat(np.arange(sources), [len(made) for made, _ in kept])
    event_ms, arrival_ms = (np.concatenate([part[n] for part in kept]) for n in (0, 1))
    order = np.argsort(arrival_ms, kind="stable")
    return Stream(types[order], event_ms[order] * MS, arrival_ms[order] * MS)


def _delayed(
    kind: str, rng: np.random.Generator, count: int, *, in_order: bool
) -> tuple[Int64Array, Int64Array]:
    made = np.cumsum(np.append(0, geometric(20)(rng, count - 1))).astype(np.int64)
    delays = lognormal(10, 1.2) if kind == "lognormal" else geometric(3)
    came = made + delays(rng, count)
    came[0] = 0
    if kind == "bursts":
        begins = np.cumsum(rng.exponential(CALM_MS, count))
        ends = begins + rng.exponential(HELD_MS, count)
        last = np.searchsorted(begins, came, side="right") - 1
        until = np.where(last >= 0, ends[last], 0).astype(np.int64)
        is_held = in_order | (rng.random(count) < 0.7)
        came = np.where(is_held, np.maximum(came, until), came)
    return made, np.maximum.accumulate(came) if in_order else came
