"""Latency predicted before a flow runs: Mace, and what it omits. Source: [mace].

| file | contents |
| --- | --- |
| `query_graph.py` | operators: cost and results of an event; the load of arrivals |
| `curves.py` | joins, windows: nonlinear operators |
| `observations.py` | the table of observations; costs of slices and rows |
| `observed_graph.py` | the query graph of a table: costs, selectivities, fitted curves |
| `recorded.py` | tables and arrivals from the samples of jobs |
| `carried.py` | statistics of a flow carried over to other plans of it |
| `step_curves.py` | curves of its joins and windows |
| `rates.py` | arrivals from a number, a trace or a model |
| `excess.py` | load of a node, cumulative excess, Mace |
| `held_up.py` | beyond the paper: work held up upstream counts, too |
| `links.py` | links as separate nodes, and the delay of paths through a node |
| `layout.py` | a flow in its slots: the network between nodes, the links in use |
| `latency_estimate.py` | latency of a placement, with bounds, quantiles, the bottleneck |
| `sustainable.py` | the highest rates that a flow keeps up with, curves counted |
| `gates/` | waits of rows in gates, combined with the work |
| `placement/` | the placement with the least Mace |
| `live/` | a prediction compared with its run |
| `observed/` | observations of a flow: a sample, an earlier job |
| `predicted/` | the latency of a flow in its slots |
| `chosen/` | decisions by predictions: placements, plans, nodes, admission, moves |
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
