"""The load of [mace] Fig. 12: on-off sources, operators drawn over them, made to fill the nodes.

What the table leaves open is ours: high periods last 10 s on average, so low ones 40 s; 100 events
a second when low; subintervals of 1 s; an anti-correlated operator is fed at the high rate when
its source is at the low one, and the other way round.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from runtime.estimate.placement import PlacementProblem

SOURCES = 5
ANTI_CORRELATED = 0.1
RATE_RATIO = 10.0
DURATION_RATIO = 0.25
SKEW_OF_SOURCES = 1.0
SELECTIVITY = (0.2, 2.0)
SELECTIVITY_RANGES = 20
SKEW_OF_RANGES = 1.5
SYSTEM_LOAD = 0.75

HIGH_S = 10.0
LOW_EVENTS_S = 100.0
WIDTH_S = 1.0
SUBINTERVALS = 600

Floats = npt.NDArray[np.float64]


def problem(scale: int, seed: int) -> PlacementProblem:
    """Return 200 operators and 20 nodes for each unit of scale."""
    rng = np.random.default_rng(seed)
    nodes, operators = 20 * scale, 200 * scale
    high = np.stack([share_of_high(rng) for _ in range(SOURCES)])
    with_it = rng.poisson(LOW_EVENTS_S * WIDTH_S * (1 + (RATE_RATIO - 1) * high))
    against_it = rng.poisson(LOW_EVENTS_S * WIDTH_S * (RATE_RATIO - (RATE_RATIO - 1) * high))
    source = zipf(rng, SOURCES, SKEW_OF_SOURCES, operators)
    edges = np.linspace(*SELECTIVITY, SELECTIVITY_RANGES + 1)
    within = zipf(rng, SELECTIVITY_RANGES, SKEW_OF_RANGES, operators)
    selectivity = rng.uniform(edges[within], edges[within + 1])
    is_against = rng.random(operators) < ANTI_CORRELATED
    events = np.where(is_against[:, None], against_it[source], with_it[source])
    load = events * selectivity[:, None]
    load *= SYSTEM_LOAD * nodes * WIDTH_S / load.mean(axis=1).sum()
    return PlacementProblem(load, np.ones(nodes), WIDTH_S)


def share_of_high(rng: np.random.Generator) -> Floats:
    """Return which share of each subinterval a source is at its high rate, shape (d,)."""
    begins = np.arange(SUBINTERVALS) * WIDTH_S
    found = np.zeros(SUBINTERVALS)
    now_s, is_high = 0.0, bool(rng.random() < DURATION_RATIO / (1 + DURATION_RATIO))
    while now_s < SUBINTERVALS * WIDTH_S:
        end_s = now_s + rng.exponential(HIGH_S if is_high else HIGH_S / DURATION_RATIO)
        if is_high:
            overlap = np.minimum(begins + WIDTH_S, end_s) - np.maximum(begins, now_s)
            found += np.maximum(overlap, 0.0) / WIDTH_S
        now_s, is_high = end_s, not is_high
    return found


def zipf(rng: np.random.Generator, kinds: int, skew: float, count: int) -> npt.NDArray[np.int64]:
    """Return draws of 0 … kinds − 1, of which k has a weight of (k + 1)^−skew."""
    weight = np.arange(1, kinds + 1) ** -skew
    return rng.choice(kinds, count, p=weight / weight.sum())
