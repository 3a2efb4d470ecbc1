"""Bound Mace_WC from below, over all placements."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.placement import PlacementProblem

__all__ = ["mace_lower_bound_s"]


def mace_lower_bound_s(problem: PlacementProblem) -> float:
    """Return a lower bound of Mace_WC over all placements, in seconds: the largest of three.

    *All nodes as one.* The largest excess of node i is CE_i = max over stretches of time s, the
    empty one too, of L_i(s) − C_i·|s|, L_i(s) being its load there. So for any stretch s

        max_i CE_i / C_i  ≥  Σ_i CE_i / Σ_i C_i  ≥  Σ_i (L_i(s) − C_i·|s|) / Σ_i C_i

    for the largest quotient is no less than the weighted mean of all, with weights C_i. What is
    on the right is the total load of s less what all nodes together can do, which no placement
    changes; its maximum over s is the excess of one node with all load and the capacity ΣC_i.

    *The largest operator.* It runs somewhere, and on the fastest node it is late by the
    shortest time: CE(l_j, C) / C falls with C, and others on its node only add to it.

    *What is pinned* runs where it is pinned, with nothing else.
    """
    load, speed = problem.load_s, problem.capacity
    if not len(load):
        return 0.0
    all_of_it = cumulative_excess(load.sum(axis=0), speed.sum(), width_s=problem.width_s)
    fastest = float(speed.max())
    own = cumulative_excess(load, np.full(len(load), fastest), width_s=problem.width_s)
    pinned = np.zeros((problem.nodes, load.shape[1]))
    for operator, node in problem.pinned.items():
        pinned[node] += load[operator]
    held = cumulative_excess(pinned, speed, width_s=problem.width_s) / speed[:, None]
    return max(float(all_of_it.max() / speed.sum()), float(own.max() / fastest), float(held.max()))
