"""The flows of `cores` on up to 64 slots of a node, in the simulator, with costs measured on Ray.

No result of it was timed. What a slice, a row, a comparison and a replica more behind a gate cost
is taken from runs in one slot, where nothing else of the job competes for the core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Result
from benchmarks.jobs import collected, finished

SLOTS = (1, 2, 4, 8, 16, 32, 64)
MANY = 16  # replicas, to see what each of them more costs the gate
LONG, SHORT = 10_000, 500  # rows of a slice at most
ONE_SLOT = {"*": "node-1/1"}
WORTH_TELLING = 0.05  # of the time
ROLES = {"source": "source", "gate": "the gate", "sink": "the sink"}


@dataclass(frozen=True)
class Work:
    """What runs: a flow with so many replicas, and what must come out.

    Attributes:
        name: for people.
        events: that its sources read.
        build: the flow with so many replicas, its one sink a collect sink.
        light: the same, hardly comparing; `build` if nothing is compared.
        verify: raises if a run's results are not those of the offline query.
        operator: the step that has the replicas.
    """

    name: str
    events: int
    build: Callable[[int], sw.Dataflow]
    light: Callable[[int], sw.Dataflow]
    verify: Callable[[pa.Table], None]
    operator: str


@dataclass(frozen=True)
class Cost:
    """What a stage's work costs: each slice, and each row in it."""

    per_slice_ns: float
    per_row_ns: float


@dataclass(frozen=True)
class Costs:
    """What work costs, as measured.

    Attributes:
        of: {what: its cost}: a source or sink by its name, the operator as "whole" (with its own
            gate, in one slot), and its parts as "gate" and "replica".
        per_comparison_ns: of a join; 0 for an aggregate.
        per_replica_ns: what a row costs the gate more for each replica beyond two.
    """

    of: Mapping[str, Cost]
    per_comparison_ns: float
    per_replica_ns: float

    def model(self, stages: Mapping[str, str], replicas: int) -> sw.testing.CostModel:
        """Return the model of a flow.

        Args:
            stages: {stage: key of `of`}.
            replicas: behind its gate.
        """
        gate = self.of["gate"]
        more_ns = max(replicas - 2, 0) * self.per_replica_ns
        known = {**self.of, "gate": Cost(gate.per_slice_ns, gate.per_row_ns + more_ns)}
        return sw.testing.CostModel(
            stages={stage: known[key].per_row_ns for stage, key in stages.items()},
            slices={stage: known[key].per_slice_ns for stage, key in stages.items()},
            per_comparison_ns=self.per_comparison_ns,
        )


def measured_costs(
    cluster: sw.Cluster, work: Work, *, alone: sw.JobReport, parts: sw.JobReport
) -> Costs:
    """Return the costs of a flow.

    Args:
        cluster: to run it on in one slot, hardly comparing.
        work: the flow.
        alone: a report of it in one slot, without replicas.
        parts: a report of it with two replicas, all in one slot.
    """
    if work.light is work.build:
        long, whole = parts, alone
    else:
        long, whole = (_light(cluster, work, replicas, rows=LONG) for replicas in (2, 1))
    short, cut = (_light(cluster, work, replicas, rows=SHORT) for replicas in (2, 1))
    many = _light(cluster, work, MANY, rows=LONG)
    operator = next(s.kind for s in parts.stages if s.kind in ("join", "aggregate"))
    costs = {
        stage.name: _cost(long, short, [stage.name])
        for stage in parts.stages
        if stage.kind == "source"
    }
    for key, kind in (("gate", "gate"), ("replica", operator)):
        costs[key] = _cost(long, short, [s.name for s in parts.stages if s.kind == kind])
    costs["whole"] = _cost(whole, cut, [work.operator])
    # A light run of a join has other results than the flow, so its sink is that of the flow.
    costs |= {s.name: _cost(parts, parts, [s.name]) for s in parts.stages if s.kind == "sink"}
    heavy = [stage for stage in parts.stages if stage.kind == operator]
    compared = sum(stage.comparisons for stage in heavy)
    replica, gate = costs["replica"], costs["gate"]
    rest_ns = sum(s.batches * replica.per_slice_ns + s.rows_in * replica.per_row_ns for s in heavy)
    spent_ns = sum(s.service_ns for s in heavy) - rest_ns
    (dealt,) = (stage for stage in many.stages if stage.kind == "gate")
    dealing_ns = (dealt.service_ns - dealt.batches * gate.per_slice_ns) / dealt.rows_in
    return Costs(
        costs,
        max(0.0, spent_ns / compared) if compared else 0.0,
        max(0.0, dealing_ns - gate.per_row_ns) / (MANY - 2),
    )


