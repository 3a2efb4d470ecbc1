"""The join at the speed of the clock: how long from an event's arrival to the result it completes.

```
event time ──▶ arrives (its stimulus) ──▶ determined ──▶ egress
                    └── floor: the data's ──┘└── ours ──┘     in order
                    └───────────── ours ──────────────┘     on arrival (slack "0s")
```

A result is determined when no event that comes before its later row can follow: with the tie
order of the gate, when the other stream has reached that row's event time (and, where buses tie
with a reading, passed it). Until then nobody can say its place, so the floor is what a machine
that takes no time would reach.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import slackwater as sw
from benchmarks.engine.processes import MemoryOnce
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import TIMEOUT_S, Arrays, arrays_of, join_offline, same_rows
from benchmarks.engine.workload import (
    AREAS,
    MEAN_DELAY_S,
    MEAN_FLOW,
    MS,
    WITHIN_NS,
    Ints,
    Mapped,
    join_flow,
    paced_tables,
    write,
)
from benchmarks.frame import Claim, Options, Result, check

RATES = (1_000, 10_000, 50_000)
MODES = {"on arrival": "0s", "in order": None}  # {name: slack}
YIELD = 0.015  # results for each event
COLUMNS = ("ts", "ts_right", "arrival", "arrival_right", "vehicle", "sensor")


@dataclass(frozen=True)
class Run:
    """One flow to run: its events, its filters, and the time that counts."""

    rate: int
    mode: str
    warm_up_s: int
    seconds: int
    bus: Arrays
    loop: Arrays
    inputs: tuple[Mapped, Mapped]

    @property
    def over(self) -> tuple[float, float]:
        """What delay and flow must be over, so that 1.5 % of the events give a result."""
        # Pairs: rate/2 · p buses a second, each with rate/2 · q · 10 s / areas readings.
        fraction = (YIELD * 4 * AREAS / (self.rate * 2 * WITHIN_NS / 1e9)) ** 0.5
        return MEAN_DELAY_S * -np.log(fraction), MEAN_FLOW * -np.log(fraction)


def run(options: Options) -> Result:
    """Measure both modes at each rate, on three nodes."""
    warm_up_s, seconds = (5, 10) if options.quick else (10, 20)
    rates = (10_000,) if options.quick else RATES
    result = Result(
        f"{seconds} s after {warm_up_s} s of warm-up, half buses, half readings, three nodes",
        ["mode", "events/s", "results", "from", "p50 ms", "p99 ms", "max ms"],
    )
    with sw.Cluster.local(nodes=3) as cluster:
        for rate in rates:
            tables = paced_tables(options.seed, rate=rate, seconds=warm_up_s + seconds)
            bus, loop = map(arrays_of, tables)
            with tempfile.TemporaryDirectory() as folder:
                inputs = tuple(write(t, Path(folder) / f"{n}") for n, t in enumerate(tables))
                for mode in MODES:
                    run = Run(rate, mode, warm_up_s, seconds, bus, loop, (inputs[0], inputs[1]))
                    _measure(cluster, run, Path(folder) / mode, result)
    _claim(result, rates)
    result.notes += [
        "three nodes are simulated on one machine: they share its clock and its cores",
        "stimulus: when the later of a result's events was due to arrive; egress: at the sink",
        "results were compared with the offline query's, all of them; in order they came in its "
        "order too",
    ]
    return result


def _measure(cluster: sw.Cluster, run: Run, path: Path, result: Result) -> None:
    recorder = Recorder(str(path))
    flow = join_flow(*run.inputs, recorder.sink(), over=run.over, slack=MODES[run.mode])
    job = cluster.submit(flow)
    # Behind the last result that counts, and before the last bus has arrived.
    sampled = MemoryOnce(run.warm_up_s + run.seconds + 0.3) if run.rate == max(RATES) else None
    try:
        report = job.wait(timeout=TIMEOUT_S)
        memory = sampled.result() if sampled is not None else None
    finally:
        job.close()
    check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
    rows = recorder.read()
    missing = missing_results(run, rows)

    arrival_ns = np.maximum(rows["arrival"], rows["arrival_right"])
    # The sink's histogram has the sum of egress − stimulus, and a stimulus is the start of the
    # job plus the arrival: so this is the start, as far as the callback's own time goes.
    latency = report.sinks[0].latency
    total = int(rows["egress_ns"].sum(dtype=object)) - int(arrival_ns.sum(dtype=object))
    started_ns = (total - latency.sum_ns) // latency.count
    egress_ns = rows["egress_ns"] - started_ns
    counts = (arrival_ns >= run.warm_up_s * 1_000 * MS) & (
        arrival_ns < (run.warm_up_s + run.seconds) * 1_000 * MS
    )
    series = {"stimulus": (egress_ns - arrival_ns)[counts]}
    at_once = 1.0
    if run.mode == "in order":
        determined_ns = _determined(run, rows, arrival_ns)
        series["determined"] = (egress_ns - determined_ns)[counts]
        series["floor: stimulus to determined"] = (determined_ns - arrival_ns)[counts]
        at_once = float(np.mean((determined_ns <= arrival_ns)[counts]))
    figures: dict[str, Any] = {
        "results": int(counts.sum()),
        "yield": round(len(arrival_ns) / (2 * len(run.bus["ts"])), 4),
        "missing": missing,
        "determined_at_once": at_once,
        "late": report.ledger.late_used + report.ledger.late,
        "busy": {s.name: round(s.service_ns / 1e9 / report.elapsed_s, 3) for s in report.stages},
    }
    for name, values in series.items():
        p50, p99, most = (float(np.quantile(values, q)) / 1e6 for q in (0.5, 0.99, 1))
        figures[name] = {"p50_ms": p50, "p99_ms": p99, "max_ms": most}
        result.rows.append(
            [run.mode, f"{run.rate:,}", f"{counts.sum():,}", name, f"{p50:.2f}", p99, most]
        )
    if memory is not None:
        figures["memory"] = memory
    result.figures[f"{run.mode}, {run.rate} events/s"] = figures


def missing_results(run: Run, rows: Arrays) -> int:
    """Check the results, in order or (on arrival) in none; return how many are missing."""
    left, right = join_offline(run.bus, run.loop, over=run.over)
    expected = {name: run.bus[name][left] for name in ("ts", "arrival", "vehicle")}
    expected |= {
        "ts_right": run.loop["ts"][right],
        "arrival_right": run.loop["arrival"][right],
        "sensor": run.loop["sensor"][right],
    }
    what = f"{run.mode}, {run.rate} events/s"
    if run.mode == "in order":
        same_rows(rows, expected, what)
        return 0
    complete = list(zip(*(expected[name].tolist() for name in COLUMNS), strict=True))
    found = list(zip(*(rows[name].tolist() for name in COLUMNS), strict=True))
    check(set(found) <= set(complete), f"{what}: pairs that the offline query does not find")
    check(len(set(found)) == len(found), f"{what}: pairs found twice")
    return len(complete) - len(found)


def _determined(run: Run, rows: Arrays, arrival_ns: Ints) -> Ints:
    """Return when each result's place in the order was certain, in arrival time."""
    bus_last = rows["ts"] > rows["ts_right"]  # of equal times the bus comes first
    by_loops = _first_arrival(run.loop, rows["ts"], "left")
    by_buses = _first_arrival(run.bus, rows["ts_right"], "right")
    return np.maximum(arrival_ns, np.where(bus_last, by_loops, by_buses))


