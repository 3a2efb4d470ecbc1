"""Deciders of a job: its policies, and the live estimate of its latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from slackwater.runtime.control.deciders import Wanted
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import Decider
from slackwater.runtime.control.rest import RestDownstream
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.model.whose_code import raised_by_us, where_raised
from slackwater.runtime.plan.expected import ExpectedLatency
from slackwater.runtime.shown import in_words
from slackwater.runtime.tune.decide.guarded import GuardedPolicies

__all__ = ["JobDeciders", "LatencyEstimator", "MakeEstimator"]

REFRESH_NS = NS_PER_SECOND
"""Least time between two estimates, whatever the length of intervals."""


class LatencyEstimator(Protocol):
    """Live estimate of a job's latency; `LiveEstimate` of `runtime/foresight/live` is one.

    Attributes:
        report: report as of the last `refresh`.
    """

    report: PredictionReport

    def heard(self, samples: Iterable[StageSample]) -> None:
        """Take samples of any intervals in any order, each once."""
        ...

    def moved(self, graph: FlowGraph) -> None:
        """Note that stages continue in other slots."""
        ...

    def refresh(self) -> None:
        """Renew the estimate and the report."""
        ...


class MakeEstimator(Protocol):
    """Maker of the live estimate of a job that has a prediction."""

    def __call__(
        self, graph: FlowGraph, expected: ExpectedLatency, *, resumed: PredictionReport | None
    ) -> LatencyEstimator:
        """Return the estimate; `resumed` is the last report of the one that it replaces."""
        ...


class JobDeciders:
    """Deciders that get the samples of a job; their errors end no job.

    The control loop of both hosts calls it.

    Args:
        policies: make the policies; the first in the list has its way.
        graph: the graph of the flow.
        expected: the prediction of the flow; None if it was not predicted.
        estimator: maker of the live estimate beside it; None if a job has no estimate.
        resumed: last report of the replaced estimate; None if it replaces none.
        before: the samples that the replaced estimate had heard.
    """

    def __init__(
        self,
        policies: Sequence[Callable[[], Decider]],
        graph: FlowGraph,
        *,
        expected: ExpectedLatency | None = None,
        estimator: MakeEstimator | None = None,
        resumed: PredictionReport | None = None,
        before: Iterable[StageSample] = (),
    ) -> None:
        self._policies = GuardedPolicies(policies, graph)
        self._rest = RestDownstream(graph) if graph.shedding else None
        self._every = max(REFRESH_NS // graph.interval_ns, 1)
        self._next = 0  # the interval after which the next estimate is made
        self._errors = 0 if resumed is None else resumed.errors
        self._last_error = None if resumed is None else resumed.last_error
        self._traces: list[str] = []
        self._known: PredictionReport | None = None
        self._estimate: LatencyEstimator | None = None
        if expected is not None and estimator is not None:
            self._known = resumed or PredictionReport.of(expected)
            with self._guarded():
                self._estimate = estimator(graph, expected, resumed=resumed)
            self.heard(before)

    def begin(self) -> list[Wanted]:
        """Return what each decider wants at the start."""
        return self._policies.begin()

    def decide(self, interval: int, samples: Mapping[Subject, StageSample]) -> list[Wanted]:
        """Return what each decider wants to change after an interval."""
        wanted = self._policies.decide(interval, samples)
        if self._rest is not None:
            with self._guarded():
                wanted.append(Wanted(self._rest.name, self._rest.decide(interval, samples)))
        return wanted

    def heard(self, samples: Iterable[StageSample], *, is_last: bool = False) -> None:
        """Take samples as they arrive, late ones too; `is_last`: no more follow."""
        if self._estimate is None:
            return
        new = list(samples)
        newest = max((sample.second for sample in new), default=-1)
        with self._guarded():
            if newest >= self._next:  # so all samples before it are here
                self._next = newest + self._every
                self._estimate.refresh()
            self._estimate.heard(new)
            if is_last:
                self._estimate.refresh()
            self._known = self._estimate.report

    def moved(self, graph: FlowGraph) -> None:
        """Note that stages continue in other slots."""
        with self._guarded():
            if self._estimate is not None:
                self._estimate.moved(graph)

    def noted(self, report: TuningReport) -> TuningReport:
        """Return a report with the policies' names, notes and errors."""
        return self._policies.noted(report)

    def prediction(self) -> PredictionReport | None:
        """Return the prediction beside what was seen; None if there was no prediction."""
        if self._known is None:
            return None
        return replace(self._known, errors=self._errors, last_error=self._last_error)

    def take_traces(self) -> list[str]:
        """Return the tracebacks of errors since the last call."""
        traces, self._traces = self._traces, []
        return [*self._policies.take_traces(), *traces]

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Count an error of the block instead of raising it."""
        try:
            yield
        except Exception as problem:
            self._errors += 1
            at, trace = where_raised(problem)
            words = in_words(problem).splitlines()[0]
            self._last_error = words if raised_by_us(problem) else f"{words}{at}"
            self._traces.append(trace)
