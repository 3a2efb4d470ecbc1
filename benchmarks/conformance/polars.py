"""Polars: as-of joins, and windows by the calendar or that begin with each row."""

from __future__ import annotations

from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, as_time, results, rows_of

POLARS = Suite("Polars")
TIMES = {"t": "timestamp[us]"}


def times(case: Case) -> list[list[Any]]:
    """Return the rows of a case, whose first value is a time."""
    return [[as_time(row[0]), *row[1:]] for row in case.input]


def _labels(case: Case, label: str) -> Rows:
    def days(flow: sw.Dataflow) -> sw.Stream:
        rows = rows_of(flow, times(case), {**TIMES, "key": "string"})
        first = rows.aggregate(by="key", window=sw.tumbling("1d"), t=sw.min("t"))
        return first.select(label)

    return results(days)


@POLARS.translation("polars-dynamic-label-left")
def label_left(case: Case) -> Rows:
    return _labels(case, "window_start")


@POLARS.translation("polars-dynamic-label-right")
def label_right(case: Case) -> Rows:
    return _labels(case, "window_end")


@POLARS.translation("polars-dynamic-label-datapoint")
def label_first_row(case: Case) -> Rows:
    return _labels(case, "t")


@POLARS.translation("polars-dynamic-kernels")
def kernels(case: Case) -> Rows:
    def threes(flow: sw.Dataflow) -> sw.Stream:
        rows = rows_of(flow, case.input, {"t": "int64", "x": "int64"}, time_unit="s")
        sums = rows.aggregate(
            window=sw.sliding("3s", "1s"), least=sw.min("x"), most=sw.max("x"), total=sw.sum("x")
        )
        start = sw.col("window_start").cast("int64") // 1_000_000_000
        return sums.select({"start": start}, "least", "most", "total")

    return results(threes)


POLARS.differs(
    "polars-dynamic-kernels",
    "windows that begin before the first row leave, too",
    extra=["-1 0 1 1", "-2 0 0 0"],
)


DAY = "1d"


def _counted(case: Case, window: Any) -> Rows:
    def counts(flow: sw.Dataflow) -> sw.Stream:
        rows = rows_of(flow, times(case), TIMES)
        return rows.aggregate(window=window, n=sw.count()).select("window_start", "n")

    return results(counts)


EPOCH = as_time("1970-01-01")
THREE_DAYS = "weeks, of whose days those past the third are filtered out: a gap between windows"


ONE_DAY = sw.duration("1d")
AHEAD = "a join with itself, for windows that begin at an offset from each row"
