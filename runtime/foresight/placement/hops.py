"""Fewer hops: a placement with equal Mace_WC and fewer events between nodes."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.foresight.placement.moves import Placed
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem

__all__ = ["fewer_hops"]

_ROUNDS = 3


def fewer_hops(problem: PlacementProblem, nodes: IntArray) -> IntArray:
    """Return a placement with no more hops and no larger Mace_WC.

    An operator moves to a node with more of its neighbours, if that node's backlog with it stays
    within Mace_WC. An operator without load moves to its feeder's node.

    Args:
        problem: operators and nodes; `near` has the channels.
        nodes: shape (m,), the placement; it is not changed.
    """
    if not problem.near:
        return nodes
    feeders: list[list[int]] = [[] for _ in range(problem.operators)]
    readers: list[list[int]] = [[] for _ in range(problem.operators)]
    for feeder, reader in problem.near:
        feeders[reader].append(feeder)
        readers[feeder].append(reader)
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
    """Return the node with most of an operator's neighbours and room, or its own."""
    own = int(placed.nodes[j])
    count = np.bincount(placed.nodes[around], minlength=placed.problem.nodes)
    for node in np.argsort(-count, kind="stable"):
        if count[node] <= count[own]:
            break
        if placed.worst_with_pairs(np.array([j]), np.array([node]))[0] <= limit_s:
            return int(node)
    return own
