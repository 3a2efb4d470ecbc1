"""[mace]'s model, event by event: what Theorems 1 to 3 speak of, run exactly, in virtual time.

Nodes run one event at a time to its end, operators put out events as their selectivity says, and
each is known by its stimulus. Written for tests: it is the measure of what estimators say.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph


@dataclass(order=True)
class Waiting:
    """An event in the queue of an operator."""

    stimulus_s: float
    order: int
    operator: int = field(compare=False)
    port: int = field(compare=False)


Policy = Callable[[list[Waiting], int], int]
"""Which of those that wait at a node (the number given) goes next: its place in the list."""


def by_stimulus(waiting: list[Waiting], node: int) -> int:
    """Def. 7."""
    del node
    return min(range(len(waiting)), key=lambda n: waiting[n])


@dataclass(frozen=True, eq=False)
class Ran:
    """Results in the order in which they left: when, and their stimulus; seconds."""

    egress_s: FloatArray
    stimulus_s: FloatArray

    @property
    def latency_s(self) -> FloatArray:
        return self.egress_s - self.stimulus_s

    def by_subinterval(self, width_s: float, count: int) -> FloatArray:
        """Lat_p of Def. 4, shape (count,); NaN where nothing left."""
        found = np.full(count, np.nan)
        places = np.minimum((self.stimulus_s / width_s + 1e-9).astype(int), count - 1)
        for place, latency in zip(places, self.latency_s, strict=True):
            found[place] = np.fmax(found[place], latency)
        return found


def run_events(
    graph: QueryGraph,
    arrivals_s: Mapping[str, Sequence[float]],
    nodes: Sequence[int],
    *,
    capacity: Sequence[float] | None = None,
    policy: Policy | None = None,
    hop_s: FloatArray | None = None,
) -> Ran:
    """Run these arrivals (source: times in order, seconds) through the graph."""
    return _Run(graph, nodes, capacity, policy, hop_s).run(arrivals_s)


class _Run:
    def __init__(
        self,
        graph: QueryGraph,
        nodes: Sequence[int],
        capacity: Sequence[float] | None,
        policy: Policy | None,
        hop_s: FloatArray | None,
    ) -> None:
        self._operators, self._sinks = graph.operators, set(graph.sinks)
        self._nodes, self._policy, self._hop_s = nodes, policy, hop_s
        count = max(nodes) + 1
        self._speed = list(capacity) if capacity is not None else [1.0] * count
        self._feeds: dict[str, list[tuple[int, int]]] = {}  # {name: (operator, port) that it feeds}
        for j, one in enumerate(graph.operators):
            for port, name in enumerate(one.inputs):
                self._feeds.setdefault(name, []).append((j, port))
        self._owed = [[0.0] * len(one.inputs) for one in graph.operators]
        self._waiting: list[list[Waiting]] = [[] for _ in range(count)]
        self._at_work: list[Waiting | None] = [None] * count
        # (when, order, node, what comes there; None: the node is done with an event)
        self._heap: list[tuple[float, int, int, Waiting | None]] = []
        self._order = 0
        self._left: list[tuple[float, float]] = []

    def run(self, arrivals_s: Mapping[str, Sequence[float]]) -> Ran:
        for source, times in arrivals_s.items():
            for at_s in times:
                self._hand_on(source, at_s, at_s, None)
        while self._heap:
            now_s = self._heap[0][0]
            while self._heap and self._heap[0][0] <= now_s:  # all of a moment, before one is chosen
                _, _, node, event = heapq.heappop(self._heap)
                if event is None:
                    self._finish(node, now_s)
                else:
                    self._push(node, event)
            for node, waiting in enumerate(self._waiting):
                if waiting and self._at_work[node] is None:
                    self._begin(node, now_s)
        left = np.array(self._left).reshape(-1, 2)
        return Ran(left[:, 0], left[:, 1])

    def _hand_on(self, name: str, stimulus_s: float, now_s: float, node: int | None) -> None:
        for j, port in self._feeds.get(name, ()):
            self._order += 1
            there = self._nodes[j]
            hop_s = self._hop_s
            at_s = now_s if hop_s is None or node is None else now_s + float(hop_s[node, there])
            heapq.heappush(
                self._heap, (at_s, self._order, there, Waiting(stimulus_s, self._order, j, port))
            )

    def _finish(self, node: int, now_s: float) -> None:
        done, self._at_work[node] = self._at_work[node], None
        assert done is not None
        one, owed = self._operators[done.operator], self._owed[done.operator]
        owed[done.port] += one.selectivity[done.port]
        while owed[done.port] >= 1 - 1e-9:
            owed[done.port] -= 1
            if one.name in self._sinks:
                self._left.append((now_s, done.stimulus_s))
            self._hand_on(one.name, done.stimulus_s, now_s, node)

    def _push(self, node: int, event: Waiting) -> None:
        if self._policy is None:
            heapq.heappush(self._waiting[node], event)
        else:
            self._waiting[node].append(event)

    def _begin(self, node: int, now_s: float) -> None:
        here = self._waiting[node]
        chosen = self._policy
        event = heapq.heappop(here) if chosen is None else here.pop(chosen(here, node))
        self._at_work[node] = event
        cost_s = self._operators[event.operator].cost_s[event.port] / self._speed[node]
        heapq.heappush(self._heap, (now_s + cost_s, event.order, node, None))
