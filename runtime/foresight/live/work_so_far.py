"""The work of what has arrived, interval by interval: what was counted once stays as it was.

```
arrived   120  80  95 …      by stimulus
load      0.9 0.6 0.7 …      with what rows cost as they came
carried   0.4 s              what the intervals before the first that is kept have left behind,
                             of each stage
```

Source: [mace] §VI-C; Def. 8 lets all that is older be one number for each node.
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
"""Intervals that are kept one by one."""


class WorkSoFar:
    """What arrived at each source, and the work that it makes.

    Args:
        graph: as it was predicted with, and what crosses links with a capacity.
        slots: {stage: its slot}, and {what crosses a link: the link}.
        interval_s: how long an interval is.
        reach: how many intervals back a curve looks: as many as its longest window has.
    """

    def __init__(
        self, graph: QueryGraph, slots: Mapping[str, str], *, interval_s: float, reach: int
    ) -> None:
        self._graph, self._slots = graph, dict(slots)
        self._width_s, self._reach = interval_s, reach
        self._arrived: dict[str, dict[int, int]] = {
            name: {} for name in graph.names if arrivals_of(name) in graph.sources
        }
        self._load: dict[int, FloatArray] = {}  # {interval: of each stage, seconds}
        self._out: dict[int, dict[str, float]] = {}  # {interval: what each puts out}
        self._carried_s: dict[str, float] = {}  # {stage: behind at the end of what was let go}
        self._oldest: int | None = None  # nothing older is kept
        self._changed: int | None = None
        self.first: int | None = None

    def arrived(self, source: str, number: int, rows: int) -> None:
        """Count rows by their stimulus.

        Rows older than all that is kept come on top of the oldest: their work is still to be done.
        """
        counts = self._arrived[source]
        if self._oldest is not None:
            number = max(number, self._oldest)
        counts[number] = counts.get(number, 0) + rows
        self._changed = number if self._changed is None else min(self._changed, number)
        self.first = number if self.first is None else min(self.first, number)

    def count_again(self) -> None:
        """Count all that is kept with the next costs: what it was counted with was a guess."""
        if self._load:
            first = min(self._load)
            self._changed = first if self._changed is None else min(self._changed, first)

    def events(self, number: int) -> int:
        """Return how many rows arrived in an interval."""
        return sum(counts.get(number, 0) for counts in self._arrived.values())

    def rate(self, source: str, seconds: float) -> float | None:
        """Return events a second of late, by stimulus; None: too little is known.

        Of a source that is behind, late is where it has got to; of one that has ended, its last
        events.
        """
        counts, many = self._arrived[source], max(round(seconds / self._width_s), 1)
        if not counts or (last := max(counts)) - min(counts) < many:
            return None
        rows = sum(counts.get(number, 0) for number in range(last - many, last))
        return rows / (many * self._width_s)

    def count(self, operators: Sequence[QueryOperator]) -> int | None:
        """Work out what is new with what rows cost now; return from which interval on."""
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
        self._let_go(last - KEEPS)
        return max(changed, min(self._load))

    def workload(self) -> tuple[int, QueryGraph, Workload]:
        """Return (the first interval, the graph, its work), what is carried over being in it."""
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
        """Stages go on in other slots: what is behind goes with them.

        What waited for a link that no more rows go over is taken to be across.
        """
        if self._load:
            self._let_go(max(self._load) + 1)
        self._graph, self._slots = graph, dict(slots)
        self._carried_s = {name: s for name, s in self._carried_s.items() if name in slots}

    def _let_go(self, before: int) -> None:
        gone = sorted(number for number in self._load if number < before)
        for number in gone:
            each_s = self._load.pop(number)
            del self._out[number]
            behind_s: dict[str, dict[str, float]] = {}  # {slot: {stage: what it has to do}}
            for name, work_s in zip(self._graph.names, each_s.tolist(), strict=True):
                whole_s = work_s + self._carried_s.get(name, 0.0)
                behind_s.setdefault(self._slots[name], {})[name] = whole_s
            for stages in behind_s.values():
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
    """A curve that is not asked: what it would say is in the workload already."""

    def load_s(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        raise NotImplementedError

    def events_out(self, arrivals: FloatArray, width_s: float) -> FloatArray:
        raise NotImplementedError

    def at_speed(self, speed: float) -> _Given:
        raise NotImplementedError


def _given(graph: QueryGraph) -> QueryGraph:
    """Return the graph as an estimator takes it that goes by loads, not by what a row costs."""
    operators = [
        QueryOperator(
            name=one.name,
            inputs=one.inputs,
            cost_s=one.cost_s,
            selectivity=one.selectivity,
            curve=_Given(),
            alone_s=one.alone_s,
        )
        for one in graph.operators
    ]
    return QueryGraph(graph.sources, tuple(operators))
