"""Patterns that are held to what every operator promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.patterns.normal import Normal
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.operator.checked import check_columns
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, Within
from slackwater.runtime.plan.step import Step

TIMES = pa.timestamp("ns")
ROWS = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.float64()})
LOW, HIGH = (
    sw.patterns.event("low", where=col("delay") < 0.2),
    sw.patterns.event("high", where=col("delay") > 0.1),
)
TWENTY = sw.patterns.event("twenty", of_type="20", where=col("delay") > LOW["delay"])


def pattern_of(*parts: Any) -> Normal:
    normal = normal_of(sw.patterns.seq(*parts), step="found")
    return check_columns(normal, ROWS, type_column="line", id_column=None, step="found")


PATTERN = PatternStep(
    name="found",
    inputs=("rows",),
    schema=pa.schema({"line": pa.string(), "low_delay": pa.float64(), "events": pa.string()}),
    keys=("line",),
    pattern=pattern_of(LOW, HIGH),
    scope=Within(span_ns=8),
    release=READY_ONLY,
    type_column="line",
)
PATTERNS: dict[str, Step] = {
    "pattern": PATTERN,
    "pattern in windows that events open, of several in any order": replace(
        PATTERN,
        schema=pa.schema({"window_start": TIMES, "events": pa.string()}),
        keys=(),
        pattern=pattern_of(LOW, sw.patterns.any_of(2, HIGH, distinct="area")),
        scope=OpenedWindows(0, span_ns=12),
        selection="last",
        most=1,
    ),
    "pattern that what does not come ends, by two keys": replace(
        PATTERN,
        keys=("line", "area"),
        pattern=pattern_of(LOW, sw.patterns.repeat(HIGH, 1, 2), sw.patterns.no(LOW)),
        selection="each",
        consumes=False,
        schema=pa.schema({"line": pa.string(), "area": pa.int64(), "events": pa.string()}),
    ),
    "pattern that reads earlier events, in windows of a number": replace(
        PATTERN,
        keys=(),
        schema=pa.schema({"window_start": TIMES, "events": pa.string()}),
        pattern=pattern_of(LOW, sw.patterns.no(HIGH), TWENTY),
        scope=CountWindows(5, 2),
        selection="cumulative",
    ),
}
