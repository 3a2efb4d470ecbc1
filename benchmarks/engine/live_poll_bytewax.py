"""The flow of `live-poll` in Bytewax, one worker: a program for an interpreter that has Bytewax.

`python -m benchmarks.engine.live_poll_bytewax START_NS RATE ROWS PATH` writes to the file PATH four
whole numbers of 64 bits for each result: number, total, event time, and when it came to the sink.
"""

from __future__ import annotations

import sys
import time
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from benchmarks.engine.live_poll_feed import Feed

Value = tuple[int, int, int]


class FeedPartition(StatelessSourcePartition[tuple[str, Value]]):  # type: ignore[misc]
    """Hands the feed's rows to Bytewax as pairs of key and value."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def next_batch(self) -> list[tuple[str, Value]]:
        """Return the rows that are due."""
        if self._feed.is_over:
            raise StopIteration
        return [(key, (number, value, due_ns)) for number, key, value, due_ns in self._feed.due()]

    def next_awake(self) -> datetime | None:
        """Return when the next row is due; None at the end."""
        if self._feed.is_over:
            return None
        return datetime.now(UTC) + timedelta(seconds=self._feed.rest_s())


class FeedSource(DynamicSource[tuple[str, Value]]):  # type: ignore[misc]
    """Source of one feed, read by one worker."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def build(self, _step: str, _worker: int, _workers: int) -> FeedPartition:
        """Return the only partition."""
        return FeedPartition(self._feed)


class RecorderPartition(StatelessSinkPartition[tuple[str, Value]]):  # type: ignore[misc]
    """Keeps each result, and when its batch came."""

    def __init__(self, kept: list[tuple[int, list[tuple[str, Value]]]]) -> None:
        self._kept = kept

    def write_batch(self, items: list[tuple[str, Value]]) -> None:
        """Keep a batch."""
        self._kept.append((time.time_ns(), items))


class RecorderSink(DynamicSink[tuple[str, Value]]):  # type: ignore[misc]
    """Sink of one worker."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, list[tuple[str, Value]]]] = []

    def build(self, _step: str, _worker: int, _workers: int) -> RecorderPartition:
        """Return the only partition."""
        return RecorderPartition(self.kept)


def add(total: int | None, row: Value) -> tuple[int, Value]:
    """Return the new total of a key, and the result of a row."""
    number, value, due_ns = row
    total = (total or 0) + value
    return total, (number, total, due_ns)


def main() -> None:
    """Run the flow to its end; write its results."""
    start_ns, rate, rows = map(int, sys.argv[1:4])
    sink = RecorderSink()
    flow = Dataflow("totals")
    keyed = op.input("rows", flow, FeedSource(Feed(start_ns, rate=rate, rows=rows)))
    op.output("totals", op.stateful_map("total", keyed, add), sink)
    cli_main(flow)
    written = array("q")
    for egress_ns, items in sink.kept:
        for _, (number, total, due_ns) in items:
            written.extend((number, total, due_ns, egress_ns))
    Path(sys.argv[4]).write_bytes(written.tobytes())


if __name__ == "__main__":
    main()
