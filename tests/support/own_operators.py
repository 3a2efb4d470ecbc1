"""Flows with `dedupe` and an operator of one's own, and what they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from examples import own_operator
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport
from tests.support.flows import simulated

WHAT = {"bus": "string", "what": "string", "seconds": "float64"}
EXPECTED = [
    {"bus": "7", "what": "stood", "seconds": 40.0},
    {"bus": "12", "what": "stood", "seconds": 30.0},
    {"bus": "7", "what": "lost", "seconds": 60.0},
    {"bus": "12", "what": "lost", "seconds": 60.0},
]


def rows(seed: int, size: int = 600) -> pa.Table:
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 900, size))
    arrival = np.maximum.accumulate(ts + rng.integers(0, 90, size)) * 10**9
    return pa.table(
        {
            "ts": ts,
            "arrival": pa.array(arrival, pa.timestamp("ns")),
            "bus": [str(n) for n in rng.integers(0, 9, size)],
            "speed": rng.choice([0.0, 0.0, 5.0], size),
        }
    )


def flow_of(*, replicas: int = 1, slack: str | None = None, late: bool = False) -> sw.Dataflow:
    flow = sw.Dataflow("own", slack=slack)
    options: dict[str, Any] = {"event_time": "ts", "time_unit": "s", "arrival": "arrival"}
    a, b = (flow.source(n, sw.table(rows(i)), speed=1e3, **options) for i, n in enumerate("ab"))
    once = flow.merge(a, b).dedupe("bus", within="5s", replicas=replicas, name="once")
    stops = once.key_by("bus").process(
        own_operator.Stops, WHAT, within="2m", replicas=replicas, name="stops"
    )
    stops.sink("out", sw.collect_sink())
    once.filter(sw.col("speed") > 0, name="moving").sink("seen", sw.collect_sink())
    if late:
        stops.late().sink("late", sw.collect_sink())
    return flow


def run(flow: sw.Dataflow, **options: Any) -> tuple[Any, JobReport]:
    job, report = simulated(flow, **options)
    assert not imbalances(report)
    assert report.ledger.is_balanced
    return job, report
