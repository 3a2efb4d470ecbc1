"""A busy machine, and a function that holds the interpreter for long: no job may go back for that.

```
source ─▶ function ─▶ rows in SQLite      every tenth second of the stream it computes for 2 s
busy loops beside it, for a load of 8     without letting any other thread of its process run
```

The limit of silence is half of that. So a slot stands still for longer than the limit, and its
heartbeats and the supervisor of its node must tell it from one that hangs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.recovery.flow import TableOutput, rows_of
from benchmarks.frame import Claim, Options, Result
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model import NS_PER_SECOND

SECONDS, QUICK_SECONDS = 1_800, 30
RATE = 500
HOLD_S, EVERY_S = 2.0, 10
LOAD = 8
LIMIT_S = 1.0
MOST_SLOWER = 6
"""How much longer than its stream a job may take: it has a part of two cores."""
PLACES = {"numbers": "node-1", "holds": "node-2", "out": "node-3"}
SCHEMA = {"ts": "int64", "n": "int64"}
LOOK_S = 1.0


def run(options: Options) -> Result:
    """Run the job beside busy loops."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    additions = _additions(HOLD_S)
    with tempfile.TemporaryDirectory(prefix="quiet-") as name:
        folder = Path(name)
        with sw.Cluster.local(nodes=3) as cluster, _busy_loops(LOAD), _loads() as loads:
            job = cluster.submit(
                _flow(folder, seconds, additions),
                placement=PLACES,
                checkpoint="1s",
                checkpoint_folder=folder / "checkpoints",
                limits=sw.Limits(lost_ns=round(LIMIT_S * NS_PER_SECOND), fuse=False),
            )
            problem = ""
            try:
                report = job.wait(timeout=MOST_SLOWER * seconds)
            except (SlackwaterError, TimeoutError) as failure:
                problem, report = str(failure).splitlines()[0], job.report()
            job.close()
        holds = [float(line) for line in (folder / "holds").read_text().splitlines()]
        rows = [ordinal for ordinal, _ in rows_of(folder / "rows.db")]
    return _result(seconds, holds, loads, rows == [*range(seconds * RATE)], report, problem)


def _result(
    seconds: int,
    holds: list[float],
    loads: list[float],
    is_whole: bool,
    report: sw.JobReport,
    problem: str,
) -> Result:
    load, recoveries = float(np.median(loads)), report.recoveries
    result = Result(
        f"{seconds} s of {RATE} events/s in three slots on simulated nodes; limit of silence "
        f"{LIMIT_S:g} s; each {EVERY_S} s a function holds the interpreter for {HOLD_S:g} s of CPU",
        ["load", "holds", "longest hold, s", "recoveries"],
    )
    result.rows.append([f"{load:.1f}", len(holds), f"{max(holds):.1f}", len(recoveries)])
    result.figures = {"load": load, "holds_s": holds, "recoveries": len(recoveries)}
    result.claims = [
        Claim("times that the interpreter was held", len(holds), ">=", 1),
        Claim("processes that want a core, beside the job, median", load, ">=", LOAD),
        Claim("recoveries", len(recoveries), "<=", 0),
        Claim("jobs whose rows are not all there, once", int(not is_whole), "<=", 0),
    ]
    result.notes = [*([problem] if problem else []), *(one.cause for one in recoveries)]
    return result


def _flow(folder: Path, seconds: int, additions: int) -> sw.Dataflow:
    flow = sw.Dataflow("quiet")
    numbers = np.arange(seconds * RATE)
    times = numbers * (NS_PER_SECOND // RATE)
    source = flow.source(
        "numbers",
        sw.table(pa.table({"ts": times, "n": numbers})),
        event_time="ts",
        time_unit="ns",
        speed=1.0,
    )
    holding = partial(_hold, additions=additions, note=str(folder / "holds"))
    source.map_rows(holding, SCHEMA, name="holds").sink("out", TableOutput(str(folder / "rows.db")))
    return flow


def _hold(row: dict[str, Any], *, additions: int, note: str) -> dict[str, Any]:
    if row["n"] % (EVERY_S * RATE) == EVERY_S * RATE // 2:
        began_s = time.monotonic()
        sum(range(additions))  # one call in C: no other thread of Python runs meanwhile
        with Path(note).open("a") as lines:
            lines.write(f"{time.monotonic() - began_s}\n")
    return row


def _additions(seconds: float) -> int:
    """Return how many numbers this machine adds in some seconds of CPU time."""
    some, began_s = 3_000_000, time.thread_time()
    sum(range(some))
    return round(some * seconds / (time.thread_time() - began_s))


@contextmanager
def _busy_loops(count: int) -> Iterator[None]:
    words = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(words) for _ in range(count)]  # noqa: S603 our own words
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def _loads() -> Iterator[list[float]]:
    """Yield a list that grows: how many processes want a core, each second."""
    loads: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            states = [one.info["status"] for one in psutil.process_iter(["status"])]
            loads.append(float(states.count(psutil.STATUS_RUNNING)))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield loads
    finally:
        over.set()
        looking.join()
