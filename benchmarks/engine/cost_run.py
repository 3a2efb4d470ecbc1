"""One run of `cost`: a job at the speed of the clock, the CPU of its processes, its latency.

As a program it reads settings, a JSON line each, and answers each with a line of figures: so `cost`
measures other commits' code with this file as it is now (`before.py`).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.join_latency import MODES, Run, missing_results
from benchmarks.engine.live import Live, Silent, live_join_flow, name_thread
from benchmarks.engine.processes import all_processes, kind_of
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import PLACES, Arrays, arrays_of
from benchmarks.engine.threads import (
    ThreadCounts,
    cpu_of_threads_ns,
    group_of,
    grouped,
    thread_counts,
)
from benchmarks.engine.wakes import Wakes, by_thread, cores_of
from benchmarks.engine.workload import MS, Mapped, MappedReader, join_flow, paced_tables, write
from benchmarks.frame import check, plain
from benchmarks.jobs import TIMEOUT_S
from slackwater import runtime

__all__ = ["BARE", "IDLE", "SLOT", "Setting", "Usage", "idle", "measured"]

SLOT, BARE = "slot actors", "BareActor"
"""Kinds of processes: slots, and the actor without work that `cost` measures beside them."""

START_S = 5.0
"""How long a job may take to start before the first row of a live source is due."""
BEHIND_S = 1
"""So long rows go on behind the window: what they complete was in it."""
FAR_S = 600
"""When the next row of a waiting replay is due."""
IDLE = ("live, poll waits", "live, poll returns None", "replay, next row far away")
SAMPLE_S = 2.0


@dataclass(frozen=True)
class Setting:
    """What to run.

    Attributes:
        rate: events a second, of both sources.
        place: "one slot" or "three nodes".
        source: "replayed" or "live".
        mode: "on arrival" or "in order".
        is_sampled: whether the job is asked for its report every 2 s, for rows in flight.
    """

    rate: int
    place: str
    source: str = "replayed"
    mode: str = "on arrival"
    warm_up_s: int = 4
    seconds: int = 10
    seed: int = 1
    is_sampled: bool = False

    @property
    def name(self) -> str:
        """Return what it is, as claims and figures are named."""
        return f"{self.place}, {self.rate:,}/s, {self.source}, {self.mode}"


@dataclass(frozen=True)
class NamingInput(Mapped):
    """A file that is replayed, opened in the slot's loop, which the kernel knows from then on."""

    def open(self) -> MappedReader:
        """Map it."""
        name_thread("slot-loop")
        return super().open()


@dataclass
class NamingRecorder(Recorder):
    """Names the loop of the slot that the sink is in, and says whose code ran there."""

    def _keep(self, rows: pa.RecordBatch) -> None:
        if not self._kept:
            name_thread("slot-loop")
        super()._keep(rows)

    def _write(self) -> None:
        Path(f"{self.path}.code").write_text(str(runtime.__file__))
        super()._write()


