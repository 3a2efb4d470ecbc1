"""From a sample to costs, selectivities and curves, and from these to the latency that comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import QueryGraph, Workload, estimate_latency
from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.observed.slices import observed_slices
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.query_graph import FloatArray, arrivals_of
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Stage, plan_stages
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.simulate import LinkModel, MeasuredSlice, NotedCost
from slackwater.runtime.simulate import Simulation as SimulationRun

COSTS = {"rows": 1e6, "few": 2e6, "sums": 3e6, "out": 1e6}
LIMITS = sw.Limits(fuse=False, min_slice_rows=5, max_slice_rows=5, source_gap_ns=1)


def times_s(count: int, per_second: float) -> FloatArray:
    return np.arange(count) / per_second


def flow(count: int, *, per_second: float) -> sw.Dataflow:
    times_ns = (times_s(count, per_second) * 1e9).astype(np.int64)
    rows = pa.table({"ts": times_ns, "v": np.arange(count) % 4})
    made = sw.Dataflow("f")
    source = made.source("rows", sw.table(rows), event_time="ts", time_unit="ns", speed=1.0)
    few = source.filter(sw.col("v") > 0, name="few")
    sums = few.aggregate(window=sw.tumbling("500ms"), n=sw.count(), name="sums")
    sums.sink("out", sw.collect_sink())
    return made


def stages() -> tuple[Stage, ...]:
    return plan_stages(flow(1, per_second=1).graph, fuse=False)


def sample(count: int, *, per_second: float) -> tuple[JobReport, list[MeasuredSlice]]:
    plan = prepare(flow(count, per_second=per_second), ["n"], limits=LIMITS)
    cost = NotedCost(sw.testing.CostModel(per_slice_ns=0, stages=COSTS))
    run = SimulationRun(plan, egress=lambda *_: None, cost=cost, link=LinkModel(delay_ns=0))
    return run.run(), cost.slices


def graph_of(count: int, *, per_second: float) -> QueryGraph:
    report, slices = sample(count, per_second=per_second)
    return observed_graph(
        observed_slices(stages(), {one.name: one for one in report.stages}, slices),
        slice_s=0.002,
        times_s={"rows": times_s(count, per_second)},
    )


def test_costs_and_selectivities_are_those_of_the_sample() -> None:
    graph = graph_of(400, per_second=100)
    rows, few, sums, out = graph.operators
    assert graph.sources == (arrivals_of("rows"),)
    assert (rows.inputs, few.inputs) == ((arrivals_of("rows"),), ("rows",))
    assert [one.cost_s[0] for one in graph.operators] == pytest.approx([0.001, 0.002, 0.003, 0.001])
    assert (rows.selectivity[0], few.selectivity[0]) == (1.0, 0.75)
    assert isinstance(sums.curve, WindowCurve)
    assert sums.curve.keys == pytest.approx(1, abs=0.15)
    assert out.curve is None


def test_what_is_predicted_of_them_is_the_latency_that_comes() -> None:
    """Twice as fast as the node: a backlog grows as long as events come."""
    graph = graph_of(400, per_second=400)
    work = Workload.of(graph, {arrivals_of("rows"): [400.0] * 5}, 1.0)
    found = estimate_latency(graph, work, dict.fromkeys(graph.names, "n"), {"n": 1.0})
    report, _ = sample(2_000, per_second=400)
    worst_s = max(each.max_ns for each in report.sinks[0].series.bins()) / 1e9
    assert worst_s > 3
    assert found.worst_s == pytest.approx(worst_s, rel=0.03)


def test_a_stage_of_which_nothing_is_known_is_named() -> None:
    report, slices = sample(40, per_second=100)
    without = {one.name: one for one in report.stages if one.name != "few"}
    with pytest.raises(SettingError, match="'few' is not in the sample's report"):
        observed_slices(stages(), without, slices)


def stage(name: str, *inputs: str, rows_in: int, rows_out: int, **more: Any) -> StageObservations:
    """A stage whose rows take 1 ms each."""
    rows = more.get("released", [rows_in])
    slices = {"rows": rows, "busy_s": [0.001 * one for one in rows]}
    return StageObservations(
        name=name, inputs=inputs, rows_in=rows_in, rows_out=rows_out, **(slices | more)
    )


def test_a_row_behind_a_gate_costs_as_it_comes_and_as_it_is_let_go() -> None:
    """500 rows come with a slice, 20 go with each: 0.1 ms to take one in, 5 ms to work on it."""
    came = [500 if n % 25 == 0 else 0 for n in range(100)]
    went = [20] * 100
    took_s = [0.001 + 1e-4 * a + 5e-3 * b for a, b in zip(came, went, strict=True)]
    gated = StageObservations(
        name="g",
        inputs=("a",),
        rows_in=2_000,
        rows_out=2_000,
        rows=came,
        released=went,
        busy_s=took_s,
    )
    cost = gated.cost()
    # As each let 20 go, nothing tells what of it is the slice's: a row takes all.
    assert (cost.fixed_s, cost.row_s) == pytest.approx((0, sum(took_s) / 2_000), rel=0.01)
    varied = [*went[:50], *([10] * 50)]
    told = StageObservations(
        name="g",
        inputs=("a",),
        rows_in=2_000,
        rows_out=2_000,
        rows=came,
        released=varied,
        busy_s=[0.001 + 1e-4 * a + 5e-3 * b for a, b in zip(came, varied, strict=True)],
    ).cost()
    assert (told.fixed_s, told.row_s) == pytest.approx((0.001, 0.0051))


def windows(at_s: FloatArray, size_s: float, slide_s: float) -> int:
    """How many sliding windows have an event: counted one by one."""
    begins = np.arange(np.floor((at_s[0] - size_s) / slide_s), np.ceil(at_s[-1] / slide_s) + 1)
    inside = np.searchsorted(at_s, begins * slide_s + size_s) - np.searchsorted(
        at_s, begins * slide_s
    )
    return int((inside > 0).sum())


@given(
    size_s=st.sampled_from([0.5, 2.0, 10.0]),
    lulls_s=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=6),
)
def test_windows_of_one_key_are_seen_to_have_one_whatever_lulls_the_sample_has(
    size_s: float, lulls_s: list[float]
) -> None:
    """The mean rate said 0.94 keys of a bursty sample, and so 9 % too few results of a query."""
    bursts = [np.arange(0.0, 5.0, 0.01) + 5 * n + sum(lulls_s[:n]) for n in range(len(lulls_s))]
    at_s = np.concatenate(bursts)
    results = windows(at_s, size_s, 0.1)
    source = stage("a", rows_in=len(at_s), rows_out=len(at_s))
    sums = stage("w", "a", rows_in=len(at_s), rows_out=results, window_s=(size_s, 0.1))
    out = stage("out", "w", rows_in=results, rows_out=results)
    graph = observed_graph([source, sums, out], slice_s=0.002, times_s={"a": at_s})
    curve = graph.operators[1].curve
    assert isinstance(curve, WindowCurve)
    assert curve.keys == pytest.approx(1.0, rel=0.03)


def joined(rng: np.random.Generator, rate: float, keys: int) -> tuple[FloatArray, FloatArray, int]:
    """Two streams of 50 s over some keys, and their pairs within 2 s."""
    left, right = (np.sort(rng.uniform(0, 50, round(50 * rate))) for _ in range(2))
    one, other = (rng.integers(0, keys, len(each)) for each in (left, right))
    near = np.abs(left[:, None] - right[None, :]) <= 2.0
    return left, right, int((near & (one[:, None] == other[None, :])).sum())


@pytest.mark.parametrize("seed", range(5))
def test_a_stream_that_is_three_times_as_dense_has_nine_times_the_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right, pairs = joined(rng, 10, 20)
    counts = len(left), len(right), pairs
    graph = observed_graph(
        [
            stage("a", rows_in=counts[0], rows_out=counts[0]),
            stage("b", rows_in=counts[1], rows_out=counts[1]),
            stage(
                "j",
                "a",
                "b",
                rows_in=counts[0] + counts[1],
                rows_out=pairs,
                within_s=2.0,
                rows=[100, 100, 100],
                busy_s=[0.2, 0.3, 0.4],  # 1 ms a row, and 1 ms a pair compared
                pairs=[100, 200, 300],
            ),
            stage("out", "j", rows_in=pairs, rows_out=pairs),
        ],
        slice_s=0.002,
        times_s={"a": left, "b": right},
    )
    curve = graph.operators[2].curve
    assert isinstance(curve, JoinCurve)
    assert curve.pair_s > 0
    _, _, more = joined(rng, 30, 20)
    arrivals = {arrivals_of(name): np.full(50, 30.0) for name in "ab"}
    denser = Workload.of(graph.at_speed(1.0), arrivals, 1.0).arrivals["j"].sum()
    assert denser == pytest.approx(more, rel=0.1)
    faster = Workload.of(graph.at_speed(None), arrivals, 1.0).arrivals["j"].sum()
    assert faster == pytest.approx(3 * pairs, rel=0.001)  # as dense, three times as fast
    tripled = Workload.of(graph.at_speed(3.0), arrivals, 1.0).arrivals["j"].sum()
    assert tripled == pytest.approx(3 * pairs, rel=0.1)


@pytest.mark.parametrize("width_s", [0.1, 1.0])
def test_windows_that_are_joined_give_a_pair_each_whatever_the_subintervals(width_s: float) -> None:
    """Two windows that slide by 50 ms, joined by the ends that they share."""
    at_s = np.arange(0.0, 20.0, 0.01)
    count = windows(at_s, 10.0, 0.05)
    window = {"window_s": (10.0, 0.05)}
    graph = observed_graph(
        [
            stage("a", rows_in=len(at_s), rows_out=len(at_s)),
            stage("men", "a", rows_in=len(at_s), rows_out=count, **window),
            stage("all", "a", rows_in=len(at_s), rows_out=count, **window),
            stage("both", "men", "all", rows_in=2 * count, rows_out=count, within_s=0.001),
            stage("out", "both", rows_in=count, rows_out=count),
        ],
        slice_s=0.002,
        times_s={"a": at_s},
    )
    arrivals = {arrivals_of("a"): np.full(round(30 / width_s), 100 * width_s)}
    results = Workload.of(graph, arrivals, width_s).arrivals["both"]
    late = results[round(15 / width_s) :]
    assert late.sum() == pytest.approx(15 / 0.05, rel=0.01)


def test_a_speed_that_is_none_is_refused() -> None:
    with pytest.raises(SettingError, match=r"speed=0: event time goes forward.*above 0"):
        graph_of(40, per_second=10).at_speed(0)
