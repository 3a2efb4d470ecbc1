"""Ways that come back to a node they have left: what bounds hold there, and what none can."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from slackwater.runtime.foresight import circles
from slackwater.runtime.foresight.circles import goes_round, laid_over_time
from slackwater.runtime.foresight.held_up import held_up
from slackwater.runtime.foresight.latency_estimate import LatencyEstimate, estimate_latency
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, QueryOperator, Workload
from tests.foresight.cases import WIDTH_S, spread
from tests.support.event_system import run_events

BROKEN = (23, 94)
"""Seeds whose worst latency is more than w + ε above what work held up comes to, laid out whole."""


@dataclass(frozen=True, eq=False)
class Round:
    """A graph on nodes that send to each other."""

    graph: QueryGraph
    counts: dict[str, list[int]]
    nodes: list[int]
    hop_s: FloatArray

    def estimated(self) -> LatencyEstimate:
        names = [f"n{i}" for i in range(len(self.hop_s))]
        return estimate_latency(
            self.graph,
            Workload.of(self.graph, self.counts, WIDTH_S),
            {one: names[i] for one, i in zip(self.graph.names, self.nodes, strict=True)},
            dict.fromkeys(names, 1.0),
            hop_s={
                (a, b): float(self.hop_s[i, k])
                for i, a in enumerate(names)
                for k, b in enumerate(names)
            },
        )

    def worst_s(self, *, times: int = 1) -> float:
        """The paper's model's worst latency, events so many times as many and as light."""
        arrivals = {name: spread([times * n for n in each]) for name, each in self.counts.items()}
        lighter = tuple(
            replace(one, cost_s=tuple(cost / times for cost in one.cost_s))
            for one in self.graph.operators
        )
        graph = QueryGraph(self.graph.sources, lighter)
        return float(run_events(graph, arrivals, self.nodes, hop_s=self.hop_s).latency_s.max())


def chain(costs_s: tuple[float, ...], *, there_s: float, back_s: float) -> Round:
    """Each second operator on the other node: a way goes there and back as often as it can.

    ```
    n0   a     c        there takes 1.95 s, back 0.1 s
          ╲   ╱ ╲
    n1     b     d
    ```
    """
    names = ["s", *"abcdefgh"[: len(costs_s)]]
    operators = [
        QueryOperator(name=name, inputs=(feeder,), cost_s=(cost,), selectivity=(1.0,))
        for feeder, name, cost in zip(names, names[1:], costs_s, strict=False)
    ]
    return Round(
        QueryGraph(("s",), tuple(operators)),
        {"s": [6] * 78 + [0] * 72},
        [j % 2 for j in range(len(costs_s))],
        np.array([[0.0, there_s], [back_s, 0.0]]),
    )


def drawn(seed: int, *, d: int = 150) -> Round:
    """One or two sources with a long burst; an operator rarely stays on the node of the last."""
    rng = np.random.default_rng([seed, 77])
    several, many, count = (int(rng.integers(*each)) for each in ((1, 3), (3, 8), (2, 4)))
    rates = [int(rng.integers(4, 30)) for _ in range(several)]
    counts = {}
    for number, rate in enumerate(rates):
        series = np.zeros(d, dtype=int)
        begins = int(rng.integers(0, 20))
        series[begins : begins + int(rng.integers(40, 80))] = rate
        counts[f"s{number}"] = (series + int(rng.integers(0, 3))).tolist()
    names, nodes = list(counts), list[int]()
    operators = []
    for j in range(many):
        inputs = [f"s{j}"] if j < several else _fed_by(rng, names, j)
        operators.append(
            QueryOperator(
                name=f"o{j}",
                inputs=tuple(inputs),
                cost_s=tuple(rng.uniform(0.2, 1, len(inputs)).tolist()),
                selectivity=tuple(rng.choice([1.0, 1.0, 0.5], len(inputs)).tolist()),
            )
        )
        names.append(f"o{j}")
        others = [one for one in range(count) if not nodes or one != nodes[-1]]
        moves = nodes and rng.random() >= 0.2
        nodes.append(int(rng.choice(others)) if moves else int(rng.integers(0, count)))
    graph = QueryGraph(tuple(counts), tuple(operators))
    load_s = Workload.of(graph, counts, WIDTH_S).load_s.sum(axis=1)
    busiest_s = max(sum(load_s[np.array(nodes) == node]) for node in set(nodes))
    scale = float(rng.uniform(0.5, 0.8)) * d * WIDTH_S / busiest_s
    scaled = [replace(one, cost_s=tuple(cost * scale for cost in one.cost_s)) for one in operators]
    used = sorted(set(nodes))
    size = (len(used), len(used))
    is_near = rng.random() < 0.3
    hop_s = np.zeros(size) if is_near else rng.uniform(0, float(rng.choice([0.1, 0.5, 3.0])), size)
    np.fill_diagonal(hop_s, 0.0)
    graph = QueryGraph(tuple(counts), tuple(scaled))
    return Round(graph, counts, [used.index(node) for node in nodes], hop_s)


def _fed_by(rng: np.random.Generator, names: list[str], j: int) -> list[str]:
    inputs = [f"o{j - 1}"] if rng.random() < 0.7 else [str(rng.choice(names))]
    if rng.random() < 0.25:
        other = str(rng.choice(names))
        if other not in inputs:
            inputs.append(other)
    return inputs


def most_s(found: LatencyEstimate) -> float:
    """The bound of held-up work itself, without the way that the paper's adds to Mace."""
    return found.worst_s + found.spread_s + found.width_s + found.epsilon_s


