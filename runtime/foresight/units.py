"""ε of [mace] Theorem 2: work before a row, since no work is interrupted.

```
[mace]    an event     λ = Σ ω of an operator's inputs (Lemma 2), ε = Σ λ over the operators
ours      a slice      of a source, and of a stage with a gate: all rows that fit
          a message    of a stage without a gate, and on a link: all results of a slice
```

With slices of one row both are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.config import Limits
from slackwater.runtime.foresight.curves import JoinCurve, PartCurve, WindowCurve, kind_of
from slackwater.runtime.foresight.query_graph import FloatArray, QueryGraph, QueryOperator, Workload
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["ONE_EVENT", "Slices", "epsilon_s"]

LONGER = 2
"""Factor of a slice after one that took its full time, to measure rows; a stage with rows that take
longer than a slice tries two (`runtime/schedule/slice_size.py`)."""


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Units of work that are not interrupted.

    Attributes:
        slice_s: length of a slice, seconds on a core.
        most_rows: most rows of a slice.
        gap_s: longest pause of a source between two slices.
        cut: stages that cut messages into slices, since they have a gate.
        is_one_event: whether all stages cut to single events: [mace]'s own ε.
    """

    slice_s: float
    most_rows: int
    gap_s: float = 0.0
    cut: Collection[str] = ()
    is_one_event: bool = False

    @classmethod
    def of(cls, limits: Limits, *, gated: Collection[str]) -> Slices:
        """Return the units by a job's limits, with gates at these stages."""
        return cls(
            slice_s=limits.slice_ns / NS_PER_SECOND,
            most_rows=limits.max_slice_rows,
            gap_s=limits.source_gap_ns / NS_PER_SECOND,
            cut=frozenset(gated),
        )

    def rows(self, cost_s: float) -> float:
        """Return the most rows of a slice, by the cost of a row."""
        fit = np.inf if cost_s <= 0 else max(LONGER * self.slice_s / cost_s, LONGER)
        return float(min(self.most_rows, fit))


ONE_EVENT = Slices(slice_s=0.0, most_rows=1, is_one_event=True)
"""Units of [mace]: one event."""


def epsilon_s(
    graph: QueryGraph,
    work: Workload,
    speed: FloatArray,
    slices: Slices = ONE_EVENT,
    *,
    waits_s: FloatArray,
) -> float:
    """Return ε: λ of [mace] Lemma 2, summed as the proof activates operators.

    It omits a stage's first slices, before the stage knows the cost of its rows, and the intake of
    rows into a gate, which is small beside the work on them.

    Args:
        graph: m operators in topological order.
        work: work of the operators.
        speed: shape (m,), C_i of each operator's node.
        slices: rule by which work is cut.
        waits_s: shape (m,), longest wait of rows at each operator. One unit of it has no more rows
            than arrive in that time plus a subinterval.
    """
    known = set(graph.names)
    handed = dict.fromkeys(graph.sources, np.inf)
    total_s = 0.0
    for j, operator in enumerate(graph.operators):
        cost_s = _cost_s(operator, work.load_s[j], work)
        span = int(np.ceil(float(waits_s[j]) / work.width_s - 1e-9)) + 1
        is_cut = operator.name in slices.cut or slices.is_one_event
        rows = []
        for name, each in zip(operator.inputs, cost_s, strict=True):
            unit = slices.rows(each) if is_cut or name not in known else handed[name]
            rows.append(min(unit, max(_most(work.arrivals[name], span), 1.0)))
        if not known.intersection(operator.inputs):
            total_s += slices.gap_s
        total_s += float(np.dot(rows, cost_s)) / float(speed[j])
        made = max(n * each for n, each in zip(rows, _results(operator, work), strict=True))
        out = work.arrivals[operator.name]
        if isinstance(kind_of(operator.curve), WindowCurve):  # results of a window leave together
            made = max(made, _most(out, 1))
        handed[operator.name] = max(min(made, _most(out, span)), 1.0)
    return total_s


def _results(operator: QueryOperator, work: Workload) -> Sequence[float]:
    """Return the most results of an event of each input, by subinterval.

    For a join these are the partners that the event meets; for others the most results of a
    subinterval, divided by its rows.
    """
    if operator.curve is None:
        return operator.selectivity
    came = np.stack([work.arrivals[name] for name in operator.inputs])
    curve = operator.curve
    if isinstance(curve, JoinCurve | PartCurve) and isinstance(kind_of(curve), JoinCurve):
        return [float(each.max()) for each in curve.results_of_one(came, work.width_s)]
    rows = came.sum(axis=0)
    each = np.divide(work.arrivals[operator.name], rows, out=np.zeros(len(rows)), where=rows > 0)
    return (float(each.max()),) * len(operator.inputs)


def _cost_s(operator: QueryOperator, load_s: FloatArray, work: Workload) -> Sequence[float]:
    """Return the cost of an event of each input; of a curve the mean."""
    if operator.curve is None:
        return operator.cost_s
    events = sum(float(work.arrivals[name].sum()) for name in operator.inputs)
    return (float(load_s.sum()) / events if events else 0.0,) * len(operator.inputs)


def _most(counts: FloatArray, span: int) -> float:
    """Return the most events in a span of consecutive subintervals."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    span = min(span, len(counts))
    return float((sums[span:] - sums[:-span]).max())
