"""CPU of a job with checkpoints beside the same job without, in turns, on local nodes.

```
job runs ─▶ its state is full ─▶ a checkpoint is complete ─▶ … ─▶ another is
                                 └──── CPU of its slots / events ───┘
```

A job without checkpoints is measured for as long as its partner was.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import psutil
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check
from slackwater.runtime.sources.spec import Block

EVERY = "1s"
BLOCK_ROWS = 16_384
GAP_NS = 1_000  # of event time, between two rows of a source
TYPES = 4
FILL_S, LOOK_S = 120.0, 0.05
MOST_RATIO, MOST_CUT_MS = 1.03, 5.0
RARE_S = 5.0
JOIN, AGGREGATE, PATTERN, PROCESS = "join", "aggregate", "pattern", "process"


@dataclass(frozen=True)
class Extent:
    """Extent of a run.

    Attributes:
        keys: numbers of keys of each flow, the most last.
        pairs: number of jobs with checkpoints, and of those without, of each flow and number.
        checkpoints: number of checkpoints in what is measured; one if they are rare.
        window_s: longest time for these; the ratio stays open after it.
        least_s: shortest time for these: rows are counted by blocks, so that two windows of 1.4 s
            without any checkpoint differ by up to 14 %, and by 4 % of 10 s.
    """

    keys: Mapping[str, tuple[int, ...]]
    pairs: int
    checkpoints: int
    window_s: float
    least_s: float


FEW, MANY, OBJECTS = 1_000, 1_000_000, 100_000
MOST_INTERVAL_S = {(JOIN, MANY): 3.0, (PROCESS, OBJECTS): 10.0}
FULL = Extent(
    {
        JOIN: (FEW, MANY),
        AGGREGATE: (FEW, MANY),
        PATTERN: (FEW, OBJECTS, MANY),
        PROCESS: (FEW, OBJECTS, MANY),
    },
    pairs=3,
    checkpoints=3,
    window_s=90.0,
    least_s=10.0,
)
QUICK = Extent(
    {JOIN: (100_000,), AGGREGATE: (100_000,), PATTERN: (10_000,), PROCESS: (20_000,)},
    pairs=1,
    checkpoints=1,
    window_s=5.0,
    least_s=0.0,
)


@dataclass(frozen=True)
class Endless:
    """Rows without an end, in order, made a block at a time; all keys come in turn.

    Attributes:
        keys: number of keys.
        shift: number that is added to each key.
    """

    replay: ClassVar[str] = "exact"
    reads_inline: ClassVar[bool] = True
    keys: int
    shift: int = 0

    def describe(self) -> str:
        """Return the number of keys."""
        return f"rows of {self.keys:,} keys without an end"

    def schema(self) -> pa.Schema:
        """Return its columns."""
        names = ("ts", "key", "kind")
        return pa.schema([*((name, pa.int64()) for name in names), ("value", pa.float64())])

    def open(self, _name: str = "", at: bytes | None = None) -> EndlessReader:
        """Begin at a row."""
        return EndlessReader(self, int(at or b"0"))


class EndlessReader:
    """Makes blocks of `Endless`, one for each poll."""

    def __init__(self, rows: Endless, first: int) -> None:
        self._rows, self._next = rows, first
        self._value = pa.array(np.random.default_rng(1).normal(size=BLOCK_ROWS))

    def poll(self) -> Block:
        """Return the next block."""
        first, rows = self._next, self._rows
        self._next += BLOCK_ROWS
        number = np.arange(first, self._next)
        key = number % rows.keys + rows.shift
        kind = (number // rows.keys) % TYPES
        columns = [number * GAP_NS, key, kind]
        batch = pa.record_batch([*map(pa.array, columns), self._value], schema=rows.schema())
        return Block(batch, str(first).encode())

    def close(self) -> None:
        """Do nothing: nothing is open."""


class Count:
    """Number and sum of the rows of a key."""

    def __init__(self) -> None:
        self.rows = 0
        self.total = 0.0

    def on_rows(self, _key: int, rows: list[dict[str, Any]]) -> None:
        """Count rows; nothing leaves."""
        self.rows += len(rows)
        self.total += sum(row["value"] for row in rows)


def _joined(flow: sw.Dataflow, keys: int) -> sw.Stream:
    """Return a join that holds as many rows as there are keys, and finds no pair."""
    left, right = (
        _source(flow, name, keys // 2, shift=shift).drop("kind")
        for name, shift in (("bus", 0), ("scats", keys))
    )
    return left.join(right, on="key", within=f"{keys // 2 * GAP_NS}ns", name=JOIN)


def _counted(flow: sw.Dataflow, keys: int) -> sw.Stream:
    """Return an aggregate with one window, which stays open."""
    window = sw.tumbling("10000s")
    rows = _source(flow, "events", keys)
    return rows.aggregate(by="key", window=window, mean=sw.mean("value"), n=sw.count())


def _matched(flow: sw.Dataflow, keys: int) -> sw.Stream:
    """Return a pattern that each key begins and none ends."""
    pattern = sw.patterns.seq(
        *(sw.patterns.event(name, of_type=kind) for kind, name in ((0, "a"), (1, "b"), (9, "c")))
    )
    within = f"{2 * TYPES * keys * GAP_NS}ns"
    return _source(flow, "events", keys).pattern(pattern, type="kind", within=within, by=("key",))


def _processed(flow: sw.Dataflow, keys: int) -> sw.Stream:
    """Return an object for each key."""
    rows = _source(flow, "events", keys)
    return rows.process(Count, {"key": "int64"}, by="key", name=PROCESS)


def _source(flow: sw.Dataflow, name: str, keys: int, *, shift: int = 0) -> sw.Stream:
    return flow.source(name, Endless(keys, shift), event_time="ts", time_unit="ns")


FLOWS: Mapping[str, Callable[[sw.Dataflow, int], sw.Stream]] = {
    JOIN: _joined,
    AGGREGATE: _counted,
    PATTERN: _matched,
    PROCESS: _processed,
}


class Window(NamedTuple):
    """Measured part of a job.

    Attributes:
        cpu_ns: CPU time of the slots' processes for each event.
        seconds: its length.
        rate: number of events a second.
        interval_s: seconds between two checkpoints, at its end; None without.
        cut_s: longest time for which a loop stood still; None without.
        checkpoints: number of checkpoints in it.
    """

    cpu_ns: float
    seconds: float
    rate: float
    interval_s: float | None
    cut_s: float | None
    checkpoints: int


def run(options: Options) -> Result:
    """Measure each flow with few keys and with many."""
    extent = QUICK if options.quick else FULL
    result = Result(
        f"{extent.pairs} pairs of jobs in one slot, from a checkpoint to the next "
        f"{'one' if extent.checkpoints == 1 else f'{extent.checkpoints} of them'}, "
        f"{extent.least_s:g} to {extent.window_s:g} s; checkpoint={EVERY!r}",
        ["flow", "keys", "CPU with / without", "CPU ns an event", "interval, s", "cut, ms"],
    )
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=1) as cluster:
        for name in FLOWS:
            for keys in extent.keys[name]:
                pairs = _pairs(cluster, name, keys, extent, Path(folder))
                _tell(result, name, keys, pairs, is_most=keys == extent.keys[name][-1])
    result.notes += [
        "CPU of all slots' processes, user and system, in steps of 10 ms, by rows that entered",
        "keys: of the join, rows that it holds; of process, objects; a key of a pattern: 4 events",
        "the sources make their rows without an end, and nothing leaves: the slots are always busy",
        f"the interval grows where a checkpoint costs over 3 % of the time; load after it: "
        f"{os.getloadavg()[0]:.1f}",
    ]
    return result


def _pairs(
    cluster: sw.Cluster, name: str, keys: int, extent: Extent, folder: Path
) -> list[tuple[Window, Window]]:
    """Return windows (without, with checkpoints) of jobs in turns."""
    pairs, length_s = [], max(1.5, extent.least_s)
    for turn in range(extent.pairs):
        with_first = turn % 2 == 1
        own = folder / f"{name} {keys} {turn}"
        if with_first:
            taken = _measured(cluster, name, keys, extent, folder=own)
            length_s = taken.seconds
        plain = _measured(cluster, name, keys, extent, length_s=length_s)
        if not with_first:
            taken = _measured(cluster, name, keys, extent, folder=own)
            length_s = taken.seconds
        pairs.append((plain, taken))
    return pairs


def _measured(
    cluster: sw.Cluster,
    name: str,
    keys: int,
    extent: Extent,
    *,
    folder: Path | None = None,
    length_s: float = 0.0,
) -> Window:
    """Return the window of a job, with checkpoints if it has a folder for them."""
    flow = sw.Dataflow(f"{name}-{keys}")
    FLOWS[name](flow, keys).sink("out", sw.collect_sink())
    how: dict[str, Any] = {"checkpoint": None}
    if folder is not None:
        how = {"checkpoint": EVERY, "checkpoint_folder": folder}
    with closing(cluster.submit(flow, **how)) as job:
        processes = [psutil.Process(pid) for pid in job.workers().values()]
        report = _when(job, lambda seen: seen.ledger.entered >= 2 * keys + BLOCK_ROWS, FILL_S)
        if folder is not None:
            last = _number(report)
            _when(job, lambda seen: _number(seen) > last, extent.window_s)
        begin, begin_cpu_s, begin_s = job.report(), _cpu_s(processes), time.monotonic()
        if folder is None:
            ready_s, first = begin_s + length_s, begin.ledger.entered
            end = _when(
                job,
                lambda seen: time.monotonic() >= ready_s and seen.ledger.entered > first,
                length_s + extent.window_s,
            )
        else:
            interval_s = math.inf if begin.checkpoint is None else begin.checkpoint.interval_s
            last = _number(begin) + (extent.checkpoints if interval_s < RARE_S else 1)
            within_s = extent.window_s if interval_s <= extent.window_s else 1.0
            ready_s = begin_s + extent.least_s
            end = _when(
                job, lambda seen: _number(seen) >= last and time.monotonic() >= ready_s, within_s
            )
        cpu_s, took_s = _cpu_s(processes) - begin_cpu_s, time.monotonic() - begin_s
        events = end.ledger.entered - begin.ledger.entered
        check(events > 0, f"{name}: no event in {took_s:.1f} s")
        job.stop()
    known = end.checkpoint
    return Window(
        cpu_s / events * 1e9,
        took_s,
        events / took_s,
        None if known is None else known.interval_s,
        None if known is None else known.cut_s,
        _number(end) - _number(begin),
    )


def _when(job: Any, is_there: Callable[[Any], bool], within_s: float) -> sw.JobReport:
    """Return the report in which something is there, or the last one in that time."""
    end_s = time.monotonic() + within_s
    while True:
        report: sw.JobReport = job.report()
        check(report.state == "running", f"the job has ended: {report.error}")
        if is_there(report) or time.monotonic() > end_s:
            return report
        time.sleep(LOOK_S)


def _number(report: sw.JobReport) -> int:
    return 0 if report.checkpoint is None else report.checkpoint.number or 0


def _cpu_s(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return float(sum(own.user + own.system for own in times))


def _tell(
    result: Result, name: str, keys: int, pairs: list[tuple[Window, Window]], *, is_most: bool
) -> None:
    """Add a row, and claims; a pair without a checkpoint in its window has no ratio."""
    ratios = [taken.cpu_ns / plain.cpu_ns for plain, taken in pairs if taken.checkpoints]
    ratio = Spread.of(ratios) if ratios else None
    plain_ns, taken_ns = (Spread.of([pair[which].cpu_ns for pair in pairs]) for which in (0, 1))
    intervals = [taken.interval_s for _, taken in pairs if taken.interval_s is not None]
    cuts = [taken.cut_s * 1e3 for _, taken in pairs if taken.cut_s is not None]
    interval, cut = (Spread.of(own) if own else None for own in (intervals, cuts))
    what = f"{name}, {keys:,} keys"
    result.rows.append(
        [
            name,
            f"{keys:,}",
            "not measured" if ratio is None else ratio,
            f"{plain_ns.median:,.0f}, {taken_ns.median:,.0f}",
            interval,
            cut,
        ]
    )
    result.figures[what] = {
        "ratio": ratio,
        "without": [plain._asdict() for plain, _ in pairs],
        "with": [taken._asdict() for _, taken in pairs],
    }
    wanted = []
    if len(pairs) > 1:  # one pair of short windows does not show 3 %
        wanted.append((f"{what}: CPU with checkpoints / without", ratio, MOST_RATIO))
    if is_most:
        wanted.append((f"{what}: the loop stands still, ms", cut, MOST_CUT_MS))
    if (name, keys) in MOST_INTERVAL_S:
        wanted.append((f"{what}: interval, s", interval, MOST_INTERVAL_S[name, keys]))
    for claim, spread, most in wanted:
        median = None if spread is None else spread.median
        result.claims.append(Claim(claim, median, "<=", most))
