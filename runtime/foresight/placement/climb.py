"""Hill climbing: one operator after the other leaves the bottleneck. Source: [mace] §IX-B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from slackwater.runtime.foresight.placement.moves import Placed
from slackwater.runtime.foresight.placement.problem import IntArray
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["Swaps", "hill_climb"]

Swaps = Literal["never", "last", "first"]

_LESS = 1 - 1e-9  # what is better by less than this is rounding
_BLOCK = 8  # so many of the most promising are evaluated at once
_PARTNERS = 400  # so many operators elsewhere are looked at for an exchange at a time
_STEPS_TO_LOOK_AGAIN = 25


def hill_climb(
    placed: Placed,
    *,
    go_on: Callable[[Placed], bool],
    swaps: Swaps = "first",
    among: int | None = None,
) -> int:
    """Climb to a local optimum, or until it is not to go on; return the steps made.

    Each step takes an operator from the bottleneck to where the worse of the two nodes is least,
    if that is less than Mace_WC was. Differs from the paper: the bottleneck may exchange an
    operator with another node, too, for moves alone soon end; and of several nodes that are
    equally bad one is relieved after the other, though Mace_WC falls with the last of them only.

    Args:
        placed: is changed in place.
        go_on: asked after each step.
        swaps: whether exchanges are tried where no move is left, or before moves: this makes the
            largest excess fall in fewer steps, each of which takes more time.
        among: so many of the least busy nodes are targets, and as many operators elsewhere are
            looked at together; None: all nodes. A few make each step cheap, but less good.
    """
    ways = {"never": [_move_away], "last": [_move_away, _swap], "first": [_swap, _move_away]}[swaps]
    steps = 0
    while go_on(placed):
        bottleneck = int(placed.worst_s.argmax())
        if not any(one(placed, bottleneck, among) for one in ways):
            break
        steps += 1
        if steps % _STEPS_TO_LOOK_AGAIN == 0:
            placed.look_again()
    return steps


def _move_away(placed: Placed, bottleneck: int, among: int | None) -> bool:
    """Make the best move of an operator away from a node, if one makes things better."""
    bound_s = placed.mace_s * _LESS
    operators = placed.on(bottleneck)
    without = placed.worst_without(operators)
    operators, without = operators[without < bound_s], without[without < bound_s]
    targets = np.flatnonzero(placed.worst_s < bound_s)
    if among is not None and len(targets) > among:
        targets = targets[np.argpartition(placed.worst_s[targets], among - 1)[:among]]
    if not len(operators) or not len(targets):
        return False
    least = np.maximum(placed.at_least_with(operators, targets), without[:, None])

    def exact(rows: IntArray, columns: IntArray) -> FloatArray:
        return np.maximum(placed.worst_with_pairs(operators[rows], targets[columns]), without[rows])

    found = _best(placed, least, exact, bound_s)
    if found is not None:
        placed.move(int(operators[found[0]]), int(targets[found[1]]))
    return found is not None


def _swap(placed: Placed, bottleneck: int, among: int | None) -> bool:
    """Make the best exchange of the first partners with one that helps, least busy nodes first."""
    bound_s = placed.mace_s * _LESS
    operators = placed.on(bottleneck)
    worst = placed.worst_s[placed.nodes]
    others = np.flatnonzero(placed.problem.movable & (worst < bound_s))
    if among is not None and len(others) > 4 * among:  # no need to sort them all
        others = others[np.argpartition(worst[others], 4 * among)[: 4 * among]]
    others = others[np.argsort(worst[others], kind="stable")]
    size = among or _PARTNERS
    for start in range(0, len(others) if len(operators) else 0, size):
        partners = others[start : start + size]

        def exact(rows: IntArray, columns: IntArray, partners: IntArray = partners) -> FloatArray:
            return placed.worst_of_swaps(operators[rows], partners[columns])

        found = _best(placed, placed.at_least_of_swaps(operators, partners), exact, bound_s)
        if found is not None:
            one, other = int(operators[found[0]]), int(partners[found[1]])
            target = int(placed.nodes[other])
            placed.move(other, bottleneck)
            placed.move(one, target)
            return True
    return False


def _best(
    placed: Placed,
    least: FloatArray,
    exact: Callable[[IntArray, IntArray], FloatArray],
    bound_s: float,
) -> tuple[int, int] | None:
    """Return (row, column) of the least exact value below a bound; or None.

    Those whose lower bounds promise most are evaluated first, until no bound of the others is
    below the best value found: so it is the best of all.

    Args:
        placed: counts those that their bound has ruled out.
        least: shape (k, t), lower bounds.
        exact: values for rows and columns, shape (j,) each.
        bound_s: what a value must be below.
    """
    flat = least.ravel()
    open_ = np.flatnonzero(flat < bound_s)
    order = open_[np.argsort(flat[open_], kind="stable")]
    best, seen = None, 0
    while seen < len(order) and flat[order[seen]] < bound_s:
        block = order[seen : seen + _BLOCK]
        rows, columns = np.divmod(block, least.shape[1])
        values = exact(rows, columns)
        seen += len(block)
        first = int(values.argmin())
        if values[first] < bound_s:
            bound_s, best = float(values[first]), (int(rows[first]), int(columns[first]))
    placed.bounded += flat.size - seen
    return best
