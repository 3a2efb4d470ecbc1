"""Faults of a job with checkpoints on simulated nodes: its output, and its longest silence.

```
job ─▶ rows in SQLite ─▶ fault ─▶ … ─▶ done      the same rows as without a fault,
                          └─ longest time between two commits ─┘   nothing left on the machine
```
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import slackwater as sw
from benchmarks.engine.recovery.faults import FAULTS, SILENCE_S, Fault, Scene, small_disk
from benchmarks.engine.recovery.flow import (
    PLACES,
    RATE,
    Rows,
    TableOutput,
    commits_of,
    flow_of,
    pairs_offline,
    rows_of,
    write_inputs,
)
from benchmarks.frame import Claim, NotHereError, Options, Result, check, counted
from benchmarks.jobs import finished
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model import NS_PER_SECOND

CHECKPOINT = "1s"
SECONDS = 6.0
"""Length of each run's events."""
TIMES, QUICK_TIMES = 12, 1
QUICK = ("join", "two", "again", "silence", "disk")
FAULT_S = (2.5, 3.5)
"""When the fault comes, after the first commit: there is a checkpoint by then."""
BEGIN_S, END_S, GONE_S = 20.0, 60.0, 5.0
DEADLINE = "1s"
KILLS = ("source", "join", "sink", "two")


@dataclass
class Outcome:
    """What one fault has shown.

    Attributes:
        fault: its kind.
        gap_s: longest time between two commits from the fault on; None without two.
        recoveries: how often the job went back.
        problems: what must not be, a line each.
    """

    fault: str
    gap_s: float | None = None
    recoveries: int = 0
    problems: list[str] = field(default_factory=list)


def run(options: Options) -> Result:
    """Inject each fault so often, each in a job of its own."""
    times, names = (QUICK_TIMES, QUICK) if options.quick else (TIMES, tuple(FAULTS))
    trials = [(name, n) for n in range(times) for name in names]
    trials.sort(key=lambda trial: FAULTS[trial[0]].nodes)  # one process has one cluster at a time
    outcomes: list[Outcome] = []
    away: list[str] = []
    with tempfile.TemporaryDirectory(prefix="recovery-") as name:
        folder = Path(name)
        write_inputs(folder, seconds=SECONDS, seed=options.seed)
        with _Nodes() as nodes:
            expected = _expected(nodes.get(), folder)
            for fault, n in counted(trials, of=len(trials), what="faults"):
                rng = random.Random(f"{options.seed} {fault} {n}")  # noqa: S311 chance
                try:
                    own = folder / f"{fault}-{n}"
                    outcomes.append(
                        _outcome(nodes.get(FAULTS[fault].nodes), folder, own, fault, rng, expected)
                    )
                except NotHereError as problem:
                    away.append(str(problem))
        left = _left_over()
    return _result(outcomes, away, left)


class _Nodes(ExitStack):
    """The nodes of all jobs, and new ones for each fault that ends some."""

    def get(self, own: int = 0) -> sw.Cluster:
        """Return nodes: as many of its own for a fault that ends some, else those of before."""
        if own or not hasattr(self, "_cluster"):
            self.close()
            self._cluster = self.enter_context(sw.Cluster.local(nodes=own or 3))
        return self._cluster


def _expected(cluster: sw.Cluster, folder: Path) -> Rows:
    """Return the rows of a run without faults, as many as offline."""
    path = folder / "expected.db"
    finished(cluster.submit(flow_of(folder, TableOutput(str(path)), speed=None), placement=PLACES))
    rows, offline = rows_of(path), pairs_offline(folder)
    check(len(rows) == offline, f"{len(rows):,} rows without a fault, and {offline:,} offline")
    return rows


def _outcome(
    cluster: sw.Cluster, inputs: Path, own: Path, name: str, rng: random.Random, expected: Rows
) -> Outcome:
    fault, outcome = FAULTS[name], Outcome(name)
    own.mkdir()
    path = own / "rows.db"
    with ExitStack() as until_done:
        disk = own / "disk"
        if fault.needs_disk:
            until_done.enter_context(small_disk(disk))
        checkpoints = disk / "checkpoints"
        job = _submitted(cluster, inputs, path, checkpoints, fault)
        until_done.callback(job.close)
        pids = dict(job.workers())
        try:
            if not _until(lambda: len(commits_of(path)) > 0, BEGIN_S):
                outcome.problems.append(f"no row within {BEGIN_S:g} s")
                return outcome
            time.sleep(rng.uniform(*FAULT_S))
            at_s = time.time()
            fault.inject(Scene(job, checkpoints, rng))
            report = job.wait(timeout=END_S)
        except TimeoutError:
            outcome.problems.append(f"the job was still running {END_S:g} s after the fault")
            return outcome
        except SlackwaterError as problem:
            outcome.problems.append(f"the job failed: {str(problem).splitlines()[0]}")
            return outcome
        outcome.recoveries = len(report.recoveries)
        outcome.gap_s = _longest_gap(commits_of(path), at_s)
        outcome.problems += _problems(fault, report, rows_of(path), expected)
        all_pids = {*pids.values(), *job.workers().values()}
        if not _until(lambda: not any(map(psutil.pid_exists, all_pids)), GONE_S):
            outcome.problems.append("a worker is left")
        if fault.needs_disk or checkpoints.exists():
            there = sorted(file.name for file in checkpoints.iterdir())
            outcome.problems += [f"{name} is left in the folder of checkpoints" for name in there]
    return outcome


