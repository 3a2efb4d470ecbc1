"""The CPU time of a reader is charged to its source, not to the stage on its slot."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.simulate import MeasuredCost
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

BLOCKS, ROWS = 6, 200
BURNS_NS = 20_000_000
SCHEMA = pa.schema({"ts": pa.timestamp("ms"), "key": pa.int64()})


def block(n: int) -> pa.RecordBatch:
    times = np.arange(n * ROWS, (n + 1) * ROWS)
    return pa.record_batch([pa.array(times, pa.timestamp("ms")), pa.array(times % 7)], SCHEMA)


@dataclass
class Burning:
    """An input whose reader takes CPU for each block."""

    reads_inline: bool = True
    burns_ns: int = BURNS_NS

    def describe(self) -> str:
        return "blocks that are dear to read"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> Burning.Reader:
        return Burning.Reader(self.burns_ns)

    class Reader:
        def __init__(self, burns_ns: int) -> None:
            self.next, self.burns_ns = 0, burns_ns

        def poll(self) -> pa.RecordBatch | EndOfInput | None:
            if self.next == BLOCKS:
                return END_OF_INPUT
            until_ns = time.thread_time_ns() + self.burns_ns
            while time.thread_time_ns() < until_ns:
                pass
            self.next += 1
            return block(self.next - 1)

        def close(self) -> None:
            pass


def burning(burns_ns: int, speed: float | None) -> sw.Dataflow:
    flow = sw.Dataflow("burning")
    rows = pa.Table.from_batches(map(block, range(BLOCKS)))
    dear = flow.source("dear", Burning(burns_ns=burns_ns), event_time="ts", speed=speed)
    cheap = flow.source("cheap", sw.table(rows), event_time="ts", speed=speed)
    dear.join(cheap, on="key", within="10ms", name="both").sink("out", sw.collect_sink())
    return flow


@pytest.mark.parametrize("speed", [None, 1.0])
def test_the_cpu_of_a_reader_is_charged_to_its_source(speed: float | None) -> None:
    sw.Simulation(nodes=1).submit(burning(0, None)).wait()  # imports what is imported at first
    cost: Any = MeasuredCost(time.thread_time_ns)
    report = sw.Simulation(nodes=1, cost=cost).submit(burning(BURNS_NS, speed)).wait()
    (source,) = [stage for stage in report.stages if stage.name == "dear"]
    assert source.service_ns >= 0.9 * BLOCKS * BURNS_NS
    # A slice in which Python collects all of a test run's garbage may take as long, once.
    long = [one for one in cost.slices if one.stage != "dear" and one.took_ns >= BURNS_NS]
    assert len(long) <= 1, "no block was read in a slice of another stage"
