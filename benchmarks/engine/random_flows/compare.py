"""What a run gave, beside what pandas says: rows in any order, then their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.draw import DrawnFlow
from benchmarks.engine.random_flows.twin import TIME, Twin

SHOWN = 3


def differences(
    drawn: DrawnFlow, report: sw.JobReport, result: Callable[[str], pa.Table]
) -> list[str]:
    """Return what a run gave otherwise than it must, a sentence each; none when it is right.

    Args:
        drawn: the flow and its answers.
        report: of the run.
        result: {sink: its table}, as a job gives it.
    """
    found = []
    if report.state != "done" or not report.ledger.is_balanced or report.ledger.in_flight:
        found.append(f"state {report.state}, ledger {report.ledger}")
    if report.ledger.late != drawn.late:
        found.append(f"{report.ledger.late} rows late, and {drawn.late} by pandas")
    for sink, twin in drawn.answers.items():
        found += [f"sink {sink!r}: {what}" for what in _of_sink(twin, result(sink))]
    return found


def _of_sink(twin: Twin, table: pa.Table) -> list[str]:
    found = []
    if not table.schema.equals(twin.schema):
        return [f"schema {table.schema}, and {twin.schema} by its stream"]
    columns = [_values(table[name]) for name in table.column_names]
    got = Counter(zip(*columns, strict=True))
    answers = [
        [_rounded(value) for value in twin.rows[name].tolist()] for name in twin.schema.names
    ]
    expected = Counter(zip(*answers, strict=True))
    for what, rows in (("missing", expected - got), ("not by pandas", got - expected)):
        if rows:
            shown = ", ".join(str(row) for row in list(rows)[:SHOWN])
            found.append(f"{rows.total()} of {len(twin.rows)} rows {what}: {shown}")
    if twin.is_ordered and "t" in table.column_names:
        times = table["t"].to_pylist()
        if TIME in twin.rows and times != sorted(times):
            found.append("rows out of the order of event time")
    return found


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    return [_rounded(value) for value in column.to_pylist()]


def _rounded(value: Any) -> Any:
    """Return a float to ten digits; NaN and NA as null, −0 as 0."""
    if value is pd.NA:
        return None
    if isinstance(value, list):
        return tuple(map(_rounded, value))
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else float(f"{value:.10g}") + 0.0
