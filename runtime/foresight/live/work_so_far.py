"""Work of arrivals so far, by interval; work that was counted stays unchanged.

```
arrived   120  80  95 …      by stimulus
load      0.9 0.6 0.7 …      at the cost of rows on their arrival
carried   0.4 s              backlog of each stage at the end of the intervals no longer kept
```

Source: [mace] §VI-C; by Def. 8 one number for each node stands for all older work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.query_graph import (
    FloatArray,
    QueryGraph,
    QueryOperator,
    Workload,
    arrivals_of,
)

__all__ = ["WorkSoFar"]

KEEPS = 256
"""Number of intervals that are kept separately."""


class WorkSoFar:
    """Arrivals at each source, and the work that they make.

    Args:
        graph: the graph of the prediction, with operators for links with a capacity.
        slots: {stage: its slot}, and {operator of a link: the link}.
        interval_s: length of an interval.
        reach: number of intervals that a curve looks back: the length of its longest window.
    """

    def __init__(
        self, graph: QueryGraph, slots: Mapping[str, str], *, interval_s: float, reach: int
    ) -> None:
        self._graph, self._slots = graph, dict(slots)
        self._width_s, self._reach = interval_s, reach
        self._arrived: dict[str, dict[int, int]] = {
            name: {} for name in graph.names if arrivals_of(name) in graph.sources
        }
        self._load: dict[int, FloatArray] = {}  # {interval: seconds of each stage}
        self._out: dict[int, dict[str, float]] = {}  # {interval: rows out of each stage}
        self._carried_s: dict[str, float] = {}  # {stage: backlog at the end of dropped intervals}
        self._oldest: int | None = None  # the first interval that is kept
        self._changed: int | None = None
        self.first: int | None = None

    def arrived(self, source: str, number: int, rows: int) -> None:
        """Count rows by their stimulus.

        Rows older than all kept intervals count in the oldest: their work is still to be done.
        """
        counts = self._arrived[source]
        if self._oldest is not None:
            number = max(number, self._oldest)
        counts[number] = counts.get(number, 0) + rows
        self._changed = number if self._changed is None else min(self._changed, number)
        self.first = number if self.first is None else min(self.first, number)

    def count_again(self) -> None:
        """Count all kept intervals again, with the next costs: the first were a guess."""
        if self._load:
            first = min(self._load)
            self._changed = first if self._changed is None else min(self._changed, first)

    def events(self, number: int) -> int:
        """Return the rows that arrived in an interval."""
        return sum(counts.get(number, 0) for counts in self._arrived.values())

    def rate(self, source: str, seconds: float) -> float | None:
        """Return recent events a second, by stimulus; None if too little is known.

        For a source with a backlog, recent are the rows that it has reached; for an ended source,
        its last events.
        """
        counts, many = self._arrived[source], max(round(seconds / self._width_s), 1)
        if not counts or (last := max(counts)) - min(counts) < many:
            return None
        rows = sum(counts.get(number, 0) for number in range(last - many, last))
        return rows / (many * self._width_s)

    def count(self, operators: Sequence[QueryOperator]) -> int | None:
        """Count new arrivals at the present costs; return the first changed interval."""
        changed, self._changed = self._changed, None
        numbers = [number for counts in self._arrived.values() for number in counts]
        if changed is None or not numbers:
            return None
        last = max(numbers)
        begin = max(changed - self._reach, min(numbers))
        series = {
            arrivals_of(source): _series(counts, begin, last)
            for source, counts in self._arrived.items()
        }
        graph = QueryGraph(self._graph.sources, tuple(operators))
        work = Workload.of(graph, series, self._width_s)
        for number in range(changed, last + 1):
            at = number - begin
            self._load[number] = work.load_s[:, at]
            self._out[number] = {name: float(out[at]) for name, out in work.arrivals.items()}
        self._drop(last - KEEPS)
        return max(changed, min(self._load))

    def workload(self) -> tuple[int, QueryGraph, Workload]:
        """Return (the first interval, the graph, its work with the carried backlog)."""
        first, last = min(self._load), max(self._load)
        count = last - first + 1
        load_s = np.zeros((len(self._graph.operators), count))
        names = [*self._graph.sources, *self._graph.names]
        out = {name: np.zeros(count) for name in names}
        for number, each_s in self._load.items():
            load_s[:, number - first] = each_s
            for name, rows in self._out[number].items():
                out[name][number - first] = rows
        for j, name in enumerate(self._graph.names):
            load_s[j, 0] += self._carried_s.get(name, 0.0)
        return first, _given(self._graph), Workload(self._width_s, out, load_s)

    def moved(self, graph: QueryGraph, slots: Mapping[str, str]) -> None:
        """Note that stages continue in other slots, with their backlogs.

        Rows that wait for a link that is no longer used count as arrived.
        """
        if self._load:
            self._drop(max(self._load) + 1)
        self._graph, self._slots = graph, dict(slots)
        self._carried_s = {name: s for name, s in self._carried_s.items() if name in slots}

    def _drop(self, before: int) -> None:
        gone = sorted(number for number in self._load if number < before)
        for number in gone:
            each_s = self._load.pop(number)
            del self._out[number]
            work_of: dict[str, dict[str, float]] = {}  # {slot: {stage: its work}}
            for name, work_s in zip(self._graph.names, each_s.tolist(), strict=True):
                whole_s = work_s + self._carried_s.get(name, 0.0)
                work_of.setdefault(self._slots[name], {})[name] = whole_s
            for stages in work_of.values():
                total_s = sum(stages.values())
                left = max(total_s - self._width_s, 0.0) / total_s if total_s > 0 else 0.0
                self._carried_s |= {name: whole_s * left for name, whole_s in stages.items()}
        if gone:
            self._oldest = gone[-1] + 1
        for counts in self._arrived.values():
            for number in [number for number in counts if number < before - self._reach]:
                del counts[number]


def _series(counts: Mapping[int, int], first: int, last: int) -> FloatArray:
    return np.array([counts.get(number, 0) for number in range(first, last + 1)], dtype=np.float64)


@dataclass(frozen=True)
class _Given:
    """Curve that no caller uses: the workload has its values already."""

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        raise NotImplementedError

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        raise NotImplementedError

    def at_speed(self, speed: float) -> _Given:
        raise NotImplementedError


def _given(graph: QueryGraph) -> QueryGraph:
    """Return the graph for an estimator that uses loads, not the costs of rows."""
    operators = [
        QueryOperator(
            name=operator.name,
            inputs=operator.inputs,
            cost_s=operator.cost_s,
            selectivity=operator.selectivity,
            curve=_Given(),
            alone_s=operator.alone_s,
        )
        for operator in graph.operators
    ]
    return QueryGraph(graph.sources, tuple(operators))
