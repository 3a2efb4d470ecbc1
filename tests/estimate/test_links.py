"""[mace] §VII-B: link capacity and propagation delay, against the model run event by event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from runtime.estimate.latency_estimate import LatencyEstimate, estimate_latency
from runtime.estimate.links import Link, with_links
from runtime.estimate.query_graph import FloatArray, QueryGraph, QueryOperator, Workload
from tests.estimate.cases import WIDTH_S, random_case, spread
from tests.support.event_system import Ran, run_events


@dataclass(frozen=True, eq=False)
class Linked:
    """A case with what lies between its nodes, estimated and run."""

    estimate: LatencyEstimate
    ran: Ran


def op(name: str, *inputs: str, cost_s: float = 0.0) -> QueryOperator:
    count = len(inputs)
    return QueryOperator(
        name=name, inputs=inputs, cost_s=(cost_s,) * count, selectivity=(1.0,) * count
    )


def linked(
    graph: QueryGraph,
    counts: dict[str, list[int]],
    placement: dict[str, str],
    *,
    hop_s: dict[tuple[str, str], float] | None = None,
    links: dict[tuple[str, str], Link] | None = None,
    row_bytes: dict[tuple[str, str], float] | None = None,
    width_s: float = WIDTH_S,
) -> Linked:
    """Estimate, and run event by event with the same links."""
    whole, places = with_links(graph, placement, links or {}, row_bytes or {})
    names = list(dict.fromkeys(places.values()))
    hops = {
        (a, b): (hop_s or {}).get((_before(links, a, b), b), 0.0)
        for a in names
        for b in names
        if (a, b) not in (links or {})
    }
    found = estimate_latency(
        whole, Workload.of(whole, counts, width_s), places, dict.fromkeys(names, 1.0), hop_s=hops
    )
    hop: FloatArray = np.array([[hops.get((a, b), 0.0) for b in names] for a in names])
    times = {name: spread(count, width_s) for name, count in counts.items()}
    nodes = [names.index(places[one]) for one in whole.names]
    return Linked(found, run_events(whole, times, nodes, hop_s=hop))


def _before(links: dict[tuple[str, str], Link] | None, a: str, b: str) -> str:
    """The node that a way comes from: that in front of a link, which adds no delay itself."""
    return next((one for (one, to), link in (links or {}).items() if link.name == a and to == b), a)


def drawn(seed: int) -> Linked:
    """A random graph on several nodes, with delays up to ten subintervals and some slow links."""
    case = random_case(seed, most_sources=4, most_nodes=5)
    rng = np.random.default_rng([seed, 7])
    placement = {one: f"n{i}" for one, i in zip(case.graph.names, case.nodes, strict=True)}
    names = sorted(set(placement.values()))
    longest_s = float(rng.choice([0.05, 1.0, 10.0]))
    pairs = [(a, b) for a in names for b in names if a != b]
    hop_s = {pair: float(rng.uniform(0, longest_s)) for pair in pairs}
    row_bytes = {
        (feeder, one.name): float(rng.integers(20, 200))
        for one in case.graph.operators
        for feeder in one.inputs
    }
    load = dict.fromkeys(pairs, 0.0)
    for one in case.graph.operators:
        for feeder in one.inputs:
            pair = placement.get(feeder, ""), placement[one.name]
            if pair in load:
                load[pair] += row_bytes[feeder, one.name] * case.work.arrivals[feeder].mean()
    links = {
        (a, b): Link(
            name=f"link {a} -> {b}", bytes_per_s=load[a, b] / WIDTH_S / float(rng.uniform(0.5, 1.1))
        )
        for a, b in pairs
        if load[a, b] and rng.random() < 0.6
    }
    counts = {name: case.work.arrivals[name].astype(int).tolist() for name in case.graph.sources}
    return linked(case.graph, counts, placement, hop_s=hop_s, links=links, row_bytes=row_bytes)


@pytest.mark.parametrize("seed", range(20))
def test_with_links_and_delays_the_worst_latency_is_bounded_on_any_graph(seed: int) -> None:
    case = drawn(seed)
    found = case.estimate
    if not len(case.ran.latency_s):
        return
    worst = float(case.ran.latency_s.max())
    assert worst <= found.bounds_s[1]
    assert abs(found.worst_s - worst) <= WIDTH_S + found.epsilon_s
