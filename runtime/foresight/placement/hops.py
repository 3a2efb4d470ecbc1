"""Of placements with the same Mace_WC: one on which fewer events go from node to node."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.foresight.placement.moves import Placed
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem

__all__ = ["fewer_hops"]

_ROUNDS = 3


def fewer_hops(problem: PlacementProblem, nodes: IntArray) -> IntArray:
    """Return a placement with no more hops and no larger Mace_WC.

    An operator goes to a node where more of its neighbours are, if that node is not behind for
    longer than Mace_WC with it. One without load goes to what feeds it, whatever else is there.

    Args:
        problem: `near` says who feeds whom.
        nodes: shape (m,); is left as it is.
    """
    if not problem.near:
        return nodes
    feeders: list[list[int]] = [[] for _ in range(problem.operators)]
    readers: list[list[int]] = [[] for _ in range(problem.operators)]
    for one, other in problem.near:
        feeders[other].append(one)
        readers[one].append(other)
    placed = Placed(problem, nodes)
    limit_s = placed.mace_s
    idle = problem.load_s.max(axis=1) == 0
    for _ in range(_ROUNDS):
        moved = False
        for j in range(problem.operators):
            around = [k for k in feeders[j] + readers[j] if k != j]
            if j in problem.pinned or not around:
                continue
            if idle[j]:
                target = int(placed.nodes[around[0]])
            else:
                target = _where_most_are(placed, j, around, limit_s)
            moved |= target != placed.nodes[j]
            placed.move(j, target)
        if not moved:
            break
    return placed.nodes


def _where_most_are(placed: Placed, j: int, around: list[int], limit_s: float) -> int:
    """Return the node with most of an operator's neighbours that has room for it; else its own."""
    own = int(placed.nodes[j])
    count = np.bincount(placed.nodes[around], minlength=placed.problem.nodes)
    for node in np.argsort(-count, kind="stable"):
        if count[node] <= count[own]:
            break
        if placed.worst_with_pairs(np.array([j]), np.array([node]))[0] <= limit_s:
            return int(node)
    return own
