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

Each run on arrival at 10,000 events/s stands between two of bare messages over the same hops
(`benchmarks/engine/bare_message.py`): what the machine was like at that moment.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import slackwater as sw
from benchmarks.engine.bare_message import BYTES, bare_messages
from benchmarks.engine.latency_claims import RATE, latency_claims, run_name
from benchmarks.engine.processes import MemoryOnce
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import PLACES, Arrays, arrays_of, join_offline, same_rows
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
from benchmarks.frame import Options, Result, check
from benchmarks.jobs import finished

RATES = (1_000, RATE, 50_000)
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
    """Measure both modes in one slot and on three nodes, at each rate, beside bare messages."""
    warm_up_s, seconds = (3, 6) if options.quick else (10, 20)
    rates = (RATE,) if options.quick else RATES
    result = Result(
        f"{seconds} s after {warm_up_s} s of warm-up, half buses, half readings; bare messages "
        f"{sum(bare_seconds(options)):g} s before and after each run on arrival at {RATE:,}",
        ["what", "where", "a second", "results", "from", "p50 ms", "by quarter", "p99 ms", "max"],
    )
    with sw.Cluster.local(nodes=3) as cluster:
        for rate in rates:
            tables = paced_tables(options.seed, rate=rate, seconds=warm_up_s + seconds)
            bus, loop = map(arrays_of, tables)
            with tempfile.TemporaryDirectory() as folder:
                inputs = tuple(write(t, Path(folder) / f"{n}") for n, t in enumerate(tables))
                for mode, place in itertools.product(MODES, PLACES):
                    if options.quick and (mode, place) == ("in order", "three nodes"):
                        continue  # nothing is claimed of it
                    run = Run(rate, mode, warm_up_s, seconds, bus, loop, (inputs[0], inputs[1]))
                    path = Path(folder) / f"{mode} {place}"
                    if (mode, rate) == ("on arrival", RATE):
                        with _between_bare(run, place, result, options):
                            _measure(cluster, run, place, path, result)
                    else:
                        _measure(cluster, run, place, path, result)
    result.claims += latency_claims(result.figures)
    _note(result)
    return result


def bare_seconds(options: Options) -> tuple[float, float]:
    """Return for how long bare messages are as many as results, and as rows."""
    return (1.5, 1.0) if options.quick else (10.0, 5.0)


@contextlib.contextmanager
def _between_bare(run: Run, place: str, result: Result, options: Options) -> Iterator[None]:
    """Send bare messages before and after what is done within."""
    paces = paces_of(run, place, bare_seconds(options))
    with tempfile.TemporaryDirectory() as folder:
        turns = [bare_messages(place, paces, Path(folder) / "before")]
        yield
        turns.append(bare_messages(place, paces, Path(folder) / "after"))
    figures: dict[str, Any] = {}
    for pace, due_ns in paces.items():
        times_ms = [turn[pace] / 1e6 for turn in turns]
        p50 = [float(np.median(times)) for times in times_ms]
        p99, most = (float(np.quantile(np.concatenate(times_ms), q)) for q in (0.99, 1))
        a_second = (len(due_ns) - 1) / (int(due_ns[-1] - due_ns[0]) / 1e9)
        figures[pace] = {
            "messages": len(due_ns) * len(turns),
            "a_second": a_second,
            "p50_ms": p50,  # before and after
            "p99_ms": p99,
            "max_ms": most,
        }
        spread = f"{p50[0]:.3f}, {p50[1]:.3f}"
        cells = [f"{sum(p50) / 2:.3f}", f"before, after: {spread}", p99, most]
        name = f"bare, as many as {pace}"
        result.rows.append([name, place, f"{a_second:,.0f}", len(due_ns) * 2, "due", *cells])
    result.figures[f"bare, {place}"] = figures


