"""Branch and bound finds the plan that looking at all of them finds."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.foresight import Workload
from slackwater.runtime.foresight.carried import StepStatistics, carried
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.plan.step import ChoosingStep
from slackwater.runtime.rewrite.moves import FlowPlan, rewrites_of, split_all
from slackwater.runtime.rewrite.search import Cost, far_up, search_plans

TABLE = pa.table(
    {
        "ts": pa.array(np.arange(4), pa.timestamp("ns")),
        "k": [1, 2, 1, 2],
        "x": [0.5, 1.5, 2.5, 3.5],
        "y": [0.5, 1.5, 2.5, 3.5],
    }
)


def flow_of(kind: str) -> sw.Dataflow:
    flow = sw.Dataflow(kind)
    a = flow.source("a", sw.table(TABLE), event_time="ts")
    if kind == "itself":  # a join with itself, whose filters may become one
        low = a.filter(sw.col("y") < 3, name="low").with_columns(z=sw.col("x") * 2, name="map")
        pairs = low.join(low, on="k", within="1s", name="pairs")
        good = (sw.col("x") > 1) & (sw.col("x_right") > 1)
    else:
        b = flow.source("b", sw.table(TABLE), event_time="ts")
        low = a.with_columns(z=sw.col("x") * 2, name="map").filter(sw.col("y") < 3, name="low")
        pairs = low.join(b, on="k", within="1s", name="pairs")
        good = (sw.col("x") > 1) & (sw.col("x_right") > 1) & (sw.col("k") == 1)
    pairs.filter(good, name="good").sink("out", sw.collect_sink())
    return flow


SEEDS = 6


class Prices:
    """What plans cost where costs, selectivities and rows are drawn by a seed."""

    def __init__(self, base: FlowPlan, seed: int) -> None:
        rng = np.random.default_rng(seed)
        steps = base.graph.steps
        came: dict[str, float] = {}
        left: dict[str, float] = {}
        for name, step in steps.items():
            came[name] = sum(left[one] for one in step.inputs) or 1_000.0
            share = rng.uniform(0.05, 0.95) if isinstance(step, ChoosingStep) else 1.0
            if name == "good.2" and "b" not in steps:
                share = left["good.1"] / came["good.1"]
            left[name] = came[name] * (rng.uniform(0.3, 5.0) if name == "pairs" else share)
        row_s = {name: float(rng.exponential(1.0)) for name in steps}
        if "b" not in steps:  # these two are alike
            row_s["good.2"] = row_s["good.1"]
        self._statistics = StepStatistics(steps, came, left, row_s)
        self._arrivals = {arrivals_of(one): np.array([1_000.0]) for one in ("a", "b")}

    def __call__(self, plan: FlowPlan, free: Collection[str]) -> Cost:
        graph = carried(self._statistics, plan.graph.steps, plan.atoms, free=free)
        return (round(float(Workload.of(graph, self._arrivals, 1.0).load_s.sum()), 6),)


def all_plans(begin: FlowPlan) -> list[FlowPlan]:
    def key(plan: FlowPlan) -> object:
        return tuple((step.name, step.inputs) for step in plan.graph.steps.values())

    seen, waiting = {key(begin)}, [begin]
    for plan in waiting:
        for _, made in rewrites_of(plan):
            if key(made) not in seen:
                seen.add(key(made))
                waiting.append(made)
    return waiting


@pytest.mark.parametrize(("kind", "plans"), [("itself", 12), ("two", 100)])
def test_it_finds_the_cheapest_of_all_plans_and_looks_at_fewer(kind: str, plans: int) -> None:
    start = FlowPlan(flow_of(kind).graph)
    base = split_all(start)
    every = all_plans(base)
    assert len(every) >= plans
    looked_at = []
    for seed in range(SEEDS):
        price = Prices(base, seed)
        found = search_plans(start, price, keep=2)
        costs = sorted(price(plan, ()) for plan in every)
        assert found.is_whole
        assert found.plans[0][0][:1] == pytest.approx(costs[0]), f"seed {seed}"
        assert found.plans[0][0] <= found.plans[1][0]
        looked_at.append(found.priced)
    assert np.mean(looked_at) < len(every)


def test_a_budget_ends_it_and_that_is_said() -> None:
    start = FlowPlan(flow_of("two").graph)
    found = search_plans(start, Prices(split_all(start), 1), budget=3)
    assert not found.is_whole
    assert found.priced <= 60


def test_far_up_is_where_the_furthest_filter_sees_all_rows() -> None:
    plan = far_up(FlowPlan(flow_of("itself").graph))
    steps = plan.graph.steps
    first = next(step.name for step in steps.values() if step.inputs == ("a",))
    assert plan.atoms_of(first) == ("good.1", "good.2")
    assert steps["pairs"].inputs == ("map", "map")
