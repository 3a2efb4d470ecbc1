"""Statistics of one plan, carried over to another: worked numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.rewriting import rewritten
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import Workload
from slackwater.runtime.foresight.carried import StepStatistics, carried
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.foresight.step_curves import step_curves
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.prepare.prepare import prepare
from slackwater.sampling import sample_flow

TABLE = pa.table({"ts": pa.array([1, 2], pa.timestamp("ns")), "k": [1, 2], "x": [0.5, 1.5]})


def stocks() -> sw.Dataflow:
    """100 ticks, 40 of them falling, 90 pairs; a third good on the left, of that a third right."""
    flow = sw.Dataflow("stocks")
    ticks = flow.source("ticks", sw.table(TABLE), event_time="ts")
    falling = ticks.filter(sw.col("x") > 0, name="falling")
    pairs = falling.join(falling, on="k", within="1s", name="pairs")
    good = pairs.filter(sw.col("x") > 1, name="good.1").filter(sw.col("x_right") > 1, name="good.2")
    good.sink("out", sw.collect_sink())
    return flow


ROWS_IN = {"ticks": 100, "falling": 100, "pairs": 80, "good.1": 90, "good.2": 30, "out": 10}
ROWS_OUT = {"ticks": 100, "falling": 40, "pairs": 90, "good.1": 30, "good.2": 10, "out": 10}
ROW_S = {"ticks": 0.0, "falling": 1.0, "pairs": 2.0, "good.1": 10.0, "good.2": 10.0, "out": 0.0}


def rows_of(*rewrites: str, sample: StepStatistics | None = None) -> dict[str, float]:
    """Return the load of each step of a rewritten flow, for 100 ticks."""
    flow = stocks()
    known = sample or statistics(flow)
    atoms = {"good.1": ("good.1", "good.2")} if any("share" in one for one in rewrites) else {}
    graph = carried(known, rewritten(flow, *rewrites).steps, atoms)
    work = Workload.of(graph, {arrivals_of("ticks"): np.array([100.0])}, 1.0)
    return dict(zip(graph.names, map(float, work.load_s.sum(axis=1)), strict=True))


def statistics(flow: sw.Dataflow) -> StepStatistics:
    as_floats = [{k: float(v) for k, v in each.items()} for each in (ROWS_IN, ROWS_OUT, ROW_S)]
    return StepStatistics(flow.steps, *as_floats)


BEFORE = ("good.1 before pairs", "good.2 before pairs")


def test_a_plan_that_is_not_rewritten_has_the_load_of_the_sample() -> None:
    found = rows_of()
    assert found == pytest.approx({name: ROWS_IN[name] * ROW_S[name] for name in ROWS_IN})


def test_filters_before_a_join_take_their_share_of_a_side_each_and_of_the_pairs_both() -> None:
    found = rows_of(*BEFORE)
    assert found["good.1"] == found["good.2"] == pytest.approx(40 * 10.0)
    assert found["pairs"] == pytest.approx(2 * 40 / 3 * 2.0)
    assert found["out"] == pytest.approx(0.0)


def test_filters_that_are_shared_are_asked_once_and_still_take_both_shares_of_pairs() -> None:
    flow = stocks()
    shared = rewritten(flow, *BEFORE, "share good.1, good.2", "good.1 before falling")
    atoms = {"good.1": ("good.1", "good.2")}
    graph = carried(statistics(flow), shared.steps, atoms)
    work = Workload.of(graph, {arrivals_of("ticks"): np.array([100.0])}, 1.0)
    out = {name: float(rows.sum()) for name, rows in work.arrivals.items()}
    assert (out["good.1"], out["falling"]) == (pytest.approx(100 / 3), pytest.approx(40 / 3))
    assert out["pairs"] == pytest.approx(90 / 9)
    load = rows_of(*BEFORE, "share good.1, good.2", "good.1 before falling")
    assert load["good.1"] == pytest.approx(100 * 10.0)
    assert load["falling"] == pytest.approx(100 / 3 * 1.0)


def test_what_filters_do_is_known_from_where_they_see_more_rows() -> None:
    flow = stocks()
    up = rewritten(flow, *BEFORE, "share good.1, good.2", "good.1 before falling")
    there = StepStatistics(
        up.steps,
        dict.fromkeys(up.steps, 100.0),
        {**dict.fromkeys(up.steps, 50.0), "good.1": 20.0},
        dict.fromkeys(up.steps, 7.0),
    )
    known = statistics(flow).with_filters_of(there, {"good.1": ("good.1", "good.2")})
    assert (known.share("good.1"), known.share("good.2")) == (0.2, 0.2)
    assert known.row_s["good.1"] == 7.0
    assert (known.share("falling"), known.row_s["falling"]) == (0.4, 1.0)  # no more rows there


def test_statistics_without_a_step_are_refused() -> None:
    flow = stocks()
    with pytest.raises(SettingError, match="has no statistics of ticks"):
        StepStatistics(flow.steps, {}, {}, {})
    assert isinstance(flow.steps["ticks"], SourceStep)


def counted(replicas: int, *, others: int = 400) -> sw.Dataflow:
    """Pairs of two sides, counts of them by key, and a filter of few keys behind."""
    rng = np.random.default_rng(1)
    flow = sw.Dataflow("counted")
    sides = []
    for name, many in (("a", 400), ("b", others)):
        at_ms = np.sort(rng.integers(0, 10_000, many))
        ts, keys = pa.array(at_ms, pa.timestamp("ms")), rng.integers(0, 20, many)
        table = pa.table({"ts": ts, "k": keys, name: np.arange(many)})
        sides.append(flow.source(name, sw.table(table), event_time="ts", speed=1))
    pairs = sides[0].join(sides[1], on="k", within="500ms", name="pairs", replicas=replicas)
    counts = pairs.key_by("k").aggregate(
        window=sw.tumbling("1s"), n=sw.count(), name="counts", replicas=replicas
    )
    counts.filter(sw.col("k") < 5, name="few").sink("out", sw.collect_sink())
    return flow


def made_of(flow: sw.Dataflow, *rewrites: str, times: float) -> tuple[Workload, Workload]:
    """Return the work of the stages of a sample, and of the steps of a rewritten plan, with curves.

    At so many times the density of the sample.
    """
    limits = sw.Limits(fuse=False)
    sample = sample_flow(flow, limits=limits)
    stages = prepare(flow, ["here"], limits=limits).stages
    known = StepStatistics.of(flow.steps, stages, sample.stages, slice_s=0.002)
    graph = sample.graph.at_speed(1.0)
    steps = rewritten(flow, *rewrites).steps
    plan = carried(known, steps, {}, curves=step_curves(stages, graph))
    rows = {name: count / 100 * times for name, count in sample.rows.items()}  # in 10 s
    arrivals = {arrivals_of(name): np.full(100, count) for name, count in rows.items()}
    return Workload.of(graph, arrivals, 0.1), Workload.of(plan, arrivals, 0.1)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_plan_with_curves_makes_of_a_denser_stream_what_its_stages_make(replicas: int) -> None:
    flow = counted(replicas)
    pairs = []
    for times in (1.0, 5.0):
        stages, steps = made_of(flow, times=times)
        pairs.append(float(steps.arrivals["pairs"].sum()))
        for name in ("pairs", "counts", "out"):
            parts = [one for one in stages.arrivals if one.split(".")[0] == name]
            parts = [one for one in parts if not one.endswith(".gate")]
            put_out = sum(float(stages.arrivals[one].sum()) for one in parts)
            assert float(steps.arrivals[name].sum()) == pytest.approx(put_out, rel=0.05)
        assert steps.load_s.sum() == pytest.approx(stages.load_s.sum(), rel=0.1)
    assert pairs[1] == pytest.approx(25 * pairs[0])


@pytest.mark.parametrize("replicas", [1, 2])
def test_of_a_join_with_one_large_side_as_many_pairs_are_carried_over(replicas: int) -> None:
    stages, steps = made_of(counted(replicas, others=40), times=1.0)
    parts = [name for name in stages.arrivals if name in ("pairs", "pairs.1", "pairs.2")]
    put_out = sum(float(stages.arrivals[name].sum()) for name in parts)
    assert put_out > 50
    assert float(steps.arrivals["pairs"].sum()) == pytest.approx(put_out, rel=0.05)


@pytest.mark.parametrize("replicas", [1, 2])
def test_of_a_stream_that_is_joined_with_itself_each_side_counts_once(replicas: int) -> None:
    """As in the docs' own example: both sides come of one stage."""
    rng = np.random.default_rng(1)
    at_ms = np.sort(rng.integers(0, 10_000, 400))
    columns = {"ts": pa.array(at_ms, pa.timestamp("ms")), "k": rng.integers(0, 20, 400)}
    flow = sw.Dataflow("itself")
    ticks = flow.source("ticks", sw.table(pa.table(columns)), event_time="ts", speed=1)
    falling = ticks.filter(sw.col("k") < 15, name="falling")
    pairs = falling.join(falling, on="k", within="500ms", name="pairs", replicas=replicas)
    pairs.filter(sw.col("k") < 5, name="good").sink("out", sw.collect_sink())
    for times in (1.0, 3.0):
        stages, steps = made_of(flow, times=times)
        put_out = float(stages.arrivals["good"].sum())
        assert float(steps.arrivals["good"].sum()) == pytest.approx(put_out, rel=0.05)
        assert steps.load_s.sum() == pytest.approx(stages.load_s.sum(), rel=0.1)


def test_a_filter_of_keys_before_a_window_leaves_results_for_its_keys_alone() -> None:
    _, behind = made_of(counted(1), times=20.0)
    _, before = made_of(counted(1), "few before counts", times=20.0)
    # Each window has rows of all keys, wherever the others go.
    assert float(before.arrivals["counts"].sum()) == pytest.approx(
        float(behind.arrivals["few"].sum()), rel=0.02
    )