def test_there_and_back_twice_the_worst_latency_has_no_limit_that_an_estimate_could_name() -> None:
    """The same loads by events twice, four and ten times as many and as light: no way they go.

    Node n0 does what comes back (c) before what is new (a); meanwhile n1 gets nothing of a, and
    stands still; when that comes, n1 has d to do, which is older. Who waits for whom goes by when
    it meets, and by what is under way then: pace and backlog are others, by 2 s of 43.
    """
    case = chain((0.09, 0.07, 0.16, 0.095), there_s=1.95, back_s=0.1)
    assert goes_round(case.graph, case.nodes)
    worst_s = [case.worst_s(times=times) for times in (1, 2, 4, 10)]
    assert worst_s == pytest.approx([44.0, 42.21, 42.9, 42.38], abs=0.02)
    found = case.estimated()
    whole = held_up(
        case.graph,
        Workload.of(case.graph, case.counts, WIDTH_S),
        case.nodes,
        np.ones(2),
        hop_s=case.hop_s,
    )
    assert worst_s[0] > float(whole.latency_s.max()) + WIDTH_S + found.epsilon_s  # as it was
    assert found.mace_worst_s <= min(worst_s)
    assert max(worst_s) <= most_s(found)


def test_a_way_that_does_not_come_back_has_a_limit() -> None:
    case = chain((0.09, 0.07), there_s=1.95, back_s=0.1)
    assert not goes_round(case.graph, case.nodes)
    worst_s = [case.worst_s(times=times) for times in (1, 4, 10)]
    found = case.estimated()
    assert found.spread_s == 0.0
    assert worst_s == pytest.approx([found.worst_s] * 3, abs=0.2)


@pytest.mark.parametrize("seed", [*range(10), *BROKEN])
def test_where_ways_come_back_the_upper_bound_holds_with_its_spread(seed: int) -> None:
    case = drawn(seed)
    found = case.estimated()
    assert case.worst_s() <= most_s(found) <= found.bounds_s[1]


def test_a_circle_may_go_over_two_ways_that_have_none() -> None:
    """a goes from n0 to n1, b from n1 to n0: each is held up by what the other holds up."""
    operators = [
        QueryOperator(name=name, inputs=(feeder,), cost_s=(0.01,), selectivity=(1.0,))
        for feeder, name in (("s", "a0"), ("a0", "a1"), ("t", "b1"), ("b1", "b0"))
    ]
    graph = QueryGraph(("s", "t"), tuple(operators))
    assert goes_round(graph, [0, 1, 1, 0])
    assert not goes_round(graph, [0, 1, 0, 1])
    assert not goes_round(graph, [0, 0, 0, 0])


def test_parts_of_a_subinterval_give_a_latency_for_each_subinterval() -> None:
    case = drawn(3)
    work = Workload.of(case.graph, case.counts, WIDTH_S)
    speed = np.ones(len(case.hop_s))
    laid = laid_over_time(case.graph, work, case.nodes, speed, hop_s=case.hop_s)
    whole = held_up(case.graph, work, case.nodes, speed, hop_s=case.hop_s)
    assert laid.latency_s.shape == whole.latency_s.shape
    assert laid.latency_s == pytest.approx(whole.latency_s, abs=2 * WIDTH_S)
    assert laid.waits_s.shape == (len(case.nodes),)
    once = laid_over_time(case.graph, work, case.nodes, speed, hop_s=case.hop_s, in_parts=False)
    assert once.latency_s == pytest.approx(whole.latency_s)
    assert once.spread_s == 0.0


def test_where_ways_take_time_work_waits_though_no_node_has_a_backlog_by_mace() -> None:
    """Each node could do all of it as it comes; but new work and what comes back do meet."""
    case = chain((0.05, 0.07, 0.115, 0.095), there_s=3.5, back_s=0.3)
    found = case.estimated()
    assert found.mace_worst_s == 0.0
    assert found.worst_s == pytest.approx(case.worst_s(), rel=0.05)
    assert found.behind_s == pytest.approx(found.worst_s - 2 * 3.5 - 0.3)
    assert found.spread_s > 0.5
    calm = replace(case, counts={"s": [3] * 150}).estimated()
    assert calm.behind_s <= WIDTH_S
    assert calm.spread_s == 0.0


def test_where_parts_would_be_too_many_there_are_fewer_and_then_no_upper_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = drawn(3)
    size = len(case.nodes) * 150
    four = case.estimated()
    monkeypatch.setattr(circles, "MOST_STEPS", 4 * size - 1)
    three = case.estimated()
    assert 0 < three.spread_s < float("inf")
    assert three.held_up_s != pytest.approx(four.held_up_s)
    monkeypatch.setattr(circles, "MOST_STEPS", 2 * size - 1)
    assert case.estimated().bounds_s[1] == float("inf")
    one_way = chain((0.09, 0.07), there_s=1.95, back_s=0.1)
    assert one_way.estimated().bounds_s[1] < 100
