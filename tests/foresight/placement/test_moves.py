"""What a move would bring, evaluated from kept sums, is what a computation from scratch says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.excess import cumulative_excess, node_load
from slackwater.runtime.foresight.placement import Placed, PlacementProblem, worst_mace_s
from slackwater.runtime.foresight.placement.moves import largest_rise


def drawn(seed: int, *, m: int = 9, n: int = 3, d: int = 30) -> PlacementProblem:
    """Return loads that come in bursts, on nodes that differ, about as much as they can do."""
    rng = np.random.default_rng(seed)
    load = rng.exponential(1.0, (m, d)) * rng.integers(0, 2, (m, d))
    speed = rng.uniform(0.5, 2.0, n)
    load *= rng.uniform(0.5, 1.3) * speed.sum() * 0.5 / max(load.sum(axis=0).mean(), 1e-9)
    return PlacementProblem(load, speed, 0.5)


def worst_from_scratch(problem: PlacementProblem, nodes: np.ndarray) -> np.ndarray:
    load = node_load(problem.load_s, nodes.tolist(), problem.nodes)
    excess = cumulative_excess(load, problem.capacity, width_s=problem.width_s)
    return excess.max(axis=1) / problem.capacity


@given(st.integers(0, 10_000))
def test_a_move_is_evaluated_as_if_it_had_been_made(seed: int) -> None:
    problem = drawn(seed)
    placed = Placed(problem, problem.random(np.random.default_rng(seed)))
    every = np.arange(problem.operators)
    targets = np.arange(problem.nodes)
    with_it = placed.worst_with(every, targets)
    without = placed.worst_without(every)
    for j in every:
        for target in targets[targets != placed.nodes[j]]:
            nodes = placed.nodes.copy()
            nodes[j] = target
            truth = worst_from_scratch(problem, nodes)
            assert with_it[j, target] == pytest.approx(truth[target], abs=1e-9)
            assert without[j] == pytest.approx(truth[placed.nodes[j]], abs=1e-9)
    assert placed.evaluated == problem.operators * problem.nodes


@given(st.integers(0, 10_000), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2))))
def test_after_any_moves_all_is_as_from_scratch(seed: int, moves: list[tuple[int, int]]) -> None:
    problem = drawn(seed)
    placed = Placed(problem, problem.random(np.random.default_rng(seed)))
    for operator, target in moves:
        placed.move(operator, target)
        assert placed.nodes[operator] == target
    assert placed.worst_s == pytest.approx(worst_from_scratch(problem, placed.nodes), abs=1e-9)
    assert placed.mace_s == pytest.approx(worst_mace_s(problem, placed.nodes), abs=1e-9)


@given(st.integers(0, 10_000))
def test_an_exchange_is_evaluated_as_if_it_had_been_made(seed: int) -> None:
    problem = drawn(seed)
    placed = Placed(problem, problem.random(np.random.default_rng(seed)))
    here = np.flatnonzero(placed.nodes == placed.nodes[0])
    there = np.flatnonzero(placed.nodes != placed.nodes[0])
    pairs = [(a, b) for a in here for b in there]
    if not pairs:
        return
    found = placed.worst_of_swaps(*np.array(pairs).T)
    least = placed.at_least_of_swaps(here, there).ravel()
    for (a, b), value in zip(pairs, found, strict=True):
        nodes = placed.nodes.copy()
        nodes[a], nodes[b] = nodes[b], nodes[a]
        truth = worst_from_scratch(problem, nodes)[placed.nodes[[a, b]]].max()
        assert value == pytest.approx(truth, abs=1e-9)
    assert (least <= found + 1e-9).all()


@given(st.integers(0, 10_000))
def test_what_the_knots_promise_is_no_more_than_what_is_true(seed: int) -> None:
    problem = drawn(seed, d=90)
    placed = Placed(problem, problem.random(np.random.default_rng(seed)))
    placed.knots = placed.most_frequent_ends(8)
    every, targets = np.arange(problem.operators), np.arange(problem.nodes)
    least = placed.at_least_with(every, targets)
    assert (least <= placed.worst_with(every, targets) + 1e-9).all()


def test_the_knots_hold_both_ends_of_each_nodes_worst_stretch() -> None:
    """Those of a node alone: so its own worst is seen exactly."""
    problem = drawn(3, d=200)
    placed = Placed(problem, problem.random(np.random.default_rng(3)))
    nobody = Placed(
        PlacementProblem(
            np.vstack([problem.load_s, np.zeros((1, 200))]), problem.capacity, problem.width_s
        ),
        np.append(placed.nodes, 0),
    )
    nothing_more = nobody.at_least_with(np.array([problem.operators]), np.arange(problem.nodes))
    assert nothing_more[0] == pytest.approx(placed.worst_s, abs=1e-9)


def test_many_pairs_and_few_come_to_the_same() -> None:
    """Two ways of computing: whole arrays, or one subinterval after the other."""
    rng = np.random.default_rng(1)
    base, more = rng.normal(size=(60, 40)).cumsum(1), rng.normal(size=(50, 40)).cumsum(1)
    all_at_once = largest_rise(base, more)
    one_by_one = np.vstack([largest_rise(base, more[[k]]) for k in range(50)])
    assert all_at_once == pytest.approx(one_by_one, abs=1e-12)


def test_what_is_nowhere_loads_no_node_until_it_is_placed() -> None:
    problem = PlacementProblem(np.array([[3.0, 0.0], [2.0, 2.0]]), np.ones(2), 1.0)
    placed = Placed(problem, np.array([0, -1]))
    assert placed.worst_s.tolist() == [2, 0]
    placed.move(1, 1)
    assert placed.worst_s.tolist() == [2, 2]
    with pytest.raises(SettingError, match="a node of 0 to 1 for each of 2 operators"):
        Placed(problem, np.array([0, 2]))
