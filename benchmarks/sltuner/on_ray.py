"""The four flows with a deadline on Ray, in real time, a minute each, beside the simulator.

The same flow, streams, policy and calibration samples on both. What differs: on Ray a slack is set
some 10 ms after the second is over, slots share this machine's two cores, and a sink or a source
that should look at a time looks when its process is given a core.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, check
from benchmarks.jobs import finished
from benchmarks.sltuner import chain, drift, warsaw, zipf
from benchmarks.sltuner.deadline import (
    LIMITS,
    OURS,
    OVER_AT_MOST,
    Experiment,
    Outcome,
    calibrated,
    named,
)
from benchmarks.sltuner.deadline import run as simulate
from slackwater.actors.tuning.sample_history import SampleHistory
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import NS_PER_SECOND

SECONDS, QUICK_SECONDS = 70, 30
CALIBRATION_S, QUICK_CALIBRATION_S = 200, 100
WARM_S = 10
DRIFT_DEADLINE_S = 10
"""In a minute buses fall 20 s behind."""
WARSAW_DEADLINE_S = 30
NODES = 4


@dataclass
class SlowSink:
    """A sink that takes as long for a result as the simulator's cost model says.

    Attributes:
        per_row_s: what a result takes.
        load: (ns since the run began) -> how many times as long.
        first_s: in which second of the run the first result comes, as the simulator has it.
    """

    per_row_s: float
    load: Callable[[int], float]
    first_s: float
    _began_ns: int | None = None

    def __call__(self, rows: pa.RecordBatch) -> None:
        """Take so long."""
        now_ns = time.time_ns()
        if self._began_ns is None:
            self._began_ns = now_ns - int(self.first_s * NS_PER_SECOND)
        time.sleep(self.per_row_s * self.load(now_ns - self._began_ns) * rows.num_rows)


def run(options: Options) -> Result:
    """Run each flow once on Ray, and the same in the simulator."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    before_s = QUICK_CALIBRATION_S if options.quick else CALIBRATION_S
    makers: dict[str, Callable[[int], Experiment]] = {
        "zipf": zipf.experiment,
        "drift": lambda s: drift.experiment(s, DRIFT_DEADLINE_S),
        "chain": chain.experiment,
        "warsaw": lambda s: warsaw.experiment(s, WARSAW_DEADLINE_S),
    }
    if options.quick:
        makers = {"zipf": makers["zipf"]}
    result = Result(
        f"{seconds} s each, from second {WARM_S} on, {NODES} simulated nodes on one machine",
        ["flow", "deadline, s", "where", "over", "largest, s", "slack-ready", "late", "restarts"],
    )
    with sw.Cluster.local(nodes=NODES) as cluster:
        for name, experiment in makers.items():
            one = experiment(seconds)
            samples = calibrated(experiment(before_s), seed=options.seed)
            virtual = simulate(one, named(OURS, history=samples), seed=options.seed)
            first_s = float(np.flatnonzero(virtual.detected)[0])
            report = _on_ray(cluster, one, samples, first_s=first_s, seed=options.seed)
            _compare(result, name, virtual, report)
    return result


def _on_ray(
    cluster: sw.Cluster,
    one: Experiment,
    samples: Sequence[StageSample],
    *,
    first_s: float,
    seed: int,
) -> TuningReport:
    sink = sw.callback_sink(_ignore)
    if "jams" in one.cost.stages:
        slow = SlowSink(one.cost.stages["jams"] / 1e9, one.cost.load["jams"], first_s)
        sink = sw.callback_sink(slow)
    with tempfile.TemporaryDirectory(prefix="slackwater-history-") as folder:
        SampleHistory(Path(folder), FlowGraph.of(one.plan(seed)), most=0).save(
            samples, job="calibration"
        )
        job = cluster.submit(
            one.build(seed, sink),
            placement=one.placement,
            limits=LIMITS,
            tuning=sw.Tuning(history=folder),
        )
        report = finished(job)
    assert report.tuning is not None, "a flow with a deadline is tuned"
    check(not report.tuning.errors, f"the policy went wrong: {report.tuning.last_error}")
    return report.tuning


def _compare(result: Result, name: str, virtual: Outcome, real: TuningReport) -> None:
    spans = [span for span in real.series.spans if span.second >= WARM_S]
    latency_s = np.array([span.latency_ns / NS_PER_SECOND for span in spans])
    over = float(np.mean(latency_s > virtual.deadline_s))
    slack_ready = sum(gate.slack_ready for span in spans for gate in span.gates.values())
    late = sum(gate.late for span in spans for gate in span.gates.values())
    judged = virtual.latency_s[WARM_S:]
    judged = judged[~np.isnan(judged)]
    simulated_ready = int(virtual.slack_ready[WARM_S:].sum())
    simulated_over = float(np.mean(judged > virtual.deadline_s))
    real_row = [f"{over:.1%}", float(latency_s.max()), slack_ready, late, real.restarts]
    virtual_late = virtual.late + virtual.late_dropped
    virtual_row = [f"{simulated_over:.1%}", float(judged.max()), simulated_ready, virtual_late, "-"]
    result.rows += [
        [name, virtual.deadline_s, "Ray", *real_row],
        [name, virtual.deadline_s, "simulated", *virtual_row],
    ]
    result.figures[name] = {
        "over_on_ray": over,
        "largest_on_ray_s": float(latency_s.max()),
        "slack_ready_on_ray": slack_ready,
        "slack_ready_simulated": simulated_ready,
    }
    result.claims.append(Claim(f"{name}: share of seconds over on Ray", over, "<=", OVER_AT_MOST))


def _ignore(rows: pa.RecordBatch) -> None:
    del rows
