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


@POLARS.translation("polars-dynamic-quarter")
def quarters(case: Case) -> Rows:
    return _counted(case, sw.calendar("quarter"))


@POLARS.translation(
    "polars-dynamic-datapoint", way="detour", note="the first row's time, written as an offset"
)
def from_first_row(case: Case) -> Rows:
    def counts(flow: sw.Dataflow) -> sw.Stream:
        rows = rows_of(flow, times(case), TIMES)
        first = times(case)[0][0]
        counts = rows.aggregate(window=sw.tumbling("31m", offset=first - EPOCH), n=sw.count())
        return counts.select("window_start", "window_end", "n")

    return results(counts)


EPOCH = as_time("1970-01-01")


def _weeks(case: Case, days: list[int], offset: str) -> Rows:
    """Count the rows of some weekdays in each week, which begins at an offset."""

    def counts(flow: sw.Dataflow) -> sw.Stream:
        rows = rows_of(flow, times(case), TIMES)
        rows = rows.filter(sw.col("t").dt.weekday().is_in(days))
        counts = rows.aggregate(window=sw.tumbling("7d", offset=offset), n=sw.count())
        return counts.select("window_start", "n")

    return results(counts)


@POLARS.translation("polars-dynamic-monday")
def from_mondays(case: Case) -> Rows:
    return _weeks(case, [1, 2, 3], "4d")


@POLARS.translation("polars-dynamic-saturday")
def from_saturdays(case: Case) -> Rows:
    return _weeks(case, [6, 7, 1], "2d")


def _rolling(case: Case, days: int, **reach: Any) -> Rows:
    """Return number and sum of the rows in reach of each row, which begins some days before it."""

    def sums(flow: sw.Dataflow) -> sw.Stream:
        rows = rows_of(flow, times(case), {**TIMES, "x": "int64"})
        sums = rows.over(last=f"{days}d", n=sw.count(), total=sw.sum("x"), **reach)
        return sums.select("t", "n", "total")

    return results(sums)


@POLARS.translation("polars-rolling-offset-1-left")
def rolling_1_left(case: Case) -> Rows:
    return _rolling(case, 1, ahead="1d", closed="start")


@POLARS.translation("polars-rolling-offset-1-right")
def rolling_1_right(case: Case) -> Rows:
    return _rolling(case, 1, ahead="1d")


@POLARS.translation("polars-rolling-offset-2-left")
def rolling_2_left(case: Case) -> Rows:
    return _rolling(case, 2, closed="start")


@POLARS.translation("polars-rolling-offset-3-none")
def rolling_3_none(case: Case) -> Rows:
    return _rolling(case, 3, ahead="-1d", closed="none")


# -- the newest row before each ---------------------------------------------------------

SIDE = {"t": "int64", "key": "string", "value": "int64"}


def _asof(case: Case, **options: Any) -> Rows:
    """Return the value of the right row that each left one gets, by the left row's number."""

    def rows(flow: sw.Dataflow) -> sw.Stream:
        numbered = [[*row, n] for n, row in enumerate(case.input[0])]
        left = rows_of(flow, numbered, {**SIDE, "n": "int64"}, time_unit="s")
        right = rows_of(flow, case.input[1], SIDE, time_unit="s")
        return left.asof(right, on="key", **options).select("n", "value_right")

    return results(rows)


@POLARS.translation("polars-asof-tolerance-2s")
def asof_2s(case: Case) -> Rows:
    return _asof(case, tolerance="2s")


@POLARS.translation("polars-asof-tolerance-1s")
def asof_1s(case: Case) -> Rows:
    return _asof(case, tolerance="1s")


@POLARS.translation("polars-asof-inline-cast", "polars-asof-projection-by")
def asof(case: Case) -> Rows:
    return _asof(case)


@POLARS.translation("polars-asof-forward-1s")
def asof_forward(case: Case) -> Rows:
    return _asof(case, direction="forward", tolerance="1s")


@POLARS.translation("polars-asof-forward-0s")
def asof_equal(case: Case) -> Rows:
    return _asof(case, direction="forward", tolerance="0s")


@POLARS.translation("polars-asof-groups")
def asof_groups(case: Case) -> Rows:
    def rows(flow: sw.Dataflow) -> sw.Stream:
        left = [[t * 1000, key, value] for t, key, value in case.input[0]]
        # Their right rows: the same keys, 0.1 s earlier, with other values.
        right = [[t - 100, key, value + 100] for t, key, value in left]
        both = [rows_of(flow, side, SIDE, time_unit="ms") for side in (left, right)]
        return both[0].asof(both[1], on="key").select("value", "value_right")

    return results(rows)


@POLARS.translation("polars-asof-nearest-2")
def asof_nearest(case: Case) -> Rows:
    def rows(flow: sw.Dataflow) -> sw.Stream:
        columns = {"t": "int64", "value": "int64"}
        # Without keys there: one for all here.
        left, right = (
            rows_of(flow, rows, columns, time_unit="s").with_columns(key=sw.lit("all"))
            for rows in case.input
        )
        pairs = left.asof(right, on="key", direction="nearest", tolerance="1d")
        return pairs.select("value", "value_right")

    return results(rows)
