"""From a sample's report to costs and selectivities, and from these to the latency that comes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from runtime.errors import SettingError
from runtime.estimate import QueryGraph, Workload, estimate_latency
from runtime.estimate.curves import WindowCurve
from runtime.estimate.query_graph import arrivals_of
from runtime.estimate.sample_statistics import query_graph_of
from runtime.measure.report import JobReport
from runtime.plan.plan import Stage, plan_stages

COSTS = {"rows": 1e6, "few": 2e6, "sums": 3e6, "out": 1e6}
LIMITS = sw.Limits(fuse=False, min_slice_rows=5, max_slice_rows=5, source_gap_ns=1)


def flow(count: int, *, per_second: float) -> sw.Dataflow:
    times_ns = (np.arange(count) * 1e9 / per_second).astype(np.int64)
    rows = pa.table({"ts": times_ns, "v": np.arange(count) % 4})
    made = sw.Dataflow("f")
    source = made.source("rows", sw.table(rows), event_time="ts", time_unit="ns", speed=1.0)
    few = source.filter(sw.col("v") > 0, name="few")
    sums = few.aggregate(window=sw.tumbling("500ms"), n=sw.count(), name="sums")
    sums.sink("out", sw.collect_sink())
    return made


def ran(count: int, *, per_second: float) -> JobReport:
    cost = sw.CostModel(per_slice_ns=0, stages=COSTS)
    with sw.Simulation(nodes=1, cost=cost) as node:
        return node.submit(flow(count, per_second=per_second), limits=LIMITS).wait()


def stages() -> tuple[Stage, ...]:
    return plan_stages(flow(1, per_second=1).graph, fuse=False)


def graph_of(report: JobReport, span_s: float) -> QueryGraph:
    reports = {stage.name: stage for stage in report.stages}
    return query_graph_of(stages(), reports, span_s={"rows": span_s})


def test_costs_and_selectivities_are_those_of_the_sample() -> None:
    graph = graph_of(ran(400, per_second=100), 4.0)
    rows, few, sums, out = graph.operators
    assert graph.sources == (arrivals_of("rows"),)
    assert (rows.inputs, few.inputs) == ((arrivals_of("rows"),), ("rows",))
    assert (rows.cost_s[0], rows.selectivity[0]) == pytest.approx((1e-3, 1.0))
    assert few.selectivity[0] == 0.75
    assert few.cost_s[0] == pytest.approx(2e-3, rel=0.02)
    assert isinstance(sums.curve, WindowCurve)
    assert sums.curve.keys == pytest.approx(1, abs=0.15)
    assert out.cost_s[0] > 0


def test_what_is_predicted_of_them_is_the_latency_that_comes() -> None:
    """Twice as fast as the node: a backlog grows as long as events come."""
    graph = graph_of(ran(400, per_second=400), 1.0)
    work = Workload.of(graph, {arrivals_of("rows"): [400.0] * 5}, 1.0)
    found = estimate_latency(graph, work, dict.fromkeys(graph.names, "n"), {"n": 1.0})
    measured = ran(2_000, per_second=400).sinks[0].series.bins()
    worst_s = max(each.max_ns for each in measured) / 1e9
    assert worst_s > 3
    assert found.worst_s == pytest.approx(worst_s, rel=0.03)


def test_a_stage_of_which_nothing_is_known_is_named() -> None:
    report = ran(40, per_second=100)
    with pytest.raises(SettingError, match="'few' is not in the sample's report"):
        query_graph_of(
            stages(),
            {stage.name: stage for stage in report.stages if stage.name != "few"},
            span_s={"rows": 1.0},
        )
    with pytest.raises(SettingError, match="'sums' got no event of the sample"):
        graph_of(ran(1, per_second=100), 1.0)
