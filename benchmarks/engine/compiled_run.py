"""One run of `compiled`: the join flow in a slot of ours, or in `compiled.c`, with its CPU.

```
rows ─▶ file ─┬─▶ slot's process, without Ray ─┬─▶ results ─▶ all compared with the offline query's,
              └─▶ cc -O3 compiled.c ───────────┘              latencies
```
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.engine.join_latency import MODES, Run, missing_results
from benchmarks.engine.profile_slot import begin, slots_of
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import ONE_SLOT, Arrays, arrays_of
from benchmarks.engine.slot_process import Look
from benchmarks.engine.threads import ThreadCounts, grouped, thread_counts
from benchmarks.engine.workload import MS, WITHIN_NS, join_flow, paced_tables, write
from benchmarks.frame import NotHereError, check
from slackwater.runtime.prepare.prepare import prepare

__all__ = ["COLUMNS", "Flow", "Measured", "compiled", "compiler", "flow_of", "in_c", "ours"]

SOURCE = Path(__file__).with_name("compiled.c")
MODE = "on arrival"
BEHIND_S = 1
"""So long rows go on behind the window: what they complete was in it."""
COLUMNS = ("ts", "ts_right", "arrival", "arrival_right", "area", "vehicle", "sensor", "egress_ns")
"""Of the results, as `compiled.c` writes them."""
SIDES = (("area", "delay_s", "vehicle"), ("area", "flow", "sensor"))


@dataclass(frozen=True)
class Flow:
    """What both run: rows as our inputs and the offline query have them, and as C reads them."""

    run: Run
    rows: Path


@dataclass(frozen=True)
class Measured:
    """Of one run, in its window.

    Attributes:
        cores: CPU of the process by the time that passed.
        sleeps_per_s: how often its threads went to sleep.
        latency_ms: shape (results,), when the later row was due until the result was stamped; empty
            where there is no work.
        results: of the whole run.
        parts: {part of the loop: ns, or calls}, if they were timed (`slot_parts.py`).
        passed_s: the window.
    """

    cores: float
    sleeps_per_s: float
    latency_ms: np.ndarray[tuple[int], np.dtype[np.float64]]
    results: int
    parts: Mapping[str, int]
    passed_s: float

    def quantile_ms(self, q: float) -> float:
        """Return a quantile of the latency.

        Raises:
            WrongResultError: there was no result in the window.
        """
        check(len(self.latency_ms) > 0, "no result in the window")
        return float(np.quantile(self.latency_ms, q))


def compiler() -> str:
    """Return the path of the C compiler.

    Raises:
        NotHereError: there is none.
    """
    found = shutil.which("cc")
    if found is None:
        raise NotHereError(
            "it compiles a C program and needs a C compiler, `cc` on the PATH, which is not there; "
            "install one (Debian: gcc and libc6-dev)"
        )
    return found


@contextmanager
def compiled() -> Iterator[Path]:
    """Compile `compiled.c`; hold the program's path.

    Raises:
        NotHereError: there is no compiler, or it cannot compile this (Linux's headers are needed).
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "compiled"
        words = [compiler(), "-O3", "-o", str(program), str(SOURCE)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise NotHereError(f"`cc -O3 compiled.c` failed: {done.stderr.strip()}")
        yield program


def flow_of(folder: Path, *, rate: int, warm_up_s: int, seconds: int, seed: int) -> Flow:
    """Draw the rows, and write them to a folder for both."""
    tables = paced_tables(seed, rate=rate, seconds=warm_up_s + seconds + BEHIND_S)
    inputs = [write(table, folder / f"input {n}") for n, table in enumerate(tables)]
    bus, loop = map(arrays_of, tables)
    run = Run(rate, MODE, warm_up_s, seconds, bus, loop, (inputs[0], inputs[1]))
    rows = folder / "rows"
    write_rows(rows, bus, loop)
    return Flow(run, rows)


def write_rows(path: Path, bus: Arrays, loop: Arrays) -> None:
    """Write both sources' rows as `compiled.c` says."""
    with path.open("wb") as file:
        file.write(np.array([len(bus["ts"]), len(loop["ts"])], dtype=np.int64).tobytes())
        for rows in (bus, loop):
            for name in ("arrival", "ts"):
                file.write(rows[name].astype(np.int64).tobytes())
        for rows, names in zip((bus, loop), SIDES, strict=True):
            for name in names:
                file.write(rows[name].astype(np.int32).tobytes())


def in_c(program: Path, flow: Flow, *, gap_ns: int, works: bool = True) -> Measured:
    """Run the C program once.

    Args:
        program: as `compiled` made it.
        flow: what it runs.
        gap_ns: it looks at its sources at most so often; 0: whenever a row is due.
        works: False: it sleeps and wakes as often, and passes over the rows.

    Raises:
        WrongResultError: its results are not the offline query's, or some are missing.
    """
    run = flow.run
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        settings = [
            gap_ns,
            run.warm_up_s * 1_000 * MS,
            run.seconds * 1_000 * MS,
            *(repr(float(over)) for over in run.over),
            WITHIN_NS // MS,
            int(works),
        ]
        words = [str(program), str(flow.rows), str(out), *map(str, settings)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
        columns = np.fromfile(out, dtype=np.int64).reshape(len(COLUMNS), -1)
    said = {word: int(value) for word, value in map(str.split, done.stdout.splitlines())}
    rows: Arrays = dict(zip(COLUMNS, columns, strict=True))
    if works:
        missing = missing_results(run, rows)
        check(not missing, f"compiled.c: {missing} pairs are missing")
    return Measured(
        said["cpu_ns"] / said["wall_ns"],
        said["sleeps"] / said["wall_ns"] * 1e9,
        _latency_ms(run, rows, said["start_ns"]),
        len(rows["ts"]),
        {"looks": said["looks"]},
        said["wall_ns"] / 1e9,
    )


def ours(flow: Flow, look: Look = "counts") -> Measured:
    """Run the flow once in a slot in a process of its own, without Ray.

    Raises:
        WrongResultError: its results are not the offline query's, or some are missing.
    """
    run = flow.run
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(str(Path(folder) / "out"))
        written = join_flow(*run.inputs, recorder.sink(), over=run.over, slack=MODES[MODE])
        plan = prepare(written, ["node-1"], placement=ONE_SLOT)
        with slots_of(plan, look) as slots:
            (slot,) = slots
            start_ns = begin(slots, plan)
            time.sleep(max(start_ns - time.time_ns(), 0) / 1e9 + run.warm_up_s)
            began_s, before, counted = (
                time.monotonic(),
                thread_counts(slot.pid),
                slot.call("counted"),
            )
            time.sleep(max(began_s + run.seconds - time.monotonic(), 0))
            passed_s, after = time.monotonic() - began_s, thread_counts(slot.pid)
            now = slot.call("counted")
            report = slot.call("join")
        check(report.state == "done", f"the slot: {report.error}")
        rows = recorder.read()
    missing = missing_results(run, rows)
    check(not missing, f"our slot: {missing} pairs are missing")
    used = sum(grouped(before, after, group=str).values(), start=ThreadCounts())
    return Measured(
        used.cpu_ns / 1e9 / passed_s,
        used.voluntary / passed_s,
        _latency_ms(run, rows, start_ns),
        len(rows["ts"]),
        {name: value - counted.get(name, 0) for name, value in now.items()},
        passed_s,
    )


def _latency_ms(
    run: Run, rows: Arrays, start_ns: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return egress − when the later row was due, of the results in the window."""
    due_ns = np.maximum(rows["arrival"], rows["arrival_right"])
    begin_ns = run.warm_up_s * 1_000 * MS
    counts = (due_ns >= begin_ns) & (due_ns < begin_ns + run.seconds * 1_000 * MS)
    latency_ms: np.ndarray[tuple[int], np.dtype[np.float64]] = (
        rows["egress_ns"] - start_ns - due_ns
    )[counts] / 1e6
    return latency_ms
