"""The three plans of the stock query: what they are, what they get, what they give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.mace.plan_selection import Case, run_plan, sampled
from benchmarks.mace.stock_query import (
    PLANS,
    REVIEWS,
    STEPS,
    UDS,
    load_of,
    rows_by_plan,
    three_plans,
)
from slackwater.runtime.model import NS_PER_SECOND

COUNT = 1_200
GOOD_BELOW = 500


def case() -> Case:
    """Trades of two symbols, a fifth of them falling, a minute and a half long."""
    rng = np.random.default_rng(4)
    price = rng.integers(100, 104, COUNT).astype(np.float64)
    table = pa.table(
        {
            "ts": (np.arange(COUNT) // 12) * NS_PER_SECOND,
            "seq": np.arange(COUNT),
            "symbol": pa.array(rng.choice(["a", "b"], COUNT).tolist(), pa.string()),
            "price": price,
            "before": price + rng.choice([0.0, 0.0, 0.0, 0.0, 1.0], COUNT),
            "size": rng.choice([50, 100, 105, 300, 700], COUNT),
            "review": rng.integers(0, REVIEWS, COUNT),
        }
    )
    return Case(table, GOOD_BELOW, dict.fromkeys((*STEPS, *UDS), 1e6))


def test_the_select_is_at_the_sink_in_between_and_at_the_source() -> None:
    drawn = case()
    plans = three_plans(drawn.flow(drawn.table))
    feeds = {name: plan.graph.steps["good.1"].inputs for name, plan in plans.items()}
    assert feeds == dict(zip(PLANS, (("spread",), ("falling",), ("fields",)), strict=True))
    assert "good.2" in plans[PLANS[0]].graph.steps
    assert all("good.2" not in plans[name].graph.steps for name in PLANS[1:])


def test_all_plans_give_the_same_bytes_and_get_the_rows_that_are_counted() -> None:
    drawn = case()
    plans = three_plans(drawn.flow(drawn.table))
    ran = {name: run_plan(drawn, plan) for name, plan in plans.items()}
    assert len({one.digest for one in ran.values()}) == 1
    assert len(ran[PLANS[0]].measured.latency_s) > 100
    for name, expected in rows_by_plan(drawn.table, GOOD_BELOW).items():
        seen = {stage.name: stage.rows_in for stage in ran[name].report.stages}
        assert set(seen) == set(expected)
        exact = ("ticks", "fields", *(["lots", "value", "pairs", "spread"] * (name == PLANS[0])))
        assert {one: seen[one] for one in exact} == {one: expected[one] for one in exact}
        # Which reviews are good is drawn: their shares are known, not their numbers.
        assert sum(seen.values()) == pytest.approx(sum(expected.values()), rel=0.15)
    loads = {
        n: load_of(r, drawn.costs_ns) for n, r in rows_by_plan(drawn.table, GOOD_BELOW).items()
    }
    assert loads[PLANS[1]] < loads[PLANS[0]]


def test_a_sample_of_the_written_plan_tells_the_loads_of_all() -> None:
    drawn = case()
    plans = three_plans(drawn.flow(drawn.table))
    known = sampled(drawn, plans[PLANS[0]], 600, seed=1)
    rows = rows_by_plan(drawn.table, GOOD_BELOW)
    for name, plan in plans.items():
        (node,) = known.estimate(drawn, plan).nodes
        span_s = len(known.estimate(drawn, plan).mace_s)
        assert node.load * span_s == pytest.approx(load_of(rows[name], drawn.costs_ns), rel=0.25)