def paces_of(run: Run, place: str, seconds: tuple[float, float]) -> dict[str, Ints]:
    """Return when bare messages are due: {pace: ns, in order}, as in the part of a run that counts.

    *results*: the moments at which the events arrive that complete results. *rows*: those at which
    any event arrives at the process that sends: both streams' in one slot, the readings' on
    three nodes, whose source has a process of its own.
    """
    left, right = join_offline(run.bus, run.loop, over=run.over)
    stimuli_ns = np.maximum(run.bus["arrival"][left], run.loop["arrival"][right])
    rows_ns = [run.loop["arrival"]]
    if place == "one slot":
        rows_ns.append(run.bus["arrival"])
    paces = {"results": stimuli_ns, "rows": np.concatenate(rows_ns)}
    begin_ns = run.warm_up_s * 1_000 * MS
    found = {}
    for (pace, times_ns), length_s in zip(paces.items(), seconds, strict=True):
        each_ns = np.unique(times_ns)
        end_ns = begin_ns + round(length_s * 1e9)
        found[pace] = each_ns[(each_ns >= begin_ns) & (each_ns < end_ns)]
    return found


def _measure(cluster: sw.Cluster, run: Run, place: str, path: Path, result: Result) -> None:
    recorder = Recorder(str(path))
    flow = join_flow(*run.inputs, recorder.sink(), over=run.over, slack=MODES[run.mode])
    job = cluster.submit(flow, placement=PLACES[place])
    sampled = None
    if run.rate == max(RATES) and (run.mode, place) == ("in order", "three nodes"):
        # Behind the last result that counts, and before the last bus has arrived.
        sampled = MemoryOnce(run.warm_up_s + run.seconds + 0.3)
    report = finished(job)
    memory = sampled.result() if sampled is not None else None
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
    series = {"stimulus": egress_ns - arrival_ns}
    at_once = 1.0
    if run.mode == "in order":
        certain_ns = determined_ns(run, rows, arrival_ns)
        series["determined"] = egress_ns - certain_ns
        series["floor: stimulus to determined"] = certain_ns - arrival_ns
        at_once = float(np.mean((certain_ns <= arrival_ns)[counts]))
    figures: dict[str, Any] = {
        "results": int(counts.sum()),
        "yield": round(len(arrival_ns) / (2 * len(run.bus["ts"])), 4),
        "missing": missing,
        "determined_at_once": at_once,
        "late": report.ledger.late_used + report.ledger.late,
        "busy": {s.name: round(s.service_ns / 1e9 / report.elapsed_s, 3) for s in report.stages},
    }
    in_turn = np.flatnonzero(counts)[arrival_ns[counts].argsort(kind="stable")]
    for name, values in series.items():
        p50, p99, most = (float(np.quantile(values[counts], q)) / 1e6 for q in (0.5, 0.99, 1))
        quarters = [float(np.median(values[part])) / 1e6 for part in np.array_split(in_turn, 4)]
        figures[name] = {
            "p50_ms": p50,
            "p50_by_quarter_ms": quarters,
            "p99_ms": p99,
            "max_ms": most,
        }
        spread = f"{min(quarters):.2f}–{max(quarters):.2f}"
        cells = [f"{counts.sum():,}", name, f"{p50:.2f}", spread, p99, most]
        result.rows.append([run.mode, place, f"{run.rate:,}", *cells])
    if memory is not None:
        figures["memory"] = memory
    result.figures[run_name(run.mode, place, run.rate)] = figures


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


def determined_ns(run: Run, rows: Arrays, arrival_ns: Ints) -> Ints:
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


def _note(result: Result) -> None:
    order = result.figures[run_name("in order", "one slot", RATE)]
    result.notes += [
        "three nodes are simulated on one machine: they share its clock and its cores",
        "stimulus: when the later of a result's events was due to arrive; egress: at the sink",
        "results were compared with the offline query's, all of them; in order they came in its "
        "order too",
        f"a bare message: {BYTES} bytes over ZeroMQ's PAIR and a Unix socket between processes of "
        "their own (in one slot to the process itself), from when it was due to received; none of "
        "our code but the sleep",
        f"in order, 10k/s, {order['determined_at_once']:.1%} of the results are determined at "
        "once and the others wait for buses up to 2 s late: so the p50 lies on a cliff, and the "
        "nearer that share is to a half, the more p50 − floor tells of our slowest results",
    ]
    for name, run in result.figures.items():
        for kind, held in run.get("memory", {}).items():
            result.notes.append(
                f"memory, {name}, {kind}: {held['processes']} "
                f"processes, RSS {held['rss_mb']} MB, PSS {held['pss_mb']} MB"
            )
