"""Spark Structured Streaming: windows, sessions, and rows that come twice."""

from __future__ import annotations

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, heard, results

SPARK = Suite("Spark Structured Streaming")
NUMBERS = {"t": "int64"}
KEYED = {"key": "string", "t": "int64"}
SECOND = 1_000_000_000


@SPARK.translation("spark-append")
def append(case: Case) -> Rows:
    def windows(flow: sw.Dataflow) -> sw.Stream:
        numbers = [[t] for t in case.input]
        rows = heard(flow, numbers, NUMBERS, goes_on=True, time_unit="s", disorder="10s")
        counts = rows.aggregate(window=sw.tumbling("5s"), n=sw.count())
        return counts.select(start=sw.col("window_start").cast("int64") // SECOND, n="n")

    # Their query goes on: windows that their watermark has not passed have not left.
    return results(windows, stop_s=len(case.input))


@SPARK.translation("spark-dedup-all")
def deduped(case: Case) -> Rows:
    def firsts(flow: sw.Dataflow) -> sw.Stream:
        rows = heard(flow, [[t] for t in case.input], NUMBERS, time_unit="s", disorder="10s")
        return rows.dedupe("t", within="10s").select("t")

    return results(firsts)


@SPARK.translation("spark-dedup-subset")
def deduped_by_arrival(case: Case) -> Rows:
    return _keyed(case, slack="0s")


@SPARK.translation("spark-dedup-subset-ordered")
def deduped_in_order(case: Case) -> Rows:
    return _keyed(case)


def _keyed(case: Case, slack: str | None = None) -> Rows:
    def firsts(flow: sw.Dataflow) -> sw.Stream:
        rows = heard(flow, case.input, KEYED, time_unit="s", disorder="2s")
        return rows.dedupe("key", within="2s").select("key", "t")

    return results(firsts, slack=slack)


SPARK.differs(
    "spark-dedup-subset-ordered",
    "rows are put in order first: the first by event time stays, not the first to arrive",
    extra=["a 16"],
    lacking=[0],
)


START, END = (sw.col(f"window_{side}").cast("int64") // SECOND for side in ("start", "end"))
TENS = sw.col("value") // 10


SPARK.lacks("sessions with a gap by row", "spark-words-gap")
