"""Placement with links: hill climbing on Mace, links as nodes, and their ways.

The fast moves of `climb.py` know only loads of nodes. Here a move also changes the rows on links,
so each is evaluated whole: O(d · (m + n)), for flows of some ten operators, not for 4,000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.placement.problem import IntArray
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["Crossing", "LinkedProblem", "climb_linked"]

GAIN = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Crossing:
    """Bytes that one operator sends to another.

    Attributes:
        source: number of the operator that sends.
        target: number of the operator that receives.
        sent: shape (d,), bytes of each subinterval.
    """

    source: int
    target: int
    sent: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkedProblem:
    """Placement problem with links: the least largest Mace + P_max of slots and links.

    Source: [mace] §IX-B with the nodes and delays of §VII-B.

    Attributes:
        load_s: shape (m, d), CPU seconds of each operator, m in topological order.
        capacity: shape (n,), capacity of each slot.
        hosts: shape (n,), number of each slot's machine.
        crossings: bytes from operator to operator.
        bytes_per_s: {(from host, to host): capacity of the link}; absent: no limit.
        hop_s: shape (n, n), travel time of a message.
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
        """Return the largest Mace + P_max of slots and links, s, and a tie breaker."""
        over_s, longest_s = self._ways(nodes)
        links: dict[tuple[int, int], int] = {}  # {link in use: its row}
        rows = np.full(len(self.crossings), -1, dtype=np.intp)
        way_s: list[float] = []
        for number, c in enumerate(self.crossings):
            pair = int(self.hosts[nodes[c.source]]), int(self.hosts[nodes[c.target]])
            if pair[0] == pair[1] or pair not in self.bytes_per_s:
                continue
            row = rows[number] = links.setdefault(pair, len(links))
            way_s += [0.0] * (len(links) - len(way_s))
            way_s[row] = max(way_s[row], over_s[number])
        speed = np.concatenate([self.capacity, [self.bytes_per_s[pair] for pair in links]])
        on_slot = nodes[None, :] == np.arange(len(self.capacity))[:, None]
        on_link = rows[None, :] == np.arange(len(links))[:, None]
        load = np.concatenate([on_slot @ self.load_s, on_link @ self._sent])
        excess = cumulative_excess(load, speed, width_s=self.width_s)
        backlog_s = excess.max(axis=1) / speed
        worst_s = float((backlog_s + np.concatenate([longest_s, way_s])).max())
        return worst_s, float(backlog_s.sum()) + 1e-6 * sum(way > 0 for way in over_s)

    @cached_property
    def _sent(self) -> FloatArray:
        """Shape (crossings, d), bytes."""
        d = self.load_s.shape[1]
        return np.array([c.sent for c in self.crossings]).reshape(len(self.crossings), d)

    @cached_property
    def are_alike(self) -> bool:
        """Whether all hosts have equal links and delays between them."""
        apart = self.hosts[:, None] != self.hosts[None, :]
        hosts = len(set(self.hosts.tolist()))
        whole = len(self.bytes_per_s) in (0, hosts * (hosts - 1))
        same = len(set(self.bytes_per_s.values())) <= 1
        return whole and same and len(np.unique(self.hop_s[apart])) <= 1

    def random(self, rng: np.random.Generator) -> IntArray:
        """Return a random placement with pinned operators in place, shape (m,)."""
        nodes = rng.integers(0, len(self.capacity), len(self.load_s)).astype(np.intp)
        nodes[list(self.pinned)] = list(self.pinned.values())
        return nodes

    def _ways(self, nodes: IntArray) -> tuple[list[float], FloatArray]:
        """Return the longest way over each crossing, and through each slot, seconds."""
        before, after = np.zeros(len(nodes)), np.zeros(len(nodes))
        hops = [float(self.hop_s[nodes[c.source], nodes[c.target]]) for c in self.crossings]
        for c, hop in zip(self.crossings, hops, strict=True):  # by target, as operators are
            before[c.target] = max(before[c.target], before[c.source] + hop)
        for c, hop in zip(reversed(self.crossings), reversed(hops), strict=True):
            after[c.source] = max(after[c.source], after[c.target] + hop)
        over = [
            float(before[c.source] + hop + after[c.target])
            for c, hop in zip(self.crossings, hops, strict=True)
        ]
        to, on = np.zeros(len(self.capacity)), np.zeros(len(self.capacity))
        np.maximum.at(to, nodes, before)
        np.maximum.at(on, nodes, after)
        return over, np.asarray(to + on)


