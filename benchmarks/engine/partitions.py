"""Partitions: 1,000 files that follow each other, 1,000 that overlap, 200 parts of a Spark frame.

```
one file     ────────────────────────      the same rows, in order
apart        ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─       a file after the other: one is open
overlapping  ── ── ── ── ── ── ── ──       row n in file n modulo 1,000: 64 are open, and all
             ─ ── ── ── ── ── ── ──        are read at once
```

A flow counts rows by key and window. Its machines run in this process (`sw.Simulation`), so that
CPU time and open files are all of the source and its gate. Results are those of one file.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check

FILES, PARTS = 1_000, 200
ROWS_A_FILE, QUICK_ROWS_A_FILE = 2_000, 500
REPETITIONS, QUICK_REPETITIONS = 3, 1
KEYS = 100
OPEN = 64
"""Files open at once by default."""
FIRST_ROW_S, LEAST_SHARE = 1.0, {"apart": 50.0, "overlapping": 25.0}
"""CPU to the first row, and {files: least rate, % of the same files read as one order}."""

Made = Callable[[], Any]


@dataclass
class Measured:
    """Measurements of one input.

    Attributes:
        rates: million events a second of CPU, by repetition.
        firsts: CPU from submit to the first row, in seconds.
        opened: most files open when rows left.
    """

    rates: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    opened: int = 0


def run(options: Options) -> Result:
    """Read the same rows from one file, from many, and from a frame."""
    rows = FILES * (QUICK_ROWS_A_FILE if options.quick else ROWS_A_FILE)
    times = QUICK_REPETITIONS if options.quick else REPETITIONS
    table = table_of(options.seed, rows)
    result = Result(
        f"{rows:,} rows in {FILES:,} files, {times} repetitions in turns after one to warm up; "
        f"counts and means of {KEYS} keys by 100 s",
        ["rows in", "partitions", "M events/s of CPU", "CPU s to the first row", "files open"],
    )
    with tempfile.TemporaryDirectory() as folder:
        one, apart, overlapping = written(table, Path(folder))
        inputs: dict[tuple[str, str], Made] = {
            ("one file", ""): lambda: sw.parquet(one),
            (f"{FILES:,} files apart", ""): lambda: sw.parquet(apart),
            (f"{FILES:,} files apart", "files"): lambda: sw.parquet(apart, partitions="files"),
            (f"{FILES:,} files overlapping", "files"): lambda: sw.parquet(
                overlapping, partitions="files"
            ),
            ("one file, row groups", "row groups"): lambda: sw.parquet(
                one, partitions="row groups"
            ),
        }
        measured = compared(inputs, times, folder, rows)
    tell(result, measured)
    plain = measured[f"{FILES:,} files apart", ""]
    for kind, least in LEAST_SHARE.items():
        found = measured[f"{FILES:,} files {kind}", "files"]
        share = 100 * Spread.of(found.rates).median / Spread.of(plain.rates).median
        first_s = Spread.of(found.firsts).median
        result.claims += [
            Claim(f"{kind}: M events/s, % of files as one order", share, ">=", least),
            Claim(f"{kind}: CPU s to the first row", first_s, "<=", FIRST_ROW_S),
            Claim(f"{kind}: files open", found.opened, "<=", 1 if kind == "apart" else OPEN),
        ]
    if not options.quick:
        of_frame(result, rows)
    result.notes += [
        "results are those of one file, and of the frame as one order, byte by byte",
        "CPU of the process, from submit on; files are in the page cache",
        "without partitions, files that overlap are refused: their rows are not in order",
    ]
    return result


def table_of(seed: int, rows: int) -> pa.Table:
    """Return rows in order, a row a second."""
    rng = np.random.default_rng(seed)
    columns = {"t": np.arange(rows), "k": rng.integers(0, KEYS, rows), "x": rng.random(rows)}
    return pa.table(columns)


def written(table: pa.Table, folder: Path) -> tuple[Path, Path, Path]:
    """Write rows as one file, as files that follow each other, and as some that overlap."""
    one, apart, overlapping = (folder / name for name in ("one.parquet", "apart", "overlapping"))
    apart.mkdir()
    overlapping.mkdir()
    rows = len(table) // FILES
    pq.write_table(table, one, row_group_size=16 * rows)
    for n in range(FILES):
        pq.write_table(table.slice(n * rows, rows), apart / f"{n:04}.parquet")
        every = table.take(np.arange(n, len(table), FILES))
        pq.write_table(every, overlapping / f"{n:04}.parquet")
    return one, apart, overlapping


def compared(
    inputs: dict[tuple[str, str], Made], times: int, folder: str, rows: int
) -> dict[tuple[str, str], Measured]:
    """Run a flow over each input in turns; check that results are those of the first."""
    measured = {name: Measured() for name in inputs}
    expected: pa.Table | None = None
    for turn in range(times + 1):
        for name, made in inputs.items():
            left, took_s, first_s, opened = counted(made, folder if turn == 0 else "")
            expected = left if expected is None else expected
            check(left.equals(expected), f"{name}: other results than those of one file")
            if turn == 0:  # which also looks at open files
                measured[name].opened = opened
                continue
            measured[name].rates.append(rows / took_s / 1e6)
            measured[name].firsts.append(first_s)
    return measured


def counted(made: Made, folder: str = "") -> tuple[pa.Table, float, float, int]:
    """Run the flow; return results, CPU of all, CPU to the first row, most files open."""
    batches: list[pa.RecordBatch] = []
    first_s: list[float] = []
    opened = 0

    def leave(batch: pa.RecordBatch) -> None:
        nonlocal opened
        if not first_s:
            first_s.append(time.process_time())
        if folder:
            opened = max(opened, open_below(folder))
        batches.append(batch)

    began_s = time.process_time()
    flow = sw.Dataflow("partitions")
    source = flow.source("rows", made(), event_time="t", time_unit="s")
    sums = source.aggregate(by="k", window=sw.tumbling("100s"), n=sw.count(), x=sw.mean("x"))
    sums.sink("out", sw.callback_sink(leave))
    with sw.Simulation(1) as nodes:
        job = nodes.submit(flow)
        job.wait()
    took_s = time.process_time() - began_s
    return pa.Table.from_batches(batches), took_s, first_s[0] - began_s, opened


def open_below(folder: str) -> int:
    """Return how many files of a folder this process has open."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{name}").startswith(folder)
    return found


