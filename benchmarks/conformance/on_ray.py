"""Nexmark on Ray: each query on 1 to 3 replicas, and with a kill of a slot in the middle."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import slackwater as sw
from benchmarks.conformance.cases import Case, differences
from benchmarks.conformance.kills import OUT, REPLICAS, Kills
from benchmarks.conformance.nexmark import NEXMARK, QUERIES, Streams
from benchmarks.frame import counted

NODES = 2
SPEEDS = {"bid": 10.0, "auction": 0.03, "person": 0.04}
"""Bids of 25 s, and auctions and persons of 0.1 s, come within 2.5 s."""
KILL_S = (0.0, 1.5)
CHECKPOINT = "200ms"
TIMEOUT_S = 120.0


def on_ray(cases: Sequence[Case], *, seed: int) -> list[tuple[Kills, Kills]]:
    """Return for each query and number of replicas its runs without a kill, and with one."""
    runs = [(case, replicas) for case in cases for replicas in REPLICAS]
    with sw.Cluster.local(NODES) as cluster:
        return [
            (
                _run(cluster, case, replicas, None),
                _run(cluster, case, replicas, random.Random(f"{seed} {case.name} {replicas}")),  # noqa: S311 - which slot
            )
            for case, replicas in counted(runs, of=len(runs), what="Nexmark on Ray")
        ]


def _run(cluster: sw.Cluster, case: Case, replicas: int, chance: random.Random | None) -> Kills:
    """Run a query; with `chance` a slot is killed while rows come."""
    flow = sw.Dataflow("case")
    paced = {} if chance is None else SPEEDS
    QUERIES[case.name](Streams(flow, case, replicas, paced)).sink(OUT, sw.collect_sink())
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
            report = job.wait(timeout=TIMEOUT_S)
            own, theirs = differences(job.result(OUT).to_pylist(), NEXMARK.answer(case))
    killed = "" if chance is None else f", {slot} killed"
    is_right = report.state == "done" and not own and not theirs
    problem = f"{case.name} on {replicas} on Ray{killed}: {report.state}, {own[:3]}, {theirs[:3]}"
    return Kills(len(report.recoveries), 0, "" if is_right else problem)
