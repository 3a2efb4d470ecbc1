"""Nexmark on Ray: each query on 1 to 3 replicas, and with a kill of a slot in the middle."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import (
    Case,
    differences,
    read_cases,
    sink_answer,
    there_of,
)
from benchmarks.conformance.kills import OUT, REPLICAS, Kills
from benchmarks.conformance.nexmark import NEXMARK, QUERIES, Streams
from benchmarks.frame import Claim, NotHereError, Options, Result, counted
from examples.real_data import NoRealData, foreign_cases

NODES = 2
SPEEDS = {"bid": 10.0, "auction": 0.03, "person": 0.04}
"""Bids of 25 s, and auctions and persons of 0.1 s, come within 2.5 s."""
KILL_S = (0.0, 1.5)
CHECKPOINT = "200ms"
TIMEOUT_S = 120.0


QUICK = ("rw-q0", "rw-q5", "rw-q8")


def run(options: Options) -> Result:
    """Run each query on 1 to 3 replicas, without a kill and with one.

    QUERIES=<ids> in the environment names some of them, such as `rw-q4 rw-q7`.

    Raises:
        NotHereError: the cases are not where data lies.
    """
    try:
        known = read_cases(foreign_cases())
    except NoRealData as problem:
        raise NotHereError(str(problem)) from None
    wanted = os.environ.get("QUERIES", "").split() or (QUICK if options.quick else [*QUERIES])
    cases = [case for case in known if case.name in QUERIES and case.name in wanted]
    result = Result(
        f"{len(cases)} queries on {NODES} local nodes, with {REPLICAS} replicas, each without a "
        "kill and with one",
        ["query", "runs", "with other rows", "that recovered"],
    )
    wrong = recovered = 0
    with sw.Cluster.local(NODES) as cluster:
        for case in counted(cases, of=len(cases), what="Nexmark on Ray"):
            runs = [*_runs(cluster, case, options.seed)]
            problems = [run.problem for run in runs if run.problem]
            back = sum(run.recoveries > 0 for run in runs)
            result.rows.append([case.name, len(runs), len(problems), back])
            result.notes += problems
            wrong, recovered = wrong + len(problems), recovered + back
    result.claims = [
        Claim("Nexmark on Ray: runs with other rows", wrong, "<=", 0),
        Claim("Nexmark on Ray: runs that recovered", recovered, ">=", len(cases) * len(REPLICAS)),
    ]
    return result


def _runs(cluster: sw.Cluster, case: Case, seed: int) -> Iterator[Kills]:
    """Yield the runs of a query with each number of replicas, without a kill and with one."""
    for replicas in REPLICAS:
        yield _run(cluster, case, replicas, None)
        chance = random.Random(f"{seed} {case.name} {replicas}")  # noqa: S311 - which slot
        yield _run(cluster, case, replicas, chance)


def _run(cluster: sw.Cluster, case: Case, replicas: int, chance: random.Random | None) -> Kills:
    """Run a query; with `chance` a slot is killed while rows come."""
    flow = sw.Dataflow("case")
    paced = {} if chance is None else SPEEDS
    answer = QUERIES[case.name](Streams(flow, case, replicas, paced))
    has_changes = sink_answer(flow, answer, OUT)
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {}
        if chance is not None:
            options = {"checkpoint": CHECKPOINT, "checkpoint_folder": folder}
        with closing(cluster.submit(flow, **options)) as job:
            if chance is not None:
                time.sleep(chance.uniform(*KILL_S))
                slot, process = chance.choice(sorted(job.workers().items()))
                if job.status != "running":
                    return Kills(0, 0, f"{case.name} on {replicas}: {job.status} before the kill")
                os.kill(process, signal.SIGKILL)
            try:
                report = job.wait(timeout=TIMEOUT_S)
            except TimeoutError as problem:
                return Kills(0, 0, f"{case.name} on {replicas} on Ray: {problem}")
            rows = job.result(OUT).to_pylist()
            there = there_of(rows) if has_changes else rows
            own, theirs = differences(there, NEXMARK.answer(case))
    killed = "" if chance is None else f", {slot} killed"
    is_right = report.state == "done" and not own and not theirs
    text = f"{case.name} on {replicas} on Ray{killed}: {report.state}, {own[:3]}, {theirs[:3]}"
    return Kills(len(report.recoveries), 0, "" if is_right else text)
