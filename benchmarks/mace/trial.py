"""One trial of `mace-*`: queries on nodes, measured in the simulator, and predicted from a sample.

```
first 8 % ─▶ simulator ─▶ report ─▶ costs, selectivities ─┐
all arrivals, counted by subinterval ─────────────────────┴▶ Mace, held up │ beside
all events ─▶ simulator ─▶ latency of each result, by stimulus time ───────┘
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.mace.load import Floats, Ints, arriving, genders, ticked
from benchmarks.mace.query import DOMAIN, SLIDE_S, STAGES, add_query, chosen
from runtime.config import Limits
from runtime.estimate import LatencyEstimate, QueryGraph, Workload, estimate_latency
from runtime.estimate.query_graph import arrivals_of
from runtime.estimate.sample_statistics import query_graph_of
from runtime.measure.report import JobReport
from runtime.model import NS_PER_SECOND, Batch
from runtime.plan.plan import Plan
from runtime.prepare import prepare
from runtime.simulate import CostModel, LinkModel, Simulation

SAMPLE = 0.08
LOAD = 0.7
BATCH_ROWS = 25
SPREAD_ROWS = 25
"""A sample that is spread has runs of so many visits that follow each other."""


LIMITS = Limits(
    fuse=False,
    credit_rows=10_000_000,
    gate_rows=10_000_000,
    min_slice_rows=BATCH_ROWS,
    max_slice_rows=BATCH_ROWS,
    source_gap_ns=1,
)
"""Each step a stage, queues without bound, slices of 25 events at most: as near to the paper's
model, an event at a time, as a run of minutes allows."""
PER_SLICE_NS = 1_000.0


@dataclass(frozen=True, eq=False)
class Queries:
    """What runs.

    Attributes:
        arrivals_s: for each query shape (events,), when they arrive.
        tables: for each query its visits (see `arriving`).
        costs_ns: {stage: what an event costs it}.
        placement: {stage: node}.
        domain: that the queries are about.
        genders: {panelist: male or female}.
    """

    arrivals_s: Sequence[Floats]
    tables: Sequence[pa.Table]
    costs_ns: Mapping[str, float]
    placement: Mapping[str, str]
    domain: str = DOMAIN
    genders: Mapping[str, str] = field(default_factory=genders)

    @property
    def nodes(self) -> list[str]:
        """Those in use."""
        return sorted(set(self.placement.values()))

    @property
    def duration_s(self) -> float:
        """Until the last event."""
        return max(float(arrival_s[-1]) for arrival_s in self.arrivals_s)


@dataclass(frozen=True, eq=False)
class Measured:
    """What a run gave: each result's stimulus and latency, shape (results,), seconds."""

    stimulus_s: Floats
    latency_s: Floats
    report: JobReport
    plan: Plan

    def by_subinterval(self, width_s: float, count: int) -> Floats:
        """Return Lat_p of [mace] Def. 4, shape (count,); NaN where no result is."""
        found = np.full(count, np.nan)
        places = np.minimum((self.stimulus_s / width_s).astype(np.int64), count - 1)
        np.fmax.at(found, places, self.latency_s)
        return found


def queries_of(
    rng: np.random.Generator,
    arrivals_s: Sequence[Floats],
    *,
    sets: Sequence[pa.Table | None],
    nodes: int = 1,
    domain: str = DOMAIN,
    load: float = LOAD,
) -> Queries:
    """Draw costs, and a placement on several nodes; scaled to the load of the busiest node."""
    arrivals_s = [ticked(at_s) for at_s in arrivals_s]
    tables = [arriving(at_s, of=of) for at_s, of in zip(arrivals_s, sets, strict=True)]
    rows: dict[str, float] = {}
    for number, table in enumerate(tables, start=1):
        rows |= {f"{number}.{name}": n for name, n in rows_seen(table, domain).items()}
    weights = rng.uniform(0.2, 1.0, len(rows))
    names = [f"node-{n + 1}" for n in range(nodes)]
    places = _random_places(rng, len(rows), nodes)
    placement = {stage: names[at] for stage, at in zip(rows, places, strict=True)}
    work = dict.fromkeys(names, 0.0)
    for stage, weight in zip(rows, weights, strict=True):
        work[placement[stage]] += weight * rows[stage]
    duration_s = max(float(at_s[-1]) for at_s in arrivals_s)
    scale = load * duration_s * NS_PER_SECOND / max(work.values())
    costs = {stage: float(scale * weight) for stage, weight in zip(rows, weights, strict=True)}
    return Queries(arrivals_s, tables, costs, placement, domain)