def _first_arrival(stream: Arrays, ts: Ints, side: Any) -> Ints:
    """Return when the first event at (left) or past (right) each time arrived; or the end."""
    places = stream["ts"].searchsorted(ts, side)
    found: Ints = stream["arrival"].take(np.minimum(places, len(stream["ts"]) - 1))
    return found


def _claim(result: Result, rates: tuple[int, ...]) -> None:
    arrival = result.figures["on arrival, 10000 events/s"]["stimulus"]
    order = result.figures["in order, 10000 events/s"]
    floor_ms = order["floor: stimulus to determined"]["p50_ms"]
    result.claims += [
        Claim(
            f"on arrival, {rate:,} events/s: pairs missing, of all that the offline query finds",
            result.figures[f"on arrival, {rate} events/s"]["missing"],
            "<=",
            0,
        )
        for rate in rates
    ]
    result.claims += [
        Claim("on arrival, 10k/s: p50 ms", arrival["p50_ms"], "<=", 1),
        Claim("on arrival, 10k/s: p99 ms", arrival["p99_ms"], "<=", 10),
        Claim("in order, 10k/s: p50 ms − floor", order["stimulus"]["p50_ms"] - floor_ms, "<=", 1),
        Claim("in order, 10k/s: p50 ms from determined", order["determined"]["p50_ms"], "<=", 1),
    ]
    result.notes.append(
        f"in order, 10k/s, {order['determined_at_once']:.1%} of the results are determined at "
        "once and the others wait for buses up to 2 s late: so the p50 lies on a cliff, and the "
        "nearer that share is to a half, the more p50 − floor tells of our slowest results"
    )
    if max(RATES) in rates:
        memory = result.figures[f"in order, {max(RATES)} events/s"]["memory"]
        for kind, held in memory.items():
            result.notes.append(
                f"memory at {max(RATES):,} events/s in order, {kind}: {held['processes']} "
                f"processes, RSS {held['rss_mb']} MB, PSS {held['pss_mb']} MB"
            )
        result.claims.append(
            Claim("50k/s: RSS of all processes, GiB", memory["all"]["rss_mb"] / 1_024, "<=", 2)
        )
