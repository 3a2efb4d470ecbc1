"""Counts of a stage's report: of its gate, or a replica's reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.runtime.measure.outcomes import (
    BEYOND_LIMIT,
    FORGOTTEN,
    SHED,
)
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.merge import ReplicaReads, SlackGate

_OWN = frozenset({"comparisons", "dropped_early", "closing", "shedding"})
"""What reports have a place of its own for."""
_OUTCOMES = {outcome.name: outcome for outcome in (SHED, FORGOTTEN, BEYOND_LIMIT)}
"""What operators count of their rows and keys."""


def count_gate(
    report: StageReport, gate: SlackGate, *, queued: int, dropped: int, names: Sequence[str]
) -> None:
    """Fill in what a gate has released and what it holds.

    Args:
        report: report to be filled.
        gate: gate of the stage.
        queued: rows that have not reached it yet.
        dropped: late rows that its operator had no use for.
        names: names of the stages that its writers are.
    """
    counts = gate.counts()
    report.ready, report.slack_ready = counts.ready, counts.slack_ready
    report.late, report.late_dropped = counts.late - dropped, dropped
    report.late_ready = counts.late_ready
    report.in_flight = queued + gate.rows_held
    report.frontier_ns, report.newest_ns = gate.frontier_ns, gate.newest_ns
    report.waiting_for = [names[writer] for writer in gate.holders()]


def count_in(report: StageReport, name: str, counted: Any) -> None:
    """Fill in what an operator counts, under its own name or among all other counts.

    Where windows close in time, rows leave the gate as they come, and are late only where they
    missed a window of theirs (`late_used`): all others that came out of order have not waited for
    what was older.
    """
    if name in _OUTCOMES:
        report.counts[_OUTCOMES[name]] = counted
    elif name == "late_used":
        went_on = report.used
        report.late = counted
        report.ready = min(report.ready, went_on - report.late)
        report.slack_ready = went_on - report.late - report.ready
    elif name in _OWN:
        setattr(report, name, counted)
    else:
        report.counted[name] = counted


def count_reads(report: StageReport, reads: ReplicaReads, *, queued: int, dropped: int) -> None:
    """Fill in the reads that a replica has passed on, and those that it holds."""
    report.ready, report.late, report.late_dropped = reads.ready, reads.late - dropped, dropped
    report.slack_ready = 0  # that is its gate's to say
    report.in_flight = queued + reads.rows_held
    report.frontier_ns = reads.promise_ns