def _random_places(rng: np.random.Generator, count: int, nodes: int) -> list[int]:
    """Return for each operator its node, drawn until none is left without."""
    while True:
        places = rng.integers(0, nodes, count)
        if len(set(places.tolist())) == nodes:
            return [int(place) for place in places]


def rows_seen(table: pa.Table, domain: str) -> dict[str, float]:
    """Return {stage: how many rows it will get}, counted without running anything of ours."""
    within, is_of = chosen(table, domain)
    n, n_within, n_of = table.num_rows, within.sum(), is_of.sum()
    times = table["ts"]
    windows = (times[-1].as_py() - times[0].as_py()) / NS_PER_SECOND / SLIDE_S
    counts = [n] * 5 + [n_within] * 2 + [n_of] * 3 + [2 * windows] + [windows] * 3
    return dict(zip(STAGES, map(float, counts), strict=True))


def first(queries: Queries, share: float) -> Queries:
    """Return what a sample of the first events of each query runs."""
    counts = [_of(share, len(at_s)) for at_s in queries.arrivals_s]
    return replace(
        queries,
        arrivals_s=[at_s[:n] for at_s, n in zip(queries.arrivals_s, counts, strict=True)],
        tables=[table.slice(0, n) for table, n in zip(queries.tables, counts, strict=True)],
    )


def spread(queries: Queries, share: float) -> Queries:
    """Return the same with as many events that come from all over the data, in short runs."""
    sample = first(queries, share)
    tables = []
    for table, at_s in zip(queries.tables, sample.arrivals_s, strict=True):
        taken = table.take(pa.array(_places(len(at_s), of=table.num_rows)))
        tables.append(taken.set_column(0, "ts", table["ts"].slice(0, len(at_s))).combine_chunks())
    return replace(sample, tables=tables)


def _of(share: float, count: int) -> int:
    return max(round(share * count), 1)


def _places(count: int, *, of: int) -> Ints:
    runs = -(-count // SPREAD_ROWS)
    starts = np.arange(runs) * of // runs
    places = (starts[:, None] + np.arange(min(SPREAD_ROWS, of // runs))).reshape(-1)
    return np.asarray(np.resize(places, count))


def simulate(queries: Queries, *, seed: int = 0) -> Measured:
    """Run the queries in the simulator."""
    flow = sw.Dataflow("mace")
    for number, table in enumerate(queries.tables, start=1):
        add_query(
            flow,
            table,
            genders=queries.genders,
            sink=sw.callback_sink(print),
            prefix=str(number),
            domain=queries.domain,
        )
    plan = prepare(flow, queries.nodes, placement=queries.placement, limits=LIMITS)
    stimuli: list[Floats] = []
    latencies: list[Floats] = []

    ends_ns = {
        f"{number}.out": table["ts"][-1].as_py()
        for number, table in enumerate(queries.tables, start=1)
    }

    def leaves(sink: str, batch: Batch | None, is_end: bool) -> None:
        del is_end
        # Windows that only the end of the input closes are no part of the load, nor is what has
        # to wait for all of them in the last batch.
        if batch is not None and batch.event_time_ns[-1] <= ends_ns[sink]:
            at_s = batch.stimulus_time_ns / NS_PER_SECOND
            stimuli.append(at_s)
            latencies.append(run.now_ns / NS_PER_SECOND - at_s)

    run = Simulation(
        plan,
        egress=leaves,
        seed=seed,
        cost=CostModel(per_slice_ns=PER_SLICE_NS, stages=queries.costs_ns),
        link=LinkModel(delay_ns=0),
    )
    report = run.run()
    none = [np.zeros(0)]
    return Measured(
        np.concatenate(stimuli or none), np.concatenate(latencies or none), report, plan
    )


def statistics_of(sample: Queries, *, seed: int = 0) -> QueryGraph:
    """Return what a run over a sample shows: costs and selectivities."""
    ran = simulate(sample, seed=seed)
    spans = {
        f"{number}.visits": float(at_s[-1] - at_s[0])
        for number, at_s in enumerate(sample.arrivals_s, start=1)
    }
    return query_graph_of(
        ran.plan.stages, {stage.name: stage for stage in ran.report.stages}, span_s=spans
    )


def predict(queries: Queries, graph: QueryGraph, *, width_s: float) -> LatencyEstimate:
    """Return what the latency will be, from statistics and from the arrivals of all."""
    edges = np.arange(0.0, queries.duration_s + 2 * width_s, width_s)
    arrivals = {
        arrivals_of(f"{number}.visits"): np.histogram(at_s, edges)[0]
        for number, at_s in enumerate(queries.arrivals_s, start=1)
    }
    work = Workload.of(graph, arrivals, width_s)
    return estimate_latency(graph, work, queries.placement, dict.fromkeys(queries.nodes, 1.0))
