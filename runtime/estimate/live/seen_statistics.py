"""What rows have cost and brought of late, as factors on what was predicted with.

```
predicted   0.2 ms a row, 0.95 out for a row in
of late     0.3 ms a row, 0.95                      ─▶   factors 1.5 and 1.0
```

Factors carry over to curves as they do to lines. Source: [mace] §III-B, statistics.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
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
LONG = 60
"""The same for results: those of windows come now and then."""
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
        was_selectivity: as it was predicted with.
        cores: CPU seconds a second that the stage has needed for what came to it.
    """

    cost: float = 1.0
    results: float = 1.0
    cost_s: float = 0.0
    selectivity: float = 0.0
    was_selectivity: float = 0.0
    cores: float = 0.0


class SeenStatistics:
    """The last intervals of every stage.

    Args:
        graph: as it was predicted with.
    """

    def __init__(self, graph: QueryGraph) -> None:
        self._graph = graph
        self._seen: deque[Mapping[str, StageSample]] = deque(maxlen=LONG)

    def add(self, samples: Mapping[str, StageSample]) -> None:
        """Take an interval."""
        self._seen.append(samples)

    @property
    def is_full(self) -> bool:
        """Whether a whole window has been seen."""
        return len(self._seen) >= WINDOW

    def factors(self, interval_s: float) -> dict[str, Factors]:
        """Return {stage: what is seen of it over what was predicted with}."""
        return {one.name: self._of(one, interval_s) for one in self._graph.operators}

    def _of(self, operator: QueryOperator, interval_s: float) -> Factors:
        late = list(self._seen)[-WINDOW:]
        cost, busy_s, worked = self._cost(operator, late, interval_s)
        if worked < LEAST_ROWS:
            return Factors()
        long = list(self._seen)
        rows, handed = _came(operator, long), sum(_out(one.get(operator.name)) for one in long)
        fed = self._fed(operator, long)
        planned = float(operator.output(fed, interval_s).sum())
        # What came and waits still will bring as much as what was worked off.
        done = sum(one[operator.name].rows for one in long if operator.name in one)
        results = handed * rows / done
        return Factors(
            cost=cost,
            results=results / planned if planned > 0 else 1.0,
            cost_s=busy_s / worked,
            selectivity=handed / done,
            was_selectivity=planned / rows if rows else 0.0,
            cores=busy_s * _came(operator, late) / worked / (len(late) * interval_s),
        )

    def _cost(
        self,
        operator: QueryOperator,
        late: Sequence[Mapping[str, StageSample]],
        interval_s: float,
    ) -> tuple[float, float, int]:
        """Return (the factor, seconds that it worked, rows that it worked off)."""
        own = [one[operator.name] for one in late if operator.name in one]
        worked, busy_s = sum(one.rows for one in own), sum(one.busy_ns for one in own) / 1e9
        planned_s = float(operator.load(self._fed(operator, late), interval_s).sum())
        if not worked or planned_s <= 0:
            return 1.0, busy_s, worked
        return busy_s * _came(operator, late) / worked / planned_s, busy_s, worked

    def _fed(
        self, operator: QueryOperator, seen: Sequence[Mapping[str, StageSample]]
    ) -> FloatArray:
        """Return what each input has handed on in each interval, shape (inputs, intervals)."""
        sources = {arrivals_of(name): name for name in self._graph.names}
        fed = [
            [
                _rows(one.get(sources[name])) if name in sources else _out(one.get(name))
                for one in seen
            ]
            for name in operator.inputs
        ]
        return np.array(fed, dtype=np.float64)


def _came(operator: QueryOperator, seen: Sequence[Mapping[str, StageSample]]) -> int:
    """Return how many rows came to a stage; a source works off what comes."""
    own = [one[operator.name] for one in seen if operator.name in one]
    is_source = operator.inputs == (arrivals_of(operator.name),)
    return sum(one.rows if is_source else one.came for one in own)


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
