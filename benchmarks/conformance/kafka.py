"""Kafka Streams: joins of streams and of a table, windows of the store, sessions."""

from __future__ import annotations

from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, Rows, Suite, heard, results

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
