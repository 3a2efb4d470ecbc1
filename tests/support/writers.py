"""Flows whose replicas each write parts of one output, and what these must have."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.sinks.manifest import Manifest

REPLICAS, ROWS = 3, 400


def flow_of(
    output: Any,
    *,
    ordered: bool = False,
    rows: int = ROWS,
    replicas: int = REPLICAS,
    speed: float | None = None,
) -> sw.Dataflow:
    """Return a count of each key and 10 ms; in windows of 10 rows, 16 keys."""
    times = pa.array(range(rows), pa.int64())
    table = pa.table({"ts": times, "k": pa.array([at % 16 for at in range(rows)], pa.int64())})
    flow = sw.Dataflow("writers")
    stream = flow.source("rows", sw.table(table), event_time="ts", time_unit="ms", speed=speed)
    counted = stream.aggregate(
        by="k", window=sw.tumbling("10ms"), n=sw.count(), name="counts", replicas=replicas
    )
    counted.with_columns(twice=sw.col("n") * 2).sink("out", output, ordered=ordered)
    return flow


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def expected() -> Counter[tuple[Any, ...]]:
    with sw.Simulation(nodes=1) as host:
        return rows_of(host.submit(flow_of(sw.collect_sink(), replicas=1)).result("out"))


def manifest_of(folder: Path) -> Manifest:
    return Manifest.from_json(json.loads((folder / ".slackwater.json").read_text()))
