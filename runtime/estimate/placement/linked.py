"""A placement where links count: hill climbing on Mace with links as nodes, and the ways.

What `climb.py` moves fast knows loads of nodes only. Here a move changes what goes over links, too,
so each is evaluated whole: O(d · (m + n)), for flows of some ten operators, not for 4,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from runtime.errors import SettingError
from runtime.estimate.excess import cumulative_excess, node_load
from runtime.estimate.placement.problem import IntArray
from runtime.estimate.query_graph import FloatArray

__all__ = ["Crossing", "LinkedProblem", "climb_linked"]

GAIN = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Crossing:
    """What one operator sends to another.

    Attributes:
        source: number of the operator that sends.
        target: of the one that gets it.
        sent: shape (d,), bytes of each subinterval.
    """

    source: int
    target: int
    sent: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkedProblem:
    """Operators to be assigned to slots such that the largest Mace + P_max is least.

    Source: [mace] §IX-B with the nodes and delays of §VII-B.

    Attributes:
        load_s: shape (m, d), CPU seconds of each operator, m in topological order.
        capacity: shape (n,), of each slot.
        hosts: shape (n,), the number of the machine that each slot is on.
        crossings: what goes from operator to operator.
        bytes_per_s: {(from host, to host): what its link carries}; without one there is no limit.
        hop_s: shape (n, n), how long a message travels.
        width_s: w.
        pinned: {operator: slot}.
    """

    load_s: FloatArray
    capacity: FloatArray
    hosts: IntArray
    crossings: Sequence[Crossing]
    bytes_per_s: Mapping[tuple[int, int], float]
    hop_s: FloatArray
    width_s: float
    pinned: Mapping[int, int] = field(default_factory=dict)

    def cost(self, nodes: IntArray) -> tuple[float, float]:
        """Return the largest Mace + P_max of a slot or link, s, and what tells equals apart."""
        load = node_load(self.load_s, list(map(int, nodes)), len(self.capacity))
        excess_s = cumulative_excess(load, self.capacity, width_s=self.width_s)
        behind_s = excess_s.max(axis=1) / self.capacity
        way_s, longest_s = self._ways(nodes)
        links: dict[tuple[int, int], FloatArray] = {}
        over_s: dict[tuple[int, int], float] = {}  # {link: the longest way over it}
        crossed = 0.0
        for crossing, way in zip(self.crossings, way_s, strict=True):
            ends = tuple(int(self.hosts[nodes[j]]) for j in (crossing.source, crossing.target))
            pair = ends[0], ends[1]
            crossed += float(self.hop_s[nodes[crossing.source], nodes[crossing.target]] > 0)
            if pair[0] == pair[1] or pair not in self.bytes_per_s:
                continue
            took_s = crossing.sent / self.bytes_per_s[pair]
            links[pair] = links[pair] + took_s if pair in links else took_s
            over_s[pair] = max(over_s.get(pair, 0.0), way)
        link_s = {
            pair: float(cumulative_excess(took_s, 1.0, width_s=self.width_s).max())
            for pair, took_s in links.items()
        }
        worst_s = float((behind_s + longest_s).max())
        worst_s = max([worst_s, *(link_s[pair] + over_s[pair] for pair in link_s)])
        return worst_s, float(behind_s.sum()) + sum(link_s.values()) + 1e-6 * crossed

    def _ways(self, nodes: IntArray) -> tuple[list[float], FloatArray]:
        """Return the longest way over each crossing, and through each slot, seconds."""
        before, behind = np.zeros(len(nodes)), np.zeros(len(nodes))
        hops = [float(self.hop_s[nodes[c.source], nodes[c.target]]) for c in self.crossings]
        for c, hop in zip(self.crossings, hops, strict=True):  # by target, as operators are
            before[c.target] = max(before[c.target], before[c.source] + hop)
        for c, hop in zip(reversed(self.crossings), reversed(hops), strict=True):
            behind[c.source] = max(behind[c.source], behind[c.target] + hop)
        over = [
            float(before[c.source] + hop + behind[c.target])
            for c, hop in zip(self.crossings, hops, strict=True)
        ]
        to, on = np.zeros(len(self.capacity)), np.zeros(len(self.capacity))
        np.maximum.at(to, nodes, before)
        np.maximum.at(on, nodes, behind)
        return over, np.asarray(to + on)


def climb_linked(problem: LinkedProblem, starts: Sequence[IntArray], *, moves: int) -> IntArray:
    """Return the best placement that climbs from these starts find, shape (m,).

    A step is the best of all moves to any slot: of one operator, of two of which one feeds the
    other, or of one with all that is behind it. What is pinned stays.

    Args:
        problem: what is to be placed.
        starts: placements, at least one.
        moves: how many may be evaluated in all, shared by the starts.

    Raises:
        SettingError: no start.
    """
    if not starts:
        raise SettingError("a climb needs a placement to start from")
    found: list[tuple[tuple[float, float], IntArray]] = []
    for start in starts:
        left = moves // len(starts)
        nodes = start.copy()
        now = problem.cost(nodes)
        while left > 0:
            best, best_move = now, None
            for group, slot in _moves(problem, nodes):
                if left <= 0:
                    break
                left -= 1
                other = nodes.copy()
                other[list(group)] = slot
                cost = problem.cost(other)
                if _is_less(cost, best):
                    best, best_move = cost, other
            if best_move is None:
                break
            nodes, now = best_move, best
        found.append((now, nodes))
    return min(found, key=lambda one: one[0])[1]


def _is_less(cost: tuple[float, float], than: tuple[float, float]) -> bool:
    if cost[0] < than[0] - GAIN:
        return True
    return cost[0] <= than[0] + GAIN and cost[1] < than[1] - GAIN


def _moves(problem: LinkedProblem, nodes: IntArray) -> Iterator[tuple[tuple[int, ...], int]]:
    free = {j for j in range(len(nodes)) if j not in problem.pinned}
    groups = {(j,) for j in free}
    groups |= {(c.source, c.target) for c in problem.crossings}
    groups |= {tuple(sorted(behind)) for behind in _behind(problem, len(nodes))}
    for group in sorted(group for group in groups if free.issuperset(group)):
        for slot in range(len(problem.capacity)):
            if any(nodes[j] != slot for j in group):
                yield group, slot


def _behind(problem: LinkedProblem, count: int) -> list[set[int]]:
    """Return for each operator itself and all that is behind it."""
    found = [{j} for j in range(count)]
    for crossing in reversed(problem.crossings):
        found[crossing.source] |= found[crossing.target]
    return found
