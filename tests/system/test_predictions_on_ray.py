"""A job on Ray that carries its prediction, and a flow that is not let in beside it."""

from __future__ import annotations

import os

import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError
from slackwater.runtime.measure.prediction import PredictionReport
from tests.support.known_work import times
from tests.support.waiting import until

pytestmark = pytest.mark.ray

LIMIT_S = 60.0


def flow_of(name: str) -> sw.Dataflow:
    """A source, a gate, a sink: a thousand rows a second, for as long as anybody waits."""
    flow = sw.Dataflow(name, deadline="20s")
    table = times(300_000)
    rows = flow.source("numbers", sw.table(table), event_time="ts", arrival="ts", speed=1.0)
    rows.merge(name="gate", slack="0s").sink("out", sw.collect_sink())
    return flow


def prediction_of(job: sw.Job) -> PredictionReport:
    made = job.report().prediction
    assert made is not None
    return made


def has_estimates(job: sw.Job) -> bool:
    return sum(one.estimated_ns is not None for one in prediction_of(job).spans) >= 2


def test_a_job_is_held_against_its_prediction_and_nobody_comes_in_who_would_break_its_deadline(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)  # fewer than two flows have slots
    job = cluster.submit(flow_of("first"), rates=1_000, admission="reject")
    try:
        with pytest.raises(FlowError) as refused:
            cluster.submit(flow_of("second"), rates=1e12, admission="reject")
        assert "flow 'second' is refused: its backlog grows for ever" in str(refused.value)
        broken = "flow 'first' (deadline 20.00 s) then has a backlog that grows for ever"
        assert broken in str(refused.value)
        until(lambda: has_estimates(job), within_s=LIMIT_S, what="two seconds to be estimated")
    finally:
        job.stop()
    report = job.report()
    assert report.ledger.is_balanced
    made = prediction_of(job)
    assert (made.errors, made.is_unbounded) == (0, False)
    assert made.measured_worst_ns == report.sinks[0].latency.max_ns
    assert 0 < sum(one.events for one in made.spans) <= report.ledger.entered
    seen = [one for one in made.spans if one.estimated_ns is not None]
    assert all(one.planned_ns is not None for one in seen)
    assert set(made.seen_load) == {stage.slot for stage in report.stages}
