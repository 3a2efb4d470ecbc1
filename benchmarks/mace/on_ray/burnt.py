"""One query of `mace-*` on two local Ray nodes whose operators use a core for what they do.

Each row of an operator costs it a set time of CPU. Two slots share this machine's cores with Ray
and with whatever else runs: what that adds is no part of a prediction. What share of a core each
had when it wanted one is known afterwards; with that as the nodes' speed the same statistics say
how much of an error is the machine's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.frame import Options, Result
from benchmarks.mace.judge import HEADER, of, span_of, tell
from benchmarks.mace.on_ray.judge import EXACT, FIRST, SPREAD, estimates_of, named
from benchmarks.mace.on_ray.service import AT_WORK
from benchmarks.mace.on_ray.slept import QUICK_SCALE, SCALE, Ran
from benchmarks.mace.on_ray.trial import WorkingCluster, drawn, measure, with_costs
from benchmarks.mace.trial import SAMPLE, Queries, spread_statistics
from slackwater.runtime.foresight import LatencyEstimate, QueryGraph, Workload, estimate_latency
from slackwater.runtime.foresight.query_graph import arrivals_of

SEEDS = 3
NODES = 2
AFTERWARDS = "spread 8 %, shares of a core as they were"


def run(options: Options) -> Result:
    """Predict and measure each seed; nothing is claimed."""
    seeds = 1 if options.quick else SEEDS
    scale = QUICK_SCALE if options.quick else SCALE
    result = Result(
        f"{75_000 * scale:,.0f} events in some {290 * scale:.0f} s, 14 operators on two local Ray "
        f"nodes, {seeds} seeds, w {scale:g} s; operators at work on this machine's cores",
        ["what", "measured", "statistics", "estimate", "seeds", *HEADER],
    )
    with WorkingCluster.of(NODES) as cluster:
        ran = [_one_run(cluster, seed, scale) for seed in range(options.seed, options.seed + seeds)]
    for name in (named(FIRST, SAMPLE), named(SPREAD, SAMPLE), EXACT, AFTERWARDS):
        rows = of([one.judged(name) for one in ran], name, scale)
        tell(result, ["2 nodes", span_of(rows), name], rows, key=name)
    had = "; ".join(
        ", ".join(f"{node} {share:.2f}" for node, share in sorted(one.run.core_shares.items()))
        for one in ran
    )
    result.notes += [
        f"share of a core that each had of what it wanted, seed by seed: {had}",
        "[mace] has no figure of this: its servers had their processors alone",
    ]
    return result


def _one_run(cluster: WorkingCluster, seed: int, scale: float) -> Ran:
    queries = drawn(seed, queries=1, nodes=NODES, scale=scale)
    estimates = estimates_of(queries, [SAMPLE], width_s=scale, seed=seed)
    run = measure(cluster, queries, way=AT_WORK).until(queries.duration_s)
    graph = with_costs(spread_statistics(queries, SAMPLE, seed=seed), queries.costs_ns)
    speed = {**dict.fromkeys(queries.nodes, 1.0), **run.core_shares}
    estimates[AFTERWARDS] = at_speed(queries, graph, speed, width_s=scale)
    ran = Ran(run, estimates)
    ran.tell(f"seed {seed}")
    return ran


def at_speed(
    queries: Queries, graph: QueryGraph, speed: Mapping[str, float], *, width_s: float
) -> LatencyEstimate:
    """Return what is predicted for nodes of other speeds than 1: {node: speed}."""
    edges = np.arange(0.0, queries.duration_s + 2 * width_s, width_s)
    arrivals = {
        arrivals_of(f"{number}.visits"): np.histogram(at_s, edges)[0]
        for number, at_s in enumerate(queries.arrivals_s, start=1)
    }
    work = Workload.of(graph, arrivals, width_s)
    return estimate_latency(graph, work, queries.placement, speed)
