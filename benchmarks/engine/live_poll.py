"""A live input whose poll returns a few rows: CPU and latency, beside Bytewax with the same feed.

```
feed ─▶ poll ─▶ source ─▶ process: total of a key ─▶ sink      one slot on Ray
feed ─▶ next_batch ─▶ input ─▶ stateful_map: the same ─▶ sink  Bytewax, one worker
```

BYTEWAX=<path of a Python that has Bytewax> in the environment names the interpreter of the other.
Both take turns; each result of both is compared with what NumPy computes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.before import ROOT, in_turns, ratios
from benchmarks.engine.cost_run import SLOT, Usage
from benchmarks.engine.live import name_thread
from benchmarks.engine.live_poll_feed import KEYS, Feed, Row
from benchmarks.engine.processes import all_processes, kind_of
from benchmarks.engine.recorder import Recorder
from benchmarks.engine.running import ONE_SLOT
from benchmarks.engine.threads import thread_counts
from benchmarks.frame import Claim, NotHereError, Options, Result, Spread, check, number
from benchmarks.jobs import TIMEOUT_S

RATE = 10_000
TURNS = 5
MOST_OF_BYTEWAX = 1.0
LEAST_KEPT_UP = 0.9
"""Share of the window's rows that must leave in it: CPU of less work is no figure."""
LEAD_S = {"ours": 5.0, "Bytewax": 2.0}
"""How long each may take to start before its first row is due."""
PROGRAM = "benchmarks.engine.live_poll_bytewax"
HOW = "BYTEWAX=<path of a Python ≥ 3.11 that has bytewax> in the environment compares with it"
FIGURES = {"cores": "cores", "p50_ms": "p50 ms", "p99_ms": "p99 ms"}
SCHEMA = pa.schema(
    [("number", pa.int64()), ("key", pa.string()), ("value", pa.int64()), ("due_ns", pa.int64())]
)

Ints = npt.NDArray[np.int64]
Pair = tuple[dict[str, float], dict[str, float]]


@dataclass(frozen=True)
class Window:
    """Seconds of a run: those that count follow the warm-up."""

    warm_up_s: float
    seconds: float

    @property
    def rows(self) -> int:
        """Return how many rows the feed has, with half a second after the window."""
        return round(RATE * (self.warm_up_s + self.seconds + 0.5))


@dataclass(frozen=True)
class FewRows:
    """A live input as a user would write it: the rows that are due at each poll.

    Attributes:
        start_ns: by `time.time_ns`, when row 0 is due.
        rows: of the whole feed.
    """

    start_ns: int
    rows: int

    def describe(self) -> str:
        """Return its rate."""
        return f"live, {RATE:,} rows a second"

    def schema(self) -> pa.Schema:
        """Return its columns."""
        return SCHEMA

    def open(self) -> FewRowsReader:
        """Begin the feed."""
        name_thread("slot-source")
        return FewRowsReader(Feed(self.start_ns, rate=RATE, rows=self.rows))


class FewRowsReader:
    """Rests until a row is due, and hands over all that are."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def poll(self) -> pa.RecordBatch | sw.connectors.EndOfInput | None:
        """Return the rows that are due; None if none is after a rest."""
        if self._feed.is_over:
            return sw.connectors.END_OF_INPUT
        rest_s = self._feed.rest_s()
        if rest_s:
            time.sleep(rest_s)
        rows = self._feed.due()
        return batch_of(rows) if rows else None

    def close(self) -> None:
        """Nothing is open."""


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows of Python as a batch."""
    columns = zip(*rows, strict=True)
    return pa.record_batch([pa.array(c) for c in columns], schema=SCHEMA)


