"""The join on 1 to 8 operators behind one gate: events and comparisons ([ssg] Fig. 9, 10).

Each row is compared with some thousand others and few pairs match, so that comparing is nearly all
there is to do. The replicas share all (`share="all"`): each stores its share of the rows, and
compares every row with those. On local nodes with 1 and 2 operators, and from the costs that were
measured there in the simulator up to 8.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.workload import Ints, Mapped, write
from benchmarks.frame import Claim, Options, Result, Spread, check
from benchmarks.jobs import collected, finished

RATE, KEYS, WITHIN_MS = 2_000, 2, 2_000  # events a second of each stream: 4,000 comparisons a row
VALUES = 10_000
OVER = int(0.9999 * VALUES * VALUES)  # of a product: about five pairs of 100 million
NODES, QUICK_NODES = (1, 2, 4, 8), (1, 8)
PAPER = "near linear to 8 nodes (Fig. 9, 10; no figures are printed)"
JOIN = "pairs"


@dataclass(frozen=True)
class Sample:
    """The events, in memory and on disk, and what the join must find in them."""

    inputs: tuple[Mapped, Mapped]
    events: int
    comparisons: int
    results: list[tuple[int, ...]]


@dataclass(frozen=True)
class Costs:
    """What work costs, as measured: in the simulator it costs as much."""

    per_slice_ns: float
    per_row_ns: Mapping[str, float]  # {stage, of two operators: ns}
    per_comparison_ns: float

    def share_of_comparisons(self, report: sw.JobReport) -> float:
        """Return which part of a run's busy time, of all stages, its comparisons took."""
        rows_ns = {**self.per_row_ns, JOIN: self._join_ns}
        busy_ns = sum(stage.service_ns for stage in report.stages)
        compared_ns = sum(
            stage.service_ns
            - stage.batches * self.per_slice_ns
            - stage.rows_in * rows_ns[stage.name]
            for stage in report.stages
            if stage.kind == "join"
        )
        return compared_ns / busy_ns

    @property
    def _join_ns(self) -> float:
        return self.per_row_ns[f"{JOIN}.gate"] + self.per_row_ns[f"{JOIN}.1"]

    def model(self, operators: int) -> sw.testing.CostModel:
        """Return the model of so many operators; the gate costs more, the more it shares out to."""
        gate, join = f"{JOIN}.gate", f"{JOIN}.1"
        stages = {**self.per_row_ns, gate: self.per_row_ns[gate] * max(1, operators / 2)}
        stages |= {f"{JOIN}.{n + 1}": self.per_row_ns[join] for n in range(operators)}
        stages[JOIN] = self._join_ns
        return sw.testing.CostModel(
            per_slice_ns=self.per_slice_ns,
            stages=stages,
            per_comparison_ns=self.per_comparison_ns,
        )


def run(options: Options) -> Result:
    """Measure 1 and 2 operators, then simulate up to 8."""
    seconds, repetitions = (4, 2) if options.quick else (30, 5)
    result = Result(
        f"{2 * RATE * seconds:,} events, {2 * RATE * WITHIN_MS // 1_000 // KEYS:,} comparisons a "
        f"row, {repetitions} repetitions after one to warm up",
        ["operators", "where", "events/s", "M comparisons/s", "beside 1", "CPU in comparisons"],
    )
    with tempfile.TemporaryDirectory() as folder:
        sample = drawn(options.seed, seconds=seconds, folder=Path(folder))
        with sw.Cluster.local(nodes=2) as cluster:
            reports = measure(cluster, sample, repetitions)
            costs = measured_costs(cluster, sample, reports[1][-1])
        _report_real(result, sample, reports, costs)
        _report_simulated(result, sample, costs, QUICK_NODES if options.quick else NODES)
    result.figures["comparisons"] = sample.comparisons
    result.notes += [
        "real: the gate, the sources and the first operator share node-1's slot, the second has "
        "node-2's; both nodes are on this machine and share its cores",
        "simulated: a slot for each source, for the gate and for each operator, with the costs "
        "measured in this run; no result of it was timed",
        f"[ssg] {PAPER}, on 8 nodes of 8 cores, 2 × 1,000 events/s, share by thread",
        "every run's pairs and number of comparisons were compared with the offline query's",
    ]
    return result


