"""Whole flows in the simulator: right, the same on every run, and balanced."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from examples import city_congestion
from tests.support.flows import (
    city_tables,
    counting_flow,
    offline_congestion,
    simulated,
    sorted_rows,
)

SEEDS = range(8)
LOOKS = sw.Limits(source_gap_ns=20_000_000)
"""Sources look every 20 ms, not four times in each: quicker to simulate, and as late."""


def simulate(flow: sw.Dataflow, sink: str, *, seed: int, nodes: int = 3, **options: Any) -> Any:
    job, report = simulated(flow, seed=seed, nodes=nodes, **options)
    return job.result(sink), report


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, pa.Table]:
    return city_tables(tmp_path_factory.mktemp("city"))


@pytest.fixture(scope="module")
def jams(city: Any) -> list[tuple[int, ...]]:
    """What the offline query finds in the city."""
    return offline_congestion(*city)


@pytest.fixture(scope="module")
def under(city: Any) -> Callable[[str | None], Any]:
    """What a run under a slack finds in the city, and its report; each is simulated once."""
    return cache(
        lambda slack: simulate(
            congestion(city, speed=1.0, slack=slack), "jams", seed=3, limits=LOOKS
        )
    )


def congestion(city: tuple[pa.Table, pa.Table], **options: Any) -> sw.Dataflow:
    return city_congestion.build(sw.table(city[0]), sw.table(city[1]), **options)


def test_ready_only_finds_exactly_what_the_offline_query_finds(
    city: Any, jams: Any, under: Any
) -> None:
    table, report = under(None)
    assert sorted_rows(table) == jams
    assert len(table) > 100
    assert report.ledger.is_balanced
    assert report.ledger.late == report.ledger.in_flight == 0
    assert report.ledger.entered == len(city[0]) + len(city[1])


@pytest.mark.parametrize("speed", [None, 10.0])
def test_eight_seeds_give_the_same_rows_in_the_same_order(tmp_path: Path, speed: Any) -> None:
    city = city_tables(tmp_path, rate=4, seconds=15)
    looks, tables = sw.Limits(source_gap_ns=5_000_000), []  # for some 20 events at a time
    for seed in SEEDS:
        flow = congestion(city, speed=speed)
        table, report = simulate(flow, "jams", seed=seed, nodes=1 + seed % 4, limits=looks)
        assert report.ledger.is_balanced, f"seed {seed}"
        tables.append(table)
    first = tables[0]
    for seed, table in zip(SEEDS, tables, strict=True):
        assert table.equals(first), f"seed {seed}"


@pytest.mark.parametrize("slack", ["0s", "100ms", "1s"])
def test_with_slack_no_pair_is_missing_though_events_come_late(
    jams: Any, under: Any, slack: str
) -> None:
    table, report = under(slack)
    assert sorted_rows(table) == jams
    gate = next(stage for stage in report.stages if stage.kind == "join")
    assert gate.late_dropped == 0
    assert gate.slack_ready + gate.late > 0
    assert report.ledger.is_balanced


def test_less_slack_means_less_latency(under: Any) -> None:
    soon, late = (under(slack)[1].sinks[0].latency.quantile(0.99) for slack in ("0s", None))
    assert soon < late


@pytest.fixture(scope="module")
def events() -> pa.Table:
    rng = np.random.default_rng(5)
    times = np.arange(4_000) * 3_000_000
    late = np.where(rng.random(4_000) < 0.1, rng.integers(0, 400_000_000, 4_000), 0)
    order = np.argsort(times + late, kind="stable")
    return pa.table(
        {
            "ts": pa.array(times[order], pa.timestamp("ns")),
            "key": pa.array(rng.integers(0, 9, 4_000)[order]),
            "value": pa.array(rng.normal(size=4_000)[order]),
        }
    )


def offline_counts(events: pa.Table) -> dict[tuple[int, int], tuple[int, float, float]]:
    times = events["ts"].to_numpy().astype(int)
    keys, values = events["key"].to_numpy(), events["value"].to_numpy()
    found = {}
    for start in range(-500_000_000, int(times.max()) + 1, 500_000_000):
        inside = (times >= start) & (times < start + 1_000_000_000)
        for key in np.unique(keys[inside]):
            own = values[inside & (keys == key)]
            found[start, int(key)] = (len(own), own.mean(), np.quantile(own, 0.9))
    return found


def test_sliding_aggregates_equal_the_offline_ones_and_each_other(events: pa.Table) -> None:
    expected = offline_counts(events)
    tables = []
    for seed in SEEDS:
        flow = counting_flow(events, out_of_order="sort", disorder="500ms")
        table, report = simulate(flow, "counts", seed=seed, nodes=1 + seed % 3)
        assert report.ledger.is_balanced
        tables.append(table)
    assert all(table.equals(tables[0]) for table in tables)
    rows = tables[0].to_pylist()
    assert len(rows) == len(expected)
    for row in rows:
        start = row["window_start"].value
        n, mean, p90 = expected[start, row["key"]]
        assert row["n"] == n
        assert row["mean"] == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert row["p90"] == pytest.approx(p90, rel=1e-12, abs=1e-12)


def test_a_slow_sink_slows_the_source_and_nothing_grows(city: Any, jams: Any) -> None:
    host = sw.Simulation(nodes=3, cost=sw.testing.CostModel(stages={"congestion": 40_000.0}))
    job = host.submit(
        congestion(city), limits=sw.Limits(credit_rows=500, gate_rows=500, max_slice_rows=100)
    )
    report = job.wait()
    gate = next(stage for stage in report.stages if stage.kind == "join")
    assert gate.max_gate_rows <= 2 * (500 + 500 + 2 * 100)
    assert sorted_rows(job.result("jams")) == jams
