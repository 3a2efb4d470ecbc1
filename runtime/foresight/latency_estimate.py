"""Latency estimate of a flow on given nodes, under given arrivals, without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.circles import Laid, laid_over_time
from slackwater.runtime.foresight.excess import cumulative_excess, mace, node_load
from slackwater.runtime.foresight.links import path_delays, shortest_way_s
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, Workload
from slackwater.runtime.foresight.units import ONE_EVENT, Slices, epsilon_s
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.shown import shown

__all__ = ["LatencyEstimate", "NodeEstimate", "estimate_latency"]

MOST_LOAD = 50.0
"""Highest load of a node in a subinterval, in its capacities, at which held-up work counts."""


@dataclass(frozen=True, kw_only=True)
class NodeEstimate(JsonView):
    """Estimated load and backlog of one node.

    Attributes:
        name: name of the node; with several cores, of the slot.
        load: its mean load, as a share of its capacity; above 1 its backlog grows for ever.
        peak: its load in its busiest subinterval, as a share of its capacity.
        worst_s: its largest backlog, in seconds.
        operators: its operators, the one with the most work first.
        others: share of its capacity that other flows take, included in its load.
        least_way_s: P_min of [mace] §VII-B, least travel time of results that pass through it.
        most_way_s: P_max, the longest travel time.
    """

    name: str
    load: float
    peak: float
    worst_s: float
    operators: tuple[str, ...]
    others: float = 0.0
    least_way_s: float = 0.0
    most_way_s: float = 0.0

    JSON: ClassVar[View] = {
        "name": "name",
        "load": "load",
        "peak": "peak",
        "headroom": "headroom",
        "worst_s": "worst_s",
        "stages": "operators",
    }

    @property
    def headroom(self) -> float:
        """Mean free share of its capacity; below 0 its backlog grows for ever."""
        return 1 - self.load


@dataclass(frozen=True, eq=False, kw_only=True)
class LatencyEstimate:
    """Predicted latency over time.

    Attributes:
        width_s: w, length of a subinterval.
        mace_s: shape (d,), Mace_p of [mace] Def. 9.
        mace_least_s: shape (d,), lower bound of Mace′_p with propagation delay: the largest sum of
            a node's Mace and P_min. Source: [mace] §VII-B.
        mace_most_s: upper bound, the largest sum of a node's Mace and P_max.
        held_up_s: shape (d,), latency with work held up upstream and the rows' own work; `worst_s`
            and the other figures use it.
        has_result: shape (d,), whether any result is expected in a subinterval.
        epsilon_s: ε of [mace] Theorem 2: one event of each input of each operator; or one slice or
            message, if `slices` was given.
        nodes: the nodes, in the order given.
        is_held: whether a gate holds rows longer than the time ahead, so that `held_up_s` is the
            latency of the other rows.
        spread_s: widening of the upper bound by circles (`runtime/foresight/circles.py`); inf:
            there is no upper bound.
        behind_s: longest wait of any event for work on its whole path, without travel, its own
            work and waits in gates.
        least_way_s: least value of the worst latency, if no row waits.
    """

    width_s: float
    mace_s: FloatArray
    mace_least_s: FloatArray
    mace_most_s: FloatArray
    held_up_s: FloatArray
    has_result: npt.NDArray[np.bool_]
    epsilon_s: float
    nodes: tuple[NodeEstimate, ...]
    spread_s: float = 0.0
    behind_s: float = 0.0
    is_held: bool = False
    least_way_s: float = 0.0

    @property
    def worst_s(self) -> float:
        """Worst latency of any result."""
        return float(self.held_up_s.max(initial=0.0))

    @property
    def mace_worst_s(self) -> float:
        """Worst latency by the paper's estimate, Mace_WC."""
        return float(self.mace_s[self.has_result].max(initial=0.0))

    @property
    def mean_s(self) -> float:
        """Mean over the subintervals that have results: [mace] §V-B."""
        return float(np.mean(self._of_results)) if len(self._of_results) else 0.0

    def quantile_s(self, share: float) -> float:
        """Return a quantile over the subintervals that have results: [mace] §V-B.

        Args:
            share: share of the results, 0.99 for p99.
        """
        return float(np.quantile(self._of_results, share)) if len(self._of_results) else 0.0

    @property
    def bounds_s(self) -> tuple[float, float]:
        """Bounds of the worst latency: [mace] Theorem 2 with the delays of §VII-B.

        The lower bound is the largest Mace + P_min of a node, or the way of a row that never waits.
        The upper bound is the largest Mace + P_max, or the latency by held-up work if that is more,
        plus w + ε. With circles, held-up work counts with its spread; random graphs support that,
        no proof does. If finer parts would be too many, the upper bound is inf.

        Only the lower bound needs arrivals that are even within a subinterval (A-2): for the upper
        one all may arrive at its start, which w allows for (Lemma 1).
        """
        lower = float(self.mace_least_s[self.has_result].max(initial=0.0))
        most_s = float(self.mace_most_s[self.has_result].max(initial=0.0))
        upper = max(most_s, self.worst_s + self.spread_s)
        lower = max(lower, min(self.least_way_s, upper))
        return lower, float(upper + self.width_s + self.epsilon_s)

    @property
    def bottleneck(self) -> NodeEstimate:
        """Node with the largest backlog; without any backlog, the one with the most load."""
        return max(
            self.nodes,
            key=lambda node: (
                node.load > 1,
                node.load if node.load > 1 else node.worst_s,
                node.load,
            ),
        )

    @property
    def is_unbounded(self) -> bool:
        """Whether some node is overloaded, so that latency grows for ever."""
        return any(node.load > 1 for node in self.nodes)

    @property
    def lasting_worst_s(self) -> float:
        """Worst latency while rates stay; inf: it grows, or a gate holds rows."""
        return float("inf") if self.is_unbounded or self.is_held else self.worst_s

    @property
    def sustainable(self) -> float:
        """Factor of the rates at which a node's backlog starts to grow for ever.

        It holds if load grows as rates do; if not, use `slackwater.runtime.foresight.sustainable`.
        """
        own = [(node.load - node.others, 1 - node.others) for node in self.nodes]
        # If other flows take more than the capacity, no rate is low enough.
        return min((max(room, 0.0) / load for load, room in own if load > 0), default=float("inf"))

    @property
    def _of_results(self) -> FloatArray:
        return np.asarray(self.held_up_s[self.has_result])


