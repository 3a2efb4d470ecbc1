"""Totals of gates and notes on the deadline, for a job's report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import format_ns
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plurals import times as in_times
from slackwater.runtime.shown import shown

NO_DEADLINE = "no deadline: gates release only what is ready, however long that takes"


def with_totals(tuning: TuningReport, stages: Iterable[StageReport], plan: Plan) -> TuningReport:
    """Return the report with the counts of its gates' stages since the start."""
    reports = {stage.name: stage for stage in stages}
    counted: dict[str, list[StageReport]] = {}
    for stage in plan.stages:
        if stage.is_tuned and stage.name in reports:
            counted.setdefault(stage.subject.step, []).append(reports[stage.name])
    gates = [
        replace(
            gate,
            slack_ready=sum(report.unready for report in own),
            late=sum(report.late for report in own),
            late_ready=sum(report.late_ready for report in own),
            late_dropped=sum(report.late_dropped for report in own),
            rows_in=sum(report.rows_in for report in own),
        )
        if (own := counted.get(gate.step)) is not None
        else gate
        for gate in tuning.gates
    ]
    return replace(tuning, gates=gates)


def deadline_notes(plan: Plan, tuning: TuningReport | None) -> list[str]:
    """Return the notes of a plan at submit, and notes on its deadline."""
    notes = [*plan.verdict.notes]
    gates = [s for s in plan.stages if s.is_gated and not s.shares_gate]
    if plan.deadline_ns is None:
        waits = any(stage.rule.lead_ns is None for stage in gates)
        return [*notes, NO_DEADLINE] if waits else notes
    if not plan.tuned and any(stage.step.traits.close is not None for stage in plan.stages):
        return notes  # they already say what the deadline sets
    if not plan.tuned:
        why = "each has a slack of its own" if gates else "it has none"
        return [
            *notes,
            f"the deadline of {format_ns(plan.deadline_ns)} sets nothing: the flow has no gate "
            f"without a slack ({why}); leave `slack=` out where the deadline is to decide",
        ]
    if tuning is not None and tuning.restarts:
        times = in_times(tuning.restarts)
        notes.append(
            f"the tuner died {times} and was started again; meanwhile the slacks stayed as they "
            "were"
        )
    if tuning is not None and tuning.is_cut_short:
        notes.append(
            "the tuner did not answer as the job ended: the seconds that it had not told of are "
            "missing from what is said of the deadline"
        )
    if tuning is not None and tuning.errors:
        notes.append(
            f"the policy {shown(tuning.policy)} went wrong {tuning.errors:,} times, and the slacks "
            f"stayed as they were; the last time: {tuning.last_error}"
        )
    if tuning is not None:
        for text, count in tuning.warnings.items():
            often = "" if count == 1 else f" ({count:,} times)"
            notes.append(f"the policy {shown(tuning.policy)} warns of {text}{often}")
    return notes
