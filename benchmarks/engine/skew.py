"""Skewed keys: even ones, Zipf's, and one key with half of all rows, on two slots of a node.

A key stays in one replica, so the replica of a hot key is the limit. `share="all"` has one gate
for both replicas, each of which stores a share of the rows of each key.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import slackwater as sw
from benchmarks.engine.cores_work import JOIN, RATE, ZIPF, Floats, add_join, pairs_of, with_areas
from benchmarks.engine.running import Arrays, arrays_of, same_rows
from benchmarks.engine.workload import AREAS, DENSE_OVER, WITHIN_NS, Mapped, join_tables, write
from benchmarks.frame import Claim, Options, Result, Spread, check
from benchmarks.jobs import TIMEOUT_S, collected
from slackwater.runtime.measure.skew import FAR_MORE
from slackwater.runtime.model.hashes import key_hashes, owners
from slackwater.runtime.plan.traits import Share

OVER = 8 * DENSE_OVER  # a hot key has many pairs, of which few are to leave
HOT_AREA = 0
HALF: Floats = np.where(np.arange(AREAS) == HOT_AREA, 0.5, 0.5 / (AREAS - 1))
KEYS: Mapping[str, Floats] = {"even": np.ones(AREAS), "Zipf": ZIPF, "half in one key": HALF}
ALONE = {"*": "node-1/1"}
WAYS: Mapping[str, tuple[int | None, Share]] = {
    "one slot": (None, "keys"),
    "2 slots, by keys": (2, "keys"),
    "2 slots, share='all'": (2, "all"),
}
MANY = 8  # replicas that are simulated
LOOK_S = 0.05


@dataclass(frozen=True)
class Sample:
    """Events with one kind of keys, and the pairs that the join must find."""

    inputs: Sequence[Mapped]
    events: int
    expected: Arrays

    def flow(self, replicas: int | None, share: Share) -> sw.Dataflow:
        """Return the join; its sink is `out`."""
        flow = sw.Dataflow("skew")
        add_join(flow, self.inputs, WITHIN_NS, replicas, over=OVER, share=share)
        return flow


def run(options: Options) -> Result:
    """Measure each kind of keys in one slot, by keys on two, and with share="all" on two."""
    seconds, turns = (400, 1) if options.quick else (5_000, 5)
    result = Result(
        f"dense join, {2 * RATE * seconds:,} events, {turns} turns after one to warm up",
        [
            "keys",
            "how",
            "M events/s",
            "× one slot",
            "rows of the first replica by each other",
            "most rows in gates",
            "RSS of slots, MB",
        ],
    )
    with tempfile.TemporaryDirectory() as name:
        samples = {
            keys: _drawn(options.seed, weights, seconds, Path(name) / keys)
            for keys, weights in KEYS.items()
        }
        with sw.Cluster.local(nodes=1, cores=2) as cluster:
            for keys, sample in samples.items():
                _measure(result, cluster, keys, sample, turns)
        for keys in ("even", "Zipf", "half in one key"):
            _simulate(result, keys, samples[keys])
    result.notes += [
        "rows of a replica by those of each other: the report's rows_in; it has a note above 2",
        "rows in gates: the most of each gate and its queue, all gates; RSS: the largest sum over "
        "the slots' processes, looked at each 50 ms",
        f"simulated: {MANY} replicas, for what the report says; no time was measured",
        "every run's results were compared with the offline query's",
    ]
    return result


def _drawn(seed: int, weights: Floats, seconds: int, folder: Path) -> Sample:
    folder.mkdir()
    tables = join_tables(seed, events=RATE * seconds, seconds=seconds)
    tables = with_areas(tables, weights, seed)
    inputs = [write(table, folder / str(n)) for n, table in enumerate(tables)]
    expected = pairs_of(*map(arrays_of, tables), within_ns=WITHIN_NS, over=OVER)
    return Sample(inputs, 2 * RATE * seconds, expected)


def _measure(result: Result, cluster: sw.Cluster, keys: str, sample: Sample, turns: int) -> None:
    reports: dict[str, list[tuple[sw.JobReport, float]]] = {way: [] for way in WAYS}
    for turn in range(turns + 1):
        for way, own in reports.items():
            once = _finished(cluster, sample, *WAYS[way])
            if turn > 0:
                own.append(once)
    alone = None
    for way, own in reports.items():
        rate = Spread.of([sample.events / report.elapsed_s / 1e6 for report, _ in own])
        alone = rate.median if alone is None else alone
        last, _ = own[-1]
        most_mb = max(mb for _, mb in own)
        in_gates, by_others = _in_gates(last), _most_by_others(last)
        result.rows.append(
            [keys, way, rate, rate.median / alone, by_others, in_gates, round(most_mb)]
        )
        result.figures[f"{keys}, {way}"] = {
            "million_per_s": rate,
            "times_one_slot": rate.median / alone,
            "rows_in": {s.name: s.rows_in for s in last.stages if s.name.startswith(JOIN)},
            "max_gate_rows": in_gates,
            "rss_mb": most_mb,
            "skews": [skew.to_json() for skew in last.skews],
        }
        if (keys, way) == ("half in one key", "2 slots, by keys"):
            groups = tuple(cluster.plan(sample.flow(*WAYS[way])).key_groups.values())
            _claim_named(result, f"{keys}, {way}", last, keys, groups)


def _finished(
    cluster: sw.Cluster, sample: Sample, replicas: int | None, share: Share
) -> tuple[sw.JobReport, float]:
    """Return the report of a run, and the memory of its slots, MB."""
    placement = ALONE if replicas is None else None
    with closing(cluster.submit(sample.flow(replicas, share), placement=placement)) as job:
        memory = _Memory(list(job.workers().values()))
        report = job.wait(timeout=TIMEOUT_S)
        check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
        same_rows(arrays_of(job.result("out")), sample.expected, "skew")
    return report, memory.most_mb()


def _in_gates(report: sw.JobReport) -> int:
    return sum(stage.max_gate_rows for stage in report.stages)


def _most_by_others(report: sw.JobReport) -> float:
    """Return the rows of the replica with most, by the mean of the others; 1 without replicas."""
    rows = [s.rows_in for s in report.stages if s.kind == "join"]
    if len(rows) < 2:
        return 1.0
    return max(rows) / ((sum(rows) - max(rows)) / (len(rows) - 1))


def _simulate(result: Result, keys: str, sample: Sample) -> None:
    """Add what a report says with more replicas."""
    with sw.Simulation(nodes=1, cores=MANY, seed=1) as host:
        groups = tuple(host.plan(sample.flow(MANY, "keys")).key_groups.values())
        report, rows = collected(host.submit(sample.flow(MANY, "keys")))
    same_rows(arrays_of(rows), sample.expected, f"{keys}, simulated")
    what = f"{MANY} replicas, simulated"
    by_others = _most_by_others(report)
    result.rows.append([keys, what, "", "", by_others, _in_gates(report), ""])
    result.figures[f"{keys}, {what}"] = {"skews": [skew.to_json() for skew in report.skews]}
    if keys == "even":
        name = f"{keys}, {what}: skews in the report"
        result.claims.append(Claim(name, len(report.skews), "<=", 0))
    else:
        _claim_named(result, f"{keys}, {what}", report, keys, groups)


def _claim_named(
    result: Result, name: str, report: sw.JobReport, keys: str, groups: tuple[int, ...]
) -> None:
    """Claim that the report names a replica with twice as many rows as each other; quote it.

    It names its hottest key, too. Without such a replica it names none.

    Args:
        result: result to be filled.
        name: name of the run.
        report: report of the run.
        keys: kind of keys.
        groups: number of key groups of each replica.
    """
    replicas = [stage for stage in report.stages if stage.kind == "join"]
    most = max(range(len(replicas)), key=lambda n: replicas[n].rows_in)
    areas = np.arange(AREAS, dtype=np.int32)
    is_own = owners(key_hashes([areas], AREAS), groups) == most
    hottest = int(np.where(is_own, KEYS[keys], 0).argmax())
    named = [(skew.replica, skew.key) for skew in report.skews]
    is_skewed = _most_by_others(report) > FAR_MORE
    is_named = named == ([(replicas[most].name, f"area={hottest}")] if is_skewed else [])
    what = f"{name}: the report names the replica and its hot key, if one has > 2 × (1: it does)"
    result.claims.append(Claim(what, float(is_named), ">=", 1))
    result.notes += [f"{name}: {skew.note}" for skew in report.skews]


class _Memory:
    """Looks at the memory of processes until they end."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._most, self._has_ended = 0, threading.Event()
        self._thread = threading.Thread(target=partial(self._look, pids), daemon=True)
        self._thread.start()

    def most_mb(self) -> float:
        """Return the largest sum, and look no more."""
        self._has_ended.set()
        self._thread.join()
        return self._most / 2**20

    def _look(self, pids: Sequence[int]) -> None:
        while not self._has_ended.wait(LOOK_S):
            self._most = max(self._most, sum(map(_rss, pids)))


def _rss(pid: int) -> int:
    try:
        rss: Any = psutil.Process(pid).memory_info().rss
    except psutil.NoSuchProcess:
        return 0
    return int(rss)
