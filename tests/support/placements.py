"""Problems of placement that a seed draws, and the best placement by trying all."""

from __future__ import annotations

from itertools import product

import numpy as np

from slackwater.runtime.foresight.placement import PlacementProblem, worst_mace_s


def drawn(seed: int, *, m: int, n: int, d: int = 25, **more: object) -> PlacementProblem:
    """Return operators on a few on-off sources, nodes of different speed, a load of 0.6 to 1.1."""
    rng = np.random.default_rng(seed)
    sources = rng.integers(1, 10, (3, d)) * rng.choice([1, 5], (3, d))
    load = sources[rng.integers(0, 3, m)] * rng.uniform(0.2, 2.0, m)[:, None]
    speed = rng.uniform(0.7, 1.5, n)
    load *= rng.uniform(0.6, 1.1) * speed.sum() / load.sum(axis=0).mean()
    return PlacementProblem(load, speed, 1.0, **more)  # type: ignore[arg-type]


def best_of_all(problem: PlacementProblem) -> float:
    """Return the least Mace_WC of all placements, in seconds."""
    every = product(range(problem.nodes), repeat=problem.operators)
    return min(worst_mace_s(problem, np.array(nodes)) for nodes in every)
