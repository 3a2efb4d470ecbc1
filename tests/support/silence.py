"""A flow whose live source falls silent, until what silence makes has come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import slackwater as sw
from tests.support.own_inputs import Feed, rows

MS = 1_000_000
MOST_POLLS = 500
"""Polls of a source that waits in vain: seconds."""
IN_TIME = 10_000
"""Time of the last row, which comes if an alert and a window came before the end."""


class Silent:
    """Says so 100 ms after the last row."""

    def __init__(self) -> None:
        self.due_ns: int | None = None

    def on_rows(self, key: int, given: Any) -> None:
        del key
        self.due_ns = given.event_time_ns + 100 * MS

    def on_time(self, key: int, t: int) -> list[dict[str, int]]:
        return [{"key": key, "at_ms": t // MS}]


def silent_flow(*, idle: str | None, ended: bool = False, **order: str) -> sw.Dataflow:
    """Return the flow; its sink "seen" has the time `IN_TIME` if all came in time.

    Args:
        idle: of its live source.
        ended: whether it merges a source that has ended.
        order: options of the live source for rows out of order.
    """
    came: list[str] = []

    def script() -> Iterator[pa.RecordBatch | None]:
        yield rows(0, 3)
        for _ in range(MOST_POLLS):
            if {"alert", "window"} <= {*came}:
                yield rows(IN_TIME, 1)
                return
            yield None

    def noting(word: str) -> Callable[[dict[str, Any]], dict[str, str]]:
        def note(_: dict[str, Any]) -> dict[str, str]:
            came.append(word)
            return {"came": word}

        return note

    def noted(stream: sw.Stream, word: str) -> None:
        stream.map_rows(noting(word), {"came": "string"}).sink(word, sw.collect_sink())

    flow = sw.Dataflow("silent")
    options: dict[str, Any] = {"time_unit": "ms", "idle": idle, **order}
    live = flow.source("live", Feed(script), event_time="t", **options)
    if ended:
        table = sw.table(pa.table({"t": pa.array([0], pa.int64())}))
        live = flow.merge(live, flow.source("ended", table, event_time="t", time_unit="ms"))
    keyed = live.with_columns(key=sw.lit(1))
    noted(keyed.process(Silent, {"key": "int64", "at_ms": "int64"}, by="key"), "alert")
    noted(live.aggregate(window=sw.tumbling("50ms"), n=sw.count()), "window")
    live.sink("seen", sw.collect_sink())
    return flow


def was_in_time(job: Any) -> bool:
    """Return whether the alert and the window came while the source was silent."""
    return IN_TIME in job.result("seen")["t"].to_pylist()
