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


def _sessions(case: Case, key: sw.Expr | None, *, stop: bool) -> Rows:
    def sessions(flow: sw.Dataflow) -> sw.Stream:
        # A row just a gap later is of the session here, and not there: so it leaves a moment later.
        numbers = [[t, t] for t in [*case.input, max(case.input) + 1][: None if stop else -1]]
        columns = {"t": "int64", "value": "int64"}
        rows = heard(flow, numbers, columns, goes_on=stop, time_unit="s", disorder="10s")
        rows = rows if key is None else rows.with_columns(key=key)
        keys = [] if key is None else ["key"]
        made = rows.aggregate(by=keys, window=sw.session("5s"), n=sw.count(), total=sw.sum("value"))
        return made.select(*keys, {"start": START, "end": END}, "n", "total")

    return results(sessions, stop_s=len(case.input) + 1 if stop else None)


START, END = (sw.col(f"window_{side}").cast("int64") // SECOND for side in ("start", "end"))
TENS = sw.col("value") // 10


@SPARK.translation("spark-session-append")
def sessions_append(case: Case) -> Rows:
    return _sessions(case, TENS, stop=True)


@SPARK.translation("spark-session-nokey")
def sessions_without_key(case: Case) -> Rows:
    # Their rows have 0 in place of a key.
    return [{"key": 0, **row} for row in _sessions(case, None, stop=True)]


@SPARK.translation("spark-session-update")
def sessions_at_the_end(case: Case) -> Rows:
    return _sessions(case, TENS, stop=False)


@SPARK.translation("spark-session-overlap")
def sessions_of_two_keys(case: Case) -> Rows:
    return _sessions(case, sw.col("value") % 2, stop=False)


@SPARK.translation("spark-words-append")
def words(case: Case) -> Rows:
    return _words(case, sw.duration("10s"))


@SPARK.translation("spark-words-gap")
def words_with_gaps(case: Case) -> Rows:
    # Theirs is a function of the word; rows whose gap is not more than zero count nowhere.
    word = sw.col("word")
    gap = sw.when(word == "hello").then(sw.duration("1s")).otherwise(sw.duration("10s"))
    return _words(case, sw.when(word.is_in(["structured", "world"])).then(0).otherwise(gap))


def _words(case: Case, gap: sw.Expr) -> Rows:
    def sessions(flow: sw.Dataflow) -> sw.Stream:
        columns = {"text": "string", "t": "int64"}
        rows = heard(flow, case.input, columns, goes_on=True, time_unit="s", disorder="30s")
        words = rows.with_columns(word=sw.col("text").str.split(" ")).explode("word")
        words = words.with_columns(gap=gap).filter(sw.col("gap") > 0)
        counts = words.aggregate(by="word", window=sw.session(sw.col("gap")), n=sw.count())
        return counts.select("word", {"start": START, "end": END}, "n")

    return results(sessions, stop_s=len(case.input))
