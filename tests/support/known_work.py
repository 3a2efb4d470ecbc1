"""Flows whose work is known exactly: so long for each row, of a clock that passes only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.rates import OnOff
from slackwater.sampling import sample_flow

MS = 1_000_000


class WorkClock:
    """Time that passes only as the user's function works: so long for each row."""

    def __init__(self, row_ns: int) -> None:
        self.now_ns, self._row_ns = 0, row_ns

    def __call__(self) -> int:
        return self.now_ns

    def work(self, columns: Any) -> Any:
        self.now_ns += self._row_ns * len(columns["n"])
        return {"n": columns["n"]}


def times(count: int, every_ns: int = MS) -> pa.Table:
    ts = pa.array(np.arange(count) * every_ns, pa.timestamp("ns"))
    return pa.table({"ts": ts, "n": np.arange(count)})


def working(
    work: Callable[[Any], Any], table: pa.Table, out: sw.connectors.Output | None = None
) -> sw.Dataflow:
    """A source, a merge that lets all go at once, work, and a sink."""
    flow = sw.Dataflow("works", deadline="5s")
    numbers = flow.source("numbers", sw.table(table), event_time="ts", arrival="ts", speed=1)
    gate = numbers.merge(name="gate", slack="0s")
    done = gate.map_batches(work, schema={"n": "int64"}, name="work")
    done.sink("out", out or sw.collect_sink())
    return flow


def sampled(row_ns: int, table: pa.Table, rows: int = 1_000) -> tuple[sw.Dataflow, FlowSample]:
    clock = WorkClock(row_ns)
    flow = working(clock.work, table)
    return flow, sample_flow(flow, rows=rows, clock_ns=clock)


def bursts(seed: int, *, until_s: float = 60.0) -> pa.Table:
    """Return rows at times that an on-off load draws, 100 a second on average."""
    rng = np.random.default_rng(seed)
    load = OnOff(100, rate_ratio=20, high_s=5)
    at_s = np.concatenate(
        [
            np.sort(rng.uniform(a, b, rng.poisson(r * (b - a))))
            for a, b, r in load.rates(rng, until_s=until_s)
        ]
    )
    stamps = (at_s * 1e9).astype("int64")
    return pa.table({"ts": pa.array(stamps, pa.timestamp("ns")), "n": np.arange(len(stamps))})


def counts_of(table: pa.Table, *, until_s: float = 60.0) -> np.ndarray:
    """Return how many rows fall in each 100 ms."""
    at_s = table["ts"].cast("int64").to_numpy() / 1e9
    return np.histogram(at_s, bins=round(until_s * 10), range=(0.0, until_s))[0]
