"""Shifts: statistics that have been far from the prediction's for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from slackwater.runtime.foresight.live.recent_statistics import StageStatistics
from slackwater.runtime.foresight.query_graph import QueryGraph, Workload, arrivals_of
from slackwater.runtime.measure.prediction import Shift
from slackwater.runtime.plan.expected import ExpectedLatency

__all__ = ["Shifts"]

FAR = 1.25
"""Least ratio of a statistic to the predicted one, either way, for a shift."""
WEIGHT = 0.1
"""Least change of its slot's load by a shift, in cores."""
LASTS = 3
"""Least number of looks in a row for a shift: one burst is no shift."""


class Shifts:
    """Shifts of one job.

    Args:
        graph: the graph of the prediction.
        expected: the prediction.
    """

    def __init__(self, graph: QueryGraph, expected: ExpectedLatency) -> None:
        self._graph, self._expected = graph, expected
        self._streaks: dict[tuple[str, str], int] = {}
        self._found: dict[tuple[str, str], Shift] = {}

    @property
    def found(self) -> list[Shift]:
        """Shifts so far, with their latest values."""
        return list(self._found.values())

    def resume(self, shifts: Iterable[Shift]) -> None:
        """Begin with earlier shifts."""
        self._found = {(shift.of, shift.what): shift for shift in shifts}

    def look(
        self,
        statistics: Mapping[str, StageStatistics],
        rates: Mapping[str, float | None],
        *,
        at_s: float,
    ) -> None:
        """Compare recent statistics with the prediction's.

        Args:
            statistics: {stage: statistics of the stage}.
            rates: {source: recent events a second; None if unknown}.
            at_s: time since the sources began.
        """
        now = {
            (shift.of, shift.what): shift
            for shift in (*self._of_stages(statistics, at_s), *self._of_rates(rates, at_s))
        }
        self._streaks = {which: self._streaks.get(which, 0) + 1 for which in now}
        for which, shift in now.items():
            if which in self._found:
                since_s = self._found[which].at_s
                self._found[which] = replace(shift, at_s=since_s)
            elif self._streaks[which] >= LASTS:
                self._found[which] = shift

    def _of_stages(self, statistics: Mapping[str, StageStatistics], at_s: float) -> Iterator[Shift]:
        for stage, by in statistics.items():
            if not by.cost_s:
                continue
            was = by.cores * by.was_cost_s / by.cost_s
            if _is_far(by.cost_s, by.was_cost_s) and abs(by.cores - was) >= WEIGHT:
                yield Shift(
                    of=stage, what="cost", was=by.was_cost_s, now=by.cost_s, at_s=at_s, last_s=at_s
                )
            rows = by.cores / by.cost_s  # that arrive in a second
            moved = abs(by.selectivity - by.was_selectivity) * rows * self._readers_s(stage)
            if by.results is not None and _is_far(by.results, 1.0) and moved >= WEIGHT:
                yield Shift(
                    of=stage,
                    what="results",
                    was=by.was_selectivity,
                    now=by.selectivity,
                    at_s=at_s,
                    last_s=at_s,
                )

    def _of_rates(self, rates: Mapping[str, float | None], at_s: float) -> Iterator[Shift]:
        for source, now in rates.items():
            given = self._expected.rates[source]
            if now is None or given.least / FAR <= now <= given.most * FAR:
                continue
            if self._moves(source, now, given.mean) >= WEIGHT:
                was = given.most if now > given.mean else given.least
                yield Shift(of=source, what="rate", was=was, now=now, at_s=at_s, last_s=at_s)

    def _readers_s(self, stage: str) -> float:
        """Return the cost of a stage's output row at the stages that it feeds."""
        return sum(
            cost_s
            for reader in self._graph.operators
            for name, cost_s in zip(reader.inputs, reader.cost_s, strict=True)
            if name == stage
        )

    def _moves(self, source: str, now: float, given: float) -> float:
        """Return the change of the load of all slots by another rate, in cores."""
        means = {name: known.mean for name, known in self._expected.rates.items()}
        loads = []
        for rate in (now, given):
            arrivals = {arrivals_of(name): [each] for name, each in {**means, source: rate}.items()}
            loads.append(float(Workload.of(self._graph, arrivals, 1.0).load_s.sum()))
        return abs(loads[0] - loads[1])


def _is_far(now: float, was: float) -> bool:
    return now > was * FAR or now < was / FAR
