"""The highest rates that a flow keeps up with, where load is no line: what is said, is so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slackwater.runtime.foresight import QueryGraph, QueryOperator, Workload, estimate_latency
from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.latency_estimate import NodeEstimate
from slackwater.runtime.foresight.query_graph import FloatArray, arrivals_of
from slackwater.runtime.foresight.sustainable import sustainable

D, WIDTH_S = 100, 0.1
A, B = arrivals_of("a"), arrivals_of("b")


def line(name: str, *inputs: str, cost_s: float = 0.0) -> QueryOperator:
    count = len(inputs)
    return QueryOperator(
        name=name, inputs=inputs, cost_s=(cost_s,) * count, selectivity=(1.0,) * count
    )


def graph_of(*, pair_s: float, keys: float, result_s: float) -> QueryGraph:
    """Two sources, a join, a window over its pairs, and an end."""
    join = JoinCurve(within_s=1.0, row_s=(1e-4, 1e-4), pair_s=pair_s, result=0.1)
    window = WindowCurve(size_s=1.0, slide_s=1.0, keys=keys, row_s=1e-4, result_s=result_s)
    return QueryGraph(
        (A, B),
        (
            line("a", A, cost_s=1e-4),
            line("b", B, cost_s=1e-4),
            replace(line("pairs", "a", "b"), curve=join),
            replace(line("counts", "pairs"), curve=window),
            line("out", "counts", cost_s=1e-3),
        ),
    )


PLACES = {"a": "n1", "b": "n1", "pairs": "n2", "counts": "n3", "out": "n3"}
CAPACITY = {"n1": 1.0, "n2": 1.0, "n3": 1.0}


def nodes_at(graph: QueryGraph, arrivals: dict[str, FloatArray]) -> tuple[NodeEstimate, ...]:
    work = Workload.of(graph, arrivals, WIDTH_S)
    return estimate_latency(graph, work, PLACES, CAPACITY).nodes


@pytest.mark.parametrize("seed", range(10))
def test_at_these_rates_no_node_falls_behind_and_at_a_hundredth_more_one_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = rng.uniform(1, 500, 2)
    pair_s, keys, result_s = (
        10 ** rng.uniform(-6, -4),
        10 ** rng.uniform(0, 4),
        rng.uniform(0, 1e-3),
    )
    graph = graph_of(pair_s=pair_s, keys=keys, result_s=result_s)
    arrivals = {name: np.full(D, rate * WIDTH_S) for name, rate in zip((A, B), rates, strict=True)}
    nodes = nodes_at(graph, arrivals)
    times = sustainable(graph, arrivals, width_s=WIDTH_S, nodes=nodes, row_bytes={})
    for factor, is_behind in ((times, False), (1.01 * times, True)):
        then = nodes_at(graph, {name: counts * factor for name, counts in arrivals.items()})
        assert any(node.load > 1 + 1e-9 for node in then) is is_behind


def test_four_times_the_pairs_make_it_half_the_rate() -> None:
    """A join that needs four cores for its pairs keeps up with half the rates, not a quarter."""
    join = JoinCurve(within_s=1.0, row_s=(0.0, 0.0), pair_s=2e-4, result=0.0)
    graph = QueryGraph(
        (A, B), (line("a", A), line("b", B), replace(line("pairs", "a", "b"), curve=join))
    )
    arrivals = {name: np.full(D, 100 * WIDTH_S) for name in (A, B)}
    work = Workload.of(graph, arrivals, WIDTH_S)
    found = estimate_latency(graph, work, dict.fromkeys(graph.names, "n2"), {"n2": 1.0})
    (node,) = found.nodes
    times = sustainable(graph, arrivals, width_s=WIDTH_S, nodes=found.nodes, row_bytes={})
    assert node.load == pytest.approx(4.0, rel=0.1)
    assert times == pytest.approx(node.load**-0.5, rel=2e-3)
    assert found.sustainable == pytest.approx(1 / node.load)


def test_what_others_take_stays_and_a_link_carries_what_comes_of_more() -> None:
    graph = graph_of(pair_s=1e-6, keys=10, result_s=0.0)
    arrivals = {name: np.full(D, 100 * WIDTH_S) for name in (A, B)}
    weights = {("pairs", "counts"): 10.0}
    link = NodeEstimate(name="link", load=0.25, peak=0, worst_s=0, operators=("pairs -> counts",))
    many = sustainable(graph, arrivals, width_s=WIDTH_S, nodes=[link], row_bytes=weights)
    assert many == pytest.approx(2.0, rel=2e-3)  # four times the pairs
    shared = NodeEstimate(
        name="shared", load=0.9, peak=0, worst_s=0, operators=("a", "b"), others=0.8
    )
    times = sustainable(graph, arrivals, width_s=WIDTH_S, nodes=[shared], row_bytes={})
    assert times == pytest.approx(2.0, rel=2e-3)
    idle = NodeEstimate(name="idle", load=0.0, peak=0, worst_s=0, operators=())
    assert sustainable(graph, arrivals, width_s=WIDTH_S, nodes=[idle], row_bytes={}) == np.inf
