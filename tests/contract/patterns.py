"""Patterns that are held to what every operator promises."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import READY_ONLY
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.operator.step import PatternStep
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, Within
from slackwater.runtime.plan.step import Step

TIMES = pa.timestamp("ns")
LOW, HIGH = (
    sw.patterns.event("low", where=col("delay") < 0.2),
    sw.patterns.event("high", where=col("delay") > 0.1),
)
TWENTY = sw.patterns.event("twenty", of_type="20", where=col("delay") > LOW["delay"])
PATTERN = PatternStep(
    name="found",
    inputs=("rows",),
    schema=pa.schema({"line": pa.string(), "low_delay": pa.float64(), "events": pa.string()}),
    keys=("line",),
    pattern=normal_of(sw.patterns.seq(LOW, HIGH), step="found"),
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
        pattern=normal_of(
            sw.patterns.seq(LOW, sw.patterns.any_of(2, HIGH, distinct="area")), step="found"
        ),
        scope=OpenedWindows(0, span_ns=12),
        selection="last",
        most=1,
    ),
    "pattern that what does not come ends, by two keys": replace(
        PATTERN,
        keys=("line", "area"),
        pattern=normal_of(
            sw.patterns.seq(LOW, sw.patterns.repeat(HIGH, 1, 2), sw.patterns.no(LOW)), step="found"
        ),
        selection="each",
        consumes=False,
        schema=pa.schema({"line": pa.string(), "area": pa.int64(), "events": pa.string()}),
    ),
    "pattern that reads earlier events, in windows of a number": replace(
        PATTERN,
        keys=(),
        schema=pa.schema({"window_start": TIMES, "events": pa.string()}),
        pattern=normal_of(sw.patterns.seq(LOW, sw.patterns.no(HIGH), TWENTY), step="found"),
        scope=CountWindows(5, 2),
        selection="cumulative",
    ),
}
