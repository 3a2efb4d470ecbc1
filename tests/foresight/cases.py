"""Random graphs, arrivals and placements, evenly spread within subintervals as A-2 has them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator, Workload

WIDTH_S = 1.0


@dataclass(frozen=True, eq=False)
class Case:
    graph: QueryGraph
    work: Workload
    nodes: list[int]
    arrivals_s: dict[str, list[float]]

    @property
    def count(self) -> int:
        return max(self.nodes) + 1


def spread(counts: list[int], width_s: float = WIDTH_S) -> list[float]:
    """Return when so many events of each subinterval arrive, at even distances (A-2)."""
    return [(p + k / n) * width_s for p, n in enumerate(counts) for k in range(n)]


def random_case(seed: int, *, d: int = 40, most_sources: int = 3, most_nodes: int = 4) -> Case:
    """Return a case whose busiest node has a mean load of 0.6 to 1.1."""
    rng = np.random.default_rng(seed)
    sources = [f"s{n}" for n in range(int(rng.integers(1, most_sources + 1)))]
    bursts = {s: rng.integers(0, 2, size=d) * int(rng.integers(0, 60)) for s in sources}
    counts = {s: (bursts[s] + rng.integers(0, 10, size=d)).tolist() for s in sources}
    names, made = list(sources), []
    for j in range(max(int(rng.integers(2, 9)), len(sources))):
        fan = int(rng.integers(1, min(3, len(names)) + 1))
        inputs = (
            [sources[j]] if j < len(sources) else rng.choice(names, fan, replace=False).tolist()
        )
        costs = rng.uniform(0.2, 1.0, len(inputs))
        made.append((f"o{j}", tuple(inputs), costs, tuple(rng.choice([1.0, 0.5], len(inputs)))))
        names.append(f"o{j}")
    nodes = rng.integers(0, int(rng.integers(1, most_nodes + 1)), len(made)).tolist()

    def graph(scale: float) -> QueryGraph:
        return QueryGraph(
            tuple(sources),
            tuple(
                QueryOperator(
                    name=name,
                    inputs=inputs,
                    cost_s=tuple(float(c) * scale for c in costs),
                    selectivity=tuple(map(float, selectivity)),
                )
                for name, inputs, costs, selectivity in made
            ),
        )

    load = Workload.of(graph(1.0), counts, WIDTH_S).load_s.mean(axis=1)
    busiest = max(sum(load[j] for j in range(len(made)) if nodes[j] == n) for n in set(nodes))
    scaled = graph(float(rng.uniform(0.6, 1.1)) * WIDTH_S / busiest)
    work = Workload.of(scaled, counts, WIDTH_S)
    return Case(scaled, work, nodes, {s: spread(c) for s, c in counts.items()})
