"""Latency of two replicas in order beside one, and the promises of 64 × 64 channels.

```
R = 1   buses, readings ─▶ join.1 ─────────────▶ sink        all in one slot
R = 2   buses, readings ─▶ join.1 ─▶ gate ─▶ sink            a slot each, the order of the keys
                       └─▶ join.2 ─┘
```

Both have one and the same order. Latency is from when a result was determined, and from its
stimulus (`benchmarks/engine/join_latency.py`), at the sink after its gate: so the wait of the
merge counts in it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.join_latency import Run, determined_ns, missing_results
from benchmarks.engine.latency_claims import RATE
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import arrays_of
from benchmarks.engine.workload import MS, join_flow, paced_tables, write
from benchmarks.frame import Claim, Options, Result, check
from benchmarks.jobs import collected, finished
from slackwater.runtime.config import Limits
from slackwater.runtime.schedule import Send, Slice

REPLICAS: Mapping[int, Mapping[str, str] | None] = {1: {"*": "node-1/1"}, 2: None}
"""{replicas: placement}"""
MOST_P50, MOST_P99 = 2.0, 1.5  # × of R = 1
MANY = 64
PACED_RATE, PACED_KEYS = 10_000, 4_096


def run(options: Options) -> Result:
    """Measure one and two replicas in turns, then count promises in the simulator."""
    warm_up_s, seconds, turns = (2, 5, 1) if options.quick else (5, 15, 3)
    result = Result(
        f"{seconds} s after {warm_up_s} s of warm-up, {turns} turns, {RATE:,} events/s in order",
        ["replicas", "from", "results", "p50 ms", "p99 ms", "max ms"],
    )
    tables = paced_tables(options.seed, rate=RATE, seconds=warm_up_s + seconds)
    bus, loop = map(arrays_of, tables)
    series: dict[int, dict[str, list[Any]]] = {replicas: {} for replicas in REPLICAS}
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=1, cores=2) as cluster:
        inputs = tuple(write(t, Path(folder) / f"{n}") for n, t in enumerate(tables))
        run_of = Run(RATE, "in order", warm_up_s, seconds, bus, loop, (inputs[0], inputs[1]))
        for turn in range(turns):
            for replicas, own in series.items():
                path = Path(folder) / f"{turn} {replicas}"
                for name, values in _latencies_ns(cluster, run_of, replicas, path).items():
                    own.setdefault(name, []).append(values)
    _report(result, series)
    for gap_ns in (1, Limits().promise_gap_ns):
        _count_promises(result, 1 if options.quick else 5, gap_ns)
    result.notes += [
        "R = 1: replicas=1, all in one slot; R = 2: two slots of the node, by the simple rule; "
        "every run's results were compared with the offline query's, with their order's times",
        "p50 and p99 are medians over the turns, of which each has one run of both",
        "a flow with a slack or a deadline has no merge at its sink: its results leave early",
    ]
    return result


def _latencies_ns(cluster: sw.Cluster, run_of: Run, replicas: int, path: Path) -> dict[str, Any]:
    """Run the join once; return {begin: latencies of the results that count}."""
    recorder = Recorder(str(path))
    flow = join_flow(*run_of.inputs, recorder.sink(), over=run_of.over, replicas=replicas)
    report = finished(cluster.submit(flow, placement=REPLICAS[replicas]))
    slots = {stage.slot for stage in report.stages}
    check(len(slots) == replicas, f"{replicas} replicas in {len(slots)} slots")
    rows = recorder.read()
    missing_results(run_of, rows)
    arrival_ns = np.maximum(rows["arrival"], rows["arrival_right"])
    latency = report.sinks[0].latency
    # As in join-latency: the sink's histogram tells when the job started.
    total = int(rows["egress_ns"].sum(dtype=object)) - int(arrival_ns.sum(dtype=object))
    egress_ns = rows["egress_ns"] - (total - latency.sum_ns) // latency.count
    begin_ns = run_of.warm_up_s * 1_000 * MS
    counts = (arrival_ns >= begin_ns) & (arrival_ns < begin_ns + run_of.seconds * 1_000 * MS)
    return {
        "determined": (egress_ns - determined_ns(run_of, rows, arrival_ns))[counts],
        "stimulus": (egress_ns - arrival_ns)[counts],
    }


def _report(result: Result, series: Mapping[int, Mapping[str, list[Any]]]) -> None:
    quantiles: dict[tuple[int, str], list[float]] = {}
    for replicas, own in series.items():
        for name, turns in own.items():
            p50, p99, most = (
                statistics.median(float(np.quantile(values, q)) / 1e6 for values in turns)
                for q in (0.5, 0.99, 1)
            )
            quantiles[replicas, name] = [p50, p99]
            number = sum(len(values) for values in turns)
            result.rows.append([replicas, name, f"{number:,}", p50, p99, most])
            result.figures[f"R = {replicas}, {name}"] = {
                "p50_ms": p50,
                "p99_ms": p99,
                "max_ms": most,
                "results": number,
            }
    for at, (name, most) in enumerate((("p50", MOST_P50), ("p99", MOST_P99))):
        alone, divided = (quantiles[replicas, "determined"][at] for replicas in (1, 2))
        what = f"R = 2, in order, 10k/s, from determined: {name} × of R = 1"
        result.claims.append(Claim(what, divided / alone, "<=", most))


# -- 64 × 64 channels ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CountedSends(sw.testing.CostModel):
    """Usual costs, with counts of what is sent between slots: {kind: messages}."""

    sent: dict[str, int] = field(default_factory=dict)

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return the virtual time of a slice."""
        for action in done.actions:
            if isinstance(action, Send):
                is_inner = action.channel.owned is not None and action.channel.feeder.part
                where = "between the steps" if is_inner else "elsewhere"
                what = "promises" if action.message.batch is None else "rows"
                self.sent[f"{what} {where}"] = self.sent.get(f"{what} {where}", 0) + 1
        return super().slice_ns(done, rng, now_ns=now_ns)


