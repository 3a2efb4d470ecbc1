"""A join with replicas, and an aggregate behind it: what is found, and that it is balanced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.measure.ledger import imbalances
from tests.support.flows import simulated

ROWS = 500
SPAN_MS = 2_500


def rows(seed: int) -> pa.Table:
    """Rows of 12 keys, many at one time, that arrive up to 60 ms late."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, SPAN_MS // 5, ROWS)) * 5
    arrival = np.maximum.accumulate(ts + rng.integers(0, 60, ROWS)) * 1_000_000
    arrival[0] = 0
    return pa.table(
        {
            "ts": ts,
            "arrival": pa.array(arrival, pa.timestamp("ns")),
            "line": [f"line {n}" for n in rng.integers(0, 12, ROWS)],
            "v": rng.integers(0, 1_000, ROWS),
        }
    )


def paired(
    *, replicas: Any = 1, share: Any = "keys", slack: str | None = None, speed: float | None = None
) -> tuple[sw.Dataflow, sw.Stream]:
    """Return a flow and the pairs of its join, on which another filter waits as well."""
    flow = sw.Dataflow("pairs")
    options: dict[str, Any] = {"event_time": "ts", "time_unit": "ms"}
    if speed is not None:
        options |= {"arrival": "arrival", "speed": speed}
    left, right = (flow.source(name, sw.table(rows(n)), **options) for n, name in enumerate("lr"))
    pairs = left.join(
        right,
        on="line",
        within="60ms",
        where=sw.col("v") < sw.col("v_right"),
        slack=slack,
        replicas=replicas,
        share=share,
        name="pairs",
    )
    return flow, pairs


def simulate(flow: sw.Dataflow, **options: Any) -> Any:
    job, report = simulated(flow, **options)
    assert imbalances(report) == []
    return job, report


def results(
    flow: sw.Dataflow, pairs: sw.Stream, *, seed: int = 1, **options: Any
) -> tuple[pa.Table, Any]:
    pairs.sink("out", sw.collect_sink())
    job, report = simulate(flow, seed=seed, **options)
    return job.result("out"), report


def counts(pairs: sw.Stream, *, replicas: int, slack: str | None = None) -> sw.Stream:
    return pairs.aggregate(
        by="line",
        window=sw.sliding("100ms", "50ms"),
        n=sw.count(),
        most=sw.max("v_right"),
        slack=slack,
        replicas=replicas,
        name="counts",
    )
