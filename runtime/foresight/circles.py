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
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.held_up import held_up
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, Workload

__all__ = ["Laid", "goes_round", "laid_over_time"]

PARTS = 4
"""Of a subinterval, where ways go round. With more of them it was not nearer on random graphs."""
MOST_STEPS = 400_000
"""Of the pass over parts and operators: seconds of work. Beyond it there are fewer parts; where two
are too many, nothing is known of how far off the estimate is, and there is no upper bound."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Laid:
    """Work laid out over time.

    Attributes:
        latency_s: shape (d,), of the last result of each subinterval.
        waits_s: shape (m,), the longest that work waits at an operator, and before it.
        spread_s: what the upper bound is wider by: above the larger worst latency of the two, with
            parts and without, once more what lies between them. 0 where no way goes round; infinite
            where that was not looked at, though one does.
        behind_s: the longest that any event waits, all the way, what it travels left out.
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
    """Return what `held_up` says, of finer parts of a subinterval where ways go round.

    Args:
        graph: as of `held_up`, and so are `work`, `places`, `speed` and `hop_s`.
        work: what there is to do.
        places: shape (m,), the number of each operator's node.
        speed: shape (n,), C_i of each node.
        hop_s: shape (n, n), how long an event travels; None: no time.
        in_parts: whether finer parts are wanted; they are not where no bound is asked for.
    """
    coarse = _laid(graph, work, places, speed, hop_s, parts=1)
    # Where nothing waits for longer than a subinterval there is no pace to lose.
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


def _in_parts(work: Workload, parts: int) -> Workload:
    """Return the same, even within a subinterval ([mace] A-2), in shorter ones."""
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
    found = held_up(graph, work, places, speed, hop_s=hop_s)
    ends_s = np.arange(1, work.load_s.shape[1] + 1) * work.width_s
    return Laid(
        latency_s=found.latency_s.reshape(-1, parts).max(axis=1),
        waits_s=np.maximum(found.finished_s - ends_s, 0.0).max(axis=1, initial=0.0),
        spread_s=0.0,
        behind_s=found.behind_s(work.width_s),
    )
