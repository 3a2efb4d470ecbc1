"""What rows have cost and brought of late, as factors on what was predicted with.

```
predicted   0.2 ms a row, 0.95 out for a row in
of late     0.3 ms a row, 0.95                      ─▶   factors 1.5 and 1.0
```

Factors carry over to curves as they do to lines. Source: [mace] §III-B, statistics.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from runtime.estimate.query_graph import (
    CostCurve,
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from runtime.measure.samples import StageSample

__all__ = ["WINDOW", "Factors", "SeenStatistics", "scaled"]

WINDOW = 10
"""Intervals that count as "of late"."""
LEAST_ROWS = 100
"""Of a stage in the window; of fewer rows nothing is said."""


@dataclass(frozen=True, slots=True)
class Factors:
    """What is seen over what was predicted with: 1 where it fits, or too little was seen.

    Attributes:
        cost: of what a row costs.
        results: of how many come of it.
        cost_s: what a row has cost.
        selectivity: rows out for a row in.
        cores: CPU seconds a second that the stage has needed for what came to it.
    """

    cost: float = 1.0
    results: float = 1.0
    cost_s: float = 0.0
    selectivity: float = 0.0
    cores: float = 0.0


class SeenStatistics:
    """The last intervals of every stage.

    Args:
        graph: as it was predicted with.
    """

    def __init__(self, graph: QueryGraph) -> None:
        self._graph = graph
        self._seen: deque[Mapping[str, StageSample]] = deque(maxlen=WINDOW)

    def add(self, samples: Mapping[str, StageSample]) -> None:
        """Take an interval."""
        self._seen.append(samples)

    @property
    def is_full(self) -> bool:
        """Whether a whole window has been seen."""
        return len(self._seen) == WINDOW

    def factors(self, interval_s: float) -> dict[str, Factors]:
        """Return {stage: what is seen of it over what was predicted with}."""
        return {one.name: self._of(one, interval_s) for one in self._graph.operators}

    def _of(self, operator: QueryOperator, interval_s: float) -> Factors:
        own = [one[operator.name] for one in self._seen if operator.name in one]
        is_source = operator.inputs == (arrivals_of(operator.name),)
        worked = sum(one.rows for one in own)
        came = worked if is_source else sum(one.came for one in own)
        if worked < LEAST_ROWS or not came:
            return Factors()
        fed = np.stack([self._handed(name) for name in operator.inputs])
        busy_s, handed = sum(one.busy_ns for one in own) / 1e9, sum(one.handed for one in own)
        # What came and waits still will cost as much as what was worked off.
        needed_s, results = busy_s * came / worked, handed * came / worked
        planned_s = float(operator.load(fed, interval_s).sum())
        planned = float(operator.output(fed, interval_s).sum())
        return Factors(
            cost=needed_s / planned_s if planned_s > 0 else 1.0,
            results=results / planned if planned > 0 else 1.0,
            cost_s=busy_s / worked,
            selectivity=handed / worked,
            cores=needed_s / (len(self._seen) * interval_s),
        )

    def _handed(self, name: str) -> FloatArray:
        """Return what an input has handed on in each interval, shape (intervals,)."""
        source = {arrivals_of(one): one for one in self._graph.names}.get(name)
        if source is not None:
            return np.array([_rows(one.get(source)) for one in self._seen], dtype=np.float64)
        return np.array([_out(one.get(name)) for one in self._seen], dtype=np.float64)


def _rows(sample: StageSample | None) -> int:
    return 0 if sample is None else sample.rows


def _out(sample: StageSample | None) -> int:
    return 0 if sample is None else sample.handed


@dataclass(frozen=True)
class _Scaled:
    """A curve times factors."""

    curve: CostCurve
    factors: Factors

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        return np.asarray(self.curve.load_s(arrivals, width_s) * self.factors.cost)

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        return np.asarray(self.curve.events_out(arrivals, width_s) * self.factors.results)


def scaled(graph: QueryGraph, factors: Mapping[str, Factors]) -> QueryGraph:
    """Return the graph with what is seen in place of what was predicted with."""
    operators = []
    for one in graph.operators:
        by = factors.get(one.name, Factors())
        operators.append(
            QueryOperator(
                name=one.name,
                inputs=one.inputs,
                cost_s=tuple(cost_s * by.cost for cost_s in one.cost_s),
                selectivity=tuple(rows * by.results for rows in one.selectivity),
                curve=None if one.curve is None else _Scaled(one.curve, by),
            )
        )
    return QueryGraph(graph.sources, tuple(operators))
