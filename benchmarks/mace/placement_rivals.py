"""Rivals that Mace-HC is compared with: the best of random placements, and load correlation.

Source: [mace] §IX-B.1. Corr is [33] there: Y. Xing, S. Zdonik, J.-H. Hwang, *Dynamic Load
Distribution in the Borealis Stream Processor*, ICDE 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.placement import IntArray, PlacementProblem, worst_mace_s
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["CorrPlacement", "best_random", "corr", "load_correlation"]

_GAIN = 1e-3


@dataclass(frozen=True, eq=False)
class CorrPlacement:
    """A placement that Corr found.

    Attributes:
        nodes: shape (m,).
        correlation: the average over all pairs of nodes.
        reached: whether that is θ; if not, no exchange was left, or `go_on` ended it.
        exchanges: how often two nodes shared their operators again.
    """

    nodes: IntArray
    correlation: float
    reached: bool
    exchanges: int


def best_random(
    problem: PlacementProblem, rng: np.random.Generator, *, go_on: Callable[[int], bool]
) -> tuple[IntArray, float, int]:
    """Return the best of random placements, its Mace_WC, and how many there were, 1 at least.

    Args:
        problem: what is placed.
        rng: draws the placements.
        go_on: asked after each, with the number of them so far; one is Baseline.
    """
    best = problem.random(rng)
    best_s, tried = worst_mace_s(problem, best), 1
    while go_on(tried):
        nodes = problem.random(rng)
        found_s = worst_mace_s(problem, nodes)
        tried += 1
        if found_s < best_s:
            best, best_s = nodes, found_s
    return best, best_s, tried


def load_correlation(problem: PlacementProblem, nodes: IntArray) -> float:
    """Return the average correlation of the load of two nodes over time; 1 if there is one node."""
    pairs = _Pairs.of(problem, nodes, _centred(problem))
    return pairs.average


def corr(
    problem: PlacementProblem,
    *,
    theta: float = 0.8,
    patience: int | None = None,
    go_on: Callable[[int], bool] | None = None,
) -> CorrPlacement:
    """Return a placement whose nodes' loads rise and fall together, at a variance that is small.

    First each operator, the one with most work first, goes to the node with room (below the
    average work) whose load so far is correlated least with its own. Then the two nodes that are
    correlated least share their operators again in the same manner, until the average is θ.

    Args:
        problem: what is placed; pinned operators stay.
        theta: θ, the average correlation at which it stops.
        patience: if so many exchanges bring no 0.001 of correlation, it cannot go on; None: as
            many as there are pairs of nodes.
        go_on: asked before each exchange, with their number so far.

    Differs from [33] as [mace] tells of it: an exchange that lowers the average is not made, its
    pair is left until one of the two has changed, and so it ends.
    """
    centred = _centred(problem)
    nodes = _spread(problem, centred)
    pairs = _Pairs.of(problem, nodes, centred)
    work = problem.load_s.sum(axis=1)
    free = problem.movable
    round_ = patience or max(problem.nodes * (problem.nodes - 1) // 2, 1)
    exchanges, before = 0, -np.inf
    while pairs.average < theta and (go_on is None or go_on(exchanges)):
        if exchanges % round_ == 0:
            if pairs.average - before < _GAIN:
                break
            before = pairs.average
        pair = pairs.least()
        if pair is None:
            break
        exchanges += 1
        both = np.isin(nodes, pair)
        shared = np.flatnonzero(both & free)
        held = [np.flatnonzero((nodes == node) & ~free) for node in pair]
        base = np.stack([centred[own].sum(axis=0) for own in held])
        begun = np.array([work[own].sum() for own in held]) / problem.capacity[list(pair)]
        order = shared[np.argsort(-work[shared], kind="stable")]
        to = _share(centred[order], work[order], base, begun, problem.capacity[list(pair)])
        loads = base.copy()
        np.add.at(loads, to, centred[order])
        if pairs.change(pair, loads):
            nodes[order] = np.asarray(pair)[to]
        else:
            pairs.leave(pair)
    return CorrPlacement(nodes, pairs.average, pairs.average >= theta, exchanges)


def _centred(problem: PlacementProblem) -> FloatArray:
    """Return each operator's load less its mean, shape (m, d)."""
    return np.asarray(problem.load_s - problem.load_s.mean(axis=1, keepdims=True))