def climb_linked(
    problem: LinkedProblem, starts: Sequence[IntArray], seed: int, *, moves: int
) -> IntArray:
    """Return the best placement that climbs find, shape (m,), as long as the budget lasts.

    Climbs begin at the given starts, then at random ones. A move takes an operator, an operator and
    its feeder, or an operator and all that follow it, to another slot. Each move that helps is
    made, until no move helps. Pinned operators stay.

    Args:
        problem: operators, slots and links.
        starts: placements, at least one.
        seed: seed of random starts.
        moves: most moves that are evaluated.

    Raises:
        SettingError: there is no start.
    """
    if not starts:
        raise SettingError("a climb needs a placement to start from")
    rng = np.random.default_rng(seed)
    groups = _groups(problem)
    best = min(starts, key=problem.cost)
    begun, least = list(starts), problem.cost(best)
    while moves > 0 and groups:
        start = begun.pop(0) if begun else problem.random(rng)
        nodes, cost, used = _climb(problem, start, groups, moves=moves)
        moves -= used
        if _is_less(cost, least):
            best, least = nodes, cost
    return best


def _climb(
    problem: LinkedProblem, start: IntArray, groups: Sequence[list[int]], *, moves: int
) -> tuple[IntArray, tuple[float, float], int]:
    """Return the end of a climb, its cost, and its evaluated moves, >= 1."""
    nodes, now, used = start, problem.cost(start), 1
    since = 0  # groups tried since the last move
    for group in cycle(groups):
        for slot in _slots(problem, nodes, group):
            if used >= moves:
                return nodes, now, used
            used += 1
            other = nodes.copy()
            other[group] = slot
            cost = problem.cost(other)
            if _is_less(cost, now):
                nodes, now, since = other, cost, 0
        since += 1
        if since > len(groups):
            break
    return nodes, now, used


def _is_less(cost: tuple[float, float], than: tuple[float, float]) -> bool:
    if cost[0] < than[0] - GAIN:
        return True
    return cost[0] <= than[0] + GAIN and cost[1] < than[1] - GAIN


def _groups(problem: LinkedProblem) -> list[list[int]]:
    """Return the operators that may be moved together."""
    count = len(problem.load_s)
    groups: set[tuple[int, ...]] = {(j,) for j in range(count)}
    groups |= {(c.source, c.target) for c in problem.crossings}
    groups |= {tuple(sorted(operators)) for operators in _with_followers(problem, count)}
    pinned = set(problem.pinned)
    return [list(group) for group in sorted(groups) if pinned.isdisjoint(group)]


def _slots(problem: LinkedProblem, nodes: IntArray, group: list[int]) -> list[int]:
    """Return the slots for a group; of equal hosts without work, only the first's."""
    used = set(problem.hosts[nodes].tolist())
    fresh: set[int] = set()
    slots = []
    for slot, host in enumerate(problem.hosts.tolist()):
        if host not in used and problem.are_alike:
            fresh = fresh or {host}
            if host not in fresh:
                continue
        if (nodes[group] != slot).any():
            slots.append(slot)
    return slots


def _with_followers(problem: LinkedProblem, count: int) -> list[set[int]]:
    """Return each operator with all that follow it."""
    groups = [{j} for j in range(count)]
    for crossing in reversed(problem.crossings):
        groups[crossing.source] |= groups[crossing.target]
    return groups