def drawn(seed: int, *, seconds: int, folder: Path) -> Sample:
    """Return two streams and the pairs that a join of them must find, each by its numbers."""
    rng = np.random.default_rng(seed)
    rows = RATE * seconds
    sides = []
    for _ in range(2):
        times = np.sort(rng.integers(0, seconds * 1_000, rows))
        keys = rng.integers(0, KEYS, rows, dtype=np.int32)
        sides.append((times, keys, rng.integers(0, VALUES, rows), np.arange(rows)))
    tables = [pa.table(dict(zip(("ts", "key", "v", "n"), s, strict=True))) for s in sides]
    inputs = tuple(write(table, folder / str(n)) for n, table in enumerate(tables))
    comparisons, results = _offline(*sides)
    return Sample((inputs[0], inputs[1]), 2 * rows, comparisons, results)


def _offline(left: Any, right: Any) -> tuple[int, list[tuple[int, ...]]]:
    """Return how many pairs are close with equal keys, and (n, n_right) of those that match."""
    compared, found = 0, []
    for key in range(KEYS):
        (ts, _, v, n), (other_ts, _, other_v, other_n) = (
            tuple(column[side[1] == key] for column in side) for side in (left, right)
        )
        start = other_ts.searchsorted(ts - WITHIN_MS, "left")
        stop = other_ts.searchsorted(ts + WITHIN_MS, "right")
        compared += int((stop - start).sum())
        for row, (first, last) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
            hits: Ints = (other_v[first:last] * v[row] > OVER).nonzero()[0] + first
            found += [(int(n[row]), int(other_n[hit])) for hit in hits]
    return compared, sorted(found)


def flow_of(sample: Sample, operators: int, *, within_ms: int = WITHIN_MS) -> sw.Dataflow:
    """Return the join on so many operators, sink `out`."""
    flow = sw.Dataflow("ssg-scale")
    left, right = (
        flow.source(name, source, event_time="ts", time_unit="ms")
        for name, source in zip(("left", "right"), sample.inputs, strict=True)
    )
    pairs = left.join(
        right,
        on="key",
        within=f"{within_ms}ms",
        where=sw.col("v") * sw.col("v_right") > OVER,
        replicas=operators,
        share="all",
        name=JOIN,
    )
    pairs.select("n", "n_right").sink("out", sw.collect_sink())
    return flow


def measure(cluster: sw.Cluster, sample: Sample, repetitions: int) -> dict[int, list[sw.JobReport]]:
    """Run 1 and 2 operators in turn on local nodes, some times after once to warm up."""
    reports: dict[int, list[sw.JobReport]] = {1: [], 2: []}
    for _ in range(repetitions + 1):
        for operators, own in reports.items():
            placement = {"*": "node-1"} | ({f"{JOIN}.2": "node-2"} if operators == 2 else {})
            job = cluster.submit(flow_of(sample, operators), placement=placement)
            own.append(_finished(job, sample))
    return {operators: own[1:] for operators, own in reports.items()}


def _finished(job: Any, sample: Sample) -> sw.JobReport:
    """Wait for a run, and check it."""
    report, rows = collected(job)
    found = sorted(zip(rows["n"].to_pylist(), rows["n_right"].to_pylist(), strict=True))
    check(found == sample.results, f"{len(found)} pairs, and {len(sample.results)} offline")
    compared = comparisons_of(report)
    check(compared == sample.comparisons, f"{compared} comparisons, not {sample.comparisons}")
    return report


def comparisons_of(report: sw.JobReport) -> int:
    """Return how many pairs a run compared."""
    return sum(stage.comparisons for stage in report.stages)


