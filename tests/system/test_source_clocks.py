"""Sources on other hosts whose events are stamped by the host's clock, put right by a server's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.ingest.timesync.key import new_key
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

pytestmark = pytest.mark.ray

HOUR = 3_600 * 10**9
ROWS = 20
LIMIT_S = 60.0
SCHEMA = pa.schema([("t", pa.int64()), ("n", pa.int64())])


@dataclass(frozen=True)
class StampedInput:
    """Rows that get their time from the clock of the host that reads them."""

    def describe(self) -> str:
        return "stamped rows"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> StampedReader:
        return StampedReader()


class StampedReader:
    def __init__(self) -> None:
        self._next = 0

    def poll(self) -> pa.RecordBatch | EndOfInput:
        if self._next == ROWS:
            return END_OF_INPUT
        self._next += 1
        return pa.record_batch([pa.array([time.time_ns()]), pa.array([self._next])], schema=SCHEMA)

    def close(self) -> None:
        """Nothing is open."""


def test_events_of_two_hosts_have_the_servers_time_within_their_bounds(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    key = str(tmp_path / "key")
    new_key(key)
    clock = sw.clocks.clock_columns("clock_offset_ns", "clock_bound_ns", unit="ns")
    flow = sw.Dataflow("source-clocks")
    with sw.clocks.TimeServer(key, clock_ns=lambda: time.time_ns() + HOUR) as server:
        sources = [
            flow.source(
                name,
                sw.clocks.synced(StampedInput(), server=server.endpoint, key=key),
                event_time="t",
                time_unit="ns",
                clock=clock,
                out_of_order="late",
                disorder="1s",
            )
            for name in ("phone", "tablet")
        ]
        merged = flow.merge(*sources, name="both").with_columns(at=sw.event_time().cast("int64"))
        merged.sink("out", sw.collect_sink())
        counts = merged.aggregate(
            window=sw.tumbling("10s"),
            drift=sw.clocks.clock_bound("clock_bound_ns", most="4s"),
            n=sw.count(),
        )
        counts.sink("counts", sw.collect_sink())
        began_ns = time.time_ns()
        job = cluster.submit(flow, placement={"phone": "node-1", "tablet": "node-2"})
        report = job.wait(LIMIT_S)
        ended_ns = time.time_ns()
        rows, windows = (job.result(sink).to_pylist() for sink in ("out", "counts"))
    assert report.ledger.is_balanced
    assert len(rows) == 2 * ROWS
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    for row in rows:
        assert abs(row["at"] - (row["t"] + HOUR)) <= row["clock_bound_ns"]
        bound_ns = row["clock_bound_ns"]
        assert began_ns + HOUR - bound_ns <= row["at"] <= ended_ns + HOUR + bound_ns
    assert sum(one["n"] or 0 for one in windows) == 2 * ROWS
    assert all(one["n_low"] <= (one["n"] or 0) <= one["n_high"] for one in windows)
    told = [stage.source_clock for stage in report.stages if stage.kind == "source"]
    assert [(one["writers"], one["jumps"]) for one in told] == [(1, 0)] * 2
    assert [one["unanswered_rounds"] for one in told] == [0, 0]  # read in threads of their own
    assert server.answered >= 20
    assert server.refused == {}