class Total:
    """Adds up the values of a key."""

    def __init__(self) -> None:
        self.total = 0

    def on_rows(self, _key: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
        """Return the total after each row."""
        results = []
        for row in rows:
            self.total += row["value"]
            results.append({"number": row["number"], "total": self.total, "due_ns": row["due_ns"]})
        return results


def totals_flow(source: FewRows, sink: sw.connectors.Output) -> sw.Dataflow:
    """Return the flow: the running total of each key."""
    flow = sw.Dataflow("totals")
    rows = flow.source("rows", source, event_time="due_ns", time_unit="ns")
    columns = {"number": "int64", "total": "int64", "due_ns": "int64"}
    rows.key_by("key").process(Total, columns).sink("totals", sink)
    return flow


def expected_totals(rows: int) -> Ints:
    """Return by number the total of a row's key after it, computed without either engine."""
    numbers = np.arange(rows)
    values = numbers * 31 % 1_000
    totals = np.empty(rows, np.int64)
    for key in range(min(KEYS, rows)):
        totals[key::KEYS] = values[key::KEYS].cumsum()
    return totals


def checked(who: str, numbers: Ints, totals: Ints, rows: int) -> None:
    """Check that each row of the feed has one result, with the right total.

    Raises:
        WrongResultError: it has not.
    """
    check(len(numbers) == rows, f"{who}: {len(numbers)} results of {rows} rows")
    order = numbers.argsort()
    check(bool((numbers[order] == np.arange(rows)).all()), f"{who}: a row came twice")
    expected = expected_totals(rows)
    wrong = int((totals[order] != expected).sum())
    check(not wrong, f"{who}: {wrong} totals differ, sum {totals.sum()}, not {expected.sum()}")


def latencies(due_ns: Ints, egress_ns: Ints, *, start_ns: int, window: Window) -> dict[str, float]:
    """Return quantiles of egress − event time, of the rows due in the window; rows of a batch."""
    first_ns = start_ns + int(window.warm_up_s * 1e9)
    counts = (due_ns >= first_ns) & (due_ns < first_ns + int(window.seconds * 1e9))
    check(bool(counts.any()), "no result in the window")
    latency_ms = (egress_ns - due_ns)[counts] / 1e6
    p50_ms, p99_ms = (float(np.quantile(latency_ms, q)) for q in (0.5, 0.99))
    batch_rows = int(counts.sum()) / len(np.unique(egress_ns[counts]))
    left = (egress_ns >= first_ns) & (egress_ns < first_ns + int(window.seconds * 1e9))
    return {
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
        "rows_per_batch_at_sink": batch_rows,
        "kept_up": float(left.sum() / counts.sum()),
    }


def ours(cluster: sw.Cluster, window: Window) -> dict[str, float]:
    """Run our flow once in one slot; return its figures."""
    start_ns = _start_ns("ours")
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(f"{folder}/out")
        source = FewRows(start_ns, window.rows)
        job = cluster.submit(totals_flow(source, recorder.sink()), placement=ONE_SLOT)
        try:
            _sleep_until(start_ns, window.warm_up_s)
            slots = sum(kind_of(process) == SLOT for process in all_processes())
            check(slots == 1, f"{slots} slots run, not 1")
            usage = Usage()
            _sleep_until(start_ns, window.warm_up_s + window.seconds)
            used = usage.figures(RATE)
            report = job.wait(timeout=TIMEOUT_S)
        finally:
            job.close()
        check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
        rows = recorder.read()
    checked("ours", rows["number"], rows["total"], window.rows)
    timed = latencies(rows["due_ns"], rows["egress_ns"], start_ns=start_ns, window=window)
    return timed | {
        "cores": used["cores"],
        **{f"cores_{name}": cores for name, cores in used["threads"].items()},
        **{f"cores_apart_{kind}": cores for kind, cores in used["others"].items()},
    }


def bytewax(python: str, window: Window) -> dict[str, float]:
    """Run the flow once in Bytewax; return its figures."""
    start_ns = _start_ns("Bytewax")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        words = [str(start_ns), str(RATE), str(window.rows), str(path)]
        with subprocess.Popen(  # noqa: S603
            [python, "-m", PROGRAM, *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                _sleep_until(start_ns, window.warm_up_s)
                before_ns, began_s = _cpu_ns(process.pid), time.monotonic()
                _sleep_until(start_ns, window.warm_up_s + window.seconds)
                used_ns = _cpu_ns(process.pid) - before_ns
                seconds = time.monotonic() - began_s
                stderr = process.communicate(timeout=TIMEOUT_S)[1]
            finally:
                process.kill()
        check(process.returncode == 0, f"Bytewax's program failed: {stderr[-2_000:]}")
        number_, totals, due_ns, egress_ns = np.fromfile(path, np.int64).reshape(-1, 4).T
    checked("Bytewax", number_, totals, window.rows)
    timed = latencies(due_ns, egress_ns, start_ns=start_ns, window=window)
    return timed | {"cores": used_ns / 1e9 / seconds}


def bytewax_python() -> str:
    """Return the path of the Python that has Bytewax, as the environment names it.

    Raises:
        NotHereError: none is named, or it cannot import Bytewax.
    """
    python = os.environ.get("BYTEWAX")
    if not python:
        raise NotHereError(f"no Python with Bytewax is named; {HOW}")
    words = [python, "-c", "import bytewax.run"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as problem:
        raise NotHereError(
            f"BYTEWAX={python} cannot be started: {problem.strerror}; {HOW}"
        ) from problem
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise NotHereError(f"BYTEWAX={python} cannot import Bytewax: {last}; {HOW}")
    return python


def run(options: Options) -> Result:
    """Measure ours and, in turns, Bytewax; without it ours only, and the claims stay open."""
    window = Window(1.5, 4.0) if options.quick else Window(3.0, 10.0)
    turns = 1 if options.quick else TURNS
    result = Result(
        f"{RATE:,} rows/s, {KEYS} keys, {window.seconds:g} s after {window.warm_up_s:g} s of "
        f"warm-up, turns: {turns}",
        ["engine", *FIGURES.values(), "rows a batch at the sink"],
    )
    try:
        python: str | None = bytewax_python()
    except NotHereError as problem:
        python = None
        result.notes.append(f"Bytewax is not measured: {problem}")
    with sw.Cluster.local(nodes=1) as cluster:
        _measure(result, lambda: ours(cluster, window), python, window, turns)
    result.notes += [
        "cores: CPU of the slot's process by the time that passed, Ray's threads included; of "
        "Bytewax's whole process",
        "latency: from a row's event time, when it was due, to its result at the sink; an input "
        "rests 1 ms at least when no row is due",
        "Bytewax's input hands over pairs of key and value, so that it needs no step for keys",
    ]
    return result


def _measure(
    result: Result,
    run_ours: Callable[[], dict[str, float]],
    python: str | None,
    window: Window,
    turns: int,
) -> None:
    if python is None:
        _add(result, "ours", [run_ours() for _ in range(turns)])
        result.claims += _claims({})
        return
    pairs = in_turns(lambda: bytewax(python, window), run_ours, times=turns)
    kept_up = pairs_that_kept_up(pairs)
    _add(result, "ours", [now for _, now in kept_up or pairs])
    _add(result, "Bytewax", [other for other, _ in kept_up or pairs])
    result.figures["turns"] = [{"ours": now, "Bytewax": other} for other, now in pairs]
    compared = ratios(kept_up) if kept_up else {}
    result.figures["ours / Bytewax"] = compared
    result.claims += _claims(compared)
    if len(kept_up) < len(pairs):
        shares = "; ".join(f"{now['kept_up']:.2f}, {o['kept_up']:.2f}" for o, now in pairs)
        result.notes.append(
            f"{len(kept_up)} of {len(pairs)} turns count: in the others one did not keep up with "
            f"its feed, and had too little CPU; rows that left in the window by rows due in it, "
            f"ours and Bytewax's by turn: {shares}"
        )


def pairs_that_kept_up(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the turns in which both handed on the rows of the window within it."""
    most = 2 - LEAST_KEPT_UP
    return [pair for pair in pairs if all(LEAST_KEPT_UP <= one["kept_up"] <= most for one in pair)]


def _claims(found: dict[str, Spread]) -> list[Claim]:
    what = f"a poll of few rows, {RATE:,}/s, one slot"
    return [
        Claim(
            f"{what}: {words} / Bytewax's, median of turns",
            found[name].median if name in found else None,
            "<=",
            MOST_OF_BYTEWAX,
        )
        for name, words in FIGURES.items()
    ]


def _add(result: Result, who: str, runs: Sequence[dict[str, float]]) -> None:
    spreads = {name: Spread.of([one.get(name, 0.0) for one in runs]) for name in runs[0]}
    result.figures[who] = spreads
    result.rows.append(
        [who, *(spreads[name] for name in FIGURES), spreads["rows_per_batch_at_sink"]]
    )
    parts = [
        f"{name.removeprefix('cores_').replace('_', ': ')} {number(spread.median)}"
        for name, spread in spreads.items()
        if name.startswith("cores_") and spread.median >= 0.0005
    ]
    if parts:
        result.notes.append(f"{who}, cores by thread, and of processes apart: {', '.join(parts)}")


def _start_ns(who: str) -> int:
    """Return when the first row is due, in whole microseconds, as Bytewax's clock has them."""
    return (time.time_ns() + int(LEAD_S[who] * 1e9)) // 1_000 * 1_000


def _sleep_until(start_ns: int, after_s: float) -> None:
    time.sleep(max((start_ns - time.time_ns()) / 1e9 + after_s, 0.0))


def _cpu_ns(pid: int) -> int:
    return sum(counts.cpu_ns for _, counts in thread_counts(pid).values())
