"""Latency predicted before a flow runs: Mace, and what it omits. Source: [mace].

- `carried.py`: Statistics of a flow, carried over to plans that never ran.
- `circles.py`: Circles of a placement: paths that return to a node, so work needs finer parts.
- `curves.py`: Curves of nonlinear operators: joins and windows. Source: [mace] §VI-C.
- `excess.py`: Node load, cumulative excess and Mace. Source: [mace] Def. 6, 8, 9.
- `held_up.py`: Estimate that counts work held up upstream, too; it goes beyond the paper.
- `latency_estimate.py`: Latency estimate of a flow on given nodes, under given arrivals, without a
  run.
- `layout.py`: Layout of a flow in its slots: its network, and the links in use.
- `links.py`: Links as separate nodes, and delays of paths through a node. Source: [mace] §VII-B.
- `observations.py`: Table of observations: rows, results and service time of each stage, by
  interval.
- `observed_graph.py`: Query graph of a table of observations: cost and selectivity of each stage,
  fitted curves.
- `query_graph.py`: Query graph of a flow: cost and selectivity of each operator.
- `rates.py`: Rates for predictions: events of each subinterval, from a number, model or trace.
- `recorded.py`: Table of observations and arrivals of a flow, from the samples of a job.
- `shared_cores.py`: Machines with fewer cores than slots, because of several nodes or several
  flows.
- `step_curves.py`: Curves of a flow's joins and windows by step, to carry over to other plans.
- `sustainable.py`: Sustainable rates of a flow whose load does not grow as rates do.
- `units.py`: ε of [mace] Theorem 2: work before a row, since no work is interrupted.
- `chosen/`: Decisions by predictions, before a flow runs and while it does.
- `gates/`: Waits of rows in gates, as part of a predicted latency; they go beyond [mace].
- `live/`: Live estimate: a prediction compared with its run while that goes on.
- `observed/`: Observations of a flow: by a sample, or by an earlier job.
- `placement/`: Placement of operators on nodes with the least Mace_WC. Source: [mace] §IX-B.
- `predicted/`: Predicted latency of a flow in its slots, by observations and rates.
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
