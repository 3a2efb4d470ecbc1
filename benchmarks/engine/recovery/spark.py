"""An unbounded Spark stream whose executor, source and driver JVM are killed: each row once.

```
files appear ─▶ Spark ─▶ source, spool ─▶ rows in SQLite      the same rows as offline
                  └─ kill -9 of its executor, of the source's slot, of the driver's JVM
                                         the last ends the job; the same command goes on
```

In each second round, the first included, the driver's Python is killed with its JVM.
"""

from __future__ import annotations

import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil

from benchmarks.engine.recovery.flow import commits_of, number_of_rows, rows_of
from benchmarks.frame import Claim, Options, Result

FILE_ROWS, FILE_S = 100, 0.2
"""Rows of a file, and time between two."""
AHEAD = 5_000
"""Rows that wait for the job at most: the last of them come in its last seconds."""
MORE = 200
"""Rows that must come before a fault, and after each that the job survives."""
BEGIN_S, MORE_S, END_S = 300.0, 120.0, 90.0
ROUNDS, QUICK_ROUNDS = 4, 1
EXECUTOR, SLOT, JVM = "executor", "slot of the source", "driver's JVM"

Faults = dict[str, list[float]]
"""{what was killed: times of the kills}."""


@dataclass
class Feed:
    """Files that appear one after the other.

    Attributes:
        folder: folder of the files.
        there: returns the number of rows that the sink has.
        rows: number of rows in the files.
        stops: set to write no more.
    """

    folder: Path
    there: Callable[[], int]
    rows: int = 0
    stops: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Write files until it is stopped, unless many rows wait for the job."""
        number = 0
        while not self.stops.wait(FILE_S):
            if self.rows >= self.there() + AHEAD:
                continue
            texts = [
                f'{{"t": {t}, "value": {t * 7 % 1_000}}}\n'
                for t in range(self.rows, self.rows + FILE_ROWS)
            ]
            hidden = self.folder / f".{number:06}.json"
            hidden.write_text("".join(texts), encoding="utf-8")
            hidden.rename(self.folder / f"{number:06}.json")
            self.rows, number = self.rows + FILE_ROWS, number + 1

    def expected(self) -> list[tuple[int, str]]:
        """Return the rows that a sink must have, with their ordinals."""
        values = [t * 7 % 1_000 for t in range(self.rows)]
        return [(t, repr((t, value, value * 2))) for t, value in enumerate(values)]


def run(options: Options) -> Result:
    """Kill each process in turn, in several rounds."""
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    rng = random.Random(options.seed)  # noqa: S311 chance
    faults: Faults = {EXECUTOR: [], SLOT: [], JVM: []}
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="recovery-spark-") as name:
        folder = Path(name)
        (folder / "files").mkdir()
        feed = Feed(folder / "files", partial(_count, folder / "rows.db"))
        feeding = threading.Thread(target=feed.run, daemon=True)
        feeding.start()
        try:
            problems = list(_seen_through(folder, feed, rounds, rng, faults))
        finally:  # else it would write into a folder that is being removed
            feed.stops.set()
            feeding.join()
        commits = commits_of(folder / "rows.db") if (folder / "rows.db").exists() else []
    injected = sum(map(len, faults.values()))
    result = Result(
        f"{injected} kills in {time.monotonic() - began_s:.0f} s: an unbounded Spark stream of "
        f"{feed.rows:,} rows on a simulated node, a checkpoint each 0.5 s",
        ["killed", "times", "longest time between commits, s: median", "most"],
    )
    kills = sorted(at_s for times in faults.values() for at_s in times)
    for name, times in faults.items():
        gaps = [_longest_gap(commits, at_s, kills) for at_s in times]
        result.rows.append([name, len(times), *_shown(gaps)])
    result.figures = {"faults": faults, "problems": problems, "rows": feed.rows}
    result.claims = [
        Claim("faults that were injected", injected, ">=", 3 * rounds),
        Claim("commits with rows", len(commits), ">=", 1),
        Claim("runs and rows that are not as without a fault", len(problems), "<=", 0),
    ]
    result.notes = [
        *problems,
        "after the kill of the JVM the command is run again: it starts Ray nodes and Spark first",
    ]
    return result


def _longest_gap(commits: list[float], at_s: float, kills: list[float]) -> float:
    """Return the longest time between two commits from a kill to the next one, in seconds."""
    until_s = min((kill for kill in kills if kill > at_s), default=math.inf)
    pairs = [(before, after) for before, after in pairwise(commits) if at_s < after < until_s]
    return max((after - before for before, after in pairs), default=math.inf)


def _shown(gaps: list[float]) -> tuple[str, str]:
    if not gaps:
        return "–", "–"
    return f"{statistics.median(gaps):.1f}", f"{max(gaps):.1f}"


def _seen_through(
    folder: Path, feed: Feed, rounds: int, rng: random.Random, faults: Faults
) -> Iterator[str]:
    """Run the command, kill what is killed, and run it again; yield what is wrong."""
    path = folder / "rows.db"
    for number in range(rounds):
        with_driver = number % 2 == 0
        there = _count(path)
        with _command(folder) as job:
            if not _until(lambda: _count(path) > there, BEGIN_S):  # noqa: B023
                yield f"no row within {BEGIN_S:g} s; {job.said()}"
                return
            for fault, pid in ((EXECUTOR, job.executor), (SLOT, job.slot), (JVM, job.jvm)):
                before = _count(path)
                if not _until(lambda: _count(path) >= before + MORE, MORE_S):  # noqa: B023
                    yield f"no more rows before the kill of the {fault}; {job.said()}"
                    return
                time.sleep(rng.uniform(0.0, 0.5))
                faults[fault].append(time.time())
                os.kill(pid(), signal.SIGKILL)
            if with_driver:
                job.process.kill()
            if not _until(lambda: job.code() is not None, END_S):
                yield f"the job still runs {END_S:g} s after the kill of its {JVM}"
            elif job.code() == 0:
                yield f"the job ended as if done after the kill of its {JVM}"
    with _command(folder) as job:
        before = _count(path)
        if not _until(lambda: _count(path) >= before + MORE, BEGIN_S):
            yield f"no more rows after the last kill; {job.said()}"
            return
        feed.stops.set()
        there = -1
        while there < _count(path) < feed.rows:  # as long as more rows come
            there = _count(path)
            _until(lambda: _count(path) > there, MORE_S)  # noqa: B023
        if _count(path) < feed.rows:
            yield f"{_count(path):,} rows of {feed.rows:,}; {job.said()}"
        job.process.terminate()
        _until(lambda: job.code() is not None, END_S)
    rows, expected = rows_of(path), feed.expected()
    wrong = sum(own != right for own, right in zip(rows, expected, strict=False))
    if len(rows) != len(expected) or wrong:
        yield f"{len(rows):,} rows, {wrong:,} of them wrong, of {len(expected):,}"


@dataclass(frozen=True)
class _Job:
    """The command, while it runs."""

    process: subprocess.Popen[str]
    log: Path

    def code(self) -> int | None:
        return self.process.poll()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-1_000:]

    def jvm(self) -> int:
        """Return the JVM of Spark's driver, a child of the command."""
        children = psutil.Process(self.process.pid).children()
        return next(int(child.pid) for child in children if child.name() == "java")

    def executor(self) -> int:
        """Return the JVM of an executor, whose child runs Python."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has ended since
                if "pyspark.daemon" in process.cmdline():
                    above = [parent.pid for parent in process.parents() if parent.name() == "java"]
                    return int(above[0])
        raise RuntimeError("no executor runs Python")

    def slot(self) -> int:
        """Return the process of the slot."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("runs "))


@contextmanager
def _command(folder: Path) -> Iterator[_Job]:
    log = folder / f"log-{time.monotonic_ns()}"
    words = [sys.executable, "-m", "benchmarks.engine.recovery.spark_job", str(folder)]
    with log.open("w") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, text=True)  # noqa: S603 our own
    try:
        yield _Job(process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _count(path: Path) -> int:
    return number_of_rows(path) if path.exists() and commits_of(path) else 0


def _until(holds: Callable[[], bool], within_s: float) -> bool:
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True
