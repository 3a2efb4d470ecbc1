"""Results of a run as text, which must be the same for another run."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import pyarrow as pa

import slackwater as sw
from benchmarks.engine.replicated_flows.draw import Drawn
from slackwater.runtime.measure.ledger import imbalances

Results = dict[str, list[str]]
"""{sink: its schema, then its rows}, and the counts of the ledger under LEDGER."""

LEDGER = "the ledger"
SHOWN = 160


def rows_of(table: pa.Table) -> list[str]:
    """Return the schema of a table and its rows as text, in which −0.0, null and NaN differ."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in table.columns
    ]
    values = [column.to_pylist() for column in columns]
    return [str(table.schema), *map(repr, zip(*values, strict=True))]


def balanced(report: sw.JobReport) -> list[str]:
    """Return the counts of a report's ledger.

    Raises:
        AssertionError: the job is not done, or a row is lost or counted twice.
    """
    wrong = imbalances(report)
    if report.state != "done" or wrong:
        raise AssertionError(f"state {report.state}; {'; '.join(wrong)}")
    return [f"{report.ledger.entered} entered, {report.ledger.late} late"]


def results_of(drawn: Drawn, job: Any, *, timeout_s: float = 120) -> Results:
    """Wait for a job; return its results, of a run that balances."""
    try:
        counts = balanced(job.wait(timeout=timeout_s))
        return {**{sink: rows_of(job.result(sink)) for sink in drawn.sinks}, LEDGER: counts}
    finally:
        job.close()


def difference(found: Results, expected: Results) -> str:
    """Return the first difference of two runs; empty if they are the same."""
    for sink, rows in expected.items():
        for place, (one, other) in enumerate(zip_longest(found[sink], rows)):
            if one != other:
                what = "order" if sorted(found[sink]) == sorted(rows) else "rows"
                pair = f"{str(one)[:SHOWN]} and not {str(other)[:SHOWN]}"
                return f"other {what} of {sink} at {place} of {len(rows)}: {pair}"
    return ""


def loose_difference(found: Results, expected: Results, sinks: Iterable[str]) -> str:
    """Return the first sink with other rows, whatever their order and the signs of zeros."""
    for sink in sinks:
        one, other = (
            sorted(row.replace("-0.0", "0.0") for row in results[sink])
            for results in (found, expected)
        )
        if one != other:
            return f"other rows of {sink}, {len(one)} in place of {len(other)}"
    return ""
