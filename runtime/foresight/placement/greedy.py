"""Greedy placement: the operator with the most work first."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.foresight.placement.moves import Placed
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["greedy"]

_STRETCHES = 64


def greedy(problem: PlacementProblem, rng: np.random.Generator) -> IntArray:
    """Return a placement, the largest operator first onto the node with the least excess.

    The load of nodes early on does not show their load at the end: so the capacity of a node is
    scaled by the share of all work that is placed by then. Only some stretches of time count: the
    most frequent of the nodes' worst stretches in a random placement.

    Args:
        problem: operators to place on nodes.
        rng: draws that random placement.
    """
    begins, ends = Placed(problem, problem.random(rng)).worst_stretches(_STRETCHES)

    def within(done_s: FloatArray) -> FloatArray:
        """Return the work done in each of the stretches, shape (…, d) to (…, k)."""
        before = np.where(begins >= 0, done_s[:, begins], 0.0)  # -1: from the very beginning
        return np.ascontiguousarray(done_s[:, ends] - before)

    load, room = within(problem.done_s), np.ascontiguousarray(within(problem.room_s).T)
    work = problem.load_s.sum(axis=1)
    share = 1 / max(float(work.sum()), 1e-300)
    came = np.zeros_like(room)  # (k, n)
    nodes = problem.keep_pinned(np.zeros(problem.operators, dtype=np.intp))
    pinned = np.fromiter(problem.pinned, dtype=np.intp)
    np.add.at(came.T, nodes[pinned], load[pinned])
    placed = float(work[pinned].sum())
    free = np.flatnonzero(problem.movable)
    excess = np.empty_like(room)
    for j in free[np.argsort(-work[free], kind="stable")]:
        placed += work[j]
        np.multiply(room, -placed * share, out=excess)
        excess += came
        excess += load[j][:, None]
        node = int((excess.max(axis=0) / problem.capacity).argmin())
        nodes[j] = node
        came[:, node] += load[j]
    return nodes
