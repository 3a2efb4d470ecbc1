"""Mace-HC: near the best of all placements, and the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.placement import (
    PlacementProblem,
    SearchBudget,
    mace_hc,
    worst_mace_s,
)
from slackwater.runtime.foresight.placement.greedy import greedy
from slackwater.runtime.foresight.placement.problem import IntArray
from tests.support.placements import best_of_all, drawn


def count_hops(problem: PlacementProblem, nodes: IntArray) -> int:
    """Return how many of the problem's `near` pairs are on two nodes."""
    return sum(int(nodes[one] != nodes[other]) for one, other in problem.near)


def test_the_search_mostly_finds_the_best_of_all_placements() -> None:
    """Of 30 tiny cases all placements are tried."""
    hit = 0
    for seed in range(30):
        problem = drawn(seed, m=6, n=2 + seed % 2)
        best = best_of_all(problem)
        found = mace_hc(problem, seed)
        assert found.mace_s >= best - 1e-9, seed
        hit += found.mace_s <= best + 1e-9
    assert hit >= 28


def test_a_seed_gives_one_placement_and_its_mace_is_that_of_its_nodes() -> None:
    one, other = (mace_hc(drawn(5, m=60, n=6), 7) for _ in range(2))
    assert one.nodes.tolist() == other.nodes.tolist()
    assert (one.evaluated, one.bounded, one.history) == (
        other.evaluated,
        other.bounded,
        other.history,
    )
    assert one.mace_s == worst_mace_s(drawn(5, m=60, n=6), one.nodes)
    assert mace_hc(drawn(5, m=60, n=6), 8).nodes.tolist() != one.nodes.tolist()


@pytest.mark.parametrize("from_greedy", [True, False])
@pytest.mark.parametrize("swaps", ["never", "last", "first"])
def test_climbing_ends_below_its_start_in_every_way(from_greedy: bool, swaps: str) -> None:
    problem = drawn(11, m=80, n=8)
    limit = SearchBudget(starts=1)
    found = mace_hc(problem, 3, budget=limit, swaps=swaps, from_greedy=from_greedy)  # type: ignore[arg-type]
    falls = [best for _, _, best in found.history]
    assert falls == sorted(falls, reverse=True)
    assert found.steps > 0
    assert found.mace_s < falls[0]


def test_exchanges_go_on_where_moves_have_ended() -> None:
    problem = drawn(11, m=80, n=8)
    limit = SearchBudget(starts=1)
    moved = mace_hc(problem, 3, budget=limit, swaps="never")
    assert mace_hc(problem, 3, budget=limit).mace_s < moved.mace_s


def test_a_budget_ends_the_search() -> None:
    problem = drawn(11, m=80, n=8)
    now_s = iter(range(1_000))
    timed = SearchBudget(clock=lambda: float(next(now_s)), seconds=10)
    few = [mace_hc(problem, 3, budget=b) for b in (SearchBudget(moves=50), timed)]
    long = mace_hc(problem, 3)
    for found in few:
        assert found.starts == 1
        assert found.steps < long.steps
        assert found.mace_s >= long.mace_s
    assert few[1].history[-1][0] <= 11, "times are those of the clock that was given"


def test_what_is_pinned_stays_and_what_is_idle_goes_to_what_feeds_it() -> None:
    load = np.vstack([drawn(2, m=10, n=3).load_s, np.zeros((2, 25))])
    problem = PlacementProblem(
        load, np.ones(3), 1.0, pinned={0: 2, 3: 2, 4: 2}, near=[(5, 10), (10, 11)]
    )
    found = mace_hc(problem, 1)
    assert found.nodes[[0, 3, 4]].tolist() == [2, 2, 2]
    assert found.nodes[10] == found.nodes[11] == found.nodes[5]


def test_of_equal_placements_the_one_with_fewer_hops_is_chosen() -> None:
    """Nothing is ever behind, so only hops tell them apart; one node has no room for all."""
    near = [(k, k + 1) for k in range(7) if k != 3]
    idle = PlacementProblem(np.full((8, 5), 0.19), np.ones(2), 1.0, near=near)
    for seed in range(5):
        found = mace_hc(idle, seed)
        assert found.mace_s == 0
        assert count_hops(idle, found.nodes) <= 2
    apart = mace_hc(PlacementProblem(idle.load_s, idle.capacity, 1.0), 0)
    assert count_hops(idle, apart.nodes) > 2


def test_a_greedy_start_spreads_work_though_some_nodes_are_never_behind() -> None:
    """Stretches of no length, of such nodes, once made all nodes look alike."""
    problem = PlacementProblem(np.full((8, 5), 0.19), np.ones(2), 1.0)
    for seed in range(5):
        nodes = greedy(problem, np.random.default_rng(seed))
        assert np.bincount(nodes).tolist() == [4, 4], seed


def test_hops_are_never_saved_at_the_cost_of_latency() -> None:
    plain = drawn(4, m=30, n=4)
    near = [(k, k + 1) for k in range(29)]
    with_near = PlacementProblem(plain.load_s, plain.capacity, 1.0, near=near)
    assert mace_hc(with_near, 1).mace_s <= mace_hc(plain, 1).mace_s + 1e-9


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"capacity": np.array([])}, "no node to place operators on"),
        ({"capacity": np.array([1.0, 0.0])}, "node 1 has a capacity of 0.0.*omit the node"),
        ({"capacity": np.array([1.0, np.nan])}, "node 1 has a capacity of nan"),
        ({"width_s": 0.0}, "width_s=0.0 must be above 0"),
        ({"load_s": np.array([[-1.0]])}, "finite CPU seconds >= 0"),
        ({"load_s": np.zeros((2, 0))}, "finite CPU seconds >= 0"),
        ({"pinned": {0: 0, 1: 1, 2: 0}}, "operator 2 is pinned to node 0, but there are operators"),
        ({"pinned": {0: 2}}, "operator 0 is pinned to node 2"),
        ({"near": [(0, 2)]}, "near names operators 0 and 2"),
    ],
)
def test_bad_input_is_refused(made: Mapping[str, object], said: str) -> None:
    good = {"load_s": np.ones((2, 3)), "capacity": np.ones(2), "width_s": 1.0}
    PlacementProblem(**good)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=said):
        PlacementProblem(**(good | dict(made)))  # type: ignore[arg-type]


def test_a_budget_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SettingError, match="must be above 0"):
        SearchBudget(moves=0)
    with pytest.raises(SettingError, match=r"seconds=1.0 needs a clock"):
        SearchBudget(seconds=1.0)


def test_nothing_to_place_is_placed() -> None:
    empty = PlacementProblem(np.zeros((0, 4)), np.ones(2), 1.0)
    assert mace_hc(empty, 1).mace_s == 0
    pinned = PlacementProblem(np.full((2, 4), 3.0), np.ones(2), 1.0, pinned={0: 1, 1: 1})
    found = mace_hc(pinned, 1)
    assert found.nodes.tolist() == [1, 1]
    assert (found.mace_s, found.steps) == (20, 0)
