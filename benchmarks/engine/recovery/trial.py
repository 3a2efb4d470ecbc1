"""A trial: a job, a fault, and what the job and its sink show of it.

```
job ─▶ rows in SQLite ─▶ fault ─▶ … ─▶ done      the same rows as without a fault,
                          └─ longest time between two commits ─┘   nothing left on the machine
```
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

import slackwater as sw
from benchmarks.engine.recovery.faults import (
    FAULTS,
    LIMIT_S,
    Fault,
    NoFaultError,
    Scene,
    small_disk,
)
from benchmarks.engine.recovery.flow import (
    PLACES,
    Rows,
    TableOutput,
    commits_of,
    flow_of,
    rows_of,
)
from benchmarks.frame import NotHereError
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model import NS_PER_SECOND
from tests.support.processes import environment_of

CHECKPOINT = "1s"
FAULT_S, HELD_FAULT_S = (2.5, 3.5), (0.0, 1.0)
"""When the fault comes, after the first commit: there is a checkpoint by then. A sink that holds
rows commits none before that."""
BEGIN_S, END_S, GONE_S = 30.0, 90.0, 10.0
LOOK_S = 0.1
DEADLINE = "1s"


@dataclass
class Outcome:
    """Outcome of a fault in a job.

    Attributes:
        fault: kind of the fault.
        is_injected: whether the fault came.
        missed: reason why it did not; empty if it did.
        gap_s: longest time between two commits from the fault on; with a deadline, the one that
            most exceeds `held_s`. None without two.
        held_s: interval of checkpoints between these two, for which the sink of a flow with a
            deadline holds rows; the longest, if it changed.
        recoveries: how often the job went back.
        problems: what must not be, a line each.
    """

    fault: str
    is_injected: bool = False
    missed: str = ""
    gap_s: float | None = None
    held_s: float = 0.0
    recoveries: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        gap = f"no fault, {self.missed}" if self.gap_s is None else f"{self.gap_s:.2f} s"
        held = f", of it {self.held_s:.2f} s held" if self.held_s else ""
        back = f"went back {self.recoveries}"
        return "; ".join([f"{self.fault}: {gap}{held}, {back}", *self.problems])


@dataclass(frozen=True)
class Trials:
    """Trials on the same nodes and inputs.

    Attributes:
        cluster: nodes of the jobs.
        inputs: folder of the inputs.
        expected: rows of a run without faults.
        places: {stage of the flow: its node}.
        sees_processes: whether processes of all nodes are of this process's host.
    """

    cluster: sw.Cluster
    inputs: Path
    expected: Rows
    places: Mapping[str, str] = field(default_factory=lambda: PLACES)
    sees_processes: bool = True

    def outcome(self, name: str, own: Path, rng: random.Random) -> Outcome:
        """Run a job with a fault; files of the job are in a folder of its own.

        Raises:
            NotHereError: this machine cannot have the fault.
        """
        outcome = Outcome(name)
        own.mkdir()
        try:
            with ExitStack() as until_done:
                self._try(outcome, own, rng, until_done)
        except NotHereError:
            raise
        except NoFaultError as problem:
            outcome.missed = str(problem)
        except TimeoutError:
            outcome.problems.append(f"the job was still running {END_S:g} s after the fault")
        except SlackwaterError as problem:
            outcome.problems.append(f"the job failed: {' '.join(str(problem).split())}")
        return outcome

    def _try(self, outcome: Outcome, own: Path, rng: random.Random, until_done: ExitStack) -> None:
        fault, path = FAULTS[outcome.fault], own / "rows.db"
        if fault.needs_disk:
            until_done.enter_context(small_disk(own / "disk"))
        driver = None
        if fault.has_driver:
            driver = until_done.enter_context(_driver(self, own, outcome.fault))
            assert driver.stdout is not None
            job = self.cluster.job(driver.stdout.readline().strip())
        else:
            job = submitted(self.cluster, self.inputs, own, fault, self.places)
        until_done.callback(_end, job)
        pids = dict(job.workers())
        if not until(lambda: len(commits_of(path)) > 0, BEGIN_S):
            outcome.problems.append(f"no row within {BEGIN_S:g} s")
            return
        time.sleep(rng.uniform(*(HELD_FAULT_S if fault.has_deadline else FAULT_S)))
        if job.status != "running":
            raise NoFaultError(f"the job is {job.status} already")
        at_s = time.time()
        fault.inject(Scene(job, checkpoints_in(own), rng, driver))
        outcome.is_injected = True
        with _intervals(job) if fault.has_deadline else nullcontext(()) as intervals:
            report = job.wait(timeout=END_S)
        outcome.recoveries = len(report.recoveries)
        outcome.gap_s, outcome.held_s = longest_gap(commits_of(path), at_s, intervals)
        if outcome.gap_s is None:
            outcome.is_injected, outcome.missed = False, "no result was due after it"
        outcome.problems += _problems(fault, report, rows_of(path), self.expected)
        outcome.problems += _left_by(job, pids if self.sees_processes else {}, own)


def submitted(
    cluster: sw.Cluster, inputs: Path, own: Path, fault: Fault, places: Mapping[str, str]
) -> sw.Job:
    """Submit the job of a trial."""
    options: dict[str, Any] = {"deadline": DEADLINE} if fault.has_deadline else {}
    return cluster.submit(
        flow_of(inputs, TableOutput(str(own / "rows.db")), **options),
        placement=places,
        checkpoint=CHECKPOINT,
        checkpoint_folder=checkpoints_in(own),
        limits=sw.Limits(lost_ns=round(LIMIT_S * NS_PER_SECOND)),
        tuning=sw.Tuning(policy="even split") if fault.has_deadline else None,
        detach=fault.is_detached,
    )


def checkpoints_in(own: Path) -> Path:
    """Return the folder of a trial's checkpoints; a disk of their own would be around it."""
    return own / "disk" / "checkpoints"