def _submitted(
    cluster: sw.Cluster, inputs: Path, path: Path, checkpoints: Path, fault: Fault
) -> sw.Job:
    options: dict[str, Any] = {"deadline": DEADLINE} if fault.has_deadline else {}
    return cluster.submit(
        flow_of(inputs, TableOutput(str(path)), **options),
        placement=PLACES,
        checkpoint=CHECKPOINT,
        checkpoint_folder=checkpoints,
        limits=sw.Limits(lost_ns=round(fault.silence_s * NS_PER_SECOND)),
        tuning=sw.Tuning(policy="even split") if fault.has_deadline else None,
    )


def _problems(fault: Fault, report: sw.JobReport, rows: Rows, expected: Rows) -> list[str]:
    problems = []
    if not report.ledger.is_balanced:
        problems.append(f"the ledger does not balance: {report.ledger}")
    if bool(report.recoveries) != fault.goes_back:
        problems.append(f"{len(report.recoveries)} recoveries: {report.recoveries}")
    if [ordinal for ordinal, _ in rows] != [*range(len(rows))]:
        problems.append("an ordinal is missing")
    if fault.has_deadline:
        if sorted(text for _, text in rows) != sorted(text for _, text in expected):
            problems.append(f"{len(rows):,} rows, and {len(expected):,} without a fault")
    elif rows != expected:
        problems.append(f"{len(rows):,} rows, unlike the {len(expected):,} without a fault")
    return problems


def _longest_gap(commits: list[float], at_s: float) -> float | None:
    """Return the longest time between two commits of which the later is after a time."""
    pairs = pairwise(commits)
    return max((later - earlier for earlier, later in pairs if later > at_s), default=None)


def _until(holds: Callable[[], bool], within_s: float) -> bool:
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def _left_over() -> list[str]:
    """Return what the jobs and the nodes have left on the machine."""
    _until(lambda: not psutil.Process().children(recursive=True), GONE_S)
    below = psutil.Process().children(recursive=True)
    sockets = Path(tempfile.gettempdir()).glob("sw-*/channel")
    return [f"process {own.pid} ({own.name()})" for own in below] + [
        f"socket {path}" for path in sockets
    ]


def _result(outcomes: list[Outcome], away: list[str], left: list[str]) -> Result:
    result = Result(
        f"{len(outcomes)} jobs of {SECONDS:g} s at {RATE:,} events/s, a join in three slots on "
        f"simulated nodes, a checkpoint each {CHECKPOINT}",
        ["fault", "jobs", "longest time between commits, s: median", "most", "went back", "wrong"],
    )
    gaps: dict[str, list[float]] = {}
    for name in FAULTS:
        own = [outcome for outcome in outcomes if outcome.fault == name]
        gaps[name] = [outcome.gap_s for outcome in own if outcome.gap_s is not None]
        median, most = _quantiles(gaps[name], 0.5, 1.0)
        wrong = sum(bool(outcome.problems) for outcome in own)
        back = sum(outcome.recoveries for outcome in own)
        result.rows.append([name, len(own), _shown(median), _shown(most), back, wrong])
    problems = [f"{o.fault}: {problem}" for o in outcomes for problem in o.problems]
    result.figures = {"gaps_s": gaps, "problems": problems, "left": left}
    result.claims = _claims(gaps, outcomes, left)
    result.notes = [*problems, *dict.fromkeys(away), *left]
    result.notes.append(
        "simulated nodes: three Ray nodes share this machine's cores, clock and disk"
    )
    return result


def _claims(
    gaps: Mapping[str, list[float]], outcomes: list[Outcome], left: list[str]
) -> list[Claim]:
    p50, p99 = _quantiles([gap for name in KILLS for gap in gaps[name]], 0.5, 0.99)
    most = {name: _quantiles(own, 1.0)[0] for name, own in gaps.items()}
    wrong = sum(bool(outcome.problems) for outcome in outcomes)
    return [
        Claim("faults that were injected", len(outcomes), ">=", 1),
        Claim("jobs whose output, ledger or machine is not as without a fault", wrong, "<=", 0),
        Claim("processes and sockets that are left", len(left), "<=", 0),
        Claim("kill: time between commits, p50, s", p50, "<=", 1.0),
        Claim("kill: time between commits, p99, s", p99, "<=", 2.0),
        Claim("kill during a recovery: time between commits, most, s", most["again"], "<=", 4.0),
        Claim(
            f"silence, limit {SILENCE_S:g} s: time between commits, most, s",
            most["silence"],
            "<=",
            SILENCE_S + 1.5,
        ),
        Claim("a lost node: time between commits, most, s", most["node"], "<=", 5.0),
        Claim("full disk: time between commits, most, s", most["disk"], "<=", 1.0),
    ]


def _quantiles(values: list[float], *wanted: float) -> list[float | None]:
    if not values:
        return [None for _ in wanted]
    return [float(np.quantile(values, q)) for q in wanted]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
