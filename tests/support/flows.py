"""Flows and events that tests of whole flows share, each with its answer worked out offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.offline import pairs_within
from examples.city import City, generate
from tests.support.endless import ToldInput

MS = 1_000_000
WITHIN_NS = 5_000 * MS


def city_tables(folder: Any, **settings: Any) -> tuple[pa.Table, pa.Table]:
    """Return the buses and loops of a small generated city."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    paths = generate(City(**{"seconds": 30, "rate": 11, "areas": 60, **settings}), folder)
    buses, loops = (pq.read_table(path) for path in paths)
    return buses, loops


def offline_congestion(buses: pa.Table, loops: pa.Table) -> list[tuple[int, ...]]:
    """Return (area, vehicle, delay_s, loop, flow) of every congestion event, sorted."""
    bus = {name: buses[name].to_numpy() for name in ("vehicle", "area", "delay_s")}
    loop = {name: loops[name].to_numpy() for name in ("loop", "area", "flow")}
    late = np.flatnonzero(bus["delay_s"] > 300)
    busy = np.flatnonzero(loop["flow"] > 1_000)
    bus_ns, loop_ns = (
        t["event_time"].to_numpy().astype("M8[ns]").astype(int) for t in (buses, loops)
    )
    left, right = pairs_within(
        bus_ns[late],
        bus["area"][late].astype(np.int64),
        loop_ns[busy],
        loop["area"][busy].astype(np.int64),
        WITHIN_NS,
    )
    rows, columns = late[left], busy[right]
    found = zip(
        bus["area"][rows].tolist(),
        bus["vehicle"][rows].tolist(),
        bus["delay_s"][rows].tolist(),
        loop["loop"][columns].tolist(),
        loop["flow"][columns].tolist(),
        strict=True,
    )
    return sorted(found)


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table as sorted tuples."""
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def counting_flow(events: pa.Table, **options: Any) -> sw.Dataflow:
    """Count, mean and 90th percentile per key and second, sliding by half a second."""
    flow = sw.Dataflow("counting", slack=options.pop("slack", None))
    stream = flow.source("events", sw.table(events), event_time="ts", **options)
    stream.aggregate(
        by="key",
        window=sw.sliding("1s", "500ms"),
        n=sw.count(),
        mean=sw.mean("value"),
        p90=sw.quantile("value", 0.9),
    ).sink("counts", sw.collect_sink())
    return flow


def simulated(
    flow: sw.Dataflow, *, seed: int = 1, nodes: int = 4, **options: Any
) -> tuple[Any, Any]:
    """Return the job and the report of a simulated run in which much goes slowly, by chance."""
    host = sw.Simulation(
        nodes=nodes,
        seed=seed,
        cost=sw.testing.CostModel(jitter=3.0),
        link=sw.testing.LinkModel(jitter_ns=20 * MS),
    )
    job = host.submit(flow, **options)
    return job, job.wait()


def ticking(
    name: str, *, seconds: float = 300, over: Path | None = None
) -> tuple[sw.Dataflow, sw.Stream]:
    """Return a flow of a hundred numbers a second, in real time: it leaves others the CPU.

    It ends after so many seconds, or as soon as there is a file `over`.
    """
    n = np.arange(round(seconds * 100))
    times = pa.array(n * 10 * MS, pa.timestamp("ns"))
    flow = sw.Dataflow(name)
    table = _until(over, pa.table({"ts": times, "n": n}))
    return flow, flow.source("numbers", table, event_time="ts", speed=1)


def late_pair(
    name: str,
    *,
    seconds: float = 300,
    lag_ms: int = 1_500,
    over: Path | None = None,
    **settings: Any,
) -> sw.Dataflow:
    """Return a merge of two paced sources of 50 rows a second; one lags up to 1.5 s behind.

    They end after so many seconds, or as soon as there is a file `over`.
    """
    n = np.arange(round(seconds * 50))
    at_ns = n * 20 * MS
    arrival_ns = np.maximum.accumulate(at_ns + (np.abs(np.sin(n / 40)) * lag_ms * MS).astype(int))
    columns = {"ts": pa.array(at_ns, pa.timestamp("ns")), "n": n}
    flow = sw.Dataflow(name, **settings)
    fast = flow.source("fast", _until(over, pa.table(columns)), event_time="ts", speed=1)
    late = pa.table({**columns, "arrival": pa.array(arrival_ns, pa.timestamp("ns"))})
    slow = flow.source("slow", _until(over, late), event_time="ts", arrival="arrival", speed=1)
    flow.merge(fast, slow.select("ts", "n"), name="gate").sink("out", sw.collect_sink())
    return flow


def _until(over: Path | None, rows: pa.Table) -> sw.connectors.Input:
    whole = sw.table(rows)
    return whole if over is None else ToldInput(whole, str(over))
