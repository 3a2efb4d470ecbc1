"""Numbered devices whose messages come shuffled, lost and repeated, and flows that count them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw

MS = 1_000_000
DEVICES, EACH = 4, 120


def shuffled_devices(seed: int) -> pa.Table:
    """Return each device's message every 10 ms, some late by 5-60 ms, lost, or come twice."""
    rng = np.random.default_rng(seed)
    device = np.tile(np.arange(DEVICES), EACH)
    number = np.repeat(np.arange(EACH), DEVICES)
    made_ns = number * 10 * MS + device * MS
    late_ns = np.where(rng.random(len(made_ns)) < 0.1, rng.integers(5, 60, len(made_ns)), 0) * MS
    came_ns = made_ns + 2 * MS + late_ns
    kept = np.repeat(
        np.arange(len(made_ns)), rng.choice([0, 1, 2], len(made_ns), p=(0.02, 0.96, 0.02))
    )
    kept = kept[np.argsort(came_ns[kept], kind="stable")]
    return pa.table(
        {
            "made": pa.array(made_ns[kept], pa.timestamp("ns")),
            "came": pa.array(came_ns[kept], pa.timestamp("ns")),
            "device": pa.array(device[kept], pa.int32()),
            "number": pa.array(number[kept].astype(np.uint32)),
        }
    )


def numbered_flow(rows: pa.Table, *, speed: float | None, merge: bool) -> sw.Dataflow:
    """Return a flow whose windows count each device's messages."""
    flow = sw.Dataflow("devices")
    messages = flow.source(
        "messages",
        sw.table(rows),
        event_time="made",
        arrival="came",
        speed=speed,
        writer="device",
        sequence="number",
        out_of_order=sw.order.by_sequence(
            timeout="80ms", restart="added", wraps=32, merge=merge, silent="1s"
        ),
    )
    counts = messages.aggregate(by="device", window=sw.tumbling("100ms"), n=sw.count())
    counts.sink("counts", sw.collect_sink())
    return flow


def all_parts_flow(rows: pa.Table, *, speed: float) -> sw.Dataflow:
    """Return a flow in which all that puts rows in order, or closes in time, meets.

    Clocks of devices are up to 20 ms off, and rows say by how much: `off`, and 1 ms more or less.
    """
    off_ns = (np.asarray(rows["device"]) * 10 - 20) * MS
    made_ns = np.asarray(rows["made"].cast(pa.int64()))
    rows = rows.append_column("off", pa.array(off_ns)).append_column(
        "bound", pa.array(np.full(len(rows), MS))
    )
    shifted = pa.array(made_ns - off_ns, pa.timestamp("ns"))
    rows = rows.set_column(rows.schema.get_field_index("made"), "made", shifted)
    flow = sw.Dataflow("all-parts")
    read: dict[str, Any] = {"event_time": "made", "arrival": "came", "speed": speed}
    clock = sw.clocks.clock_columns("off", "bound", unit="ns")
    order = sw.order.by_sequence(timeout="80ms", restart="added", wraps=32, merge=True, silent="1s")
    numbered = flow.source(
        "numbered",
        sw.table(rows),
        clock=clock,
        writer="device",
        sequence="number",
        out_of_order=order,
        **read,
    )
    sorted_ = flow.source(
        "sorted", sw.table(rows), clock=clock, out_of_order=sw.order.mp_k_slack(), **read
    )
    counts = numbered.aggregate(
        by="device", window=sw.tumbling("100ms"), drift="bound", n=sw.count()
    )
    counts.sink("counts", sw.collect_sink())
    pairs = numbered.join(sorted_, on=("device", "number"), within="4ms", drift="2ms")
    pairs.select("device", "certain").sink("pairs", sw.collect_sink())
    closing = flow.merge(numbered, sorted_).aggregate(
        window=sw.sliding("200ms", "50ms"),
        close=sw.closing.probslack(0.2, first_rows=20, ordered=False),
        n=sw.count(),
    )
    closing.sink("closing", sw.collect_sink())
    return flow
