"""Fifty million events through the three-node join and aggregate: the memory of each slot.

A table of some events is handed over again and again, each time later, so that inputs cost no
more memory at the end than at the start. Results go to parquet files, which are
checked afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.engine.aggregate import counting_flow
from benchmarks.engine.processes import SlotMemory
from benchmarks.engine.running import TIMEOUT_S, arrays_of, join_offline
from benchmarks.engine.workload import MS, join_flow, join_tables, late_table, write
from benchmarks.frame import Claim, Options, Result, check
from benchmarks.offline import mean_count_per_second

EVENTS = 50_000_000
RATE = 10_000  # events for each second of event time, of the aggregate
JOIN_RATE = 10_000  # of the join, both streams: dense enough that a quarter give a result
LAPS = 50
SETTLED = 0.2  # of the run, by time; from here on memory must stay as it is
MAY_GROW, MAY_GROW_MB = 0.10, 30


def run(options: Options) -> Result:
    """Measure the join and the aggregate."""
    events = EVENTS  # 10 M take 2 s: over before memory has settled
    result = Result(
        f"{events:,} events each, {LAPS} laps of {events // LAPS:,}, as fast as possible, "
        "three nodes; RSS of each slot actor every 20 ms",
        [
            "flow",
            "slot actor on",
            "MB at the start",
            f"MB at {SETTLED:.0%}",
            "most after",
            "growth",
        ],
    )
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=3) as cluster:
        for name, measure in (("join", _join), ("aggregate", _aggregate)):
            samples = measure(cluster, Path(folder) / name, events, options.seed)
            _judge(result, name, samples)
    result.notes += [
        "inputs are memory-mapped: the pages of the table that a source has touched are in its RSS",
        "three nodes are simulated on one machine",
        "checked: the number of results in every lap, and that the counts add up to all events",
    ]
    return result


def _join(cluster: sw.Cluster, folder: Path, events: int, seed: int) -> SlotMemory:
    folder.mkdir()
    seconds = events // LAPS // JOIN_RATE
    # A pause longer than the window between two laps, so that no pair spans them.
    shift_ms = (seconds + 10) * 1_000
    tables = join_tables(seed, events=events // LAPS // 2, seconds=seconds)
    inputs = [
        replace(write(t, folder / n), times=LAPS, shift_ms=shift_ms)
        for t, n in zip(tables, ("bus", "scats"), strict=True)
    ]
    flow = join_flow(inputs[0], inputs[1], sw.parquet_sink(folder / "out"))
    samples = _sampled(cluster, flow)
    left, _ = join_offline(*map(arrays_of, tables))
    found = arrays_of(pq.read_table(folder / "out"))
    laps = np.bincount(found["ts"] // shift_ms, minlength=LAPS)
    check(bool((laps == len(left)).all()), f"join: {laps} pairs by lap, {len(left)} offline")
    return samples


def _aggregate(cluster: sw.Cluster, folder: Path, events: int, seed: int) -> SlotMemory:
    folder.mkdir()
    seconds = events // LAPS // RATE
    shift_ms = (seconds + 10) * 1_000
    table = late_table(seed, events=events // LAPS, seconds=seconds)
    source = replace(write(table, folder / "events"), times=LAPS, shift_ms=shift_ms)
    samples = _sampled(cluster, counting_flow(source, sw.parquet_sink(folder / "out")))
    rows = arrays_of(table)
    expected = mean_count_per_second(rows["ts"] * MS, rows["key"].astype(np.int64), rows["value"])
    found = arrays_of(pq.read_table(folder / "out"))
    laps = np.bincount(found["window_start"] // (shift_ms * MS), minlength=LAPS)
    check(bool((laps == len(expected["key"])).all()), f"aggregate: {laps} results by lap")
    check(int(found["n"].sum()) == len(table) * LAPS, "aggregate: events are missing")
    return samples


def _sampled(cluster: sw.Cluster, flow: sw.Dataflow) -> SlotMemory:
    job = cluster.submit(flow)
    samples = SlotMemory()
    try:
        report = job.wait(timeout=TIMEOUT_S)
    finally:
        samples.close()
        job.close()
    check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
    return samples


def _judge(result: Result, name: str, memory: SlotMemory) -> None:
    samples: Sequence[tuple[float, dict[int, int]]] = memory.samples
    check(len(samples) >= 10, f"{name}: only {len(samples)} samples; the run was too short")
    end_s = samples[-1][0]
    growths: dict[str, Any] = {}
    worst = 0.0
    for node in samples[0][1]:
        sizes = [(at_s, held[node] / 2**20) for at_s, held in samples if node in held]
        settled = next(size for at_s, size in sizes if at_s >= SETTLED * end_s)
        most = max(size for at_s, size in sizes if at_s >= SETTLED * end_s)
        grown = most - settled
        worst = max(worst, min(grown / settled / MAY_GROW, grown / MAY_GROW_MB))
        result.rows.append(
            [name, f"node-{node}", sizes[0][1], settled, most, f"{grown / settled:.1%}"]
        )
        growths[f"node-{node}"] = {
            "start_mb": sizes[0][1],
            "settled_mb": settled,
            "most_mb": most,
            "growth": grown / settled,
        }
    result.figures[name] = growths | {"seconds": end_s, "samples": len(samples)}
    result.claims.append(
        Claim(f"{name}: growth of the worst slot, in parts of 10 % (or 30 MB)", worst, "<=", 1)
    )
