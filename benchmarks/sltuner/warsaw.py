"""The arrivals of real buses under deadlines of 20, 30, 40 and 60 s.

Warsaw's buses as the city's feed showed them, polled some 12 s apart: an event arrives with the
poll that first showed it, so event time stands still between polls and then jumps. Every bus is a
writer; one that is silent for 30 s is idle. Each bus is joined with those of its line in its cell
within 30 s: a bunch. Calibrated on another day. Real data: see CONTRIBUTING, DATA=.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.frame import Options, Result
from benchmarks.sltuner.contest import Contest, sweep
from benchmarks.sltuner.deadline import CALIBRATION_SEED, HEADER, Experiment
from examples.real_data import warsaw

EVENING, MIDDAY = "2024-02-15_1817.parquet", "2024-02-16_1136.parquet"
SECONDS, QUICK_SECONDS = 900, 300
DEADLINES_S, QUICK_DEADLINES_S = (20, 30, 40, 60), (30, 60)
SWEEP_S = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 90)
IDLE, WITHIN = "30s", "30s"
STALE_S = 60
CELL_DEG = 0.01
CONTEST = Contest(low="10s", high="120s")


def run(options: Options) -> Result:
    """Run every policy under each deadline, and the sweep."""
    warsaw()  # without its files nothing needs to begin
    seconds = QUICK_SECONDS if options.quick else SECONDS
    result = Result(
        f"{seconds} s of the evening of 2024-02-15, {EVENING}; simulated; calibrated on {MIDDAY}",
        HEADER,
    )
    for deadline_s in QUICK_DEADLINES_S if options.quick else DEADLINES_S:
        CONTEST.hold(result, experiment(seconds, deadline_s), options, what=f"{deadline_s} s")
    if not options.quick:
        sweep(result, experiment(seconds, DEADLINES_S[0]), SWEEP_S, seed=options.seed)
    return result


def experiment(seconds: int, deadline_s: int) -> Experiment:
    """Return the experiment of a length under a deadline."""
    return Experiment(
        "sltuner-warsaw",
        lambda seed, sink: flow_of(seed, sink, seconds=seconds, deadline_s=deadline_s),
        seconds,
        ("node-1", "node-2", "node-3"),
        {},
    )


def flow_of(seed: int, sink: sw.connectors.Output, *, seconds: int, deadline_s: int) -> sw.Dataflow:
    """Return the flow over the evening, or over midday for the seed of a calibration."""
    name = MIDDAY if seed >= CALIBRATION_SEED else EVENING
    flow = sw.Dataflow("warsaw", deadline=deadline_s, keep="slack")
    fixes = flow.source(
        "fixes",
        sw.table(fixes_of(warsaw() / name, seconds)),
        event_time="event_time_s",
        time_unit="s",
        arrival="recv_time_s",
        speed=1.0,
        writer="vehicle",
        idle=IDLE,
    )
    fixes.join(
        fixes,
        on=["line", "cell"],
        within=WITHIN,
        where=sw.col("vehicle") < sw.col("vehicle_right"),
        name="bunch",
    ).select("line", "cell", "vehicle", "vehicle_right").sink("bunches", sink)
    return flow


def fixes_of(path: Path, seconds: int) -> pa.Table:
    """Return the fixes of the first `seconds` of a file, without those older than 60 s."""
    table = pq.read_table(path)
    age_s = pc.subtract(table["recv_time_s"], table["event_time_s"])
    since_s = pc.subtract(table["recv_time_s"], pc.min(table["recv_time_s"]))
    table = table.filter(pc.and_(pc.less_equal(age_s, STALE_S), pc.less(since_s, seconds)))
    cell = np.floor(table["lat"].to_numpy() / CELL_DEG) * 100_000 + np.floor(
        table["lon"].to_numpy() / CELL_DEG
    )
    names = ("recv_time_s", "event_time_s", "vehicle", "line")
    return table.select(names).append_column("cell", pa.array(cell.astype(np.int64)))
