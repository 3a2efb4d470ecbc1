"""Kafka Streams: joins of streams and of a table, windows of the store, sessions."""

from __future__ import annotations

from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, heard, results, rows_of

KAFKA = Suite("Kafka Streams")
KEYED = {"key": "string", "t": "int64"}
MS = 1_000_000


def goes_on(rows: list[list[Any]], grace: float) -> list[list[Any]]:
    """Return keys and times in µs, and a row so late that no window waits for a slack.

    A window of theirs leaves when the newest row is `grace` after its end; of ours when a row after
    its end has waited that long, so a little later ("Coming from").
    """
    newest = max(row[1] for row in rows)
    return [[key, round(t * 1000)] for key, t in [*rows, ["next", newest + grace + 0.5]]]


@KAFKA.translation("kafka-suppress-time")
def closed_windows(case: Case) -> Rows:
    def windows(flow: sw.Dataflow) -> sw.Stream:
        rows = heard(flow, goes_on(case.input, 1), KEYED, goes_on=True, time_unit="us")
        counts = rows.aggregate(by="key", window=sw.tumbling("2ms"), slack="1ms", n=sw.count())
        return counts.select("key", {"start": sw.col("window_start").cast("int64") // MS}, "n")

    return results(windows, stop_s=len(case.input) + 1)


JOINED = {"side": "string", "key": "int64", "value": "string", "t": "int64"}


def _joined(case: Case, within: str, how: Any) -> Rows:
    def both(flow: sw.Dataflow) -> sw.Stream:
        # A row without a value is none to them.
        rows = rows_of(flow, case.input, JOINED, time_unit="ms")
        rows = rows.filter(~sw.col("value").is_null())
        left, right = (rows.filter(sw.col("side") == side) for side in "LR")
        pairs = left.join(right, on="key", within=within, how=how)
        at = sw.event_time().cast("int64") // MS
        return pairs.select("key", "value", "value_right", at=at)

    return results(both)


@KAFKA.translation("kafka-ss-left")
def left_join(case: Case) -> Rows:
    return _joined(case, "10s", "left")


@KAFKA.translation("kafka-ss-outer")
def outer_join(case: Case) -> Rows:
    return _joined(case, "10s", "outer")


@KAFKA.translation("kafka-ss-left-duplicates", "kafka-ss-left-expired", "kafka-ss-left-never-right")
def left_join_of_100_ms(case: Case) -> Rows:
    return _joined(case, "100ms", "left")


def _sessions(rows: sw.Stream, gap: str, **options: Any) -> sw.Stream:
    made = rows.aggregate(
        by="key",
        window=sw.session(gap),
        first=sw.min("t"),
        last=sw.max("t"),
        n=sw.count(),
        **options,
    )
    return made.select("key", "first", "last", "n")


@KAFKA.translation("kafka-session-single", "kafka-session-merge")
def sessions_of_5_minutes(case: Case) -> Rows:
    return results(
        lambda flow: _sessions(rows_of(flow, case.input, KEYED, time_unit="ms"), gap="5m")
    )


@KAFKA.translation("kafka-suppress-session")
def closed_sessions(case: Case) -> Rows:
    def sessions(flow: sw.Dataflow) -> sw.Stream:
        rows = heard(flow, goes_on(case.input, 0), KEYED, goes_on=True, time_unit="us")
        made = _sessions(rows, gap="5ms", slack="0s")
        return made.with_columns({name: sw.col(name) // 1000 for name in ("first", "last")})

    return results(sessions, stop_s=len(case.input) + 1)


VALUED = {"key": "string", "value": "int64", "t": "int64"}


def _windows(flow: sw.Dataflow, rows: list[list[Any]], size_ms: int) -> sw.Stream:
    """Return windows that end with a row, or begin a moment after one, and have rows."""
    values = rows_of(flow, rows, VALUED, time_unit="ms").key_by("key")
    wanted = {"n": sw.count(), "total": sw.sum("value")}
    end = values.over(wanted, last=f"{size_ms}ms", closed="both")
    begin = values.over(wanted, last="0s", ahead=f"{size_ms + 1}ms")
    start = sw.where(sw.col("t") < size_ms, 0, sw.col("t") - size_ms)
    ends = end.select("key", "n", "total", start=start)
    begins = begin.filter(sw.col("n") > 0).select("key", "n", "total", start=sw.col("t") + 1)
    return ends.merge(begins).newest(["key", "start"])


@KAFKA.translation("kafka-sliding")
def sliding(case: Case) -> Rows:
    return results(lambda flow: _windows(flow, case.input, 10).select("start", "n", "total"))


@KAFKA.translation("kafka-suppress-sliding")
def closed_sliding(case: Case) -> Rows:
    rows = [[key, 1, t] for key, t in case.input]
    return results(lambda flow: _windows(flow, rows, 5).select("start", "n"))


KAFKA.differs(
    "kafka-suppress-sliding",
    "no row is late to a join with itself, so windows are there that their grace had closed; and "
    "the last leaves, since the input ends",
    extra=["0 1", "2 2", "85 1"],
)


@KAFKA.translation("kafka-st-versioned-left")
def versioned(case: Case) -> Rows:
    def both(flow: sw.Dataflow) -> sw.Stream:
        columns = {"side": "string", "value": "string", "t": "int64"}
        # A single key here.
        rows = rows_of(flow, case.input, columns, time_unit="ms").with_columns(key=sw.lit("all"))
        stream = rows.filter((sw.col("side") == "L") & ~sw.col("value").is_null())
        newest = stream.asof(rows.filter(sw.col("side") == "R"), on="key")
        return newest.select("value", "value_right", "t")

    return results(both)


KAFKA.differs(
    "kafka-st-versioned-left",
    "the table is as of the event time; theirs is as it was when the row arrived",
    extra=["A f 3"],
    lacking=[0],
)
