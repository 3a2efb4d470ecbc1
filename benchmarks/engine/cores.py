"""A node's cores: joins and a keyed aggregate on one slot and on two, simulated to 64.

One slot has everything, the operator with its own gate. Two slots of the same node have a gate
and two replicas, placed by the simple rule. The same input in turns, the results compared with
the offline query each time. What more slots would give is simulated with the costs that were
measured here (`benchmarks/engine/cores_simulated.py`), and labelled so.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.aggregate import counting_flow, offline, verify
from benchmarks.engine.cores_simulated import Work, measured_costs, report_simulated
from benchmarks.engine.running import Arrays, arrays_of, same_rows
from benchmarks.engine.workload import (
    DELAY_OVER,
    DENSE_OVER,
    MS,
    WITHIN_NS,
    Mapped,
    join_tables,
    late_table,
    write,
)
from benchmarks.frame import Claim, Options, Result, Spread, check
from benchmarks.jobs import collected
from benchmarks.offline import pairs_within

RATE = 200  # buses a second, and as many readings: that of `join-throughput`
FAR_WITHIN_NS = 300_000 * MS  # 50 comparisons for each row that reaches the join; 2 in 5 s
FAR_FACTOR = 4  # of the predicate, so that few pairs leave
DENSE, FAR, AGGREGATE = "dense join", "join within 5 minutes", "keyed aggregate"
ALL_IN_ONE = {"*": "node-1/1"}
ONE, TWO, PARTS = "one slot", "two slots", "replicas in one slot"  # the kinds of runs
SERIAL = ("source", "gate", "sink")
JOIN_TARGET, LEAST_JOIN, AGGREGATE_TARGET = 1.6, 0.85, 0.8
SPIN_ROWS, SPINS = 2_000_000, 8
TURNS_S = 120.0


Reports = dict[str, list[sw.JobReport]]  # {kind of run: its reports}


@dataclass(frozen=True)
class Sizes:
    """How much runs: seconds of event time of the joins, events of the aggregate, turns."""

    dense_s: int
    far_s: int  # of the join within 5 minutes
    counted: int
    repetitions: int


FULL, QUICK = Sizes(10_000, 5_000, 5_000_000, 5), Sizes(1_500, 250, 600_000, 1)
SIMULATED, QUICKLY_SIMULATED = Sizes(0, 1_000, 1_000_000, 1), Sizes(0, 150, 100_000, 1)


def run(options: Options) -> Result:
    """Measure one and two slots of a node, then simulate up to 64."""
    sizes = QUICK if options.quick else FULL
    result = Result(
        f"dense join: {2 * RATE * sizes.dense_s:,} events, {FAR}: {2 * RATE * sizes.far_s:,}, "
        f"aggregate: {sizes.counted:,}; "
        f"{sizes.repetitions} repetitions after one to warm up, one slot and two in turns",
        ["work", "slots", "where", "M events/s", "× one slot", "busy, or what limits it"],
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        works = _works(options.seed, sizes, folder / "real")
        few = QUICKLY_SIMULATED if options.quick else SIMULATED
        small = _works(options.seed, few, folder / "simulated")
        costs = {}
        with sw.Cluster.local(nodes=1, cores=2) as cluster:
            for work in works:
                reports = _measured(cluster, work, sizes.repetitions)
                _report_real(result, work, reports)
                if work.name in [one.name for one in small]:
                    costs[work.name] = measured_costs(
                        cluster, work, alone=reports[ONE][-1], parts=reports[PARTS][-1]
                    )
        gain = _ceiling()
        for work in small:
            report_simulated(result, work, costs[work.name])
    result.figures["two_processes_offline"] = gain
    result.notes += [
        "one slot: everything in it, the operator with its own gate; two: a gate and two replicas, "
        "by the simple rule; each a process of its own, on this machine's cores",
        f"this machine's own ceiling: two processes that sort in NumPy at once do {gain:.2f} × "
        "what one does alone; other work on it lowers that",
        "dense join: that of join-throughput; most of its work is the gate's. Within 5 minutes "
        "rather than 5 s, and with few pairs that match, it is the join's",
        "allowed: by Amdahl's law, 1 / (s + (1 − s) / 2), s the busy time of sources, gate and "
        "sink as measured in this run, all in one slot, as a part of what one slot has to do",
        "simulated: no result was timed; a slot is a core, a hop takes 0.1 ms, and what receiving "
        "a frame costs is not in it; each has as many replicas as slots, by the simple rule",
        "every run's results were compared with the offline query's",
    ]
    return result


def _works(seed: int, sizes: Sizes, folder: Path) -> list[Work]:
    folder.mkdir()
    works = [
        _join_work(FAR, seed, sizes.far_s, FAR_WITHIN_NS, FAR_FACTOR, folder),
        _aggregate_work(seed, sizes.counted, folder),
    ]
    if sizes.dense_s:
        works.insert(0, _join_work(DENSE, seed, sizes.dense_s, WITHIN_NS, 1, folder))
    return works


def _join_work(
    name: str, seed: int, seconds: int, within_ns: int, factor: int, folder: Path
) -> Work:
    tables = join_tables(seed, events=RATE * seconds, seconds=seconds)
    paths = [write(t, folder / f"{name} {n}") for n, t in enumerate(tables)]
    expected = _pairs(*map(arrays_of, tables), within_ns=within_ns, over=factor * DENSE_OVER)
    build = partial(_join_flow, paths[0], paths[1], over=factor * DENSE_OVER)

    def verified(found: pa.Table) -> None:
        same_rows(arrays_of(found), expected, name)

    return Work(
        name,
        2 * RATE * seconds,
        partial(build, within_ns),
        partial(build, MS),
        verified,
        "pairs",
    )


def _join_flow(
    buses: Mapped, loops: Mapped, within_ns: int, replicas: int, *, over: int
) -> sw.Dataflow:
    flow = sw.Dataflow("cores-join")
    left, right = (
        flow.source(name, source, event_time="ts", time_unit="ms")
        for name, source in (("bus", buses), ("scats", loops))
    )
    left.filter(sw.col("delay_s") > DELAY_OVER).join(
        right,
        on="area",
        within=f"{within_ns}ns",
        where=sw.col("delay_s") * sw.col("flow") > over,
        replicas=replicas,
        name="pairs",
    ).select("vehicle", "sensor", "ts", "ts_right").sink("out", sw.collect_sink())
    return flow


def _pairs(bus: Arrays, loop: Arrays, *, within_ns: int, over: int, at_once: int = 2_000) -> Arrays:
    """Return the pairs that the join must find, some buses at a time: all would fill the memory."""
    late = np.flatnonzero(bus["delay_s"] > DELAY_OVER)
    lefts, rights = [late[:0]], [late[:0]]
    for begin in range(0, len(late), at_once):
        some = late[begin : begin + at_once]
        first, last = bus["ts"][some[[0, -1]]] + np.array([-1, 1]) * (within_ns // MS)
        near = np.arange(*loop["ts"].searchsorted([first, last + 1]))
        left, right = pairs_within(
            bus["ts"][some] * MS,
            bus["area"][some].astype(np.int64),
            loop["ts"][near] * MS,
            loop["area"][near].astype(np.int64),
            within_ns,
        )
        left, right = some[left], near[right]
        kept = bus["delay_s"][left].astype(np.int64) * loop["flow"][right] > over
        lefts.append(left[kept])
        rights.append(right[kept])
    left, right = np.concatenate(lefts), np.concatenate(rights)
    return {
        "vehicle": bus["vehicle"][left],
        "sensor": loop["sensor"][right],
        "ts": bus["ts"][left],
        "ts_right": loop["ts"][right],
    }


def _aggregate_work(seed: int, events: int, folder: Path) -> Work:
    table = late_table(seed, events=events, seconds=events // 10_000)
    source = write(table, folder / "events")
    expected = offline(arrays_of(table))

    def build(replicas: int | None) -> sw.Dataflow:
        return counting_flow(source, sw.collect_sink(), replicas=replicas)

    def verified(found: pa.Table) -> None:
        # Replicas reach the sink as they come.
        verify(found.sort_by("window_start"), expected=expected, what="aggregate")

    return Work(AGGREGATE, events, build, build, verified, "aggregate-1")


def _measured(cluster: sw.Cluster, work: Work, repetitions: int) -> Reports:
    """Return the reports of each kind of run, made in turns."""
    reports: Reports = {ONE: [], TWO: [], PARTS: []}
    for turn in range(repetitions + 1):
        for kind, own in reports.items():
            if turn == 0 and kind == PARTS:  # the first turn warms up, which one slot has by now
                continue
            flow = work.build(1 if kind == ONE else 2)
            report = _finished(cluster, work, flow, None if kind == TWO else ALL_IN_ONE)
            used, expected = {stage.slot for stage in report.stages}, 2 if kind == TWO else 1
            check(len(used) == expected, f"{work.name}: {len(used)} slots, not {expected}")
            if turn > 0:
                own.append(report)
    return reports


def _finished(
    cluster: sw.Cluster, work: Work, flow: sw.Dataflow, placement: Mapping[str, str] | None
) -> sw.JobReport:
    report, rows = collected(cluster.submit(flow, placement=placement))
    work.verify(rows)
    return report


def _report_real(result: Result, work: Work, reports: Reports) -> None:
    rates = {
        kind: Spread.of([work.events / r.elapsed_s / 1e6 for r in reports[kind]])
        for kind in (ONE, TWO)
    }
    ratio = rates[TWO].median / rates[ONE].median
    serial = min(1.0, _busy_s(reports[PARTS], SERIAL) / _busy_s(reports[ONE]))
    allowed = 1 / (serial + (1 - serial) / 2)
    figures: dict[str, Any] = {"serial_part": serial, "allowed": allowed, "ratio": ratio}
    for slots, kind in ((1, ONE), (2, TWO)):
        last = reports[kind][-1]
        busy_s: dict[str, float] = {}
        for stage in last.stages:
            busy_s[stage.slot] = busy_s.get(stage.slot, 0.0) + stage.service_ns / 1e9
        told = ", ".join(f"{slot} {seconds:.2f} s" for slot, seconds in busy_s.items())
        if kind == TWO:
            told += f"; serial {serial:.0%} of one slot's work: allows {allowed:.2f} ×"
        times = ratio if kind == TWO else 1.0
        result.rows.append([work.name, slots, "real", rates[kind], times, told])
        figures[f"{kind}, million_per_s"] = rates[kind]
        figures[f"{kind}, busy_s"] = {s.name: s.service_ns / 1e9 for s in last.stages}
    result.figures[work.name] = figures
    if work.name == DENSE:
        name = "dense join on 2 slots of a node: × the events/s of one"
        result.claims.append(Claim(name, ratio, ">=", JOIN_TARGET))
        result.claims.append(Claim(f"{name}, at least", ratio, ">=", LEAST_JOIN))
    elif work.name == AGGREGATE:
        name = "keyed aggregate on 2 slots of a node: part of what its serial part allows"
        result.claims.append(Claim(name, ratio / allowed, ">=", AGGREGATE_TARGET))


def _busy_s(reports: Sequence[sw.JobReport], kinds: Sequence[str] = ()) -> float:
    """Return the median busy time of a run, of stages of some kinds, or of all."""
    return statistics.median(
        sum(s.service_ns for s in one.stages if not kinds or s.kind in kinds) / 1e9
        for one in reports
    )


def _ceiling() -> float:
    """Return how much more two processes of NumPy do at once than one, on this machine now."""
    started = multiprocessing.get_context("spawn")
    with started.Pool(2) as pool:
        pool.map_async(_spin, [1, 1]).get(TURNS_S)  # to warm up: imports
        began_s = time.perf_counter()
        pool.apply_async(_spin, [SPINS]).get(TURNS_S)
        alone_s = time.perf_counter() - began_s
        began_s = time.perf_counter()
        pool.map_async(_spin, [SPINS, SPINS], chunksize=1).get(TURNS_S)
        return 2 * alone_s / (time.perf_counter() - began_s)


def _spin(times: int) -> None:
    values = np.random.default_rng(times).random(SPIN_ROWS)
    for _ in range(times):
        np.sort(values)
