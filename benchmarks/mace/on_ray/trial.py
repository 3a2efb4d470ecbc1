"""One trial of `mace-*` on Ray: queries on local nodes in real time, and predicted before.

```
set costs, first 8 % ──▶ query graph ─┐
all arrivals ─────────────────────────┴▶ Mace, held up │ beside
Ray nodes, stages that take the set costs ─▶ LatencySeries of the sinks, by stimulus time
```
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import check
from benchmarks.mace.load import EVENTS, HIGH_RATE, RATE_RATIO, Floats, on_off_s, parts
from benchmarks.mace.on_ray.service import working
from benchmarks.mace.seeds import MOST_QUERIES
from benchmarks.mace.trial import BATCH_ROWS, LIMITS, Queries, flow_of, queries_of
from slackwater.actors.nodes.ray_nodes import RayNodes
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.flow import Dataflow
from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.query_graph import CostCurve
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan

SLICE_NS = 10_000_000
LEAST_ROWS = 5
TIMEOUT_S, LOOK_S = 600.0, 1.0
WITHIN = (0.75, 1.25)
"""How long a pattern may be, by what it is on average: on-off periods are few in a short run."""


TAIL_S = 2.0
"""Longer than the bins of a `LatencySeries`."""


class WorkingCluster(sw.Cluster):
    """A cluster of ours on which stages take a set time for each row.

    Attributes:
        costs_ns: {stage: what a row takes}, of the next flow.
    """

    costs_ns: Mapping[str, float]

    @classmethod
    def of(cls, nodes: int) -> WorkingCluster:
        """Start so many local nodes."""
        return cls(RayNodes.local(nodes))

    def _placed(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None,
        limits: Limits | None,
        tuning: Tuning | None,
    ) -> Plan:
        """Return the plan of a flow whose stages take so long."""
        made = super()._placed(flow, placement=placement, limits=limits, tuning=tuning)
        return working(made, self.costs_ns)


@dataclass(frozen=True, eq=False)
class OnRay:
    """What a run gave: the worst latency of each second of stimulus time.

    Attributes:
        begins_s: shape (bins,), when each begins, seconds from when the sources began.
        width_s: length of each.
        worst_s: shape (bins,), seconds.
        core_shares: how much of a core each slot had of what it wanted, {slot: share}.
        report: of the job.
    """

    begins_s: Floats
    width_s: float
    worst_s: Floats
    core_shares: Mapping[str, float]
    report: JobReport

    def until(self, end_s: float) -> OnRay:
        """Return those bins that are over by some time: what the end of the input closes is not."""
        whole = self.begins_s + self.width_s <= end_s
        return replace(self, begins_s=self.begins_s[whole], worst_s=self.worst_s[whole])


def drawn(seed: int, *, queries: int, nodes: int, scale: float) -> Queries:
    """Draw one arrival pattern for all queries, costs and a placement.

    Args:
        seed: of all of it.
        queries: each has visits of its own, and its part of the rate.
        nodes: how many.
        scale: of the paper's time: of how long periods are, and so of how many events there are.
    """
    rng = np.random.default_rng([seed, queries, nodes])
    sets = parts(MOST_QUERIES)[:queries] if queries > 1 else [None]
    at_s = pattern_s(rng, queries=queries, scale=scale)
    return queries_of(rng, [at_s] * queries, sets=sets, nodes=nodes)


def pattern_s(rng: np.random.Generator, *, queries: int, scale: float) -> Floats:
    """Return when a query's events arrive: on-off periods `scale` times as long as the paper's.

    Then comes a low one, so that no latency of the pattern is among those of the input's end.
    """
    tail_s = np.arange(0.0, TAIL_S, RATE_RATIO * queries / HIGH_RATE)
    count = round(EVENTS * scale / queries)
    mean_s = EVENTS * scale / (HIGH_RATE * 0.2556)
    while True:
        at_s = scale * on_off_s(rng, count, high_rate=scale * HIGH_RATE / queries)
        if WITHIN[0] * mean_s <= at_s[-1] <= WITHIN[1] * mean_s:
            return np.concatenate([at_s, at_s[-1] + tail_s])


def limits_for(costs_ns: Mapping[str, float]) -> Limits:
    """Return those of the simulator, with slices of some 10 ms, and 5 to 25 rows.

    A batch counts as one event: on its way through 14 nodes it is worked on 14 times. They are not
    cut by the CPU that they use, for they sleep.
    """
    rows = round(SLICE_NS / float(np.mean(list(costs_ns.values()))))
    rows = min(max(rows, LEAST_ROWS), BATCH_ROWS)
    return replace(LIMITS, min_slice_rows=rows, max_slice_rows=rows, slice_ns=NS_PER_SECOND)


def measure(cluster: WorkingCluster, queries: Queries) -> OnRay:
    """Run the queries in real time."""
    flow = flow_of(queries, _ignore)
    cluster.costs_ns = queries.costs_ns
    job = cluster.submit(flow, placement=queries.placement, limits=limits_for(queries.costs_ns))
    try:
        start_s = _started_s(job)
        report, shares = waited(job)
    finally:
        job.close()
    check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
    worst: dict[float, float] = {}
    width_s = 1.0
    for sink in report.sinks:
        for found in sink.series.bins():
            width_s = found.width_ns / NS_PER_SECOND
            begins_s = found.start_ns / NS_PER_SECOND - start_s
            worst[begins_s] = max(worst.get(begins_s, 0.0), found.max_ns / NS_PER_SECOND)
    begins = sorted(worst)
    worst_s = np.array([worst[one] for one in begins])
    return OnRay(np.array(begins), width_s, worst_s, shares, report)


def waited(job: sw.Job) -> tuple[JobReport, dict[str, float]]:
    """Return the last report, and what share of a core each slot had when it was last there."""
    shares: dict[str, float] = {}
    until_s = time.monotonic() + TIMEOUT_S
    while True:
        shares.update(core_shares(job.workers()))
        try:
            return job.wait(timeout=LOOK_S), shares
        except TimeoutError:
            if time.monotonic() > until_s:
                raise


def core_shares(pids: Mapping[str, int], *, proc: Path = Path("/proc")) -> dict[str, float]:
    """Return how much of a core each process had of what it wanted, {slot: share}.

    The kernel counts for each thread how long it ran, and how long it was ready to. A process that
    has ended, or a kernel that does not count, is left out.
    """
    shares = {}
    for slot, pid in pids.items():
        ran_ns = waited_ns = 0
        for task in (proc / str(pid) / "task").glob("*/schedstat"):
            try:
                ran, waited, _ = task.read_text(encoding="ascii").split()
            except OSError:  # it ended meanwhile
                continue
            ran_ns += int(ran)
            waited_ns += int(waited)
        if ran_ns:
            shares[slot] = ran_ns / (ran_ns + waited_ns)
    return shares


def _started_s(job: sw.Job) -> float:
    """Return when the sources began, by the clock of the nodes, which is this machine's.

    A report says how long ago that is; the least delayed of some says it best.
    """
    starts: list[float] = []
    while len(starts) < 5:
        elapsed_s = job.report().elapsed_s
        if elapsed_s > 0:
            starts.append(time.time() - elapsed_s)
        time.sleep(0.1)
    return min(starts)


def with_costs(graph: QueryGraph, costs_ns: Mapping[str, float]) -> QueryGraph:
    """Return what a sample showed, with the costs that were set in place of those it showed."""
    operators = []
    for one in graph.operators:
        cost_s = costs_ns[one.name] / NS_PER_SECOND
        operators.append(
            replace(one, cost_s=(cost_s,) * len(one.inputs), curve=_with_cost(one.curve, cost_s))
        )
    return QueryGraph(graph.sources, tuple(operators))


def _with_cost(curve: CostCurve | None, cost_s: float) -> CostCurve | None:
    """Return what comes of rows as it was, each row at the same cost, and nothing else at any."""
    if isinstance(curve, WindowCurve):
        return replace(curve, row_s=cost_s, result_s=0.0)
    if isinstance(curve, JoinCurve):
        return replace(curve, row_s=(cost_s, cost_s), pair_s=0.0)
    return curve


def _ignore(rows: pa.RecordBatch) -> None:
    del rows
