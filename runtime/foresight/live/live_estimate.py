"""Live estimate of latency, by interval, from arrivals so far; shifts of statistics.

```
samples ─▶ arrivals by stimulus ─┐
       └─▶ recent costs ─────────┴─▶ the estimate of [mace] ─▶ beside the plan's, and the measured
```

A machine: no clock, no I/O. On Ray it lives in the job's control actor. Source: [mace] §VI-B, VI-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.foresight.latency_estimate import estimate_latency
from slackwater.runtime.foresight.layout import Layout, Network, laid_out
from slackwater.runtime.foresight.live.recent_statistics import (
    WINDOW_S,
    RecentStatistics,
    with_statistics,
)
from slackwater.runtime.foresight.live.shifts import Shifts
from slackwater.runtime.foresight.live.work_so_far import WorkSoFar
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator
from slackwater.runtime.foresight.shared_cores import with_shared_cores
from slackwater.runtime.measure.prediction import (
    MOST_SPANS,
    PredictedSpan,
    PredictionReport,
    coarser,
)
from slackwater.runtime.measure.samples import PARTS, StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.expected import ExpectedLatency
from slackwater.runtime.plan.slots import SlotPlace

__all__ = ["LiveEstimate"]


class LiveEstimate:
    """Live estimate of one job.

    Args:
        graph: the graph of the flow, as deciders see it.
        expected: prediction of the job.
        resumed: last report of the estimate that this one replaces; None if it replaces none.

    Attributes:
        report: report as of the last `refresh`.
    """

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
        self._interval_ns = graph.interval_ns
        interval_s = graph.interval_ns / NS_PER_SECOND
        windows_s = {
            part.subject.name: step.window_ns / NS_PER_SECOND
            for step in graph.steps
            for part in step.parts
        }
        self._statistics = RecentStatistics(
            self._planned, self._slots, interval_s=interval_s, windows_s=windows_s
        )
        self._layout = self._laid_out(graph)
        self._work = WorkSoFar(
            self._layout.graph,
            self._layout.places,
            interval_s=interval_s,
            reach=round(max(windows_s.values(), default=0.0) / interval_s),
        )
        self._operators = {each.name: each for each in self._planned.operators}  # as they were seen
        self._known: set[str] = set()  # the stages whose cost of a row was seen
        self._spans: dict[int, PredictedSpan] = {}
        self._past: list[PredictedSpan] = []  # spans that have left `_spans`, coarser
        self._origin: int | None = None  # the interval in which the sources began
        self._newest = 0  # the last interval with a sample
        self._shifts = Shifts(self._planned, expected)
        self.report = PredictionReport.of(expected)
        if resumed is not None:
            self._past = list(resumed.spans)
            self._origin = None if resumed.origin_ns is None else self._number(resumed.origin_ns)
            self._shifts.resume(resumed.shifts)
            self.report = resumed

    def heard(self, samples: Iterable[StageSample]) -> None:
        """Take samples of any intervals in any order, each once."""
        for sample in samples:
            self._newest = max(self._newest, sample.second)
            self._statistics.add(sample)
            for number, rows in sample.arrived:
                self._work.arrived(sample.stage, number // PARTS, rows)

    def moved(self, graph: FlowGraph) -> None:
        """Note that stages continue in other slots, with the rows that wait."""
        self._slots.update(graph.slots)
        self._layout = self._laid_out(graph)
        self._work.moved(self._layout.graph, self._layout.places)

    def refresh(self) -> None:
        """Renew the estimate and the report."""
        statistics = {name: self._statistics.of_stage(name) for name in self._planned.names}
        load = dict.fromkeys(self._slots.values(), 0.0)
        for stage, by in statistics.items():
            load[self._slots[stage]] += by.cores
        for operator in self._planned.operators:
            name = operator.name
            if statistics[name].cost_s:  # else the last statistics stay
                self._operators[name] = with_statistics(operator, statistics[name])
                if name not in self._known:
                    self._known.add(name)
                    self._work.count_again()
        at_s = (self._newest + 1) * self._interval_ns / NS_PER_SECOND
        rates = {source: self._work.rate(source, WINDOW_S) for source in self._expected.rates}
        self._shifts.look(statistics, rates, at_s=at_s)
        self._estimate()
        self.report = replace(
            PredictionReport.of(self._expected),
            seen_load=load,
            spans=_fitting([*self._past, *self._spans.values()], MOST_SPANS),
            shifts=self._shifts.found,
            origin_ns=None if self._origin is None else self._origin * self._interval_ns,
        )

    def _laid_out(self, graph: FlowGraph) -> Layout:
        """Return the layout of the stages, with links, and note the feeders of links."""
        places = {slot: SlotPlace(slot, node, 1) for slot, node in graph.nodes.items()}
        network = self._expected.network or Network()
        layout = laid_out(self._planned, graph.slots, places, network)
        after_links = {stage for _, stage in layout.feeders}
        shares = self._expected.shares
        self._statistics.moved({name: shares[name] for name in shares if name in after_links})
        return layout

    def _with_recent(self, laid: QueryOperator) -> QueryOperator:
        # A link stays as it was predicted.
        operator = self._operators.get(laid.name)
        return laid if operator is None else replace(operator, inputs=laid.inputs)

    def _estimate(self) -> None:
        layout = self._layout
        changed = self._work.count([self._with_recent(laid) for laid in layout.graph.operators])
        if changed is None:
            return
        if self._origin is None:
            self._origin = self._work.first
        first, graph, work = self._work.workload()
        if not self._spans:  # a replaced estimate heard more than it reported
            begin_ns = first * self._interval_ns
            self._past = [span for span in self._past if span.start_ns < begin_ns]
        latency = estimate_latency(
            graph,
            work,
            layout.places,
            layout.capacity,
            hop_s=layout.hop_s,
            least_hop_s=layout.least_hop_s,
            in_parts=False,  # only bounds need parts
        )
        latency = with_shared_cores(latency, graph, work, layout.places, self._expected.machines)
        # The first row of an interval waits for the backlog at the end of the one before.
        worst_s = np.maximum(latency.held_up_s, np.concatenate([[0.0], latency.held_up_s[:-1]]))
        for number in range(changed, first + len(worst_s)):
            self._spans[number] = PredictedSpan(
                start_ns=number * self._interval_ns,
                width_ns=self._interval_ns,
                events=self._work.events(number),
                planned_ns=self._within_ns(number, self._expected.latency_s),
                # Waits in gates stay as they were predicted: they take no core.
                estimated_ns=round(float(worst_s[number - first]) * 1e9)
                + (self._within_ns(number, self._expected.gate_s) or 0),
            )
        gone = sorted(number for number in self._spans if number < first)
        if len(gone) >= MOST_SPANS // 4:
            past = [*self._past, *map(self._spans.pop, gone)]
            self._past = _fitting(past, MOST_SPANS // 2)

    def _within_ns(self, number: int, each_s: Sequence[float]) -> int | None:
        """Return the most of the predicted subintervals in an interval; None if there are none."""
        width_ns = self._expected.width_s * NS_PER_SECOND
        begin = (number - (self._origin or 0)) * self._interval_ns / width_ns
        end = begin + self._interval_ns / width_ns
        within = each_s[int(begin) : max(int(np.ceil(end)), int(begin) + 1)]
        return round(max(within) * 1e9) if within and begin >= 0 else None

    def _number(self, at_ns: int) -> int:
        return at_ns // self._interval_ns


def _fitting(spans: Sequence[PredictedSpan], most: int) -> list[PredictedSpan]:
    """Return at most `most` spans, all of one width."""
    width_ns = max((span.width_ns for span in spans), default=NS_PER_SECOND)
    while len(merged := coarser(spans, width_ns)) > most:
        width_ns *= 2
    return merged
