"""Links as nodes of their own, and how far it is through a node. Source: [mace] §VII-B.

```
a ──▶ b                        a ──▶ (a -> b) ──▶ b
n1    n2                       n1    link n1 -> n2   n2
```

Rows that change nodes over a link with a capacity load it as events load a core: an operator of
the graph stands for them, which costs seconds of the link and hands on what it gets. Nothing else
of the estimate has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, QueryOperator

__all__ = ["CROSSES", "Link", "PathDelays", "path_delays", "shortest_way_s", "with_links"]

CROSSES = " -> "
"""Between the names of two operators: that which stands for what goes from one to the other."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """What rows go over from one node to another.

    Attributes:
        name: as tables have it, unlike any node's.
        bytes_per_s: what it carries, > 0.
    """

    name: str
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not 0 < self.bytes_per_s < float("inf"):
            raise SettingError(
                f"{self.name} has bytes_per_s={self.bytes_per_s}; it must be finite and above 0"
            )


def with_links(
    graph: QueryGraph,
    placement: Mapping[str, str],
    links: Mapping[tuple[str, str], Link],
    row_bytes: Mapping[tuple[str, str], float],
) -> tuple[QueryGraph, dict[str, str]]:
    """Return the graph with an operator for each channel that crosses a link, and its placement.

    Args:
        graph: operators alone.
        placement: {operator: node}.
        links: {(from node, to node): the link between them}; without one there is no limit.
        row_bytes: {(operator, the one that it feeds): bytes sent there for each row put out}.

    Raises:
        SettingError: rows cross a link, and what they weigh is not known.
    """
    operators: list[QueryOperator] = []
    places = dict(placement)
    made: set[str] = set()
    for one in graph.operators:
        inputs = []
        for feeder in one.inputs:
            ends = placement.get(feeder, ""), placement.get(one.name, "")
            link = links.get(ends)
            if link is None:
                inputs.append(feeder)
                continue
            name = f"{feeder}{CROSSES}{one.name}"
            if name not in made:
                made.add(name)
                places[name] = link.name
                operators.append(_crossing(name, feeder, one.name, link, row_bytes))
            inputs.append(name)
        operators.append(replace(one, inputs=tuple(inputs)))
    return QueryGraph(graph.sources, tuple(operators)), places


def _crossing(
    name: str,
    feeder: str,
    target: str,
    link: Link,
    row_bytes: Mapping[tuple[str, str], float],
) -> QueryOperator:
    if (feeder, target) not in row_bytes:
        raise SettingError(
            f"rows of {feeder!r} go to {target!r} over {link.name}, and the sample does not say "
            "what they weigh (a history never does); take it anew (sample_flow)"
        )
    cost_s = row_bytes[feeder, target] / link.bytes_per_s
    return QueryOperator(name=name, inputs=(feeder,), cost_s=(cost_s,), selectivity=(1.0,))


@dataclass(frozen=True, eq=False)
class PathDelays:
    """Propagation delay on the paths from a source to a sink that go through a node.

    Attributes:
        least_s: shape (n,), P_min of each node.
        most_s: shape (n,), P_max. Source: [mace] §VII-B.
    """

    least_s: FloatArray
    most_s: FloatArray


def path_delays(
    graph: QueryGraph,
    places: Sequence[int],
    count: int,
    *,
    least_hop_s: FloatArray | None,
    most_hop_s: FloatArray | None,
) -> PathDelays:
    """Return P_min and P_max of each node.

    In [mace]'s machine graph all operators of a node are one vertex: a path may come in to one of
    them and go on from another. So P_min is the shortest way to any of them and the shortest from
    any on, and P_max the longest of each; the ways themselves are those of the query graph, which
    has no circles where the machine graph may. Paths of the query graph alone would be too narrow:
    see tests/foresight/test_links.py.

    Args:
        graph: m operators in topological order.
        places: shape (m,), the number of each one's node.
        count: n, how many nodes there are.
        least_hop_s: shape (n, n), the least that an event travels between two; None: no time.
        most_hop_s: the same, the most.
    """
    least = _through(graph, places, count, least_hop_s, pick=min)
    most = _through(graph, places, count, most_hop_s, pick=max)
    return PathDelays(least, most)


def shortest_way_s(
    graph: QueryGraph,
    places: Sequence[int],
    speed: FloatArray,
    *,
    hop_s: FloatArray | None,
    sinks: Collection[str],
) -> float:
    """Return what the worst latency is at least: the own work and the links of a way to a sink.

    Of the ways to a sink the shortest counts, of the sinks the one that is furthest.

    Args:
        graph: m operators in topological order.
        places: shape (m,), the number of each one's node.
        speed: shape (n,), C_i of each node.
        hop_s: shape (n, n), the least that an event travels between two; None: no time.
        sinks: those that have results.
    """
    number = {one.name: j for j, one in enumerate(graph.operators)}
    until: list[float] = []
    for j, one in enumerate(graph.operators):
        ways = []
        for name in one.inputs:
            k = number.get(name, -1)
            hop = 0.0 if k < 0 or hop_s is None else float(hop_s[places[k], places[j]])
            ways.append(hop + (0.0 if k < 0 else until[k]))
        until.append(min(ways) + one.alone_s / float(speed[places[j]]))
    return max((until[number[name]] for name in sinks), default=0.0)


def _through(
    graph: QueryGraph,
    places: Sequence[int],
    count: int,
    hop_s: FloatArray | None,
    *,
    pick: Callable[[Iterable[float]], float],
) -> FloatArray:
    found = np.zeros(count)
    if hop_s is None:
        return found
    number = {one.name: j for j, one in enumerate(graph.operators)}
    feeds: list[list[int]] = [[] for _ in number]
    before = [0.0] * len(number)
    for j, one in enumerate(graph.operators):
        ways = []
        for name in one.inputs:
            k = number.get(name, -1)
            if k >= 0:
                feeds[k].append(j)
            ways.append(0.0 if k < 0 else before[k] + float(hop_s[places[k], places[j]]))
        before[j] = pick(ways)
    behind = [0.0] * len(number)
    for j in reversed(range(len(number))):
        ways = [behind[k] + float(hop_s[places[j], places[k]]) for k in feeds[j]]
        behind[j] = pick(ways) if ways else 0.0
    for i in range(count):
        here = [j for j, place in enumerate(places) if place == i]
        if here:
            found[i] = pick(before[j] for j in here) + pick(behind[j] for j in here)
    return found
