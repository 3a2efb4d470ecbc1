"""Faults of jobs with checkpoints: their output, and their longest silence.

Each fault is in a job of its own (`trial.py`). Simulated nodes serve all faults but a cut link,
which needs hosts (`links.py`).
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import psutil

import slackwater as sw
from benchmarks.engine.recovery.faults import FAULTS, HALT_S, LIMIT_S
from benchmarks.engine.recovery.flow import (
    PLACES,
    RATE,
    Rows,
    TableOutput,
    flow_of,
    pairs_offline,
    rows_of,
    write_inputs,
)
from benchmarks.engine.recovery.links import EXPECTED, outcomes_of_links
from benchmarks.engine.recovery.trial import CHECKPOINT, GONE_S, Outcome, Trials, until
from benchmarks.frame import Claim, NotHereError, Options, Result, check
from benchmarks.jobs import finished

SECONDS = 8.0
"""Length of each run's events."""
QUICK = ("join", "coordinator", "driver", "disk")
KILLS = ("source", "join", "sink", "two", "coordinator", "driver")
"""Kills whose flows write at once; with a tuner, rows are held for a checkpoint."""
LONGEST_MIN = 90.0

Trial = tuple[str, int]
"""(fault, number)."""


def run(options: Options) -> Result:
    """Inject each fault so often, each in a job of its own."""
    names = QUICK if options.quick else tuple(FAULTS)
    times = {name: 1 if options.quick else FAULTS[name].times for name in names}
    trials = [(name, n) for n in range(max(times.values())) for name in names if n < times[name]]
    outcomes: list[Outcome] = []
    away: list[str] = []
    began_s = time.monotonic()
    with _own_temp_folder() as folder:
        write_inputs(folder, seconds=SECONDS, seed=options.seed)
        for outcome in _outcomes(folder, trials, options.seed, away):
            outcomes.append(outcome)
            count = f"{len(outcomes)} of {len(trials)}"
            print(f"{count}: {outcome}", file=sys.stderr, flush=True)
        left = _left_over(folder)
    took_min = (time.monotonic() - began_s) / 60
    return result_of(outcomes, names, away=[*dict.fromkeys(away)], left=left, took_min=took_min)


def _outcomes(
    folder: Path, trials: Sequence[Trial], seed: int, away: list[str]
) -> Iterator[Outcome]:
    """Yield what each trial shows; add to `away` what this machine lacks."""
    simulated = [trial for trial in trials if not FAULTS[trial[0]].on_hosts]
    simulated.sort(key=lambda trial: FAULTS[trial[0]].nodes)  # one cluster at a time
    with _Nodes() as nodes:
        expected = _expected(nodes.get(), folder)
        for name, n in simulated:
            rng = random.Random(_chance(seed, name, n))  # noqa: S311 chance
            try:
                own = Trials(nodes.get(FAULTS[name].nodes), folder, expected)
                yield own.outcome(name, folder / f"{name}-{n}", rng)
            except NotHereError as problem:
                away.append(str(problem))
    for name in dict.fromkeys(name for name, _ in trials if FAULTS[name].on_hosts):
        chances = [_chance(seed, name, n) for fault, n in trials if fault == name]
        try:
            yield from outcomes_of_links(folder, chances, name)
        except NotHereError as problem:
            away.append(str(problem))


def _chance(seed: int, name: str, n: int) -> str:
    return f"{seed} {name} {n}"


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
    path = folder / EXPECTED
    finished(cluster.submit(flow_of(folder, TableOutput(str(path)), speed=None), placement=PLACES))
    rows, offline = rows_of(path), pairs_offline(folder)
    check(len(rows) == offline, f"{len(rows):,} rows without a fault, and {offline:,} offline")
    return rows


@contextmanager
def _own_temp_folder() -> Iterator[Path]:
    """Yield a folder in which all that is temporary lies, also of the nodes and of the jobs."""
    with tempfile.TemporaryDirectory(prefix="rec-") as name:
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = tempfile.tempdir = name
        try:
            yield Path(name)
        finally:
            tempfile.tempdir = None
            del os.environ["TMPDIR"]
            os.environ.update({} if before is None else {"TMPDIR": before})


def _left_over(folder: Path) -> list[str]:
    """Return what the jobs and the nodes have left on the machine."""
    until(lambda: not psutil.Process().children(recursive=True), GONE_S)
    below = psutil.Process().children(recursive=True)
    known = {EXPECTED, "left.parquet", "right.parquet", *FAULTS}
    there = [path.name for path in folder.iterdir() if path.name.split("-")[0] not in known]
    return [f"process {own.pid} ({own.name()})" for own in below] + [
        f"{name} in the folder of temporary files" for name in sorted(there)
    ]


