"""A node is lost: its operators are placed again, and what ran elsewhere mostly stays.

No job calls it: each of its slots needs a core, and goes to a free one (`new_homes` of
`actors/nodes/placement.py`). Here operators share nodes, and a search answers their loss.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.placement import (
    IntArray,
    Placed,
    PlacementProblem,
    fewer_hops,
    hill_climb,
)

__all__ = ["replace_lost"]

_AMONG = 32  # an answer is wanted at once
_KNOTS = 16
_NEAR_ENOUGH = 1.03  # times what all nodes as one would be late


def replace_lost(
    problem: PlacementProblem, nodes: IntArray, lost: int, *, most_steps: int = 120
) -> tuple[IntArray, float]:
    """Return a placement without one node, near the last one, and its Mace_WC in seconds.

    The lost node's operators are placed first, the one with the most work before the others. A few
    steps of hill climbing follow: they end once Mace_WC is within 3 % of what all nodes as one
    would have.

    Args:
        problem: as before; the lost node still has its number in it.
        nodes: shape (m,), where operators were.
        lost: the number of the node.
        most_steps: of the climb.

    Raises:
        SettingError: there is no such node, no other one, or an operator is pinned to it.
    """
    if not 0 <= lost < problem.nodes or problem.nodes == 1:
        raise SettingError(
            f"node {lost} of {problem.nodes} cannot be done without: name one of 0 to "
            f"{problem.nodes - 1}, of two at least"
        )
    stuck = sorted(j for j, node in problem.pinned.items() if node == lost)
    if stuck:
        raise SettingError(
            f"operator {stuck[0]} is pinned to node {lost}, which is lost; pin it elsewhere, or "
            "leave it to the search"
        )
    left = np.delete(np.arange(problem.nodes), lost)
    number = np.full(problem.nodes, -1, dtype=np.intp)
    number[left] = np.arange(len(left))
    rest = replace(
        problem,
        capacity=problem.capacity[left],
        pinned={j: int(number[node]) for j, node in problem.pinned.items()},
    )
    rest.__dict__["done_s"] = problem.done_s  # operators' sums are as before: the plan keeps them
    before = number[np.asarray(nodes, dtype=np.intp)]
    placed = Placed(rest, before, most_knots=_KNOTS)
    _place_rest(placed)
    steps, enough_s = count(), _NEAR_ENOUGH * placed.as_one_s
    hill_climb(
        placed,
        go_on=lambda now: next(steps) < most_steps and now.mace_s > enough_s,
        among=_AMONG,
    )
    if problem.near:
        placed = Placed(rest, fewer_hops(rest, placed.nodes))
    return left[placed.nodes], placed.mace_s


def _place_rest(placed: Placed) -> None:
    """Put each operator that is nowhere yet onto the node that is least late with it.

    The one with the most work is first; one without load is put onto node 0.
    """
    problem = placed.problem
    rest = np.flatnonzero(placed.nodes < 0)
    work = problem.load_s[rest].sum(axis=1)
    every = np.arange(problem.nodes)
    for j in rest[np.argsort(-work, kind="stable")]:
        least = placed.at_least_with(np.array([j]), every)[0]
        best_s, target = np.inf, 0
        order = np.argsort(least, kind="stable")
        for start in range(0, len(order), 32):
            block = order[start : start + 32]
            if least[block[0]] >= best_s:
                break
            values = placed.worst_with_pairs(np.full(len(block), j), block)
            first = int(values.argmin())
            if values[first] < best_s:
                best_s, target = float(values[first]), int(block[first])
        placed.move(int(j), target)
