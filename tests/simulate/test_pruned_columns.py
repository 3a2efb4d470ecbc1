"""Columns that one consumer needs and another does not: what travels where a stream fans out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw

ROWS = pa.table({"ts": pa.array(range(6), pa.int64()), "k": [1, 2] * 3, "n": range(6)})


def source(flow: sw.Dataflow, name: str) -> sw.Stream:
    return flow.source(name, sw.table(ROWS), event_time="ts")


def results(flow: sw.Dataflow, sink: str = "out") -> list[dict[str, Any]]:
    job = sw.Simulation(nodes=2).submit(flow)
    assert job.wait().ledger.is_balanced
    rows: list[dict[str, Any]] = job.result(sink).to_pylist()
    return rows


@pytest.mark.parametrize("turned", [False, True])
def test_a_stream_merges_with_another_though_a_second_step_reads_more_of_it(turned: bool) -> None:
    flow = sw.Dataflow("fanned")
    a, b = source(flow, "a"), source(flow, "b").filter(sw.col("n") > 1)
    merged = b.merge(a) if turned else a.merge(b)
    merged.select("k").sink("out", sw.collect_sink())
    a.sink("all", sw.collect_sink())
    assert [row["k"] for row in results(flow)] == [1, 2, 1, 1, 2, 2, 1, 1, 2, 2]


def test_each_channel_carries_what_its_own_target_reads() -> None:
    flow = sw.Dataflow("fanned")
    a, b = source(flow, "a"), source(flow, "b")
    a.join(b, on="k", within="1s", replicas=2).select("k").sink("out", sw.collect_sink())
    a.select("n").sink("numbers", sw.collect_sink())
    plan = sw.Simulation(nodes=2).submit(flow).plan
    carried = {channel.name: channel.schema.names for channel in plan.channels}
    assert carried["a→join-1.1"] == carried["a→join-1.2"] == ["k"]
    assert carried["join-1.1→out"] == ["k"]
    assert carried["a→select-2"] == ["n"]
