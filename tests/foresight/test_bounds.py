"""Theorems 2 and 3 against [mace]'s model run event by event, and the bound of our own estimate."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.foresight.excess import cumulative_excess, mace, node_load
from slackwater.runtime.foresight.held_up import held_up
from slackwater.runtime.foresight.latency_estimate import LatencyEstimate, estimate_latency
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator, Workload
from tests.foresight.cases import WIDTH_S, Case, random_case, spread
from tests.support.event_system import run_events

SEEDS = range(15)


def estimate(case: Case) -> LatencyEstimate:
    names = [f"n{i}" for i in range(case.count)]
    placement = {
        one.name: names[node] for one, node in zip(case.graph.operators, case.nodes, strict=True)
    }
    return estimate_latency(case.graph, case.work, placement, dict.fromkeys(names, 1.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_on_one_node_the_worst_latency_lies_between_mace_and_mace_and_w_and_epsilon(
    seed: int,
) -> None:
    """Theorem 2, and Theorem 3 for each subinterval."""
    drawn = random_case(seed)
    case = Case(drawn.graph, drawn.work, [0] * len(drawn.nodes), drawn.arrivals_s)
    found = estimate(case)
    measured = run_events(case.graph, case.arrivals_s, case.nodes)
    lat = measured.by_subinterval(WIDTH_S, len(found.mace_s))
    assert lat[~np.isnan(lat)].max() <= found.mace_worst_s + WIDTH_S + found.epsilon_s + 1e-9
    above = lat - found.mace_s
    assert np.nanmax(above) <= WIDTH_S + found.epsilon_s + 1e-9
    # The lower bound wants a result that is stimulated at the very end: that of a source
    # with n events in the subinterval comes w / n before it.
    of_sinks = np.array([case.work.arrivals[name] for name in case.graph.sinks])
    all_give = (of_sinks > 0).all(axis=0)
    assert found.held_up_s[all_give] == pytest.approx(found.mace_s[all_give], abs=1e-6)
    assert (found.held_up_s <= found.mace_s + 1e-6).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_with_what_is_held_up_the_worst_latency_is_bounded_on_any_graph(seed: int) -> None:
    case = random_case(seed, most_sources=4, most_nodes=6)
    found = estimate(case)
    measured = run_events(case.graph, case.arrivals_s, case.nodes)
    if not len(measured.latency_s):
        return
    worst = float(measured.latency_s.max())
    assert found.bounds_s[1] >= worst
    assert abs(found.worst_s - worst) <= WIDTH_S + found.epsilon_s


@pytest.mark.parametrize("way", ["at random", "at the start", "at the end"])
@pytest.mark.parametrize("seed", range(5))
def test_however_events_come_within_a_subinterval_the_upper_bound_holds(
    seed: int, way: str
) -> None:
    """It needs no A-2: what is newer does not delay what is older, and w is for the rest."""
    case = random_case(seed, most_sources=4, most_nodes=6)
    rng = np.random.default_rng([seed, 3])
    arrivals_s = {}
    for source in case.graph.sources:
        counts = case.work.arrivals[source].astype(int)
        begins_s = np.repeat(np.arange(len(counts)) * WIDTH_S, counts)
        within = {
            "at random": rng.uniform(0, 1, len(begins_s)),
            "at the start": np.zeros(len(begins_s)),
            "at the end": np.full(len(begins_s), 0.999),
        }[way]
        arrivals_s[source] = np.sort(begins_s + within * WIDTH_S).tolist()
    measured = run_events(case.graph, arrivals_s, case.nodes)
    assert measured.latency_s.max(initial=0.0) <= estimate(case).bounds_s[1]


def test_the_case_that_breaks_the_upper_bound_of_theorem_2() -> None:
    """docs/papers/mace.md: N1 stands half idle while A waits at N0, and Mace counts it as used."""
    graph = QueryGraph(
        ("a", "b"),
        (
            QueryOperator(name="a0", inputs=("a",), cost_s=(0.02,), selectivity=(1.0,)),
            QueryOperator(name="a1", inputs=("a0",), cost_s=(0.01,), selectivity=(1.0,)),
            QueryOperator(name="b1", inputs=("b",), cost_s=(0.01,), selectivity=(1.0,)),
        ),
    )
    width_s = 0.1
    counts = {"a": [10] * 50 + [0] * 50, "b": [0] * 50 + [18] * 50}
    work = Workload.of(graph, counts, width_s)
    nodes = [0, 1, 1]
    excess = cumulative_excess(node_load(work.load_s, nodes, 2), 1.0, width_s=width_s)
    arrivals_s = {name: spread(count, width_s) for name, count in counts.items()}
    worst = run_events(graph, arrivals_s, nodes).latency_s.max()
    assert mace(excess, np.ones(2)).max() == pytest.approx(5.0)
    assert worst == pytest.approx(6.5, abs=0.05)
    assert worst > 5.0 + width_s + 0.04  # Mace_WC + w + ε
    found = held_up(graph, work, nodes, np.ones(2))
    assert found.latency_s.max() == pytest.approx(6.5)
    assert worst <= found.latency_s.max() + width_s + 0.04


def test_a_node_that_stands_between_two_visits_of_another_is_counted_once() -> None:
    """n0 → n1 → n0: what comes back takes what n0 has left, behind older work only."""
    graph = QueryGraph(
        ("a",),
        tuple(
            QueryOperator(name=name, inputs=(feeds,), cost_s=(0.1,), selectivity=(1.0,))
            for feeds, name in (("a", "x"), ("x", "y"), ("y", "z"))
        ),
    )
    counts = [8, 8, 8, 0, 0, 0, 0, 0]
    work = Workload.of(graph, {"a": counts}, 1.0)
    found = held_up(graph, work, [0, 1, 0], np.ones(2)).latency_s
    lat = run_events(graph, {"a": spread(counts)}, [0, 1, 0]).by_subinterval(1.0, 8)
    assert np.nanmax(lat) == pytest.approx(found.max(), abs=0.35)
    assert found[:3] == pytest.approx([0.6, 1.2, 1.8], abs=0.01)
