"""Record of the tuner: samples into whole seconds, seconds into a report.

```
slots ── samples ──▶ add ──▶ due: complete seconds ──▶ policy
                      └────▶ report: Eq. 2 against the deadline, second by second
```
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from slackwater.runtime.control.commands import SetRelease, Warn
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.histogram import LatencyHistogram
from slackwater.runtime.measure.samples import MOST_SAMPLES, StageSample
from slackwater.runtime.measure.tuning import GateTuning, TuningReport
from slackwater.runtime.measure.tuning_series import GateSpan, TuningSeries, TuningSpan
from slackwater.runtime.measure.whole_steps import by_step
from slackwater.runtime.model import END_NS, ReleaseRule
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.record.paths import Paths, measured_ns

MOST_WARNINGS = 100


@dataclass
class _Second:
    by: dict[Subject, str]  # {tuned step: the policy or rule that had set its slack}
    slack_ns: dict[Subject, int | None]
    samples: dict[Subject, StageSample] = field(default_factory=dict)  # of parts


class TuningRecord:
    """Samples of a run under a deadline, and its report.

    A second is due once all parts that answer have reported it. Samples of the last two minutes
    may still come after that: they count in the report.

    Args:
        graph: graph of the flow; a second here is one of its intervals. Without a deadline no
            second is over it.
        policy: name of the policy in the report.
        resumed: report of an earlier tuner of the same run; it is not changed.
    """

    def __init__(
        self,
        graph: FlowGraph,
        *,
        policy: str,
        resumed: TuningReport | None = None,
    ) -> None:
        self._paths = Paths.of(graph)
        self._parts = [part.subject for part in graph.parts]
        self._sinks = graph.sinks
        if resumed is None:
            gates = [GateTuning(step.name) for step in self._paths.tuned]
            limit_ns = END_NS if graph.deadline_ns is None else graph.deadline_ns
            resumed = TuningReport(limit_ns, policy, gates=gates, interval_ns=graph.interval_ns)
        self._past = _copied(resumed)  # seconds that take no more samples
        spans = resumed.series.spans
        self._shown = -1  # the last second that was due
        if spans:
            self._shown = spans[-1].second + resumed.series.width_s - 1
        self._closed = self._shown
        self._seconds: dict[int, _Second] = {}  # {second: its samples}, of later seconds

    def add(self, samples: Iterable[StageSample]) -> None:
        """Add samples, of any seconds."""
        for sample in samples:
            if sample.second <= self._closed:
                continue  # older than the record keeps
            second = self._seconds.get(sample.second)
            if second is None:
                gates = self._past.gates
                second = self._seconds[sample.second] = _Second(
                    {Subject(gate.step): gate.by for gate in gates},
                    {Subject(gate.step): _wait_ns(gate.rule) for gate in gates},
                )
            second.samples[sample.subject] = sample

    def due(
        self, *, silent: Collection[Subject] = ()
    ) -> Sequence[tuple[int, Mapping[Subject, StageSample]]]:
        """Return complete seconds, later than those returned before, ascending.

        Args:
            silent: parts that do not answer now, and are not awaited.
        """
        wanted = {part for part in self._parts if part not in silent}
        whole = [
            second
            for second, sampled in self._seconds.items()
            if second > self._shown and wanted <= sampled.samples.keys()
        ]
        if not whole:
            return []
        # A second older than a complete one stays incomplete: a slot was silent then.
        until = max(whole)
        due = sorted(second for second in self._seconds if self._shown < second <= until)
        self._shown = until
        shown = [(second, by_step(self._seconds[second].samples.values())) for second in due]
        self._close(until - MOST_SAMPLES)
        return shown

    def was_set(self, setting: SetRelease) -> None:
        """Note a rule, and the policy or rule that has set it."""
        for gate in self._past.gates:
            if gate.step == setting.subject.step:
                gate.rule = setting.rule
                gate.by = setting.by or self._past.policy

    def warned(self, warning: Warn) -> None:
        """Note a warning; only the first `MOST_WARNINGS` different ones are kept."""
        warnings, text = self._past.warnings, f"{warning.subject}: {warning.text}"
        if text in warnings or len(warnings) < MOST_WARNINGS:
            warnings[text] = warnings.get(text, 0) + 1

    def refused(self, why: str) -> None:
        """Note a command that a slot could not carry out: the policy's mistake."""
        self._past.errors += 1
        self._past.last_error = why

    def report(self, *, is_last: bool = False) -> TuningReport:
        """Return the report; without seconds that are not due yet, unless `is_last`."""
        made = _copied(self._past)
        for second, sampled in sorted(self._seconds.items()):
            if is_last or second <= self._shown:
                self._count(made, second, sampled)
        return made

    def _close(self, until: int) -> None:
        for second in sorted(second for second in self._seconds if second <= until):
            self._count(self._past, second, self._seconds.pop(second))
            self._closed = second

    def _count(self, report: TuningReport, number: int, second: _Second) -> None:
        samples = by_step(second.samples.values())
        latency_ns = int(self._paths.latency_ns(measured_ns(samples)))
        is_over = latency_ns > report.deadline_ns
        report.seconds += 1
        report.over += is_over
        report.latency.add(np.array([latency_ns]))
        gates = {step.name: _span(second, step, samples.get(step)) for step in self._paths.tuned}
        results = sum(samples[sink].rows for sink in self._sinks if sink in samples)
        report.series.add(TuningSpan(number, 1, latency_ns, int(is_over), results, gates))


def _wait_ns(rule: ReleaseRule) -> int | None:
    return rule.hold_ns if rule.lead_ns is None else rule.lead_ns


def _span(second: _Second, step: Subject, sample: StageSample | None) -> GateSpan:
    by = second.by[step]
    if sample is None:
        return GateSpan(second.slack_ns[step], by=by)
    return GateSpan(
        slack_ns=_wait_ns(sample.rule),
        slack_ready=sample.slack_ready,
        late=sample.late,
        latency_ns=sample.latency_ns,
        skew_ns=sample.skew_ns,
        by=by,
    )


def _copied(report: TuningReport) -> TuningReport:
    latency = LatencyHistogram()
    latency.merge(report.latency)
    return replace(
        report,
        latency=latency,
        gates=[replace(gate) for gate in report.gates],
        warnings=dict(report.warnings),
        series=TuningSeries(report.series.spans, width_s=report.series.width_s),
    )
