"""Twenty ordinary flows, predicted from 4,000 rows and then run: in the simulator, and on Ray.

```
flow ──▶ sample of 4,000 rows ──▶ worst latency, CPU of a row      beside
     ──▶ virtual time, each slice as long as it takes here ──▶ worst latency
     ──▶ two local Ray nodes, in real time ──▶ worst latency, CPU of a row
```

What counts is the q-error, max(predicted / measured, measured / predicted). In the simulator
time is what slices occupy a core or wait, so that who else uses this machine does not matter. On
Ray it does: what share of a core each slot had of what it wanted stands beside.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, number
from benchmarks.mace.on_ray.trial import waited
from benchmarks.mace.survey_flows import FLOWS, Survey, survey_flow
from benchmarks.side_by_side import side_by_side
from slackwater.actors.kernel.occupied import OccupiedClock
from slackwater.actors.nodes.ray_nodes import RayNodes
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.simulate import LinkModel, MeasuredCost, Simulation
from slackwater.sampling import sample_flow

SECONDS, QUICK_SECONDS = 8.0, 4.0
QUICK = ("map", "filter map exponential", "wait now and then", "dearer later", "rarer first")
SAMPLE_ROWS = 4_000
"""Of a flow whose rows vary, 1,000 say what a row costs to a tenth; a burst that is 1.4 times what
a core can makes a third of that."""
WIDTH_S = 0.05
NODES = 2
BELOW = 0.7
"""Of a core: who ran below that is not to be refused."""
WORST_P50, WORST_P95, RAY_P95 = 1.15, 1.5, 2.0


@dataclass(frozen=True, kw_only=True)
class Found:
    """A flow, predicted and run.

    Attributes:
        name: of it.
        where: it ran.
        predicted_s: worst latency.
        measured_s: the same as it was.
        row_s: CPU seconds of a row of the sources, predicted.
        took_s: the same as it was.
        load: of the busiest slot, as it was.
        most_s: the most that the worst latency was said to be.
        is_refused: whether `admission="reject"` would have refused it at its mean rate.
        shares: what share of a core slots had of what they wanted; none: it did not matter.
    """

    name: str
    where: str
    predicted_s: float
    measured_s: float
    row_s: float
    took_s: float
    load: float
    most_s: float
    is_refused: bool
    shares: tuple[float, ...] = ()

    @property
    def worst_q(self) -> float:
        """The q-error of the worst latency."""
        return _q(self.predicted_s, self.measured_s)

    @property
    def row_q(self) -> float:
        """The q-error of what a row costs."""
        return _q(self.row_s, self.took_s)


def run(options: Options) -> Result:
    """Predict and run each flow."""
    names = QUICK if options.quick else tuple(FLOWS)
    seconds = QUICK_SECONDS if options.quick else SECONDS
    tasks = [partial(_simulated, name, options.seed, seconds) for name in names]
    found = side_by_side(tasks, what="mace-survey")
    if not options.quick:
        with sw.Cluster(RayNodes.local(NODES)) as cluster:
            found += [_on_ray(cluster, name, options.seed, seconds) for name in names]
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    result = Result(
        f"{len(names)} of {len(FLOWS)} flows, {seconds:g} s of bursts each, samples of "
        f"{SAMPLE_ROWS:,} rows, w {WIDTH_S:g} s, {NODES} nodes; load of this machine "
        f"over 1, 5, 15 min: {load}",
        ["flow", "where", "worst s", "predicted", "q", "row ms", "predicted", "q", "load", "had"],
        rows=[_row(one) for one in found],
        figures={one.where: {} for one in found},
    )
    for one in found:
        result.figures[one.where][one.name] = {"worst_q": one.worst_q, "row_q": one.row_q}
    within = sum(one.measured_s <= one.most_s for one in found)
    result.notes.append(f"no later than they were said to be at most: {within} of {len(found)}")
    result.claims = _claims(found, is_whole=not options.quick)
    return result


def _claims(found: Sequence[Found], *, is_whole: bool) -> list[Claim]:
    simulated = [one for one in found if one.where == "simulator"]
    ray = [one for one in found if one.where == "Ray"]
    worst = [one.worst_q for one in simulated]
    refused = sum(one.is_refused and one.load < BELOW for one in found)
    claims = [
        Claim("worst latency simulated, q-error p50", _at(worst, 50), "<=", WORST_P50),
        Claim("worst latency simulated, q-error p95", _at(worst, 95), "<=", WORST_P95),
        Claim("refused though they ran below 0.7 of a core, flows", refused, "<=", 0),
    ]
    if is_whole:
        row = _at([one.row_q for one in ray], 50)
        last = _at([one.worst_q for one in ray], 95)
        claims += [
            Claim("CPU of a row on Ray, q-error p50", row, "<=", WORST_P50),
            Claim("worst latency on Ray, q-error p95", last, "<=", RAY_P95),
        ]
    return claims


def _simulated(name: str, seed: int, seconds: float) -> Found:
    """Predict a flow, and run it in virtual time with the slice costs measured here."""
    survey = survey_flow(name, seed=seed, seconds=seconds)
    host = sw.Simulation(NODES)
    made = _predicted(host, survey)
    plan = host.plan(survey.flow, placement=made.plan.slots)
    with closing(OccupiedClock()) as occupied_ns:
        cost = MeasuredCost(occupied_ns)
        report = Simulation(
            plan, egress=lambda *_: None, cost=cost, link=LinkModel(delay_ns=0)
        ).run()
    return _found(survey, made, report, where="simulator", refused=_is_refused(host, survey, made))


def _on_ray(cluster: sw.Cluster, name: str, seed: int, seconds: float) -> Found:
    survey = survey_flow(name, seed=seed, seconds=seconds)
    made = _predicted(cluster, survey)
    job = cluster.submit(survey.flow, placement=made.plan.slots)
    report, shares = waited(job)
    refused = _is_refused(cluster, survey, made)
    return _found(survey, made, report, where="Ray", refused=refused, shares=shares.values())


def _predicted(host: sw.Simulation | sw.Cluster, survey: Survey) -> Prediction:
    return host.predict(
        survey.flow,
        survey.trace(WIDTH_S),
        sample=sample_flow(survey.flow, rows=SAMPLE_ROWS),
        horizon=survey.seconds,
        width=WIDTH_S,
        link=LinkModel(delay_ns=0),
    )


def _is_refused(host: sw.Simulation | sw.Cluster, survey: Survey, made: Prediction) -> bool:
    """Whether a flow would be refused that comes at its mean rate, by the same sample."""
    rates = {name: len(at_s) / survey.seconds for name, at_s in survey.times_s.items()}
    plan = host.plan(survey.flow, rates=rates, sample=made.sample, admission="reject")
    return plan.verdict.refusal is not None


def _found(
    survey: Survey,
    made: Prediction,
    report: JobReport,
    *,
    where: str,
    refused: bool,
    shares: Iterable[float] = (),
) -> Found:
    busy_s: dict[str, float] = {}
    for stage in report.stages:
        busy_s[stage.slot] = busy_s.get(stage.slot, 0.0) + stage.service_ns / NS_PER_SECOND
    work_s = float(made.work.load_s.sum())
    return Found(
        name=survey.name,
        where=where,
        predicted_s=made.worst_s,
        measured_s=max(one.latency.max_ns for one in report.sinks) / NS_PER_SECOND,
        row_s=work_s / survey.rows,
        took_s=sum(busy_s.values()) / survey.rows,
        load=max(busy_s.values()) / survey.seconds,
        most_s=made.bounds_s[1],
        is_refused=refused,
        shares=tuple(shares),
    )


def _row(one: Found) -> list[object]:
    return [
        one.name,
        one.where,
        number(one.measured_s),
        number(one.predicted_s),
        f"{one.worst_q:.2f}",
        f"{one.took_s * 1e3:.3f}",
        f"{one.row_s * 1e3:.3f}",
        f"{one.row_q:.2f}",
        f"{one.load:.0%}" + (" refused" if one.is_refused else ""),
        f"{min(one.shares):.0%} of a core" if one.shares else "",
    ]


def _q(predicted: float, measured: float) -> float:
    ratio = max(predicted, 1e-9) / max(measured, 1e-9)
    return max(ratio, 1 / ratio)


def _at(values: Sequence[float], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if values else None
