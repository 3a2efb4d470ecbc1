"""Sustainable rates of a flow whose load does not grow as rates do.

Twice the rate makes four times the pairs of a join, and fewer results for each row of a window. So
a search computes the load of each node for other rates, until it finds the highest rate at which
all nodes keep up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.foresight.latency_estimate import NodeEstimate
from slackwater.runtime.foresight.links import CROSSES
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, Workload

__all__ = ["sustainable"]

EXACT = 1e-3
"""Largest relative error of the answer."""
MOST, LEAST = 1e9, 1e-9


def sustainable(
    graph: QueryGraph,
    arrivals: Mapping[str, FloatArray],
    *,
    width_s: float,
    nodes: Sequence[NodeEstimate],
    row_bytes: Mapping[tuple[str, str], float],
) -> float:
    """Return the highest factor of the rates at which all nodes keep up; inf: any.

    Args:
        graph: graph of the stages.
        arrivals: {source: shape (d,), events of each subinterval} at the present rates.
        width_s: length of a subinterval.
        nodes: nodes, links and machines, with their loads at the present rates.
        row_bytes: {(stage, its target): bytes sent for each row that leaves the stage}.
    """
    now = _amounts(graph, arrivals, width_s, row_bytes)

    def keeps_up(times: float) -> bool:
        more = {name: counts * times for name, counts in arrivals.items()}
        then = _amounts(graph, more, width_s, row_bytes)
        return all(_load(node, now, then) <= 1 for node in nodes)

    low = high = 1.0
    while high < MOST and keeps_up(high):
        low, high = high, 2 * high
    if high >= MOST:
        return float("inf")
    while low > LEAST and not keeps_up(low):
        low, high = low / 2, low
    while high - low > EXACT * high:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_up(middle) else (low, middle)
    return low


def _amounts(
    graph: QueryGraph,
    arrivals: Mapping[str, FloatArray],
    width_s: float,
    row_bytes: Mapping[tuple[str, str], float],
) -> dict[str, float]:
    """Return {stage: its work}, and {channel over a link: its bytes}."""
    work = Workload.of(graph, arrivals, width_s)
    amounts = dict(zip(graph.names, map(float, work.load_s.sum(axis=1)), strict=True))
    for (feeder, target), weight in row_bytes.items():
        if feeder in work.arrivals:
            amounts[f"{feeder}{CROSSES}{target}"] = weight * float(work.arrivals[feeder].sum())
    return amounts


def _load(node: NodeEstimate, now: Mapping[str, float], then: Mapping[str, float]) -> float:
    # The load of other flows does not grow.
    before = sum(now[name] for name in node.operators)
    after = sum(then[name] for name in node.operators)
    return node.others + (node.load - node.others) * (after / before if before > 0 else 1.0)
