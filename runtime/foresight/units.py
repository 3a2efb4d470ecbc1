"""ε of [mace] Theorem 2: what may stand before a row because work is not interrupted.

```
[mace]    an event     λ = Σ ω of an operator's inputs (Lemma 2), ε = Σ λ over the operators
ours      a slice      of a source, and of a stage with a gate: so many rows as fit
          a message    of a stage without one, and on a link: all that a slice handed over
```

With slices of one row ours is [mace]'s.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.config import Limits
from slackwater.runtime.foresight.curves import JoinCurve, WindowCurve
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, QueryOperator, Workload
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["ONE_EVENT", "Slices", "epsilon_s"]

LONGER = 2
"""A slice that took as long as it may is twice as long the next time, to see what rows cost, and a
stage of whose rows each takes longer tries two (`runtime/schedule/slice_size.py`)."""


@dataclass(frozen=True, kw_only=True)
class Slices:
    """How long work goes on uninterrupted.

    Attributes:
        slice_s: what a slice is cut to, seconds on a core.
        most_rows: what it has at most.
        gap_s: how long a source may not be asked again.
        cut: the stages that cut what they are handed, since they have a gate.
        is_one_event: whether all of them do, to single events: [mace]'s own ε.
    """

    slice_s: float
    most_rows: int
    gap_s: float = 0.0
    cut: Collection[str] = ()
    is_one_event: bool = False

    @classmethod
    def of(cls, limits: Limits, *, gated: Collection[str]) -> Slices:
        """Return what these limits say of a flow that has gates at these stages."""
        return cls(
            slice_s=limits.slice_ns / NS_PER_SECOND,
            most_rows=limits.max_slice_rows,
            gap_s=limits.source_gap_ns / NS_PER_SECOND,
            cut=frozenset(gated),
        )

    def rows(self, cost_s: float) -> float:
        """Return how many rows a slice may have of which each takes so long."""
        fit = np.inf if cost_s <= 0 else max(LONGER * self.slice_s / cost_s, LONGER)
        return float(min(self.most_rows, fit))


ONE_EVENT = Slices(slice_s=0.0, most_rows=1, is_one_event=True)
"""As [mace] has it."""


def epsilon_s(
    graph: QueryGraph,
    work: Workload,
    speed: FloatArray,
    slices: Slices = ONE_EVENT,
    *,
    waits_s: FloatArray,
) -> float:
    """Return ε: λ of [mace] Lemma 2, summed over the operators as the proof activates them.

    Not in it: a stage's first slices, while it does not know yet what its rows cost, and taking
    rows into a gate, which is little beside what is done with them.

    Args:
        graph: m operators in topological order.
        work: theirs.
        speed: shape (m,), C_i of each one's node.
        slices: how work is cut.
        waits_s: shape (m,), the longest that what has come to an operator waits. What it takes at
            once has no more rows than come in that time, and a subinterval more.
    """
    known = set(graph.names)
    handed = dict.fromkeys(graph.sources, np.inf)
    total_s = 0.0
    for j, one in enumerate(graph.operators):
        cost_s = _cost_s(one, work.load_s[j], work)
        span = int(np.ceil(float(waits_s[j]) / work.width_s - 1e-9)) + 1
        is_cut = one.name in slices.cut or slices.is_one_event
        rows = []
        for name, each in zip(one.inputs, cost_s, strict=True):
            taken = slices.rows(each) if is_cut or name not in known else handed[name]
            rows.append(min(taken, max(_most(work.arrivals[name], span), 1.0)))
        if not known.intersection(one.inputs):
            total_s += slices.gap_s
        total_s += float(np.dot(rows, cost_s)) / float(speed[j])
        made = max(n * each for n, each in zip(rows, _results(one, work), strict=True))
        if isinstance(one.curve, WindowCurve):  # those of a window come all together
            made = max(made, _most(work.arrivals[one.name], 1))
        handed[one.name] = max(min(made, _most(work.arrivals[one.name], span)), 1.0)
    return total_s


def _results(one: QueryOperator, work: Workload) -> Sequence[float]:
    """Return how many results an event of each input has at most: of a curve where it is densest.

    Of a join that is how many partners it meets; of others the most of a subinterval for its rows.
    """
    if one.curve is None:
        return one.selectivity
    came = np.stack([work.arrivals[name] for name in one.inputs])
    if isinstance(one.curve, JoinCurve):
        return [float(each.max()) for each in one.curve.results_of_one(came, work.width_s)]
    rows = came.sum(axis=0)
    each = np.divide(work.arrivals[one.name], rows, out=np.zeros(len(rows)), where=rows > 0)
    return (float(each.max()),) * len(one.inputs)


def _cost_s(one: QueryOperator, load_s: FloatArray, work: Workload) -> Sequence[float]:
    """Return what an event of each input costs; of a curve the mean."""
    if one.curve is None:
        return one.cost_s
    events = sum(float(work.arrivals[name].sum()) for name in one.inputs)
    return (float(load_s.sum()) / events if events else 0.0,) * len(one.inputs)


def _most(counts: FloatArray, span: int) -> float:
    """Return the most events in so many subintervals that follow each other."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    span = min(span, len(counts))
    return float((sums[span:] - sums[:-span]).max())
