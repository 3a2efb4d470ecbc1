"""A kill of the process with a flow's state: ours beside Bytewax and Flink, with the same flow.

```
rows, due one by one ─▶ total of each key ─▶ sink      a reader looks at the sink all the time
                            ╳ kill -9                  gap: longest time without a new row
```

All three take a checkpoint each second. A peer that is not installed is not measured, and the notes
say how to have it. `peer_engines.py` says how each is run.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from subprocess import TimeoutExpired

import numpy as np

import slackwater as sw
from benchmarks.engine.live_poll import bytewax_python, expected_totals
from benchmarks.engine.recovery.peer_engines import (
    CHECKPOINT,
    PROMPT,
    Bytewax,
    Engine,
    FlinkJob,
    Ints,
    Ours,
    Sight,
)
from benchmarks.flink import Flink, NoFlink, flink
from benchmarks.frame import (
    Claim,
    NotHereError,
    Options,
    Result,
    Spread,
    WrongResultError,
    check,
    counted,
)

RATE = 5_000
"""Rows a second; a divisor of a million."""
SECONDS, QUICK_SECONDS = 12.0, 8.0
TIMES, QUICK_TIMES = 3, 1
FAULT_S = (2.5, 3.5)
"""When the kill comes, after the first row: there is a checkpoint by then."""
LOOK_S = 0.005
BEGIN_S, END_S = 120.0, 180.0
OURS = "ours, a table that tells its last ordinal"
PROGRAM = Path(__file__).parent / "flink" / "RecoveryPeer.java"

Start = Callable[[Path], Engine]


@dataclass(frozen=True)
class Outcome:
    """Rows that a reader of the sink has seen.

    Attributes:
        gap_s: longest time without a new row, from the kill on.
        lost: rows that are missing at the end.
        doubled: rows that are there again at the end.
        wrong: rows with another total than NumPy's.
        taken_back: rows that were there, and are gone later.
    """

    gap_s: float
    lost: int
    doubled: int
    wrong: int
    taken_back: int


class Reader(threading.Thread):
    """Looks at a sink again and again.

    Args:
        look: returns what is there.
    """

    def __init__(self, look: Callable[[], Sight]) -> None:
        super().__init__(name="reader", daemon=True)
        self._look, self._is_over = look, threading.Event()
        self._rows = 0
        self._new_at_s: list[float] = []
        self.next_number = 0
        self.taken_back = 0

    def run(self) -> None:
        """Look until it is over, and once more."""
        while not self._is_over.wait(LOOK_S):
            self.note(self._look(), time.monotonic())
        self.note(self._look(), time.monotonic())

    def end(self) -> None:
        """End it, if it has begun."""
        self._is_over.set()
        if self.is_alive():
            self.join()

    def gap_s(self, from_s: float) -> float:
        """Return the longest time without a new row, of those that end after a time."""
        pairs = pairwise(self._new_at_s)
        gaps_s = [later - earlier for earlier, later in pairs if later > from_s]
        check(bool(gaps_s), "no new row after the kill: all had come before it")
        return max(gaps_s)

    def note(self, sight: Sight, at_s: float) -> None:
        """Add what is there at a time."""
        self.taken_back += max(self._rows - sight.rows, 0)
        self._rows = sight.rows
        if sight.next_number > self.next_number:
            self.next_number = sight.next_number
            self._new_at_s.append(at_s)


def run(options: Options) -> Result:
    """Kill each so often, in turns."""
    times = QUICK_TIMES if options.quick else TIMES
    seconds = QUICK_SECONDS if options.quick else SECONDS
    rows = round(RATE * seconds)
    result = Result(
        f"{RATE:,} rows/s for {seconds:g} s, a total of each key, a checkpoint each {CHECKPOINT}, "
        f"kill -9 of the process with the totals, {times} of each",
        ["engine and sink", "gap, s", "lost", "doubled", "wrong", "seen, and gone later"],
    )
    outcomes: dict[str, list[Outcome]] = {}
    with ExitStack() as until_done:
        folder = Path(until_done.enter_context(tempfile.TemporaryDirectory(prefix="peers-")))
        cluster = until_done.enter_context(sw.Cluster.local(nodes=1))
        starts: dict[str, Start] = {OURS: partial(_ours, cluster, rows)}
        starts |= peers_here(until_done, result.notes, rows, quick=options.quick)
        trials = [(name, n) for n in range(times) for name in starts]
        for place, (name, n) in enumerate(counted(trials, of=len(trials), what="kills")):
            own = folder / str(place)
            own.mkdir()
            rng = random.Random(f"{options.seed} {name} {n}")  # noqa: S311 chance
            try:
                outcomes.setdefault(name, []).append(_outcome(starts[name](own), rng, rows))
            except (TimeoutError, TimeoutExpired, WrongResultError) as problem:
                if name == OURS:
                    raise
                result.notes.append(f"a run of {name} does not count: {problem}")
    for name, own_outcomes in outcomes.items():
        if not own_outcomes:
            continue
        gap = result.figures[name] = Spread.of([own.gap_s for own in own_outcomes])
        sums = np.sum([[o.lost, o.doubled, o.wrong, o.taken_back] for o in own_outcomes], axis=0)
        result.rows.append([name, gap, *(int(each) for each in sums)])
    result.claims = _claims(outcomes)
    result.notes += [
        "gap: longest time without a new row for a reader; the interval of checkpoints is set "
        "alike, all else is each engine's default",
        "Bytewax has no supervisor: it is started again as soon as it is dead; Flink's job manager "
        "goes on in a spare task manager, ours in a new process",
    ]
    return result


def peers_here(
    until_done: ExitStack, notes: list[str], rows: int, *, quick: bool
) -> Iterator[tuple[str, Start]]:
    """Yield each peer that is here, with its sink; note what is not, and how to have it."""
    try:
        python = bytewax_python()
        for sink, words in (("append", "appended lines"), ("cut", "its file, cut on the way back")):
            yield f"Bytewax, {words}", partial(_bytewax, python, sink, rows)
    except NotHereError as problem:
        notes.append(f"Bytewax is not measured: {problem}")
    if quick:
        notes.append("Flink is left out of --quick: it takes a minute to notice a kill")
        return
    try:
        own = until_done.enter_context(flink(PROGRAM))
        settings_shown = ", ".join(f"{name} {value}" for name, value in PROMPT.items())
        notes.append(f"prompt heartbeats of Flink: {settings_shown}")
        for sink, settings, words in (
            ("append", {}, "appended lines"),
            ("published", {}, "its published files"),
            ("published", PROMPT, "its published files, prompt heartbeats"),
        ):
            yield (
                f"Flink {own.version}, {words}",
                partial(_flink_job, own, settings, sink, rows),
            )
    except NoFlink as problem:
        notes.append(f"Flink is not measured: {problem}")


def _ours(cluster: sw.Cluster, rows: int, folder: Path) -> Engine:
    return Ours(cluster, folder, rate=RATE, rows=rows)


def _bytewax(python: str, sink: str, rows: int, folder: Path) -> Engine:
    return Bytewax(python, folder, sink, rate=RATE, rows=rows)


def _flink_job(own: Flink, settings: dict[str, str], sink: str, rows: int, folder: Path) -> Engine:
    return FlinkJob(own, settings, folder, sink, rate=RATE, rows=rows)


def _outcome(engine: Engine, rng: random.Random, rows: int) -> Outcome:
    reader = Reader(engine.look)
    try:
        engine.begin()
        reader.start()
        until_s = time.monotonic() + BEGIN_S
        while not reader.next_number:
            engine.check_alive()
            if time.monotonic() > until_s:
                raise TimeoutError(f"{type(engine).__name__}: no row within {BEGIN_S:g} s")
            time.sleep(LOOK_S)
        time.sleep(rng.uniform(*FAULT_S))
        killed_s = time.monotonic()
        engine.kill()
        engine.wait(END_S)
        reader.end()
        return judged(engine.results(), reader.gap_s(killed_s), reader.taken_back, rows)
    finally:
        reader.end()
        engine.close()


def judged(results: Ints, gap_s: float, taken_back: int, rows: int) -> Outcome:
    """Return the outcome of a run by the rows at its end."""
    numbers, totals = results.T
    distinct = len(np.unique(numbers))
    wrong = int((totals != expected_totals(rows)[numbers]).sum())
    return Outcome(gap_s, rows - distinct, len(numbers) - distinct, wrong, taken_back)


def _claims(outcomes: dict[str, list[Outcome]]) -> list[Claim]:
    ours = outcomes[OURS]
    bad = sum(own.lost + own.doubled + own.wrong + own.taken_back for own in ours)
    gap_s = float(np.median([own.gap_s for own in ours]))
    claims = [Claim("ours: rows lost, doubled, wrong, or gone later", bad, "<=", 0)]
    for peer in ("Bytewax", "Flink"):
        gaps = {
            name: float(np.median([own.gap_s for own in each]))
            for name, each in outcomes.items()
            if name.startswith(peer) and each
        }
        best = min(gaps.values(), default=None)
        claims.append(Claim(f"gap / {peer}'s best, medians", best and gap_s / best, "<=", 1.0))
    return claims
