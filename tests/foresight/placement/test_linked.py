"""Placement where links count, against every placement of small problems."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.placement.linked import Crossing, LinkedProblem, climb_linked
from slackwater.runtime.foresight.placement.problem import IntArray

WIDTH_S, SUBINTERVALS = 1.0, 20


def drawn(seed: int, *, pinned: dict[int, int] | None = None) -> LinkedProblem:
    """Five operators in a tree of random shape, three nodes, links that are thin and long."""
    rng = np.random.default_rng(seed)
    high = 1 + 2 * rng.integers(0, 2, size=SUBINTERVALS)
    load_s = rng.uniform(0.05, 0.4, 5)[:, None] * high
    crossings = [
        Crossing(source=int(rng.integers(0, j)), target=j, sent=rng.uniform(10, 60) * high)
        for j in range(1, 5)
    ]
    hop_s = rng.uniform(0, 2, (3, 3))
    np.fill_diagonal(hop_s, 0.0)
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    return LinkedProblem(
        load_s=load_s,
        capacity=np.ones(3),
        hosts=np.arange(3),
        crossings=crossings,
        bytes_per_s={pair: float(rng.uniform(40, 400)) for pair in pairs},
        hop_s=hop_s,
        width_s=WIDTH_S,
        pinned=pinned or {},
    )


def every(problem: LinkedProblem) -> float:
    """The least cost of all 243 placements."""
    return min(
        problem.cost(np.array(nodes))[0]
        for nodes in product(range(3), repeat=5)
        if all(nodes[j] == slot for j, slot in problem.pinned.items())
    )


def starts(problem: LinkedProblem) -> list[IntArray]:
    together = np.zeros(5, dtype=np.intp)
    apart = np.arange(5, dtype=np.intp) % 3
    for start in (together, apart):
        start[list(problem.pinned)] = list(problem.pinned.values())
    return [together, apart]


def test_a_climb_comes_near_the_best_of_all_placements() -> None:
    """Nine of ten within 5 %: each climb ends where no move helps, but there are several."""
    far = []
    for seed in range(10):
        problem = drawn(seed)
        cost = problem.cost(climb_linked(problem, starts(problem), 1, moves=2_000))[0]
        assert cost <= min(problem.cost(start)[0] for start in starts(problem))
        far.append(cost / every(problem))
    assert sorted(far)[8] <= 1.05
    assert max(far) <= 1.2


def test_what_is_pinned_stays_and_the_rest_comes_to_it_where_links_are_thin() -> None:
    problem = drawn(1, pinned={0: 2, 4: 1})
    found = climb_linked(problem, starts(problem), 1, moves=2_000)
    assert (found[0], found[4]) == (2, 1)
    assert problem.cost(found)[0] <= 1.15 * every(problem)


def test_a_cost_is_mace_and_the_longest_way_through_a_slot_or_over_a_link() -> None:
    """Work of 1.5 s in the first second; 300 bytes of it over a link of 100 bytes/s, 0.5 s long."""
    series = np.array([1.0, 0.0, 0.0, 0.0])
    problem = LinkedProblem(
        load_s=np.stack([0.5 * series, 1.0 * series]),
        capacity=np.ones(3),
        hosts=np.array([0, 0, 1]),
        crossings=[Crossing(source=0, target=1, sent=300 * series)],
        bytes_per_s={(0, 1): 100.0},
        hop_s=np.array([[0.0, 0.1, 0.5], [0.1, 0.0, 0.5], [0.5, 0.5, 0.0]]),
        width_s=1.0,
    )
    assert problem.cost(np.array([0, 0]))[0] == pytest.approx(0.5)  # one slot: 1.5 s of work
    assert problem.cost(np.array([0, 1]))[0] == pytest.approx(0.1)  # two of one node: no link
    assert problem.cost(np.array([0, 2]))[0] == pytest.approx(2.0 + 0.5)  # 3 s of the link
    assert problem.cost(np.array([2, 0]))[0] == pytest.approx(0.5)  # back there is no limit


def test_a_climb_looks_at_no_more_moves_than_it_may_and_needs_a_start() -> None:
    problem = drawn(3)
    begun = starts(problem)
    none = climb_linked(problem, begun, 1, moves=0)
    assert any((none == start).all() for start in begun)
    assert problem.cost(climb_linked(problem, begun, 1, moves=2_000)) <= problem.cost(none)
    with pytest.raises(SettingError, match="needs a placement to start from"):
        climb_linked(problem, [], 1, moves=10)