def _cost(long: sw.JobReport, short: sw.JobReport, names: Sequence[str]) -> Cost:
    """Return what stages cost, from two runs whose slices differ in length.

    Where they do not, all is put down to the slices.
    """
    slices, rows, took_ns = [], [], []
    for report in (long, short):
        own = [stage for stage in report.stages if stage.name in names]
        slices.append(sum(stage.batches for stage in own))
        rows.append(sum(stage.rows_in for stage in own))
        took_ns.append(sum(stage.service_ns for stage in own))
    if slices[1] < 1.5 * slices[0]:
        return Cost(took_ns[0] / max(slices[0], 1), 0.0)
    per_slice_ns = max(0.0, (took_ns[1] - took_ns[0]) / (slices[1] - slices[0]))
    per_slice_ns = min(per_slice_ns, took_ns[0] / max(slices[0], 1))
    return Cost(per_slice_ns, (took_ns[0] - slices[0] * per_slice_ns) / max(rows[0], 1))


def _light(cluster: sw.Cluster, work: Work, replicas: int, *, rows: int) -> sw.JobReport:
    limits = sw.Limits(max_slice_rows=rows, min_slice_rows=min(rows, 1_000))
    return finished(cluster.submit(work.light(replicas), placement=ONE_SLOT, limits=limits))


def report_simulated(result: Result, work: Work, costs: Costs) -> None:
    """Simulate a flow on each number of slots, and say how it goes on and what limits it."""
    rates: dict[int, float] = {}
    figures = {}
    for slots in SLOTS:
        report = _simulated(work, slots, costs)
        rates[slots] = work.events / report.elapsed_s / 1e6
        limit = _limit(report)
        told = limit
        doubled = None
        if slots > 1:
            doubled = rates[slots] / rates[slots // 2] / 2
            told = f"this doubling {doubled:.0%} of twice; {limit}"
        times = rates[slots] / rates[1]
        result.rows.append([work.name, slots, "simulated", rates[slots], times, told])
        figures[str(slots)] = {
            "million_per_s": rates[slots],
            "times_one_slot": times,
            "efficiency_of_doubling": doubled,
            "efficiency": times / slots,
            "limit": limit,
        }
    result.figures[f"{work.name}, simulated"] = {
        "slots": figures,
        "costs": {
            **{what: [one.per_slice_ns, one.per_row_ns] for what, one in costs.of.items()},
            "per_comparison_ns": costs.per_comparison_ns,
            "gate_per_replica_ns": costs.per_replica_ns,
        },
    }


def _simulated(work: Work, slots: int, costs: Costs) -> sw.JobReport:
    flow = work.build(slots)
    keys = {}
    for stage in sw.Simulation(nodes=1, cores=slots).plan(flow).stages:
        if stage.subject.step != work.operator:
            keys[stage.name] = stage.name
        else:
            keys[stage.name] = "replica" if stage.replica else str(stage.subject.part or "whole")
    with sw.Simulation(nodes=1, cores=slots, seed=1, cost=costs.model(keys, slots)) as host:
        report, rows = collected(host.submit(flow))
    work.verify(rows)
    return report


def _limit(report: sw.JobReport) -> str:
    """Return what the busiest slot was busy with, as shares of the run's time."""
    busy: dict[str, dict[str, float]] = {}  # {slot: {what: part of the time}}
    for stage in report.stages:
        own = busy.setdefault(stage.slot, {})
        what = ROLES.get(stage.kind, "replicas" if len(report.stages) > 4 else stage.kind)
        part = stage.service_ns / 1e9 / report.elapsed_s
        own[what] = own.get(what, 0.0) + part
    slot, parts = max(busy.items(), key=lambda one: sum(one[1].values()))
    told = [
        f"{what} {part:.0%}"
        for what, part in sorted(parts.items(), key=lambda one: -one[1])
        if part >= WORTH_TELLING
    ]
    return f"{slot} busy with {', '.join(told)}"
