"""Numbered devices whose messages come shuffled, lost and repeated, and a flow that counts them."""

from __future__ import annotations

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
        out_of_order=sw.by_sequence(
            timeout="80ms", restart="added", wraps=32, merge=merge, silent="1s"
        ),
    )
    counts = messages.aggregate(by="device", window=sw.tumbling("100ms"), n=sw.count())
    counts.sink("counts", sw.collect_sink())
    return flow
