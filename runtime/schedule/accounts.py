"""Counts of a stage's report: of its gate, its source, or a replica's reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.runtime.measure.outcomes import (
    BAD_TIME,
    DUPLICATE,
    FORGOTTEN,
    GIVEN_UP,
    SHED,
    UNREADABLE,
)
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.merge import ReplicaReads, SlackGate
from slackwater.runtime.sources.machine import SourceMachine

_OWN = frozenset({"comparisons", "dropped_early", "closing", "shedding"})
"""What reports have a place of its own for."""
_OUTCOMES = {outcome.name: outcome for outcome in (SHED, FORGOTTEN)}
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


def count_source(report: StageReport, source: SourceMachine, now_ns: int) -> None:
    """Fill in what a source has read, holds and has promised."""
    report.rows_in = source.rows_in
    report.late_dropped, report.counts[DUPLICATE] = source.late_dropped, source.duplicates
    # Counted when it is read, and handed over later.
    report.late = min(source.late, source.rows_out)
    report.ready = source.rows_out + source.diverted - report.late
    report.counts[GIVEN_UP] = source.given_up
    report.counts[BAD_TIME], report.counts[UNREADABLE] = source.bad_times, source.unreadable
    if source.first_bad:  # a later step of the stage may have told of its own
        report.first_bad = list(source.first_bad)
    if source.renumbered:
        report.counted["renumbered"] = source.renumbered
    report.in_flight = source.held
    report.early = source.early
    report.source_clock = source.clock_told
    report.newest_ns = source.newest_ns
    report.frontier_ns = source.progress.promise_ns
    report.due_in_ns = source.due_in_ns(now_ns)
    holder = source.holder
    report.waiting_for = [] if holder is None else [holder]
