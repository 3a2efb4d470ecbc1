"""Links as separate nodes, and delays of paths through a node. Source: [mace] §VII-B.

```
a ──▶ b                        a ──▶ (a -> b) ──▶ b
n1    n2                       n1    link n1 -> n2   n2
```

Rows on a link with a capacity load it as events load a core. An operator of the graph stands for
them: it costs seconds of the link and passes all rows on. No other part of the estimate knows
links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, QueryOperator

__all__ = ["CROSSES", "Link", "PathDelays", "path_delays", "shortest_way_s", "with_links"]

CROSSES = " -> "
"""Separator of two operators' names, in the name of the operator for rows between them."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """Link with a capacity from one node to another.

    Attributes:
        name: its name in tables, unlike any node's.
        bytes_per_s: its capacity, > 0.
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
    """Return the graph with an operator for each channel on a link, and its placement.

    Args:
        graph: the operators without links.
        placement: {operator: node that it is on}.
        links: {(from node, to node): the link between them}; absent: no limit.
        row_bytes: {(operator, its target): bytes sent for each row that leaves the operator}.

    Raises:
        SettingError: rows cross a link, and their bytes are unknown.
    """
    operators: list[QueryOperator] = []
    places = dict(placement)
    made: set[str] = set()
    for operator in graph.operators:
        inputs = []
        for feeder in operator.inputs:
            ends = placement.get(feeder, ""), placement.get(operator.name, "")
            link = links.get(ends)
            if link is None:
                inputs.append(feeder)
                continue
            name = f"{feeder}{CROSSES}{operator.name}"
            if name not in made:
                made.add(name)
                places[name] = link.name
                operators.append(_crossing(name, feeder, operator.name, link, row_bytes))
            inputs.append(name)
        operators.append(replace(operator, inputs=tuple(inputs)))
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
            "what they weigh (a history never does); take a new sample (sample_flow)"
        )
    cost_s = row_bytes[feeder, target] / link.bytes_per_s
    return QueryOperator(name=name, inputs=(feeder,), cost_s=(cost_s,), selectivity=(1.0,))


@dataclass(frozen=True, eq=False)
class PathDelays:
    """Propagation delays of the paths from a source to a sink through a node.

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

    In [mace]'s machine graph all operators of a node are one vertex: a path may enter at one of
    them and leave from another. So P_min is the shortest way to any of them plus the shortest from
    any, and P_max the longest of each. The ways are those of the query graph, which has no circles,
    while the machine graph may. Paths of the query graph alone would be too narrow: see
    tests/foresight/test_links.py.

    Args:
        graph: m operators in topological order.
        places: shape (m,), number of each operator's node.
        count: n, the number of nodes.
        least_hop_s: shape (n, n), least travel time of an event between two; None if it takes no
            time.
        most_hop_s: the same, of the longest.
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
    """Return the worst latency at least: work and links of a way to a sink.

    The shortest way to each sink counts, and the sink with the longest of these.

    Args:
        graph: m operators in topological order.
        places: shape (m,), number of each operator's node.
        speed: shape (n,), C_i of each node.
        hop_s: shape (n, n), least travel time of an event between two; None if it takes no time.
        sinks: names of the sinks that have results.
    """
    number = {name: j for j, name in enumerate(graph.names)}
    until: list[float] = []
    for j, operator in enumerate(graph.operators):
        ways = []
        for name in operator.inputs:
            k = number.get(name, -1)
            hop = 0.0 if k < 0 or hop_s is None else float(hop_s[places[k], places[j]])
            ways.append(hop + (0.0 if k < 0 else until[k]))
        until.append(min(ways) + operator.alone_s / float(speed[places[j]]))
    return max((until[number[name]] for name in sinks), default=0.0)


def _through(
    graph: QueryGraph,
    places: Sequence[int],
    count: int,
    hop_s: FloatArray | None,
    *,
    pick: Callable[[Iterable[float]], float],
) -> FloatArray:
    through = np.zeros(count)
    if hop_s is None:
        return through
    number = {name: j for j, name in enumerate(graph.names)}
    feeds: list[list[int]] = [[] for _ in number]
    before = [0.0] * len(number)
    for j, operator in enumerate(graph.operators):
        ways = []
        for name in operator.inputs:
            k = number.get(name, -1)
            if k >= 0:
                feeds[k].append(j)
            ways.append(0.0 if k < 0 else before[k] + float(hop_s[places[k], places[j]]))
        before[j] = pick(ways)
    after = [0.0] * len(number)
    for j in reversed(range(len(number))):
        ways = [after[k] + float(hop_s[places[j], places[k]]) for k in feeds[j]]
        after[j] = pick(ways) if ways else 0.0
    for i in range(count):
        here = [j for j, place in enumerate(places) if place == i]
        if here:
            through[i] = pick(before[j] for j in here) + pick(after[j] for j in here)
    return through
