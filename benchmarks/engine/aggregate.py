"""Mean and count per key and second over 1,000 keys, 10 % of the events up to 500 ms late.

The source sorts them (`out_of_order="sort"`); the rest of the path is ready-only. Every run's
results are compared with the offline query.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.limit import Beside, Program, aggregate_by_parts
from benchmarks.engine.running import ONE_SLOT, Arrays, arrays_of, timed
from benchmarks.engine.workload import BLOCK_ROWS, MS, Mapped, late_table, write, written
from benchmarks.frame import Claim, Options, Result, check
from benchmarks.offline import mean_count_per_second

EVENTS, SECONDS = 5_000_000, 500
NS = 1_000 * MS  # of a window
TARGET = 3.0
SHARE = 25.0
"""Percent of the limit that one slot must reach."""
PLACES = {
    "one slot": ONE_SLOT,
    "three nodes": {"events": "node-1", "aggregate-1": "node-2", "counts": "node-3"},
    "two replicas": {
        "events": "node-1",
        "aggregate-1.1": "node-1",
        "aggregate-1.2": "node-2",
        "counts": "node-1",
    },
}
PEERS = "two replicas"
LEAST_BY_REPLICAS = 1.05  # × one slot


def run(options: Options) -> Result:
    """Measure the aggregate: in one slot, on three nodes, and as two replicas on two of them."""
    scale = 5 if options.quick else 1
    repetitions = 3 if options.quick else 5
    table = late_table(options.seed, events=EVENTS // scale, seconds=SECONDS // scale)
    events = arrays_of(table)
    result = Result(
        f"{len(table):,} events of {SECONDS // scale} s, 1,000 keys, 10 % up to 500 ms late, "
        f"in blocks of {BLOCK_ROWS:,} rows, {repetitions} repetitions after one to warm up",
        ["where", "M events/s", "busy ns a row, by stage"],
    )
    expected = offline(events)
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=3) as cluster:
        source = write(table, Path(folder) / "events")
        beside = Beside(len(table), programs(events))
        alone: float | None = None
        for place, placement in PLACES.items():
            measured = timed(
                cluster,
                partial(
                    counting_flow,
                    source,
                    sw.collect_sink(),
                    replicas=2 if place == PEERS else None,
                ),
                placement=placement,
                repetitions=repetitions,
                verify=partial(verify, expected=expected, what=place),
                before_each=beside.turn if place == "one slot" else None,
            )
            cost = ", ".join(f"{s} {ns:g}" for s, ns in measured.ns_per_row.items())
            result.rows.append([place, measured.million_per_s, cost])
            result.figures[f"{place}_million_per_s"] = measured.million_per_s
            result.figures[f"{place}_ns_per_row"] = measured.ns_per_row
            if place == "one slot":
                median = alone = measured.million_per_s.median
                result.claims.append(Claim(f"{place}: M events/s", median, ">=", TARGET))
                told = beside.tell(result, measured.rates, [])
                share = told["one slot, % of the limit"].median
                result.claims.append(Claim(f"{place}: % of the limit", share, ">=", SHARE))
                result.figures |= told
            if place == PEERS:
                assert alone is not None, "one slot comes first"
                by_one = measured.million_per_s.median / alone
                what = f"{place} on nodes: × one slot"
                result.claims.append(Claim(what, by_one, ">=", LEAST_BY_REPLICAS))
    result.notes += [
        "best placement: one slot, all stages on node-1; three nodes: source on node-1, aggregate "
        "on node-2, sink on node-3; two replicas: source, a replica and sink on node-1, the other "
        "replica on node-2; they share this machine's cores",
        "events / the job's elapsed time, from the first stimulus to the end of all slots",
        "input: an Arrow IPC file in the page cache, mapped into memory by the source",
        f"every run's {len(expected['key']):,} results were compared with the offline query's",
        "limit: one pass of NumPy over the same rows in memory, one thread, all columns that leave "
        "are made; the quicker of two programs, each timed before each run in one slot",
    ]
    return result


def counting_flow(
    source: Mapped, sink: sw.connectors.Output, *, replicas: int | None = None
) -> sw.Dataflow:
    """Return the flow; its sink is `counts`."""
    flow = sw.Dataflow("aggregate")
    flow.source(
        "events",
        source,
        event_time="ts",
        time_unit="ms",
        out_of_order="sort",
        disorder="500ms",
    ).aggregate(
        by="key",
        window=sw.tumbling("1s"),
        mean=sw.mean("value"),
        n=sw.count(),
        **written(replicas),
    ).sink("counts", sink)
    return flow


def offline(events: Arrays) -> Arrays:
    """Return what the aggregate must give: `window_start`, `key`, `count` and `mean`."""
    keys = events["key"].astype(np.int64)
    return mean_count_per_second(events["ts"] * MS, keys, events["value"])


def programs(events: Arrays) -> dict[str, Program]:
    """Return those that go through the same rows without any stream; both give the same."""
    at_once, by_parts = offline(events), aggregate_by_parts(events)
    for name, column in (("window_start", "window_start"), ("key", "key"), ("count", "n")):
        check(np.array_equal(by_parts[column], at_once[name]), f"NumPy by parts: {column!r}")
    check(np.allclose(by_parts["mean"], at_once["mean"], rtol=1e-12), "NumPy by parts: 'mean'")
    return {
        "at once": lambda: {**(made := offline(events)), "window_end": made["window_start"] + NS},
        "by parts": partial(aggregate_by_parts, events),
    }


def verify(found: pa.Table, *, expected: Arrays, what: str) -> None:
    """Check a run: windows leave in order, every count is exact, every mean to 12 digits."""
    rows = arrays_of(found)
    starts = rows["window_start"]
    check(bool((starts[1:] >= starts[:-1]).all()), f"{what}: windows left out of order")
    check(len(starts) == len(expected["key"]), f"{what}: {len(starts)} results")
    order = np.lexsort((rows["key"], starts))
    for name, column in (("window_start", "window_start"), ("key", "key"), ("count", "n")):
        same = np.array_equal(rows[column][order], expected[name])
        check(same, f"{what}: {column!r} differs from the offline query's")
    close = np.allclose(rows["mean"][order], expected["mean"], rtol=1e-12, atol=1e-12)
    check(close, f"{what}: 'mean' differs from the offline query's")
