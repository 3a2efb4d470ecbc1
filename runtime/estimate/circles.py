"""Ways that come back to a node they have left: a subinterval is too long to tell their pace.

```
n0 ──▶ n1 ──▶ n0      what comes back is older, and goes first; meanwhile n1 gets nothing, and
 └── newer work       later much at once: who waits for whom is decided by when work meets
```

Where no way comes back, what is upstream sets the pace, and an error of a subinterval stays one.
Round a circle it may grow: the pace itself is another if work meets otherwise. It may even have no
limit: of one flow, with events twice, four and ten times as many and as light, the worst latency is
44.0, 42.2, 42.9 and 42.4 s (docs/decisions/2026-11-23-circles.md). So work is laid out in finer
parts there, and by how much that changes the worst latency is added to the upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from runtime.estimate.held_up import held_up
from runtime.estimate.query_graph import FloatArray, QueryGraph, Workload

__all__ = ["Laid", "goes_round", "laid_over_time"]

PARTS = 4
"""Of a subinterval, where ways go round. With more of them it was not nearer on random graphs."""
MOST_STEPS = 400_000
"""Of the pass over parts and operators: seconds of work. Beyond it parts stay as long as they are,
and nothing is known of how far off that is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Laid:
    """Work laid out over time.

    Attributes:
        latency_s: shape (d,), of the last result of each subinterval.
        waits_s: shape (m,), the longest that work waits at an operator, and before it.
        spread_s: what the upper bound is wider by: above the larger worst latency of the two, with
            parts and without, once more what lies between them. 0 where no way goes round.
    """

    latency_s: FloatArray
    waits_s: FloatArray
    spread_s: float


def laid_over_time(
    graph: QueryGraph,
    work: Workload,
    places: list[int],
    speed: FloatArray,
    *,
    backlog_s: float,
    hop_s: FloatArray | None,
) -> Laid:
    """Return what `held_up` says, of finer parts of a subinterval where ways go round.

    Args:
        graph: as of `held_up`, and so are `work`, `places`, `speed` and `hop_s`.
        work: what there is to do.
        places: shape (m,), the number of each operator's node.
        speed: shape (n,), C_i of each node.
        backlog_s: the largest that any node has by itself; up to a subinterval there is no pace to
            lose, and nothing is laid out twice.
        hop_s: shape (n, n), how long an event travels; None: no time.
    """
    coarse = _laid(graph, work, places, speed, hop_s, parts=1)
    is_calm = backlog_s <= work.width_s
    if is_calm or PARTS * work.load_s.size > MOST_STEPS or not goes_round(graph, places):
        return coarse
    fine = _laid(graph, _in_parts(work), places, speed, hop_s, parts=PARTS)
    worst_s, whole_s = (float(each.latency_s.max(initial=0.0)) for each in (fine, coarse))
    spread_s = max(worst_s, whole_s) + abs(worst_s - whole_s) - worst_s
    return Laid(latency_s=fine.latency_s, waits_s=fine.waits_s, spread_s=spread_s)


def goes_round(graph: QueryGraph, places: Sequence[int]) -> bool:
    """Whether the machine graph of [mace] §VII-B has a circle: some node hears of what it sent.

    Args:
        graph: m operators.
        places: shape (m,), the number of each one's node.
    """
    number = {one.name: j for j, one in enumerate(graph.operators)}
    hops = {
        (places[number[name]], places[j])
        for j, one in enumerate(graph.operators)
        for name in one.inputs
        if name in number and places[number[name]] != places[j]
    }
    left = set(places)
    while first := {node for node in left if not any(b == node and a in left for a, b in hops)}:
        left -= first
    return bool(left)


def _in_parts(work: Workload) -> Workload:
    """Return the same, even within a subinterval ([mace] A-2), in shorter ones."""
    arrivals = {name: np.repeat(each / PARTS, PARTS) for name, each in work.arrivals.items()}
    load_s = np.repeat(work.load_s / PARTS, PARTS, axis=1)
    return Workload(work.width_s / PARTS, arrivals, load_s)


def _laid(
    graph: QueryGraph,
    work: Workload,
    places: list[int],
    speed: FloatArray,
    hop_s: FloatArray | None,
    *,
    parts: int,
) -> Laid:
    found = held_up(graph, work, places, speed, hop_s=hop_s)
    ends_s = np.arange(1, work.load_s.shape[1] + 1) * work.width_s
    return Laid(
        latency_s=found.latency_s.reshape(-1, parts).max(axis=1),
        waits_s=np.maximum(found.finished_s - ends_s, 0.0).max(axis=1, initial=0.0),
        spread_s=0.0,
    )
