"""Selectivities by stretches: data that drift, and chance, as a spread sample shows them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.mace.drifting import DriftCurve, Stretches, steadied, with_drift
from slackwater.runtime.foresight import QueryGraph, Workload
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.query_graph import arrivals_of
from tests.foresight.test_observed_graph import stage


def divided(results: list[int], *, rows: int) -> QueryGraph:
    """A filter that lets so many of `rows` go in each stretch of a second."""
    count = len(results)
    source = stage(
        "a",
        rows_in=rows * count,
        rows_out=rows * count,
        released=[rows] * count,
        out=[rows] * count,
    )
    few = stage(
        "few",
        "a",
        rows_in=rows * count,
        rows_out=sum(results),
        released=[rows] * count,
        out=results,
    )
    out = stage("out", "few", rows_in=sum(results), rows_out=sum(results))
    parts = Stretches([rows * n for n in range(count)], [float(n) for n in range(count)])
    stages = [source, few, out]
    return with_drift(observed_graph(stages, slice_s=0.002), stages, {"a": parts})


def test_selectivity_follows_data_that_drift() -> None:
    graph = divided([900, 900, 400, 400], rows=1_000)
    curve = graph.operators[1].curve
    assert isinstance(curve, DriftCurve)
    assert curve.selectivity == pytest.approx((0.9, 0.9, 0.4, 0.4), abs=0.005)
    work = Workload.of(graph, {arrivals_of("a"): np.full(8, 100.0)}, 0.5)
    assert work.arrivals["few"] == pytest.approx([90, 90, 90, 90, 40, 40, 40, 40], abs=0.5)
    assert graph.operators[0].curve is None


@pytest.mark.parametrize("seed", range(10))
def test_what_is_chance_is_told_from_drift(seed: int) -> None:
    """Sixty stretches of 20 rows: nearer to the truth than what each shows, drift or none."""
    rng = np.random.default_rng(seed)
    rows = np.full(60, 20.0)
    steady, steps = np.full(60, 0.8), np.repeat([0.9, 0.5, 0.7], 20)
    off = {}
    for name, truth in (("steady", steady), ("steps", steps)):
        results = rng.binomial(20, truth).astype(float)
        found = steadied(rows, results)
        off[name] = np.sqrt(np.mean((found - truth) ** 2) / np.mean((results / rows - truth) ** 2))
        assert found.mean() == pytest.approx(results.sum() / 1_200, abs=0.02)
    assert off["steady"] < 0.7
    assert off["steps"] < 0.85


def test_stretches_without_rows_have_what_their_neighbours_have() -> None:
    found = steadied(np.array([100.0, 100, 0, 100, 100]), np.array([90.0, 92, 0, 40, 41]))
    assert 0.4 < found[2] < 0.9
    assert steadied(np.zeros(3), np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert steadied(np.full(3, 5.0), np.full(3, 10.0)).tolist() == [2.0, 2.0, 2.0]


def test_stretches_of_a_stage_below_are_those_of_the_rows_that_came_to_it() -> None:
    """A filter behind a filter: its stretches are as long as what the first lets go."""
    source = stage("a", rows_in=200, rows_out=200, released=[50] * 4, out=[50] * 4)
    first = stage("f", "a", rows_in=200, rows_out=110, released=[50] * 4, out=[50, 50, 5, 5])
    then = stage("g", "f", rows_in=110, rows_out=10, released=[100, 10], out=[0, 10])
    out = stage("out", "g", rows_in=10, rows_out=10)
    parts = Stretches([0, 100], [0.0, 1.0])
    stages = [source, first, then, out]
    graph = with_drift(observed_graph(stages, slice_s=0.002), stages, {"a": parts})
    work = Workload.of(graph, {arrivals_of("a"): [1_000.0, 1_000.0]}, 1.0)
    assert work.arrivals["f"] == pytest.approx([1_000, 100], abs=20)
    assert work.arrivals["g"] == pytest.approx([0, 100], rel=0.15, abs=40)
