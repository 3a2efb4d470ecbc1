"""Circles of a placement: paths that return to a node, so work needs finer parts.

```
n0 ──▶ n1 ──▶ n0      returning rows are older, and go first. Meanwhile n1 gets no row, and later
 └── newer work       many at once: the waits depend on when work meets
```

Without circles, upstream work sets the pace, and an error of one subinterval does not grow. In a
circle it may grow: the pace differs if work meets at other times. It may not even converge: for one
flow, with events twice, four and ten times as many and as light, the worst latency is 44.0, 42.2,
42.9 and 42.4 s (docs/decisions/2026-11-23-circles.md). So work in circles is laid out in finer
parts, and the change of the worst latency is added to the upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.held_up import held_up
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, Workload

__all__ = ["Laid", "goes_round", "laid_over_time"]

PARTS = 4
"""Parts of a subinterval, if there are circles. More parts were no nearer on random graphs."""
MOST_STEPS = 400_000
"""Most steps of the pass over parts and operators: seconds of work. Beyond it there are fewer
parts. If two are too many, the error of the estimate is unknown, and there is no upper bound."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Laid:
    """Work laid out over time.

    Attributes:
        latency_s: shape (d,), latency of the last result of each subinterval.
        waits_s: shape (m,), longest wait of work at an operator and upstream.
        spread_s: widening of the upper bound: the difference between the worst latencies with parts
            and without, above the larger one. 0 without circles; infinite if there are circles and
            parts were too many.
        behind_s: longest wait of any event on its whole path, without travel.
    """

    latency_s: FloatArray
    waits_s: FloatArray
    spread_s: float
    behind_s: float


def laid_over_time(
    graph: QueryGraph,
    work: Workload,
    places: list[int],
    speed: FloatArray,
    *,
    hop_s: FloatArray | None,
    in_parts: bool = True,
) -> Laid:
    """Return the result of `held_up`, in finer parts of a subinterval if there are circles.

    Args:
        graph: m operators in topological order, as for `held_up`.
        work: their work, over d subintervals.
        places: shape (m,), number of each operator's node.
        speed: shape (n,), C_i of each node.
        hop_s: shape (n, n), travel time of an event; None if it takes no time.
        in_parts: whether to use finer parts; only the upper bound needs them.
    """
    coarse = _laid(graph, work, places, speed, hop_s, parts=1)
    # If no event waits longer than a subinterval, parts change no pace.
    if not in_parts or coarse.behind_s <= work.width_s or not goes_round(graph, places):
        return coarse
    parts = min(PARTS, MOST_STEPS // work.load_s.size)
    if parts < 2:
        return replace(coarse, spread_s=float("inf"))
    fine = _laid(graph, _in_parts(work, parts), places, speed, hop_s, parts=parts)
    worst_s, whole_s = (float(each.latency_s.max(initial=0.0)) for each in (fine, coarse))
    spread_s = max(worst_s, whole_s) + abs(worst_s - whole_s) - worst_s
    return replace(fine, spread_s=spread_s)


def goes_round(graph: QueryGraph, places: Sequence[int]) -> bool:
    """Whether the machine graph of [mace] §VII-B has a circle.

    Args:
        graph: graph of m operators.
        places: shape (m,), number of each operator's node.
    """
    number = {name: j for j, name in enumerate(graph.names)}
    hops = {
        (places[number[name]], places[j])
        for j, operator in enumerate(graph.operators)
        for name in operator.inputs
        if name in number and places[number[name]] != places[j]
    }
    left = set(places)
    while first := {node for node in left if not any(b == node and a in left for a, b in hops)}:
        left -= first
    return bool(left)


def _in_parts(work: Workload, parts: int) -> Workload:
    """Return the workload in shorter subintervals, even within each: [mace] A-2."""
    arrivals = {name: np.repeat(each / parts, parts) for name, each in work.arrivals.items()}
    load_s = np.repeat(work.load_s / parts, parts, axis=1)
    return Workload(work.width_s / parts, arrivals, load_s)


def _laid(
    graph: QueryGraph,
    work: Workload,
    places: list[int],
    speed: FloatArray,
    hop_s: FloatArray | None,
    *,
    parts: int,
) -> Laid:
    held = held_up(graph, work, places, speed, hop_s=hop_s)
    ends_s = np.arange(1, work.load_s.shape[1] + 1) * work.width_s
    return Laid(
        latency_s=held.latency_s.reshape(-1, parts).max(axis=1),
        waits_s=np.maximum(held.finished_s - ends_s, 0.0).max(axis=1, initial=0.0),
        spread_s=0.0,
        behind_s=held.behind_s(work.width_s),
    )
