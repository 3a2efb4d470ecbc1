"""Theorem 1 of [mace] against every schedule there is, and §VII-A: other orders within w."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from slackwater.runtime.foresight.excess import node_load
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator
from tests.foresight.cases import WIDTH_S, random_case
from tests.foresight.test_bounds import estimate
from tests.support.event_system import Policy, Waiting, run_events

CASES_A_SEED, SEEDS = 25, 10
MOST_SCHEDULES = 1_500


@dataclass
class Chosen:
    """A policy that takes these choices, and then always the first; notes how many there were."""

    prefix: list[int]
    options: list[int] = field(default_factory=list)

    def __call__(self, waiting: list[Waiting], node: int) -> int:
        del node
        at = len(self.options)
        self.options.append(len(waiting))
        return self.prefix[at] if at < len(self.prefix) else 0


def schedules(graph: QueryGraph, arrivals_s: Mapping[str, Sequence[float]]) -> Iterator[float]:
    """Yield the worst latency of each schedule on one node that never stands idle over work."""
    prefix: list[int] = []
    while True:
        chosen = Chosen(prefix)
        ran = run_events(graph, arrivals_s, [0] * len(graph.operators), policy=chosen)
        yield float(ran.latency_s.max())
        options = chosen.options
        prefix = prefix + [0] * (len(options) - len(prefix))
        while prefix and prefix[-1] + 1 == options[len(prefix) - 1]:
            prefix.pop()
        if not prefix:
            return
        prefix[-1] += 1


def operator(name: str, feeds: str, cost_s: float, selectivity: float = 1.0) -> QueryOperator:
    return QueryOperator(name=name, inputs=(feeds,), cost_s=(cost_s,), selectivity=(selectivity,))


def small_case(seed: int) -> tuple[QueryGraph, dict[str, list[float]]]:
    """Two sources, up to four operators in any tree, up to five events; each yields an output."""
    rng = np.random.default_rng(seed)
    names, operators = ["a", "b"], []
    for j in range(int(rng.integers(2, 5))):
        feeds = names[j] if j < 2 else str(rng.choice(names))
        operators.append(operator(f"o{j}", feeds, float(rng.integers(1, 6))))
        names.append(f"o{j}")
    events = rng.integers(1, 3, 2)
    arrivals_s = {
        source: sorted(rng.integers(0, 8, int(count)).astype(float).tolist())
        for source, count in zip("ab", events, strict=True)
    }
    return QueryGraph(("a", "b"), tuple(operators)), arrivals_s


@pytest.mark.parametrize("part", range(SEEDS))
def test_on_one_node_no_schedule_has_a_smaller_worst_latency_than_stimulus_order(
    part: int,
) -> None:
    """Theorem 1, every event yielding an output."""
    several = 0
    for seed in range(part * CASES_A_SEED, (part + 1) * CASES_A_SEED):
        graph, arrivals_s = small_case(seed)
        ours = run_events(graph, arrivals_s, [0] * len(graph.operators)).latency_s.max()
        found = []
        for number, worst in enumerate(schedules(graph, arrivals_s)):
            found.append(worst)
            if number == MOST_SCHEDULES:
                break
        assert ours <= min(found) + 1e-9, f"seed {seed}"
        several += max(found) > min(found) + 1e-9
    assert several > CASES_A_SEED // 4, "of most cases the schedule must matter"


def test_where_an_event_yields_nothing_another_schedule_may_be_better() -> None:
    """What Theorem 1 leaves unsaid: the longest wait may be that of an event nobody waits for."""
    graph = QueryGraph(("a", "b"), (operator("drops", "a", 5.0, 0.0), operator("keeps", "b", 1.0)))
    arrivals_s = {"a": [0.0, 1.0], "b": [2.0]}
    assert run_events(graph, arrivals_s, [0, 0]).latency_s.max() == 9.0
    assert min(schedules(graph, arrivals_s)) == 4.0


def coarse(width_s: float, seed: int) -> Policy:
    """By stimulus across subintervals, at random within one: the worst that §VII-A allows."""
    rng = np.random.default_rng(seed)

    def policy(waiting: list[Waiting], node: int) -> int:
        del node
        subinterval = [int(one.stimulus_s / width_s + 1e-9) for one in waiting]
        first = min(subinterval)
        return int(rng.choice([n for n, one in enumerate(subinterval) if one == first]))

    return policy


@pytest.mark.parametrize("seed", range(5))
def test_another_order_within_subintervals_adds_at_most_the_work_of_one(seed: int) -> None:
    """§VII-A: ε has λ = ΣL of a subinterval in place of what an event costs."""
    drawn = random_case(seed)
    nodes = [0] * len(drawn.nodes)
    found = estimate(type(drawn)(drawn.graph, drawn.work, nodes, drawn.arrivals_s))
    largest_s = float(node_load(drawn.work.load_s, nodes, 1).max())
    ran = run_events(drawn.graph, drawn.arrivals_s, nodes, policy=coarse(WIDTH_S, seed))
    lat = ran.by_subinterval(WIDTH_S, len(found.mace_s))
    assert np.nanmax(lat - found.mace_s) <= WIDTH_S + max(largest_s, found.epsilon_s) + 1e-9
    # On one node not even that: the work of a subinterval is in its excess, whatever its order.
    assert np.nanmax(lat - found.mace_s) <= WIDTH_S + found.epsilon_s + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_on_several_nodes_it_adds_at_most_that_of_each(seed: int) -> None:
    drawn = random_case(seed, most_sources=4, most_nodes=6)
    found = estimate(drawn)
    largest_s = node_load(drawn.work.load_s, drawn.nodes, drawn.count).max(axis=1)
    policy = coarse(WIDTH_S, seed)
    ran = run_events(drawn.graph, drawn.arrivals_s, drawn.nodes, policy=policy)
    if len(ran.latency_s):
        assert ran.latency_s.max() <= found.bounds_s[1] + largest_s.sum() + 1e-9