class Usage:
    """The CPU of all processes of a run, from when it is made until it is asked."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._kinds = _kinds()
        self._slots = {
            pid: thread_counts(pid) for pid, kind in self._kinds.items() if _is_slot(kind)
        }
        self._bare = {pid: thread_counts(pid) for pid, kind in self._kinds.items() if kind == BARE}
        self._before = {pid: cpu_of_threads_ns(pid) for pid in self._kinds}

    def figures(self, rate: int) -> dict[str, Any]:
        """Return cores busy by kind of process and, of slots, by thread; switches for an event.

        Args:
            rate: events a second; 0: none.
        """
        after = {pid: thread_counts(pid) for pid in self._slots}
        now = {pid: cpu_of_threads_ns(pid) for pid in self._before}
        seconds = time.monotonic() - self._began_s
        used = {pid: grouped(self._slots[pid], after[pid], group=group_of) for pid in self._slots}
        each = [
            sum(one.cpu_ns for one in threads.values()) / 1e9 / seconds for threads in used.values()
        ]
        threads: dict[str, ThreadCounts] = {}
        for counts in used.values():
            for name, one in counts.items():
                threads[name] = threads.get(name, ThreadCounts()) + one
        others: dict[str, float] = {}
        for pid, kind in self._kinds.items():
            if not _is_slot(kind):
                cores = (now[pid] - self._before[pid]) / 1e9 / seconds
                others[kind] = others.get(kind, 0.0) + cores
        cores = sum(each)
        found: dict[str, Any] = {
            "slots": len(each),
            "cores": cores,
            "busiest": max(each),
            "threads": {name: one.cpu_ns / 1e9 / seconds for name, one in threads.items()},
            "others": others,
            "sleeps_per_s": sum(one.voluntary for one in threads.values()) / seconds,
        }
        if rate:
            found |= {
                "cpu_s_per_million": cores / rate * 1e6,
                "sleeps_per_event": sum(t.voluntary for t in threads.values()) / seconds / rate,
                "preempted_per_event": sum(t.involuntary for t in threads.values())
                / seconds
                / rate,
            }
        return found

    def by_thread(self) -> dict[str, Wakes]:
        """Return {kind: what wakes there}, of the busiest slot and of the actor without work."""
        seconds = time.monotonic() - self._began_s
        found: dict[str, Wakes] = {}
        for pid, before in (self._slots | self._bare).items():
            kind, wakes = self._kinds[pid], by_thread(before, thread_counts(pid), seconds=seconds)
            if kind not in found or cores_of(wakes) > cores_of(found[kind]):
                found[kind] = wakes
        return found


def measured(cluster: sw.Cluster, setting: Setting) -> dict[str, Any]:
    """Run a setting once; return its figures.

    Raises:
        WrongResultError: the results are not the offline query's.
    """
    total_s = setting.warm_up_s + setting.seconds + BEHIND_S
    tables = paced_tables(setting.seed, rate=setting.rate, seconds=total_s)
    bus, loop = map(arrays_of, tables)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [write(t, folder / str(n)).path for n, t in enumerate(tables)]
        inputs = (NamingInput(paths[0]), NamingInput(paths[1]))
        run = Run(setting.rate, setting.mode, setting.warm_up_s, setting.seconds, bus, loop, inputs)
        recorder = NamingRecorder(str(folder / "out"))
        flow_of, start_ns = _flow(setting, run, paths)
        job = cluster.submit(flow_of(recorder.sink()), placement=PLACES[setting.place])
        try:
            late_ns = max(time.time_ns() - start_ns, 0) if start_ns else 0
            wait_ns = start_ns - time.time_ns() if start_ns else 300 * MS
            time.sleep(max(wait_ns, 0) / 1e9 + setting.warm_up_s)
            usage = Usage()
            waiting = _watched(job, setting)
            figures = usage.figures(setting.rate)
            report = job.wait(timeout=TIMEOUT_S)
        finally:
            job.close()
        check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
        rows = recorder.read()
        figures["code"] = Path(f"{recorder.path}.code").read_text()
    figures["missing"] = missing_results(run, rows)
    sink = report.sinks[0].latency
    if not start_ns:
        # As `join_latency` has it: the sink's histogram holds the sum of egress − stimulus.
        arrivals = int(np.maximum(rows["arrival"], rows["arrival_right"]).sum(dtype=object))
        start_ns = (int(rows["egress_ns"].sum(dtype=object)) - arrivals - sink.sum_ns) // sink.count
    return (
        figures
        | _latencies(run, rows, start_ns)
        | {
            "started_late_s": late_ns / 1e9,
            "from_stimulus_p50_ms": sink.quantile(0.5) / 1e6,
            "batches": {stage.name: stage.batches for stage in report.stages},
            "rows_waiting": waiting,
        }
    )


def idle(
    cluster: sw.Cluster, kind: str, place: str, *, settle_s: float, seconds: float
) -> dict[str, Any]:
    """Return what a job uses that waits for its sources, then stop it."""
    tables = [_waiting(t) for t in paced_tables(1, rate=1_000, seconds=1)]
    with tempfile.TemporaryDirectory() as name:
        paths = [write(t, Path(name) / str(n)).path for n, t in enumerate(tables)]
        sink = sw.callback_sink(_nothing)
        if kind == IDLE[2]:
            flow = join_flow(NamingInput(paths[0]), NamingInput(paths[1]), sink, slack="0s")
        else:
            silent = [Silent(path, FAR_S, waits=kind == IDLE[0]) for path in paths]
            flow = live_join_flow(silent[0], silent[1], sink, slack="0s")
        job = cluster.submit(flow, placement=PLACES[place])
        try:
            time.sleep(settle_s)
            usage = Usage()
            time.sleep(seconds)
            figures = usage.figures(0) | {"by_thread": usage.by_thread()}
            check(job.status == "running", f"a waiting job is {job.status}")
            job.stop()
        finally:
            job.close()
    return figures


def _flow(
    setting: Setting, run: Run, paths: list[str]
) -> tuple[Callable[[sw.connectors.Output], sw.Dataflow], int]:
    """Return what makes the flow for a sink, and when its first row is due; 0: as it starts."""
    slack = MODES[setting.mode]
    if setting.source == "replayed":
        return lambda sink: join_flow(*run.inputs, sink, over=run.over, slack=slack), 0
    start_ns = time.time_ns() + int(START_S * 1e9)
    left, right = (Live(path, start_ns) for path in paths)
    return lambda sink: live_join_flow(left, right, sink, over=run.over, slack=slack), start_ns


def _watched(job: sw.Job, setting: Setting) -> list[int]:
    """Sleep through the window; return the rows in flight every 2 s of it, if they are wanted."""
    until_s = time.monotonic() + setting.seconds
    found = []
    while setting.is_sampled and time.monotonic() + SAMPLE_S < until_s:
        time.sleep(SAMPLE_S)
        found.append(job.report().ledger.in_flight)
    time.sleep(max(until_s - time.monotonic(), 0))
    return found


def _latencies(run: Run, rows: Arrays, start_ns: int) -> dict[str, Any]:
    """Return quantiles of egress − arrival of the results in the window, and by its thirds."""
    arrival_ns = np.maximum(rows["arrival"], rows["arrival_right"])
    latency_ms = (rows["egress_ns"] - start_ns - arrival_ns) / 1e6
    edges = (run.warm_up_s + np.linspace(0, run.seconds, 4)) * 1_000 * MS
    counts = (arrival_ns >= edges[0]) & (arrival_ns < edges[-1])
    check(bool(counts.any()), "no result in the window")
    p50, p99, most = (float(np.quantile(latency_ms[counts], q)) for q in (0.5, 0.99, 1))
    thirds = np.searchsorted(edges, arrival_ns[counts], "right") - 1
    medians = [float(np.median(latency_ms[counts][thirds == n])) for n in range(3) if n in thirds]
    return {
        "results": int(counts.sum()),
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": most,
        "p50_ms_by_thirds": medians,
    }


def _waiting(rows: pa.Table) -> pa.Table:
    """Return the first rows of a table, of which the last is due far from now."""
    rows = rows.slice(0, 2)
    arrival = pa.array([0, FAR_S * 1_000 * MS]).view(pa.timestamp("ns"))
    return rows.set_column(rows.schema.get_field_index("arrival"), "arrival", arrival)


def _nothing(_: pa.RecordBatch) -> None:
    pass


def _kinds() -> dict[int, str]:
    """Return {process: its kind} of this process and all below it."""
    found = {}
    for process in all_processes():
        try:
            found[process.pid] = kind_of(process)
        except psutil.Error:  # it has ended meanwhile
            continue
    return found


def _is_slot(kind: str) -> bool:
    return kind == SLOT


def main() -> None:
    """Measure a setting for each line that comes, on one cluster; answer each with a line."""
    with sw.Cluster.local(nodes=3) as cluster:
        for line in sys.stdin:
            figures = measured(cluster, Setting(**json.loads(line)))
            print(json.dumps(plain(figures)), flush=True)


if __name__ == "__main__":
    main()
