"""Hill climbing: operators leave the bottleneck one by one. Source: [mace] §IX-B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from slackwater.runtime.foresight.placement.moves import Placed
from slackwater.runtime.foresight.placement.problem import IntArray
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["Swaps", "hill_climb"]

Swaps = Literal["never", "last", "first"]

_LESS = 1 - 1e-9  # a smaller improvement is a rounding error
_BLOCK = 8  # the most promising moves that are evaluated at once
_PARTNERS = 400  # operators elsewhere that are tried together for an exchange
_STEPS_TO_LOOK_AGAIN = 25


def hill_climb(
    placed: Placed,
    *,
    go_on: Callable[[Placed], bool],
    swaps: Swaps = "first",
    among: int | None = None,
) -> int:
    """Climb to a local optimum, or until `go_on` is false; return the steps made.

    Each step moves an operator from the bottleneck to the node where the worse of the two is least,
    if that is less than Mace_WC was. It differs from the paper: the bottleneck may also exchange an
    operator with another node, since moves alone soon end; and several equally bad nodes are
    relieved one by one, although Mace_WC falls only with the last of them.

    Args:
        placed: the placement, changed in place.
        go_on: called before each step.
        swaps: whether exchanges are tried after moves, or before them. Before them the largest
            excess falls in fewer steps, and each step takes more time.
        among: number of the least busy nodes that are targets, and of operators elsewhere that are
            tried together; None if all nodes are. Few make each step cheap, but less good.
    """
    ways = {"never": [_move_away], "last": [_move_away, _swap], "first": [_swap, _move_away]}[swaps]
    steps = 0
    while go_on(placed):
        bottleneck = int(placed.worst_s.argmax())
        if not any(way(placed, bottleneck, among) for way in ways):
            break
        steps += 1
        if steps % _STEPS_TO_LOOK_AGAIN == 0:
            placed.look_again()
    return steps


def _move_away(placed: Placed, bottleneck: int, among: int | None) -> bool:
    """Move an operator away from a node, by the best move that helps, if any."""
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

    best = _best(placed, least, exact, bound_s)
    if best is not None:
        placed.move(int(operators[best[0]]), int(targets[best[1]]))
    return best is not None


def _swap(placed: Placed, bottleneck: int, among: int | None) -> bool:
    """Make the best exchange with partners that help, on the least busy nodes first."""
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

        best = _best(placed, placed.at_least_of_swaps(operators, partners), exact, bound_s)
        if best is not None:
            operator, partner = int(operators[best[0]]), int(partners[best[1]])
            target = int(placed.nodes[partner])
            placed.move(partner, bottleneck)
            placed.move(operator, target)
            return True
    return False


def _best(
    placed: Placed,
    least: FloatArray,
    exact: Callable[[IntArray, IntArray], FloatArray],
    bound_s: float,
) -> tuple[int, int] | None:
    """Return (row, column) of the least exact value below a bound, or None.

    Pairs with the least lower bounds are evaluated first, until no other bound is below the best
    value: so it is the best of all.

    Args:
        placed: counts the pairs that their bound has ruled out.
        least: shape (k, t), lower bounds.
        exact: returns the values of rows and columns, shape (j,) each.
        bound_s: bound, which is exclusive.
    """
    flat = least.ravel()
    open_ = np.flatnonzero(flat < bound_s)
    order = open_[np.argsort(flat[open_], kind="stable")]
    best, position = None, 0
    while position < len(order) and flat[order[position]] < bound_s:
        block = order[position : position + _BLOCK]
        rows, columns = np.divmod(block, least.shape[1])
        values = exact(rows, columns)
        position += len(block)
        first = int(values.argmin())
        if values[first] < bound_s:
            bound_s, best = float(values[first]), (int(rows[first]), int(columns[first]))
    placed.bounded += flat.size - position
    return best