def measured_costs(cluster: sw.Cluster, sample: Sample, heavy: sw.JobReport) -> Costs:
    """Return what slices, rows and comparisons cost, from runs that hardly compare.

    Two of them, whose slices differ in length, tell what a slice costs and what a row does; what
    the join of the heavy run took beyond that is for its comparisons.
    """
    light: list[dict[str, Any]] = []
    for rows in (10_000, 100):
        limits = sw.Limits(max_slice_rows=rows, min_slice_rows=min(rows, 1_000))
        placement = {"*": "node-1", f"{JOIN}.2": "node-2"}
        job = cluster.submit(flow_of(sample, 2, within_ms=1), placement=placement, limits=limits)
        report = finished(job)
        light.append({stage.name: stage for stage in report.stages})
    long, short = light
    joins = [f"{JOIN}.gate", f"{JOIN}.1", f"{JOIN}.2"]
    slices = sum(short[name].batches - long[name].batches for name in joins)
    took_ns = sum(short[name].service_ns - long[name].service_ns for name in joins)
    per_slice_ns = max(0.0, took_ns / max(slices, 1))
    per_row_ns = {
        name: max(1.0, (stage.service_ns - stage.batches * per_slice_ns) / max(stage.rows_in, 1))
        for name, stage in long.items()
    }
    join = next(stage for stage in heavy.stages if stage.name == JOIN)
    rest_ns = join.batches * per_slice_ns + join.rows_in * (
        per_row_ns[f"{JOIN}.gate"] + per_row_ns[f"{JOIN}.1"]
    )
    return Costs(per_slice_ns, per_row_ns, (join.service_ns - rest_ns) / join.comparisons)


def _report_real(
    result: Result, sample: Sample, reports: Mapping[int, list[sw.JobReport]], costs: Costs
) -> None:
    rates = {n: Spread.of([sample.events / r.elapsed_s for r in own]) for n, own in reports.items()}
    for operators, own in reports.items():
        compared = Spread.of([sample.comparisons / r.elapsed_s / 1e6 for r in own])
        share = costs.share_of_comparisons(own[-1])
        ratio = rates[operators].median / rates[1].median
        result.rows.append([operators, "real", rates[operators], compared, ratio, f"{share:.1%}"])
        result.figures[f"real, {operators}"] = {
            "events_per_s": rates[operators],
            "million_comparisons_per_s": compared,
            "cpu_in_comparisons": share,
            "busy_s": {s.name: round(s.service_ns / 1e9, 3) for s in own[-1].stages},
        }
        result.claims.append(
            Claim(f"{operators} operators: share of the CPU in comparisons", share, ">=", 0.9)
        )
    ratio = rates[2].median / rates[1].median
    result.claims.append(Claim("2 operators on 2 slots: × the events/s of 1", ratio, ">=", 1.7))


def _report_simulated(result: Result, sample: Sample, costs: Costs, nodes: tuple[int, ...]) -> None:
    rates: dict[int, float] = {}
    for operators in nodes:
        report = simulated(sample, operators, costs)
        rates[operators] = sample.events / report.elapsed_s
        compared = sample.comparisons / report.elapsed_s / 1e6
        ratio = rates[operators] / rates[1]
        result.rows.append([operators, "simulated", rates[operators], compared, ratio, ""])
        result.figures[f"simulated, {operators}"] = {
            "events_per_s": rates[operators],
            "million_comparisons_per_s": compared,
            "efficiency": ratio / operators,
        }
    result.figures["costs"] = {
        "per_slice_ns": costs.per_slice_ns,
        "per_row_ns": dict(costs.per_row_ns),
        "per_comparison_ns": costs.per_comparison_ns,
    }
    most = max(nodes)
    efficiency = rates[most] / rates[1] / most
    result.claims.append(Claim(f"simulated, {most} operators: efficiency", efficiency, ">=", 0.9))


def simulated(sample: Sample, operators: int, costs: Costs) -> sw.JobReport:
    """Run it in virtual time, each stage in a slot of its own; a lone operator has its gate."""
    host = sw.Simulation(nodes=operators + 3, seed=1, cost=costs.model(operators))
    first = {"left": "node-1", "right": "node-2", "out": "node-3"}
    if operators == 1:
        return _finished(
            host.submit(flow_of(sample, 1), placement={**first, JOIN: "node-4"}), sample
        )
    joins = {f"{JOIN}.{n + 1}": f"node-{n + 4}" for n in range(operators)}
    placement = {**first, f"{JOIN}.gate": "node-3", **joins}
    return _finished(host.submit(flow_of(sample, operators), placement=placement), sample)