def tell(result: Result, measured: dict[tuple[str, str], Measured]) -> None:
    """Add a line and figures for each input."""
    for (rows_in, partitions), found in measured.items():
        rates, firsts = Spread.of(found.rates), Spread.of(found.firsts)
        result.rows.append([rows_in, partitions or "none", rates, firsts, found.opened])
        result.figures[f"{rows_in}, {partitions or 'one order'}"] = {
            "million_per_cpu_s": rates,
            "first_row_cpu_s": firsts,
            "files_open": found.opened,
        }


def of_frame(result: Result, rows: int) -> None:
    """Add the parts of a Spark frame, as one order and as partitions."""
    with sw.Cluster.local(nodes=1) as cluster:
        session = cluster.spark().session
        frame = session.range(0, rows, numPartitions=PARTS).selectExpr(
            "id t", f"pmod(hash(id), {KEYS}) k", "id * 0.5D x"
        )
        prepared = {
            (f"Spark frame of {PARTS} parts", ""): prepare(frame, order_by="t"),
            (f"Spark frame of {PARTS} parts", "frame"): prepare(frame, partitions="frame"),
            ("the same, overlapping", "frame"): prepare(
                frame.repartition(PARTS), order_by="t", partitions="frame"
            ),
        }
        measured = compared(
            {name: partial(_as_it_is, made) for name, (made, _) in prepared.items()},
            REPETITIONS,
            "",
            rows,
        )
    tell(result, measured)
    for (what, partitions), (_, took_s) in prepared.items():
        result.figures[f"{what}, {partitions or 'one order'}"]["prepared_s"] = round(took_s, 2)
    first_s = max(Spread.of(found.firsts).median for found in measured.values())
    result.claims.append(Claim("frame: CPU s to the first row", first_s, "<=", FIRST_ROW_S))


def prepare(frame: Any, **options: Any) -> tuple[Any, float]:
    """Return a frame as an input, and how long Spark took."""
    began_s = time.monotonic()
    return sw.spark(frame, **options), time.monotonic() - began_s


def _as_it_is(given: Any) -> Any:
    return given
