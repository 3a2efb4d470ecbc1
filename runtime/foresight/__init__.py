"""Latency known before a flow runs: Mace, and what it leaves out. Source: [mace].

| file | what it has |
| --- | --- |
| `query_graph.py` | operators: what an event costs, what comes of it; the load of arrivals |
| `curves.py` | joins, windows, data that drift: no lines |
| `sampled.py` | what a run over a sample shows of each stage: what a slice costs, a row of it |
| `sample_statistics.py` | the graph that follows: costs, selectivities, curves fitted |
| `recorded.py` | the same from what earlier jobs have kept: costs, selectivities, arrivals |
| `carried.py` | statistics of a flow carried over to other plans of it |
| `step_curves.py` | and its curves |
| `rates.py` | arrivals from a number, a trace or a model |
| `excess.py` | load of a node, cumulative excess, Mace |
| `held_up.py` | beyond the paper: work held up upstream is counted, too |
| `links.py` | links as nodes of their own, and the delay on the ways through a node |
| `layout.py` | a flow in its slots: what lies between nodes, which links are used |
| `latency_estimate.py` | both for a placement, with bounds, quantiles, the bottleneck |
| `sustainable.py` | the highest rates that a flow keeps up with, curves counted |
| `shed.py` | what a step that sheds will drop, and what latency that leaves |
| `gates/` | what rows wait in gates, and that put together with the work |
| `placement/` | the placement whose Mace is least |
| `live/` | a prediction held against the run that it is of |
| `observed/` | what a flow has shown: a sample of it, an earlier job |
| `predicted/` | the latency of a flow in its slots |
| `chosen/` | what is decided by that: placements, plans, nodes, admission, moves |
"""

from __future__ import annotations

from slackwater.runtime.foresight.latency_estimate import (
    LatencyEstimate,
    NodeEstimate,
    estimate_latency,
)
from slackwater.runtime.foresight.query_graph import CostCurve, QueryGraph, QueryOperator, Workload

__all__ = [
    "CostCurve",
    "LatencyEstimate",
    "NodeEstimate",
    "QueryGraph",
    "QueryOperator",
    "Workload",
    "estimate_latency",
]