def estimate_latency(
    graph: QueryGraph,
    work: Workload,
    placement: Mapping[str, str],
    capacity: Mapping[str, float],
    *,
    hop_s: Mapping[tuple[str, str], float] | None = None,
    least_hop_s: Mapping[tuple[str, str], float] | None = None,
    slices: Slices = ONE_EVENT,
    in_parts: bool = True,
) -> LatencyEstimate:
    """Return the latency estimate of a placement.

    Args:
        graph: graph of the operators.
        work: their arrivals and loads.
        placement: {operator: node that it is on}.
        capacity: {node: C_i, CPU seconds of work that it does in a second}, > 0; 1 is the core that
            costs were measured on.
        hop_s: {(from node, to node): longest travel time of an event}; None if it takes no time.
        least_hop_s: the same, shortest; None if it equals the longest.
        slices: rule by which work is cut; by default one event at a time, as in [mace].
        in_parts: whether circles are laid out in finer parts, which takes most of the time. False:
            the upper bound does not hold with circles.

    Raises:
        SettingError: an operator has no node, or an unknown one.
    """
    names = list(capacity)
    places = [_place(operator, placement, names) for operator in graph.names]
    speed = np.array([float(capacity[name]) for name in names])
    loads = node_load(work.load_s, places, len(names))
    excess_s = cumulative_excess(loads, speed, width_s=work.width_s)
    hops = None if hop_s is None else _matrix(hop_s, names)
    least_hops = hops if least_hop_s is None else _matrix(least_hop_s, names)
    ways = path_delays(graph, places, len(names), least_hop_s=least_hops, most_hop_s=hops)
    each = loads / speed[:, None] / work.width_s
    # At many times a node's capacity its backlog is all that counts.
    hopeless = float(each.max(initial=0.0)) > MOST_LOAD
    excess_by_time = mace(excess_s, speed)
    is_used = np.isin(np.arange(len(names)), places)
    backlog_s = float(excess_by_time.max(initial=0.0))
    if hopeless:
        waits_s = np.full(len(places), backlog_s)
        laid = Laid(latency_s=excess_by_time, waits_s=waits_s, spread_s=0.0, behind_s=backlog_s)
    else:
        laid = laid_over_time(graph, work, places, speed, hop_s=hops, in_parts=in_parts)
    given = [work.arrivals[name] > 0 for name in graph.sinks]
    reached = [name for name, each in zip(graph.sinks, given, strict=True) if each.any()]
    return LatencyEstimate(
        width_s=work.width_s,
        mace_s=excess_by_time,
        mace_least_s=_with_ways(excess_s, speed, ways.least_s, is_used),
        mace_most_s=_with_ways(excess_s, speed, ways.most_s, is_used),
        held_up_s=laid.latency_s,
        has_result=np.any(given, axis=0),
        epsilon_s=epsilon_s(graph, work, speed[places], slices, waits_s=laid.waits_s),
        spread_s=laid.spread_s,
        behind_s=max(laid.behind_s, backlog_s),
        least_way_s=shortest_way_s(graph, places, speed, hop_s=least_hops, sinks=reached),
        nodes=tuple(
            NodeEstimate(
                name=name,
                load=float(each[i].mean()),
                peak=float(each[i].max()),
                worst_s=float(excess_s[i].max() / speed[i]),
                operators=_by_work(graph, work, places, i),
                least_way_s=float(ways.least_s[i]),
                most_way_s=float(ways.most_s[i]),
            )
            for i, name in enumerate(names)
        ),
    )


def _with_ways(
    excess_s: FloatArray, speed: FloatArray, way_s: FloatArray, is_used: npt.NDArray[np.bool_]
) -> FloatArray:
    """Return the largest sum of excess and way of a used node, shape (d,)."""
    whole = excess_s / speed[:, None] + way_s[:, None]
    return np.asarray(whole[is_used].max(axis=0, initial=0.0))


def _place(operator: str, placement: Mapping[str, str], names: Sequence[str]) -> int:
    node = placement.get(operator)
    if node is None or node not in names:
        fact = "has no node" if node is None else f"is placed on {node!r}, which is not there"
        raise SettingError(f"operator {shown(operator)} {fact}; there are {', '.join(names)}")
    return names.index(node)


def _matrix(hop_s: Mapping[tuple[str, str], float], names: Sequence[str]) -> FloatArray:
    return np.array([[hop_s.get((a, b), 0.0) for b in names] for a in names])


def _by_work(
    graph: QueryGraph, work: Workload, places: Sequence[int], node: int
) -> tuple[str, ...]:
    here = [j for j, place in enumerate(places) if place == node]
    here.sort(key=lambda j: -float(work.load_s[j].sum()))
    return tuple(graph.operators[j].name for j in here)
