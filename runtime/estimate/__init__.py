"""Latency known before a flow runs: Mace, and what it leaves out. Source: [mace].

| file | what it has |
| --- | --- |
| `query_graph.py` | operators: what an event costs, what comes of it; the load of arrivals |
| `curves.py` | joins and windows, whose load is no line |
| `sample_statistics.py` | the graph that a run of the simulator over a sample shows |
| `sampled.py` | the same from slices that were timed: what a slice costs, and a row of it |
| `rates.py` | arrivals from a number, a trace or a model |
| `excess.py` | load of a node, cumulative excess, Mace |
| `held_up.py` | beyond the paper: work held up upstream is counted, too |
| `latency_estimate.py` | both for a placement, with bounds, quantiles, the bottleneck |
| `worth.py` | whether a running flow is better off elsewhere |
| `placement/` | the placement whose Mace is least |
"""

from __future__ import annotations

from runtime.estimate.latency_estimate import LatencyEstimate, NodeEstimate, estimate_latency
from runtime.estimate.query_graph import CostCurve, QueryGraph, QueryOperator, Workload
from runtime.estimate.worth import MoveWorth, move_worth

__all__ = [
    "CostCurve",
    "LatencyEstimate",
    "MoveWorth",
    "NodeEstimate",
    "QueryGraph",
    "QueryOperator",
    "Workload",
    "estimate_latency",
    "move_worth",
]
