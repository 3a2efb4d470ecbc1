"""A submitted job, run to its end: its report, whose ledger balances, and the rows of its sink."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa

import slackwater as sw
from benchmarks.frame import check

__all__ = ["TIMEOUT_S", "collected", "finished"]

TIMEOUT_S = 600.0


def finished(job: Any) -> sw.JobReport:
    """Wait for the end of a job, on Ray or in the simulator, and close it; return its report."""
    with closing(job):
        return _balanced(job.wait(timeout=TIMEOUT_S))


def collected(job: Any, *, timeout_s: float = TIMEOUT_S) -> tuple[sw.JobReport, pa.Table]:
    """Return the report of a job, and the rows of its collect sink."""
    with closing(job):
        report = _balanced(job.wait(timeout=timeout_s))
        return report, job.result(report.sinks[0].name)


def _balanced(report: sw.JobReport) -> sw.JobReport:
    check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
    return report
