"""The flow whose sinks are killed: two sources of files, a join, a live sink.

As a program, `python -m benchmarks.engine.sinks.flow FOLDER MODE`, it is a driver to be killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw

EVENTS = 3_000
MS = 1_000_000
EVERY_S = 0.2
PART_ROWS = 200
MODES = ("every", "rows", "parquet")
"""jsonl by time; jsonl by rows; parquet by rows."""
PLACES = {"left": "node-1", "right": "node-1", "join": "node-2", "out": "node-3"}


def write_inputs(folder: Path) -> list[int]:
    """Write both inputs, three seconds of events; return `n` of the rows that the join makes."""
    for name in ("left", "right"):
        n = list(range(EVENTS))
        ts = pa.array([one * MS for one in n], pa.timestamp("ns"))
        column = "n" if name == "left" else "m"
        pq.write_table(pa.table({"ts": ts, "k": n, column: n}), folder / f"{name}.parquet")
    return list(range(EVENTS))


def flow_of(folder: Path, out: Path, mode: str, *, speed: float | None) -> sw.Dataflow:
    """Return the flow; at speed 1 it takes three seconds."""
    flow = sw.Dataflow("sink-kill")
    left, right = (
        flow.source(
            name,
            sw.parquet(folder / f"{name}.parquet"),
            event_time="ts",
            speed=speed,
        )
        for name in ("left", "right")
    )
    pairs = left.join(right, on="k", within="5ms", name="join").select("n")
    if mode == "every":
        sink = sw.jsonl_sink(out, every=EVERY_S, resume=True)
    elif mode == "rows":
        sink = sw.jsonl_sink(out, rows=PART_ROWS, resume=True)
    else:
        sink = sw.parquet_sink(out, rows=PART_ROWS, resume=True)
    pairs.sink("out", sink)
    return flow


def main(folder: str, mode: str) -> None:
    """Run the flow on nodes of its own; print {role: process ids} first."""
    with sw.Cluster.local(nodes=3) as cluster:
        flow = flow_of(Path(folder), Path(folder, "out"), mode, speed=1.0)
        job = cluster.submit(flow, placement=PLACES)
        below = psutil.Process().children(recursive=True)
        heads = [one.pid for one in below if one.name() == "gcs_server"]
        print(json.dumps({"head": heads, "slots": job.workers()}), flush=True)
        job.wait(timeout=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
