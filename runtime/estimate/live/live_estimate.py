"""Latency to be expected of what has arrived so far, interval by interval; what has shifted.

```
samples ─▶ arrivals by stimulus ─┐
       └─▶ factors on costs ─────┴─▶ the estimate of [mace] ─▶ beside the plan's, and the measured
```

A decider of the control loop that wants nothing: it keeps a report. Source: [mace] §VI-B, VI-C; on
Ray it lives in the job's control actor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from runtime.control import Command, FlowGraph
from runtime.estimate.latency_estimate import estimate_latency
from runtime.estimate.live.seen_statistics import WINDOW, Factors, SeenStatistics, scaled
from runtime.estimate.query_graph import FloatArray, QueryGraph, Workload, arrivals_of
from runtime.measure.prediction import (
    MOST_SPANS,
    PredictedSpan,
    PredictionReport,
    Shift,
    coarser,
)
from runtime.measure.samples import StageSample
from runtime.model import NS_PER_SECOND
from runtime.plan.expected import ExpectedLatency

__all__ = ["LiveEstimate", "planned_report"]

REFRESH_NS = NS_PER_SECOND
"""Estimates are made at most this often, whatever the intervals."""
LOOKS_BACK = 256
"""Intervals that an estimate begins with: what was held up before them is over, or counted."""
FAR = 1.25
"""A statistic has shifted if it is so many times what was predicted with, or as much less."""
WEIGHT = 0.1
"""And it moves the load of its slot by so much of a core."""
BUSY = 0.5
"""And the slot is so busy: slices of an idle one are short, and a row in them costs more."""


class LiveEstimate:
    """The estimate of one job.

    Args:
        graph: of the flow, as deciders see it.
        expected: what was predicted.
        resumed: what an estimate in whose place this one is had reported.
    """

    name = "mace"

    def __init__(
        self,
        graph: FlowGraph,
        expected: ExpectedLatency,
        *,
        resumed: PredictionReport | None = None,
    ) -> None:
        assert isinstance(expected.graph, QueryGraph), "made by `Prediction.expected`"
        self._planned: QueryGraph = expected.graph
        self._expected, self._slots = expected, dict(graph.slots)
        self._capacity = dict.fromkeys(graph.slot_names, 1.0)
        self._interval_ns = graph.interval_ns
        self._seen = SeenStatistics(self._planned)
        self._arrived: dict[str, dict[int, int]] = {
            name: {} for name in self._planned.names if not graph.inputs[name]
        }
        self._changed: int | None = None  # the oldest interval that something came to since
        self._first: int | None = None  # the interval that the sources began in
        self._spans: dict[int, PredictedSpan] = {}
        self._past: list[PredictedSpan] = []  # those that have left `_spans`, coarser
        self._shifts: dict[tuple[str, str], Shift] = {}
        self._waited_ns = REFRESH_NS
        if resumed is not None:
            self._past = list(resumed.spans)
            self._shifts = {(one.of, one.what): one for one in resumed.shifts}
        self._load: dict[str, float] = {}

    def begin(self) -> Sequence[Command]:
        """Return nothing: it decides nothing."""
        return []

    def decide(self, interval: int, samples: Mapping[str, StageSample], /) -> Sequence[Command]:
        """Take an interval that is over."""
        self._seen.add(samples)
        for source, counts in self._arrived.items():
            if source in samples:
                for number, rows in samples[source].arrived:
                    counts[number] = counts.get(number, 0) + rows
                    self._changed = number if self._changed is None else min(self._changed, number)
        self._waited_ns += self._interval_ns
        if self._waited_ns >= REFRESH_NS:
            self._waited_ns = 0
            self._refresh(interval)
        return []

    def report(self) -> PredictionReport:
        """Return what is known."""
        spans = [*self._past, *(self._spans[number] for number in sorted(self._spans))]
        return replace(
            planned_report(self._expected),
            seen_load=dict(self._load),
            spans=_fitting(spans, MOST_SPANS),
            shifts=list(self._shifts.values()),
        )

    # -- an estimate ----------------------------------------------------------------------------

    def _refresh(self, interval: int) -> None:
        interval_s = self._interval_ns / NS_PER_SECOND
        factors = self._seen.factors(interval_s)
        self._load = dict.fromkeys(self._capacity, 0.0)
        for stage, slot in self._slots.items():
            self._load[slot] += factors.get(stage, Factors()).cores
        self._note_shifts(factors, interval, interval_s)
        numbers = [number for counts in self._arrived.values() for number in counts]
        if self._changed is None or not numbers:
            return
        changed, self._changed = self._changed, None
        last = max(numbers)
        first = min(*numbers, changed)
        if self._first is None:
            self._first = first
        first = max(first, last - LOOKS_BACK)
        arrivals = {
            arrivals_of(source): _series(counts, first, last)
            for source, counts in self._arrived.items()
        }
        graph = scaled(self._planned, factors)
        work = Workload.of(graph, arrivals, interval_s)
        found = estimate_latency(graph, work, self._slots, self._capacity)
        events = sum(arrivals.values())
        # Who comes first in an interval finds what was behind at the end of the one before.
        worst_s = np.maximum(found.held_up_s, np.concatenate([[0.0], found.held_up_s[:-1]]))
        for p in range(max(changed, first), last + 1):
            self._spans[p] = PredictedSpan(
                start_ns=p * self._interval_ns,
                width_ns=self._interval_ns,
                events=round(float(np.asarray(events)[p - first])),
                planned_ns=self._planned_ns(p),
                estimated_ns=round(float(worst_s[p - first]) * 1e9),
            )
        self._forget(last - LOOKS_BACK)

    def _planned_ns(self, number: int) -> int | None:
        assert self._first is not None, "an interval has been seen"
        width_ns = self._expected.width_s * NS_PER_SECOND
        begin = (number - self._first) * self._interval_ns / width_ns
        end = begin + self._interval_ns / width_ns
        within = self._expected.latency_s[int(begin) : max(int(np.ceil(end)), int(begin) + 1)]
        return round(max(within) * 1e9) if within and begin >= 0 else None

    def _forget(self, before: int) -> None:
        for counts in self._arrived.values():
            for number in [number for number in counts if number < before]:
                del counts[number]
        old = sorted(number for number in self._spans if number < before)
        if len(old) < LOOKS_BACK:
            return
        self._past = _fitting([*self._past, *map(self._spans.pop, old)], MOST_SPANS // 2)

    # -- what has shifted -----------------------------------------------------------------------

    def _note_shifts(
        self, factors: Mapping[str, Factors], interval: int, interval_s: float
    ) -> None:
        if not self._seen.is_full:
            return
        at_s = (interval + 1) * interval_s
        for stage, by in factors.items():
            load = self._load[self._slots[stage]]
            if load < BUSY or not by.cores:
                continue
            if _is_far(by.cost) and abs(by.cores - by.cores / by.cost) >= WEIGHT:
                self._shift(stage, "cost", by.cost_s / by.cost, by.cost_s, at_s)
            if _is_far(by.results) and self._moves(stage, by):
                self._shift(stage, "results", by.was_selectivity, by.selectivity, at_s)
        for source, given in self._expected.rates.items():
            now = _rate(self._arrived[source], interval_s)
            if now is None or given.least / FAR <= now <= given.most * FAR:
                continue
            share = max(now / given.mean, 1e-9) if given.mean else 1e9
            if self._needs(source, now, given.mean) >= WEIGHT:
                was = given.most if share > 1 else given.least
                self._shift(source, "rate", was, now, at_s)

    def _shift(self, of: str, what: str, was: float, now: float, at_s: float) -> None:
        if (of, what) in self._shifts:
            at_s = self._shifts[of, what].at_s
        self._shifts[of, what] = Shift(of=of, what=what, was=was, now=now, at_s=at_s)

    def _moves(self, stage: str, by: Factors) -> bool:
        """Whether other results change the load of what is behind by enough."""
        known = {one.name: one for one in self._planned.operators}
        behind_s = sum(
            known[name].cost_s[known[name].inputs.index(stage)]
            for name in known
            if stage in known[name].inputs
        )
        rows = by.cores / by.cost_s if by.cost_s else 0.0  # that come in a second
        return abs(by.selectivity - by.was_selectivity) * rows * behind_s >= WEIGHT

    def _needs(self, source: str, now: float, given: float) -> float:
        """Return by how much of a core another rate moves the load of all slots."""
        rates = {name: one.mean for name, one in self._expected.rates.items()}
        loads = []
        for rate in (now, given):
            arrivals = {arrivals_of(name): [one] for name, one in {**rates, source: rate}.items()}
            loads.append(float(Workload.of(self._planned, arrivals, 1.0).load_s.sum()))
        return abs(loads[0] - loads[1])


def planned_report(expected: ExpectedLatency) -> PredictionReport:
    """Return what was predicted, before anything has become of it."""
    return PredictionReport(
        worst_ns=round(expected.worst_s * 1e9),
        p99_ns=round(expected.p99_s * 1e9),
        mean_ns=round(expected.mean_s * 1e9),
        is_unbounded=expected.is_unbounded,
        load=dict(expected.cores),
    )


def _fitting(spans: Sequence[PredictedSpan], most: int) -> list[PredictedSpan]:
    """Return at most so many spans, all of one width."""
    width_ns = max((one.width_ns for one in spans), default=NS_PER_SECOND)
    while len(merged := coarser(spans, width_ns)) > most:
        width_ns *= 2
    return merged


def _is_far(factor: float) -> bool:
    return not 1 / FAR <= factor <= FAR


def _rate(counts: Mapping[int, int], interval_s: float) -> float | None:
    """Return events a second of late, by stimulus; None: too little is known.

    Of a source that is behind, late is where it has got to; of one that has ended, its last events.
    """
    if not counts or (last := max(counts)) - min(counts) < WINDOW:
        return None
    rows = sum(counts.get(number, 0) for number in range(last - WINDOW, last))
    return rows / (WINDOW * interval_s)


def _series(counts: Mapping[int, int], first: int, last: int) -> FloatArray:
    return np.array([counts.get(number, 0) for number in range(first, last + 1)], dtype=np.float64)
