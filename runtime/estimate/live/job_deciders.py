"""A job's policies and the estimate of its latency, as the control loop of both hosts asks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runtime.control import Decider, FlowGraph, Wanted
from runtime.estimate.live.live_estimate import LiveEstimate
from runtime.measure.prediction import PredictionReport
from runtime.measure.samples import StageSample
from runtime.measure.tuning import TuningReport
from runtime.plan.expected import ExpectedLatency
from runtime.tune import GuardedPolicies

__all__ = ["JobDeciders"]


class JobDeciders:
    """All who are shown the intervals of a job; what one does wrong is counted, and none goes down.

    Args:
        policies: make those who decide, the one whose word prevails first.
        graph: of the flow.
        expected: what was predicted of it; None: nothing.
        resumed: what the estimate in whose place ours is had reported.
    """

    def __init__(
        self,
        policies: Sequence[Callable[[], Decider]],
        graph: FlowGraph,
        *,
        expected: ExpectedLatency | None = None,
        resumed: PredictionReport | None = None,
    ) -> None:
        self._policies = GuardedPolicies(policies, graph)
        self._estimate: LiveEstimate | None = None
        self._guard: GuardedPolicies | None = None
        if expected is not None:
            estimate = LiveEstimate(graph, expected, resumed=resumed)
            self._estimate, self._guard = estimate, GuardedPolicies([lambda: estimate], graph)

    def begin(self) -> list[Wanted]:
        """Return what each wants to begin with."""
        return self._policies.begin()

    def decide(self, interval: int, samples: Mapping[str, StageSample]) -> list[Wanted]:
        """Return what each wants to change now that an interval is over."""
        if self._guard is not None:
            self._guard.decide(interval, samples)  # it wants nothing
        return self._policies.decide(interval, samples)

    def noted(self, report: TuningReport) -> TuningReport:
        """Return a report with what the policies are, say of themselves, and did wrong."""
        return self._policies.noted(report)

    def prediction(self) -> PredictionReport | None:
        """Return what was predicted and what became of it; None: nothing was predicted."""
        if self._estimate is None or self._guard is None:
            return None
        found = self._estimate.report()
        wrong = self._guard.noted(TuningReport(0, ""))
        return replace(found, errors=wrong.errors, last_error=wrong.last_error)

    def take_traces(self) -> list[str]:
        """Return the tracebacks of what went wrong, once."""
        guards = [self._policies, *([] if self._guard is None else [self._guard])]
        return [trace for one in guards for trace in one.take_traces()]