def _count_promises(result: Result, seconds: int, gap_ns: int) -> None:
    """Run two steps of 64 replicas each at the speed of the clock, in virtual time.

    Args:
        result: where the counts go.
        seconds: length of the stream.
        gap_ns: gap between promises alone, for each channel of a slot; 1 withholds none.
    """
    rows = PACED_RATE * seconds
    rng = np.random.default_rng(1)
    times_ns = np.arange(rows) * (1_000 * MS // PACED_RATE)
    table = pa.table(
        {
            "ts": pa.array(times_ns).view(pa.timestamp("ns")),
            "arrival": pa.array(times_ns).view(pa.timestamp("ns")),
            "key": rng.integers(0, PACED_KEYS, rows),
        }
    )
    flow = sw.Dataflow("many-channels")
    flow.source("rows", sw.table(table), event_time="ts", arrival="arrival", speed=1.0).aggregate(
        by="key", window=sw.tumbling("100ms"), n=sw.count(), replicas=MANY, name="first"
    ).with_columns(half=sw.col("key") // 2).aggregate(
        by="half", window=sw.tumbling("1s"), total=sw.sum("n"), replicas=MANY, name="second"
    ).sink("out", sw.collect_sink())
    cost = CountedSends()
    before_mb, began_s = _own_mb(), time.process_time()
    with sw.Simulation(nodes=1, cores=2 * MANY, cost=cost) as host:
        job = host.submit(flow, limits=Limits(promise_gap_ns=gap_ns))
        channels = sum(
            channel.source.startswith("first") and channel.target.startswith("second")
            for channel in job.plan.channels
        )
        report, found = collected(job)
    took_s, more_mb = time.process_time() - began_s, _own_mb() - before_mb
    check(channels == MANY * MANY, f"{channels} channels, not {MANY} × {MANY}")
    total = sum(found["total"].to_pylist())
    check(total == rows, f"{total} rows were counted, and {rows} came")
    rates = {
        (what, where): cost.sent.get(f"{what} {where}", 0) / report.elapsed_s
        for what in ("promises", "rows")
        for where in ("between the steps", "elsewhere")
    }
    p50_ms, p99_ms = (report.sinks[0].latency.quantile(q) / 1e6 for q in (0.5, 0.99))
    sent, withheld = report.promises_between_slots
    check(sent == round(sum(cost.sent[k] for k in cost.sent if "promises" in k)), "as reported")
    name = "each promise" if gap_ns == 1 else f"a gap of {gap_ns / 1e3:.0f} µs a channel"
    result.figures[f"{MANY} × {MANY} channels, {name}"] = {
        "rows_per_s": PACED_RATE,
        "promises_a_second": rates["promises", "between the steps"],
        "with_rows_a_second": rates["rows", "between the steps"],
        "promises_elsewhere_a_second": rates["promises", "elsewhere"],
        "rows_elsewhere_a_second": rates["rows", "elsewhere"],
        "withheld_a_second": withheld / report.elapsed_s,
        "memory_mb": more_mb,
        "cpu_s": took_s,
        "virtual_s": report.elapsed_s,
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
    }
    result.notes.append(
        f"{MANY} × {MANY} channels, simulated, {PACED_RATE:,} rows/s for {seconds} s, {name}: "
        f"between the steps {rates['promises', 'between the steps']:,.0f} promises a second and "
        f"{rates['rows', 'between the steps']:,.0f} messages with rows; "
        f"{rates['promises', 'elsewhere']:,.0f} promises a second from the source and to the sink; "
        f"p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f}; the whole simulation took {more_mb:,.0f} MB and "
        f"{took_s:.0f} s of CPU"
    )


def _own_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20
