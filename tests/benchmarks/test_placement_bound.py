"""The lower bound of Mace_WC: below all placements, and each part of it is reached."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mace.lower_bound import mace_lower_bound_s
from slackwater.runtime.foresight.placement import PlacementProblem, mace_hc, worst_mace_s
from tests.support.placements import best_of_all, drawn


def test_no_placement_is_below_the_bound_and_it_is_above_half_of_the_best() -> None:
    """Of 30 tiny cases all placements are tried."""
    gap = []
    for seed in range(30):
        problem = drawn(seed, m=6, n=2 + seed % 2)
        best, bound = best_of_all(problem), mace_lower_bound_s(problem)
        assert bound <= best + 1e-9, seed
        gap.append(bound / best if best > 0 else 1.0)
    assert np.mean(gap) > 0.5


@given(st.integers(0, 10_000))
def test_the_bound_holds_for_any_placement_and_any_pins(seed: int) -> None:
    problem = drawn(seed, m=7, n=3, pinned={0: 1, 4: 1, 5: 2})
    nodes = problem.random(np.random.default_rng(seed))
    assert mace_lower_bound_s(problem) <= worst_mace_s(problem, nodes) + 1e-9


def test_each_part_of_the_bound_is_reached_by_some_case() -> None:
    together = PlacementProblem(np.full((4, 3), 2.0), np.ones(2), 1.0)  # 3 s too much each second
    alone = PlacementProblem(np.array([[5.0, 0], [0, 0]]), np.array([1.0, 2.0]), 1.0)
    pinned = PlacementProblem(alone.load_s, alone.capacity, 1.0, pinned={0: 0})
    assert mace_lower_bound_s(together) == 9 == mace_hc(together, 1).mace_s
    assert mace_lower_bound_s(alone) == 1.5 == mace_hc(alone, 1).mace_s
    assert mace_lower_bound_s(pinned) == 4 == mace_hc(pinned, 1).mace_s


def test_the_bound_of_no_operators_is_zero() -> None:
    assert mace_lower_bound_s(PlacementProblem(np.zeros((0, 4)), np.ones(2), 1.0)) == 0
