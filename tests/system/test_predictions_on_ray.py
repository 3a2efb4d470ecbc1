"""A job on Ray that carries its prediction, and a flow that is not let in beside it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from runtime.errors import FlowError
from tests.support.known_work import times

pytestmark = pytest.mark.ray

LIMIT_S = 60.0
SECONDS = 4


def flow_of(name: str, *, speed: float | None) -> sw.Dataflow:
    """A source, a gate, a sink: a thousand rows a second."""
    flow = sw.Dataflow(name, deadline="20s")
    table = times(SECONDS * 1_000)
    rows = flow.source("numbers", sw.table(table), event_time="ts", arrival="ts", speed=speed)
    rows.merge(name="gate", slack="0s").sink("out", sw.collect_sink())
    return flow


def test_a_job_is_held_against_its_prediction_and_nobody_comes_in_who_would_break_its_deadline(
    cluster: sw.Cluster,
) -> None:
    job = cluster.submit(flow_of("first", speed=1.0), rates=1_000, admission="reject")
    with pytest.raises(FlowError) as refused:
        cluster.submit(flow_of("second", speed=None), rates=1e9, admission="reject")
    assert "flow 'second' is refused: it falls behind for ever" in str(refused.value)
    assert "flow 'first' (deadline 20.00 s) then falls behind for ever" in str(refused.value)

    report = job.wait(timeout=LIMIT_S)
    assert report.ledger.is_balanced
    assert pa.compute.sum(job.result("out")["n"]).as_py() == np.arange(SECONDS * 1_000).sum()
    made = report.prediction
    assert made is not None
    assert (made.errors, made.is_unbounded) == (0, False)
    assert made.measured_worst_ns == report.sinks[0].latency.max_ns
    heard = sum(one.events for one in made.spans)
    assert (SECONDS - 2) * 1_000 <= heard <= SECONDS * 1_000
    seen = [one for one in made.spans if one.estimated_ns is not None]
    assert len(seen) >= SECONDS - 2
    assert all(one.planned_ns is not None for one in seen)
    assert set(made.seen_load) == set(report.nodes)
