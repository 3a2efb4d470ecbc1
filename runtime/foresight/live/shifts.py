"""Which statistics are far from what was predicted with, and have been for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from slackwater.runtime.foresight.live.seen_statistics import Seen
from slackwater.runtime.foresight.query_graph import QueryGraph, Workload, arrivals_of
from slackwater.runtime.measure.prediction import Shift
from slackwater.runtime.plan.expected import ExpectedLatency

__all__ = ["Shifts"]

FAR = 1.25
"""A statistic has shifted if it is so many times what was predicted with, or as much less."""
WEIGHT = 0.1
"""And it moves the load of its slot by so much of a core."""
LASTS = 3
"""And so often in a row: one burst is none."""


class Shifts:
    """The shifts of one job.

    Args:
        graph: as it was predicted with.
        expected: what was predicted.
    """

    def __init__(self, graph: QueryGraph, expected: ExpectedLatency) -> None:
        self._graph, self._expected = graph, expected
        self._streaks: dict[tuple[str, str], int] = {}
        self._found: dict[tuple[str, str], Shift] = {}

    @property
    def found(self) -> list[Shift]:
        """All that there were."""
        return list(self._found.values())

    def resume(self, shifts: Iterable[Shift]) -> None:
        """Begin with what was found before."""
        self._found = {(one.of, one.what): one for one in shifts}

    def look(
        self,
        seen: Mapping[str, Seen],
        rates: Mapping[str, float | None],
        *,
        at_s: float,
    ) -> None:
        """Compare what is seen now.

        Args:
            seen: {stage: what is known of it}.
            rates: {source: events a second of late; None: not known}.
            at_s: how long the sources have run.
        """
        now = {
            (one.of, one.what): one
            for one in (*self._of_stages(seen, at_s), *self._of_rates(rates, at_s))
        }
        self._streaks = {which: self._streaks.get(which, 0) + 1 for which in now}
        for which, one in now.items():
            if which in self._found:
                since_s = self._found[which].at_s
                self._found[which] = replace(one, at_s=since_s)
            elif self._streaks[which] >= LASTS:
                self._found[which] = one

    def _of_stages(self, seen: Mapping[str, Seen], at_s: float) -> Iterator[Shift]:
        for stage, by in seen.items():
            if not by.cost_s:
                continue
            was = by.cores * by.was_cost_s / by.cost_s
            if _is_far(by.cost_s, by.was_cost_s) and abs(by.cores - was) >= WEIGHT:
                yield Shift(
                    of=stage, what="cost", was=by.was_cost_s, now=by.cost_s, at_s=at_s, last_s=at_s
                )
            rows = by.cores / by.cost_s  # that come in a second
            moved = abs(by.selectivity - by.was_selectivity) * rows * self._behind_s(stage)
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

    def _behind_s(self, stage: str) -> float:
        """Return what a row of a stage costs those that it feeds."""
        return sum(
            cost_s
            for one in self._graph.operators
            for name, cost_s in zip(one.inputs, one.cost_s, strict=True)
            if name == stage
        )

    def _moves(self, source: str, now: float, given: float) -> float:
        """Return by how much of a core another rate moves the load of all slots."""
        rates = {name: one.mean for name, one in self._expected.rates.items()}
        loads = []
        for rate in (now, given):
            arrivals = {arrivals_of(name): [one] for name, one in {**rates, source: rate}.items()}
            loads.append(float(Workload.of(self._graph, arrivals, 1.0).load_s.sum()))
        return abs(loads[0] - loads[1])


def _is_far(now: float, was: float) -> bool:
    return now > was * FAR or now < was / FAR