def _spread(problem: PlacementProblem, centred: FloatArray) -> IntArray:
    """Return the first placement: least correlated first, among nodes with room."""
    work = problem.load_s.sum(axis=1)
    speed = problem.capacity
    nodes = problem.keep_pinned(np.zeros(problem.operators, dtype=np.intp))
    loads = np.zeros((problem.nodes, centred.shape[1]))
    full = np.zeros(problem.nodes)
    for operator, node in problem.pinned.items():
        loads[node] += centred[operator]
        full[node] += work[operator] / speed[node]
    variance = (loads**2).sum(axis=1)
    own = (centred**2).sum(axis=1)
    average = work.sum() / speed.sum()
    left = np.setdiff1d(np.arange(problem.operators), list(problem.pinned))
    for j in left[np.argsort(-work[left], kind="stable")]:
        product = loads @ centred[j]
        has_room = full + work[j] / speed <= average
        if has_room.any():
            size = np.sqrt(np.maximum(variance * own[j], 1e-300))
            node = int(np.where(has_room, product / size, np.inf).argmin())
        else:
            node = int((full + work[j] / speed).argmin())
        nodes[j] = node
        loads[node] += centred[j]
        full[node] += work[j] / speed[node]
        variance[node] += 2 * product[node] + own[j]
    return nodes


def _share(
    centred: FloatArray, work: FloatArray, base: FloatArray, full: FloatArray, speed: FloatArray
) -> IntArray:
    """Return which of two nodes each of some operators goes to, shape (k,) of 0 and 1."""
    average = (work.sum() + (full * speed).sum()) / speed.sum()
    product = centred @ base.T  # (k, 2), kept up to date: an operator more adds its own products
    between = centred @ centred.T
    variance = (base**2).sum(axis=1)
    full = full.copy()
    to = np.zeros(len(work), dtype=np.intp)
    for j in range(len(work)):
        after = full + work[j] / speed
        room = after <= average
        if room[0] == room[1]:
            by = product[j] / np.sqrt(np.maximum(variance, 1e-300)) if room[0] else after
            side = int(by[1] < by[0])
        else:
            side = int(room[1])
        to[j] = side
        full[side] = after[side]
        variance[side] += 2 * product[j, side] + between[j, j]
        product[:, side] += between[:, j]
    return to


class _Pairs:
    """The correlation of each pair of nodes, and which of them are worth an exchange."""

    def __init__(self, loads: FloatArray) -> None:
        self._unit = _unit(loads)
        self._all = self._unit @ self._unit.T  # (n, n)
        np.fill_diagonal(self._all, 1.0)
        self._open = np.triu(self._all, 1) + np.tril(np.full(self._all.shape, np.inf))

    @classmethod
    def of(cls, problem: PlacementProblem, nodes: IntArray, centred: FloatArray) -> _Pairs:
        loads = np.zeros((problem.nodes, centred.shape[1]))
        np.add.at(loads, nodes, centred)
        return cls(loads)

    @property
    def average(self) -> float:
        count = len(self._all)
        return float((self._all.sum() - count) / (count * (count - 1))) if count > 1 else 1.0

    def least(self) -> tuple[int, int] | None:
        """Return the pair that is correlated least, of those worth an exchange; or None."""
        at = int(self._open.argmin())
        one, other = divmod(at, len(self._open))
        return (one, other) if np.isfinite(self._open[one, other]) else None

    def leave(self, pair: tuple[int, int]) -> None:
        self._open[pair] = np.inf

    def change(self, pair: tuple[int, int], loads: FloatArray) -> bool:
        """Take new loads of two nodes, shape (2, d), if the average gains; say whether it did.

        If it did all pairs with them are open again.
        """
        both = list(pair)
        unit = _unit(loads)
        rows = unit @ self._unit.T
        rows[:, both] = unit @ unit.T
        rows[[0, 1], both] = 1.0
        gain = 2 * (rows.sum() - self._all[both].sum()) - 2 * (rows[0, pair[1]] - self._all[pair])
        if not gain > 1e-9:
            return False
        self._unit[both] = unit
        for node, row in zip(pair, rows, strict=True):
            self._all[node], self._all[:, node] = row, row
            self._open[node, node + 1 :] = row[node + 1 :]
            self._open[:node, node] = row[:node]
        self.leave((min(pair), max(pair)))
        return True


def _unit(loads: FloatArray) -> FloatArray:
    """Return series of length 1; one without variance becomes 0, and correlates with none."""
    size = np.sqrt((loads**2).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(loads, size, out=np.zeros_like(loads), where=size > 0))
