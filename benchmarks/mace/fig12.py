"""The load of [mace] Fig. 12: on-off sources, operators drawn over them, made to fill the nodes.

What the table leaves open is ours: high periods last 10 s on average, so low ones 40 s; 100 events
a second when low; subintervals of 1 s; an anti-correlated operator is fed at the high rate when
its source is at the low one, and the other way round.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from slackwater.runtime.foresight.placement import PlacementProblem
from slackwater.runtime.foresight.rates import OnOff

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


def problem(scale: int, seed: int) -> PlacementProblem:
    """Return 200 operators and 20 nodes for each unit of scale."""
    rng = np.random.default_rng(seed)
    nodes, operators = 20 * scale, 200 * scale
    of_time = DURATION_RATIO / (1 + DURATION_RATIO)  # that load is high
    model = OnOff(
        LOW_EVENTS_S * (of_time * RATE_RATIO + 1 - of_time),
        rate_ratio=RATE_RATIO,
        duration_ratio=DURATION_RATIO,
        high_s=HIGH_S,
    )
    expected = np.stack(
        [model.series(rng, d=SUBINTERVALS, width_s=WIDTH_S) for _ in range(SOURCES)]
    )
    with_it = rng.poisson(expected)
    against_it = rng.poisson((model.low + model.high) * WIDTH_S - expected)
    source = zipf(rng, SOURCES, SKEW_OF_SOURCES, operators)
    edges = np.linspace(*SELECTIVITY, SELECTIVITY_RANGES + 1)
    within = zipf(rng, SELECTIVITY_RANGES, SKEW_OF_RANGES, operators)
    selectivity = rng.uniform(edges[within], edges[within + 1])
    is_against = rng.random(operators) < ANTI_CORRELATED
    events = np.where(is_against[:, None], against_it[source], with_it[source])
    load = events * selectivity[:, None]
    load *= SYSTEM_LOAD * nodes * WIDTH_S / load.mean(axis=1).sum()
    return PlacementProblem(load, np.ones(nodes), WIDTH_S)


def zipf(rng: np.random.Generator, kinds: int, skew: float, count: int) -> npt.NDArray[np.int64]:
    """Return draws of 0 … kinds − 1, of which k has a weight of (k + 1)^−skew."""
    weight = np.arange(1, kinds + 1) ** -skew
    return rng.choice(kinds, count, p=weight / weight.sum())