def result_of(
    outcomes: Sequence[Outcome],
    names: Sequence[str],
    *,
    away: Sequence[str],
    left: Sequence[str],
    took_min: float,
) -> Result:
    """Return the table and the claims of a run.

    Args:
        outcomes: results of the trials.
        names: faults that the run was to have.
        away: reasons why some of these could not be here.
        left: things that are left on the machine.
        took_min: length of the run, in minutes.
    """
    injected = sum(outcome.is_injected for outcome in outcomes)
    result = Result(
        f"{injected} faults in {took_min:.0f} min: jobs of {SECONDS:g} s at {RATE:,} events/s, a "
        f"join in three slots, a checkpoint each {CHECKPOINT}, limit of silence {LIMIT_S:g} s",
        ["fault", "times", "longest time between commits, s: median", "most", "went back", "wrong"],
    )
    gaps: dict[str, list[float]] = {}
    for name in names:
        own = [outcome for outcome in outcomes if outcome.fault == name]
        gaps[name] = [o.gap_s - o.held_s for o in own if o.gap_s is not None]
        median, most = _quantiles(gaps[name], 0.5, 1.0)
        times = sum(outcome.is_injected for outcome in own)
        wrong = sum(bool(outcome.problems) for outcome in own)
        back = sum(outcome.recoveries for outcome in own)
        result.rows.append([name, times, _shown(median), _shown(most), back, wrong])
    problems = [f"{o.fault}: {problem}" for o in outcomes for problem in o.problems]
    missed = [f"{o.fault}: no fault came: {o.missed}" for o in outcomes if o.missed]
    result.figures = {"gaps_s": gaps, "problems": problems, "left": [*left]}
    result.claims = [
        Claim("faults that were injected", injected, ">=", max(1, len(outcomes))),
        *_claims(gaps, outcomes),
        Claim("things that are left on the machine or its disk", len(left), "<=", 0),
        Claim("time of the whole, min", took_min, "<=", LONGEST_MIN),
    ]
    result.notes = [
        *problems,
        *missed,
        *away,
        *left,
        "tuner: less the interval of checkpoints, for which the sink holds rows",
        "simulated nodes, and hosts of namespaces, share this machine's cores, clock and disk",
    ]
    return result


def _claims(gaps: Mapping[str, Sequence[float]], outcomes: Sequence[Outcome]) -> list[Claim]:
    """Return the claims on the faults of this run."""
    p50, p99 = _quantiles([gap for name in KILLS for gap in gaps.get(name, ())], 0.5, 0.99)
    cut = f"the limit of {LIMIT_S:g} s"
    claims = [
        Claim("jobs whose output or ledger is not as without a fault", _wrong(outcomes), "<=", 0),
        Claim("kill: longest time between two results, p50, s", p50, "<=", 1.0),
        Claim("kill: the same, p99, s", p99, "<=", 2.0),
    ]
    for name, what, most_s in (
        ("tuner", "kill of the tuner, less the interval for which rows are held", 2.0),
        ("again", "another kill in the recovery", 4.0),
        ("silence", f"silence for twice {cut}", LIMIT_S + 1.5),
        ("link", f"a cut link, {cut}", LIMIT_S + 1.5),
        ("node", "a lost node", 5.0),
    ):
        if name in gaps:
            most = _quantiles(gaps[name], 1.0)[0]
            claims.append(Claim(f"{what}: the same, most, s", most, "<=", most_s))
    for name, what in (("halt", f"SIGSTOP of {HALT_S:g} s"), ("disk", "a full disk")):
        if name in gaps:
            own = [outcome for outcome in outcomes if outcome.fault == name and not outcome.missed]
            ended = sum(outcome.recoveries > 0 or outcome.gap_s is None for outcome in own)
            missing = None if not own else ended
            claims.append(Claim(f"{what}: jobs that go back, or end", missing, "<=", 0))
    return claims


def _wrong(outcomes: Collection[Outcome]) -> int:
    return sum(bool(outcome.problems) for outcome in outcomes)


def _quantiles(values: Sequence[float], *wanted: float) -> list[float | None]:
    if not values:
        return [None for _ in wanted]
    return [float(np.quantile(values, q)) for q in wanted]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
