"""A placement built in one go: the operator with the most work first."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.foresight.placement.moves import Placed
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["greedy"]

_STRETCHES = 64


def greedy(problem: PlacementProblem, rng: np.random.Generator) -> IntArray:
    """Return a placement, the largest operator first onto the node whose excess it raises least.

    Nodes that have little yet are no measure of how they will be when all is placed: so a node
    counts as fast as the share of all work that is placed by then. Looks at those stretches of
    time only that are the worst of the nodes of a random placement, the most frequent of them.

    Args:
        problem: what is placed.
        rng: draws that random placement.
    """
    begins, ends = Placed(problem, problem.random(rng)).worst_stretches(_STRETCHES)

    def within(done_s: FloatArray) -> FloatArray:
        """Return what is done in each of the stretches, shape (…, d) to (…, k)."""
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
    behind = np.empty_like(room)
    for j in free[np.argsort(-work[free], kind="stable")]:
        placed += work[j]
        np.multiply(room, -placed * share, out=behind)
        behind += came
        behind += load[j][:, None]
        node = int((behind.max(axis=0) / problem.capacity).argmin())
        nodes[j] = node
        came[:, node] += load[j]
    return nodes
