"""The traffic flow of [ssg] §6 at 500 + 500 reports a second, whose buses report late."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.plan.traits import Keep

AREAS = 200
PERIOD_NS = 2_000_000  # 500 reports a second
WITHIN = "5s"
LATE_BUSES, BUSY_LOOPS = 0.2, 0.1
DELAY_OVER, FLOW_OVER = 300, 1_000

Ints = npt.NDArray[np.int64]


def bus_table(rng: np.random.Generator, times_ns: Ints, arrival_ns: Ints) -> pa.Table:
    """Return Bus(ts, arrival, area, delay_s); 20 % are more than 300 s behind."""
    late = rng.random(len(times_ns)) < LATE_BUSES
    return _table(rng, times_ns, arrival_ns, delay_s=np.where(late, 400, 100))


def loop_table(
    rng: np.random.Generator, times_ns: Ints, arrival_ns: Ints | None = None
) -> pa.Table:
    """Return Loop(ts, arrival, area, flow); 10 % count more than 1,000 cars.

    Args:
        rng: draws all else.
        times_ns: event times.
        arrival_ns: when each arrives; None: as it happens.
    """
    busy = rng.random(len(times_ns)) < BUSY_LOOPS
    arrival_ns = times_ns if arrival_ns is None else arrival_ns
    return _table(rng, times_ns, arrival_ns, flow=np.where(busy, 1_500, 500))


def times(seconds: int, *, offset_ns: int = 0) -> Ints:
    """Return event times at 500 a second, ns."""
    return np.arange(seconds * 500, dtype=np.int64) * PERIOD_NS + offset_ns


def source(flow: sw.Dataflow, name: str, table: pa.Table, *, speed: float = 1.0) -> sw.Stream:
    """Return the rows of a table as they arrive, at the speed of the clock or a multiple of it."""
    return flow.source(name, sw.table(table), event_time="ts", arrival="arrival", speed=speed)


def congestion(
    name: str,
    sink: sw.connectors.Output,
    *,
    deadline_s: float,
    seconds: int,
    bus_times_ns: Ints,
    arrival_ns: Ints,
    rng: np.random.Generator,
    keep: Keep = "slack",
) -> sw.Dataflow:
    """Return the flow: late buses joined with busy loops of `seconds`, as `congestion`, to `jams`.

    Args:
        name: of the flow.
        sink: of the jams.
        deadline_s: of the flow.
        seconds: of loops.
        bus_times_ns: event times of the buses, ns.
        arrival_ns: when each of them arrives, ns.
        rng: draws all else.
        keep: what the join keeps its rows by; "slack": as the paper's does.
    """
    flow = sw.Dataflow(name, deadline=deadline_s, keep=keep)
    buses = source(flow, "buses", bus_table(rng, bus_times_ns, arrival_ns))
    loops = source(flow, "loops", loop_table(rng, times(seconds, offset_ns=PERIOD_NS // 2)))
    jams = buses.join(loops, on="area", within=WITHIN, where=jam(), name="congestion")
    jams.sink("jams", sink)
    return flow


def jam() -> sw.Expr:
    """Return what makes a bus and a loop a congestion event."""
    return (sw.col("delay_s") > DELAY_OVER) & (sw.col("flow") > FLOW_OVER)


def _table(rng: np.random.Generator, times_ns: Ints, arrival_ns: Ints, **own: Ints) -> pa.Table:
    return pa.table(
        {
            "ts": times_ns,
            "arrival": arrival_ns,
            "area": rng.integers(0, AREAS, len(times_ns)).astype(np.int32),
            **{name: values.astype(np.int32) for name, values in own.items()},
        }
    )
