"""Lengths of slices: CPU time beside that of the best fixed length, alone and on a busy machine.

```
length chosen by the slot       1.0 s of CPU
1,024 · 4,096 · 16,384 · 65,536 rows       4.9 · 1.6 · 1.0 · 1.1 s: the best of these counts
```

A slice has a fixed part, so short slices cost more for each row, and a slot that judged a slice
by the clock alone stayed at short ones for ever.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

import slackwater as sw
from benchmarks.engine import aggregate, join_throughput
from benchmarks.engine.running import ONE_SLOT, arrays_of, join_offline
from benchmarks.engine.workload import Mapped, join_flow, join_tables, late_table
from benchmarks.frame import Claim, Options, Result, Spread
from benchmarks.jobs import collected

FIXED = (1_024, 4_096, 16_384, 65_536)
CHOSEN = 0
"""Stands for the length that the slot chooses."""
BLOCK_ROWS = 10_000
RATE = 200
"""Buses a second, and as many readings: that of `join-throughput`."""
MOST = 1.3
BUSY_LOOPS = 2
ALONE, BUSY = "alone", f"beside {BUSY_LOOPS} busy loops"


@dataclass(frozen=True)
class Own(Mapped):
    """Rows of a file as a user's own input hands them over: by a thread that reads ahead."""

    reads_inline: ClassVar[bool] = False
    is_history: ClassVar[bool] = False


@dataclass(frozen=True)
class Work:
    """A flow in one slot.

    Attributes:
        name: of the flow, and of its input.
        build: makes the flow.
        verify: checks its results.
    """

    name: str
    build: Callable[[], sw.Dataflow]
    verify: Callable[[pa.Table], None]


def run(options: Options) -> Result:
    """Measure all flows, with lengths chosen and fixed, in turns."""
    events, turns = (200_000, 1) if options.quick else (1_000_000, 3)
    fixed = FIXED[1:3] if options.quick else FIXED
    result = Result(
        f"{2 * events:,} events of each join, {events:,} of each mean, in blocks of "
        f"{BLOCK_ROWS:,} rows, one slot; {turns} turns after one to warm up; fixed lengths of "
        f"{', '.join(f'{rows:,}' for rows in fixed)} rows",
        ["flow", "machine", "CPU s", "slices", *(f"CPU s, {rows:,} rows" for rows in fixed), "×"],
    )
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=1) as cluster:
        works = _works(options.seed, events, Path(folder), is_quick=options.quick)
        for work in works:
            _took_s(cluster, work, CHOSEN)
        for machine in (ALONE, BUSY):
            with _loops(BUSY_LOOPS if machine == BUSY else 0):
                for work in works:
                    _measure(result, cluster, work, machine, fixed, turns)
    result.notes += [
        "CPU s: time for which the slot's thread and its reading threads were at work, all slices",
        "×: of the length that the slot chose, by the least of the fixed ones; medians of turns",
        "every run's results were compared with the offline query's",
    ]
    if options.quick:
        result.notes.append("own input only; tables, and lengths of 1,024 and 65,536, in full runs")
    return result


def _measure(
    result: Result,
    cluster: sw.Cluster,
    work: Work,
    machine: str,
    fixed: Sequence[int],
    turns: int,
) -> None:
    found: dict[int, list[float]] = {rows: [] for rows in (CHOSEN, *fixed)}
    slices = 0
    for turn in range(turns):
        for rows in sorted(found, reverse=bool(turn % 2)):
            took_s, count = _took_s(cluster, work, rows)
            found[rows].append(took_s)
            slices = count if rows == CHOSEN else slices
    chosen = statistics.median(found[CHOSEN])
    ratio = chosen / min(statistics.median(found[rows]) for rows in fixed)
    own = [Spread.of(found[rows]) for rows in fixed]
    result.rows.append([work.name, machine, Spread.of(found[CHOSEN]), slices, *own, ratio])
    result.claims.append(
        Claim(f"{work.name}, {machine}: CPU × the best fixed length", ratio, "<=", MOST)
    )
    result.figures[f"{work.name}, {machine}"] = {
        "slices": slices,
        **{str(rows or "chosen"): Spread.of(each) for rows, each in found.items()},
    }


def _took_s(cluster: sw.Cluster, work: Work, most_rows: int) -> tuple[float, int]:
    """Return the CPU time of a run, and how many slices its stages had."""
    limits = sw.Limits()
    if most_rows != CHOSEN:
        limits = sw.Limits(max_slice_rows=most_rows, slice_ns=TIMEOUT_NS)
    report, rows = collected(cluster.submit(work.build(), placement=ONE_SLOT, limits=limits))
    work.verify(rows)
    took_s = sum(stage.service_ns for stage in report.stages) / 1e9
    return took_s, sum(stage.batches for stage in report.stages)


TIMEOUT_NS = 600_000_000_000
"""Time of a slice that is cut by its rows alone."""


def _works(seed: int, events: int, folder: Path, *, is_quick: bool) -> list[Work]:
    tables = join_tables(seed, events=events, seconds=events // RATE)
    counted = late_table(seed, events=events, seconds=events // 10_000)
    paths = [_written(t, folder / str(n)) for n, t in enumerate((*tables, counted))]
    bus, loop = map(arrays_of, tables)
    works = []
    for kind, of in (("own input", Own), ("table", Mapped)):
        if is_quick and of is Mapped:
            continue
        buses, loops, rows = (of(path) for path in paths)
        for is_dense in (False, True):
            expected = join_throughput.results(
                bus, loop, *join_offline(bus, loop, is_dense=is_dense)
            )
            name = f"{'dense' if is_dense else 'sparse'} join of {kind}"
            build = partial(join_flow, buses, loops, sw.collect_sink(), is_dense=is_dense)
            verify = partial(join_throughput.verify, expected=expected, what=name)
            works.append(Work(name, build, verify))
        name = f"mean of {kind}"
        counts = aggregate.offline(arrays_of(counted))
        verify = partial(aggregate.verify, expected=counts, what=name)
        build = partial(aggregate.counting_flow, rows, sw.collect_sink())
        works.append(Work(name, build, verify))
    return works


def _written(table: pa.Table, path: Path) -> str:
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=BLOCK_ROWS)
    return str(path)


@contextmanager
def _loops(count: int) -> Iterator[None]:
    """Keep cores busy with so many processes meanwhile."""
    started = multiprocessing.get_context("spawn")
    loops = [started.Process(target=_spin, daemon=True) for _ in range(count)]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.terminate()
            loop.join()


def _spin() -> None:
    while True:
        pass