@contextmanager
def _driver(trials: Trials, own: Path, fault: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that submits the job of a trial and stays; its first line is the job's id."""
    words = [sys.executable, "-m", "benchmarks.engine.recovery.driver"]
    driver = subprocess.Popen(  # noqa: S603 our own words
        [*words, json.dumps([str(trials.inputs), str(own), fault])],
        env=environment_of(trials.cluster),
        stdout=subprocess.PIPE,
        text=True,
    )
    with driver:
        try:
            yield driver
        finally:
            driver.kill()


def _end(job: sw.Job) -> None:
    with suppress(SlackwaterError):  # what failed is known
        job.stop()


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


def _left_by(job: sw.Job, pids: Mapping[str, int], own: Path) -> Iterator[str]:
    """Yield what a job has left on this machine; without `pids` its processes are not seen."""
    if pids:
        every = {*pids.values(), *job.workers().values()}
        if job.is_detached and (where := job.record.coordinator) is not None:
            every.add(where.pid)
        if not until(lambda: not any(map(psutil.pid_exists, every)), GONE_S):
            yield "a worker is left"
    folder = checkpoints_in(own)
    for name in sorted(os.listdir(folder)) if folder.exists() else ():
        yield f"{name} is left in the folder of checkpoints"


@contextmanager
def _intervals(job: sw.Job) -> Iterator[list[tuple[float, float]]]:
    """Yield the intervals of a job's checkpoints, each with when it was seen.

    The interval gives way to what checkpoints cost, so it is looked at until the block ends.
    """
    seen: list[tuple[float, float]] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(LOOK_S):
            with suppress(SlackwaterError):  # it has ended
                if (known := job.report().checkpoint) is not None:
                    seen.append((time.time(), known.interval_s))

    looks = threading.Thread(target=look, daemon=True)
    looks.start()
    try:
        yield seen
    finally:
        is_over.set()
        looks.join()


def longest_gap(
    commits: list[float], at_s: float, intervals: Sequence[tuple[float, float]] = ()
) -> tuple[float | None, float]:
    """Return the gap between two commits that most exceeds the interval then, and that interval.

    Args:
        commits: times of commits, ascending.
        at_s: time of the fault; the later commit of a gap is after it.
        intervals: (time, interval of checkpoints), ascending; empty if no row is held.
    """
    gaps = []
    for earlier, later in pairwise(commits):
        if later > at_s:
            here = [own for when, own in intervals if earlier <= when <= later]
            before = [own for when, own in intervals if when < earlier][-1:]
            held_s = max((*here, *before), default=0.0)
            gaps.append((later - earlier, held_s))
    return max(gaps, key=lambda gap: gap[0] - gap[1], default=(None, 0.0))


def until(holds: Callable[[], bool], within_s: float) -> bool:
    """Return whether something holds within a time."""
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True
