"""What a run gave, beside what pandas says: rows in any order, then their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.draw import DrawnFlow
from benchmarks.engine.random_flows.twin import DIFF, TIME, Twin

SHOWN = 3
CHANGE = pa.field("change", pa.string())
Row = tuple[Any, ...]


def differences(
    drawn: DrawnFlow, report: sw.JobReport, result: Callable[[str], pa.Table]
) -> list[str]:
    """Return what a run gave otherwise than it must, a sentence each; none when it is right.

    Args:
        drawn: the flow and its answers.
        report: of the run.
        result: {sink: its table}, as a job gives it.
    """
    problems = []
    if report.state != "done" or not report.ledger.is_balanced or report.ledger.in_flight:
        problems.append(f"state {report.state}, ledger {report.ledger}")
    if report.ledger.late != drawn.late:
        problems.append(f"{report.ledger.late} rows late, and {drawn.late} by pandas")
    for sink, twin in drawn.answers.items():
        problems += [f"sink {sink!r}: {what}" for what in _of_sink(twin, result(sink))]
    return problems


def _of_sink(twin: Twin, table: pa.Table) -> list[str]:
    problems: list[str] = []
    schema = twin.schema.append(CHANGE) if twin.is_table else twin.schema
    if not table.schema.equals(schema):
        return [f"schema {table.schema}, and {schema} by its stream"]
    columns = [_values(table[name], is_rough=name in twin.rough) for name in table.column_names]
    answers = [
        [_rounded(value, is_rough=name in twin.rough) for value in twin.rows[name].tolist()]
        for name in twin.schema.names
    ]
    if twin.is_table:
        got, problems = _net_of_changes(twin, list(zip(*columns, strict=True)))
        signs = twin.rows[DIFF].tolist()
        expected = _net(zip(zip(*answers, strict=True), signs, strict=True))
    else:
        got, expected = Counter(zip(*columns, strict=True)), Counter(zip(*answers, strict=True))
    for what, rows in (("missing", _less(expected, got)), ("not by pandas", _less(got, expected))):
        if rows:
            shown = ", ".join(str(row) for row in list(rows)[:SHOWN])
            problems.append(f"{rows.total()} of {len(twin.rows)} rows {what}: {shown}")
    if twin.is_ordered and "t" in table.column_names:
        times = table["t"].to_pylist()
        if TIME in twin.rows and times != sorted(times):
            problems.append("rows out of the order of event time")
    return problems


def _net_of_changes(twin: Twin, rows: list[Row]) -> tuple[Counter[Row], list[str]]:
    """Return what changes of a sink come to at each time, and what is wrong with their kinds.

    An update replaces the row that its key has, with the time of the update.
    """
    names = twin.schema.names
    at = names.index("t") if "t" in names else None
    key_places = [names.index(name) for name in twin.table_keys]
    held: dict[Row, Row] = {}
    changes: list[tuple[Row, int]] = []
    problems = []
    for *values, kind in rows:
        row, key = tuple(values), tuple(values[place] for place in key_places)
        if twin.changes == "whole":
            if (kind == "insert") == (key in held):
                problems.append(f"{kind} of {row}, and its key has {held.get(key)}")
            old = held.pop(key, None) if kind == "delete" else held.get(key)
            if old is not None:
                changes.append((old if at is None else (*old[:at], row[at], *old[at + 1 :]), -1))
            if kind != "delete":
                held[key] = row
        elif kind == "update":
            problems.append(f"update {row} where all updates are split")
        elif kind == "delete":
            changes.append((row, -1))
        if kind != "delete":
            changes.append((row, 1))
    return _net(changes), problems[:SHOWN]


def _net(changes: Iterable[tuple[Row, int]]) -> Counter[Row]:
    """Return the number of each row that is more, or less if it is negative."""
    net: Counter[Row] = Counter()
    for row, sign in changes:
        net[row] += sign
    return Counter({row: number for row, number in net.items() if number})


def _less(one: Counter[Row], other: Counter[Row]) -> Counter[Row]:
    """Return how many more of each row the first has, where it has more of them."""
    rows = {*one, *other}
    return Counter({row: more for row in rows if (more := one[row] - other[row]) > 0})


def _values(column: pa.ChunkedArray, *, is_rough: bool) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    return [_rounded(value, is_rough=is_rough) for value in column.to_pylist()]


def _rounded(value: Any, *, is_rough: bool) -> Any:
    """Return a float to ten digits; NaN and NA as null, −0 as 0.

    Sums of rough values may cancel: there nine digits after the point count.
    """
    if value is pd.NA:
        return None
    if isinstance(value, list):
        return tuple(_rounded(each, is_rough=is_rough) for each in value)
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return None
    value = float(f"{value:.10g}")
    return (round(value, 9) if is_rough else value) + 0.0
