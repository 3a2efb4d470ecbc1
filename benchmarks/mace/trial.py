"""One trial of `mace-*`: queries on nodes, measured in the simulator, and predicted from a sample.

```
8 % ─▶ simulator ─▶ slices ─▶ costs, selectivities, curves ─┐
all arrivals, counted by subinterval ───────────────────────┴▶ Mace, held up │ beside
all events ─▶ simulator ─▶ latency of each result, by stimulus time ─────────┘
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.mace.drifting import Stretches, with_drift
from benchmarks.mace.load import Floats, Ints, arriving, genders, ticked
from benchmarks.mace.query import DOMAIN, SLIDE_S, STAGES, add_query, chosen
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate, QueryGraph, Workload, estimate_latency
from slackwater.runtime.foresight.observed.slices import observed_slices
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND, Batch
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.simulate import CostModel, LinkModel, MeasuredCost, NotedCost, Simulation

SAMPLE = 0.08
LOAD = 0.7
BATCH_ROWS = 25
STRETCH_ROWS = 20
"""Of a sample from all over the data, so many rows stand for a stretch of time with selectivities
of its own: shares drift by more than the few per cent that an error of the load may have."""

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

    @property
    def ended_s(self) -> float:
        """Until the last event of the query that ends first."""
        return min(float(arrival_s[-1]) for arrival_s in self.arrivals_s)


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


def spread(
    queries: Queries, share: float, *, seed: int = 0
) -> tuple[Queries, dict[str, Stretches]]:
    """Return the same with as many events from all over the data, and {source: its stretches}.

    One is drawn of every so many: visits that follow each other are of one person on one site, and
    tell little more than one. Arrivals are those of the first, so that windows see what they will.
    """
    sample = first(queries, share)
    tables, divided = [], {}
    rng = np.random.default_rng([seed, 8])
    for number, (table, at_s) in enumerate(zip(queries.tables, queries.arrivals_s, strict=True), 1):
        places = one_of_each(rng, _of(share, len(at_s)), of=len(at_s))
        count = len(places)
        taken = table.take(pa.array(places))
        tables.append(taken.set_column(0, "ts", table["ts"].slice(0, count)).combine_chunks())
        rows = stretch_rows(count)
        divided[f"{number}.visits"] = Stretches(rows.tolist(), at_s[places[rows]].tolist())
    return replace(sample, tables=tables), divided


def one_of_each(rng: np.random.Generator, count: int, *, of: int) -> Ints:
    """Return which events a sample has: one, by chance, of every `of / count`; ascending."""
    return np.asarray(((np.arange(count) + rng.random(count)) * of / count).astype(np.int64))


def stretch_rows(count: int) -> Ints:
    """Return how many of a sample's rows there are before each of its stretches."""
    return np.arange(0, count, STRETCH_ROWS)


def _of(share: float, count: int) -> int:
    return max(round(share * count), 1)


def simulate(queries: Queries, *, seed: int = 0) -> Measured:
    """Run the queries in the simulator."""
    return _run(queries, _cost(queries), seed=seed)


def _cost(queries: Queries) -> CostModel:
    return CostModel(per_slice_ns=PER_SLICE_NS, stages=queries.costs_ns)


class Leaving:
    """Takes what leaves: each result's stimulus and latency."""

    def __init__(self) -> None:
        self._stimuli: list[Floats] = [np.zeros(0)]
        self._latencies: list[Floats] = [np.zeros(0)]

    def take(self, batch: Batch, now_ns: int) -> None:
        """Take results that leave now."""
        at_s = batch.stimulus_time_ns / NS_PER_SECOND
        self._stimuli.append(at_s)
        self._latencies.append(now_ns / NS_PER_SECOND - at_s)

    def seconds(self) -> tuple[Floats, Floats]:
        """Return (stimuli, latencies), shape (results,) each, in the order in which they left."""
        return np.concatenate(self._stimuli), np.concatenate(self._latencies)


def flow_of(queries: Queries, take: Callable[[pa.RecordBatch], None]) -> sw.Dataflow:
    """Return the flow of all queries, whose results a function takes."""
    flow = sw.Dataflow("mace")
    for number, table in enumerate(queries.tables, start=1):
        add_query(
            flow,
            table,
            genders=queries.genders,
            sink=sw.callback_sink(take),
            prefix=str(number),
            domain=queries.domain,
        )
    return flow


def _run(queries: Queries, cost: CostModel | MeasuredCost, *, seed: int) -> Measured:
    flow = flow_of(queries, print)
    plan = prepare(flow, queries.nodes, placement=queries.placement, limits=LIMITS)
    left = Leaving()

    def leaves(sink: str, batch: Batch | None, is_end: bool) -> None:
        del sink, is_end
        if batch is not None:
            left.take(batch, run.now_ns)

    run = Simulation(plan, egress=leaves, seed=seed, cost=cost, link=LinkModel(delay_ns=0))
    report = run.run()
    stimulus_s, latency_s = left.seconds()
    # Where a source ends it closes windows of 10 s at once: no part of the load that is predicted,
    # which is that of a stream that goes on. What has a later stimulus waits for that.
    counts = stimulus_s < queries.ended_s
    return Measured(stimulus_s[counts], latency_s[counts], report, plan)


def statistics_of(
    sample: Queries, *, seed: int = 0, divided: Mapping[str, Stretches] | None = None
) -> QueryGraph:
    """Return what a run over a sample shows: costs, selectivities, curves of windows and joins.

    Args:
        sample: what is run.
        seed: of the simulator.
        divided: {source: its stretches, of which each has selectivities of its own}.
    """
    cost = NotedCost(_cost(sample))
    ran = _run(sample, cost, seed=seed)
    reports = {stage.name: stage for stage in ran.report.stages}
    times_s = {
        f"{number}.visits": table["ts"].to_numpy() / NS_PER_SECOND
        for number, table in enumerate(sample.tables, start=1)
    }
    stages = observed_slices(ran.plan.stages, reports, cost.slices)
    if unknown := [stage.name for stage in stages if not stage.rows_in]:
        raise SettingError(f"stage {unknown[0]!r} got no event of the sample; take a larger one")
    slice_s = LIMITS.slice_ns / NS_PER_SECOND
    graph = observed_graph(stages, slice_s=slice_s, times_s=times_s)
    return with_drift(graph, stages, divided or {})


def spread_statistics(queries: Queries, share: float, *, seed: int = 0) -> QueryGraph:
    """Return what events from all over the data show, selectivities by stretches of time."""
    sample, divided = spread(queries, share, seed=seed)
    return statistics_of(sample, seed=seed, divided=divided)


def first_statistics(queries: Queries, share: float, *, seed: int = 0) -> QueryGraph:
    """Return what the first events show."""
    return statistics_of(first(queries, share), seed=seed)


def predict(queries: Queries, graph: QueryGraph, *, width_s: float) -> LatencyEstimate:
    """Return what the latency will be, from statistics and from the arrivals of all."""
    edges = np.arange(0.0, queries.duration_s + 2 * width_s, width_s)
    arrivals = {
        arrivals_of(f"{number}.visits"): np.histogram(at_s, edges)[0]
        for number, at_s in enumerate(queries.arrivals_s, start=1)
    }
    work = Workload.of(graph, arrivals, width_s)
    return estimate_latency(graph, work, queries.placement, dict.fromkeys(queries.nodes, 1.0))
