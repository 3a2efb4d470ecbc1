"""Keyed steps with any number of replicas, run in any way: one set of bytes.

A flow is known by a seed and a number. To see one alone, with its graph:

    python -m benchmarks.engine.any_replicas SEED NUMBER [--ray]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

import slackwater as sw
from benchmarks.engine.replicated_flows import (
    LEDGER,
    ONE_SLOT,
    UNWRITTEN,
    ReplicatedFlow,
    Results,
    Way,
    difference,
    draw_way,
    loose_difference,
    restored,
    results_of,
    resumed,
)
from benchmarks.frame import Claim, Options, Result, counted

FLOWS, ON_RAY, QUICK = 2_000, 50, (50, 4)
NODES = 3
WAYS = 3
"""Ways of each flow in the simulator, beside one slot with replicas=1."""
PARTS = (2, 5)
"""Sources that share the rows of one."""
RESTORED_EACH, RESUMED_EACH = 4, 20
"""Every 4th flow is restored and moved in mid-run, every 20th dies and is resumed."""

Problem = tuple[str, str]
"""(kind of run, what was wrong)."""


@dataclass
class Tally:
    """Runs and problems of some flows, by kind of run."""

    flows: int = 0
    rows: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(options: Options) -> Result:
    """Run the first flows of a seed in the simulator in several ways, and some on Ray."""
    flows, on_ray = QUICK if options.quick else (FLOWS, ON_RAY)
    tally = Tally()
    began_s = time.monotonic()
    for number in counted(range(flows), of=flows, what="flows"):
        _add(tally, ReplicatedFlow(options.seed, number), simulated_problems)
    simulated_s = time.monotonic() - began_s
    began_s = time.monotonic()
    ray = Tally()
    with sw.Cluster.local(NODES) as cluster:
        for number in counted(range(on_ray), of=on_ray, what="flows on Ray"):
            _add(
                ray, ReplicatedFlow(options.seed, number), lambda f, t: ray_problems(f, t, cluster)
            )
    ray_s = time.monotonic() - began_s
    result = Result(
        f"flows 0 to {flows - 1} of the seed in the simulator in {WAYS} ways each, 0 to "
        f"{on_ray - 1} on {NODES} local nodes; up to 150 rows a source, replicas of 1, 2, 3, 7; "
        f"sources in 1, 2, 5 parts that a merge puts together; every {RESTORED_EACH}th restored "
        f"and moved in mid-run, every {RESUMED_EACH}th ended by a fault and resumed",
        ["run", "runs", "wrong"],
    )
    for one in (tally, ray):
        for kind, runs in one.runs.items():
            result.rows.append([kind, runs, one.wrong[kind]])
            result.claims.append(Claim(f"{kind}: runs that differ", one.wrong[kind], "<=", 0))
        result.notes += one.failures
    result.claims += [
        Claim("flows in the simulator", tally.flows, ">=", flows),
        Claim("flows on Ray", ray.flows, ">=", on_ray),
        Claim("rows of all sinks for each flow", tally.rows / tally.flows, ">=", 50),
    ]
    result.figures = {
        "runs": dict(tally.runs + ray.runs),
        "wrong": dict(tally.wrong + ray.wrong),
        "steps": dict(sorted(tally.steps.items())),
        "rows": tally.rows,
        "s": {"simulator": simulated_s, "Ray": ray_s},
    }
    return result


def _add(
    tally: Tally,
    flow: ReplicatedFlow,
    problems_of: Callable[[ReplicatedFlow, Tally], Iterator[Problem]],
) -> None:
    tally.flows += 1
    tally.steps.update(ONE_SLOT.made(flow).kinds)
    for kind, text in problems_of(flow, tally):
        tally.wrong[kind] += 1
        again = f"python -m benchmarks.engine.any_replicas {flow.seed} {flow.number}"
        tally.failures.append(f"{again}: {kind}: {text}")
        print(tally.failures[-1], file=sys.stderr, flush=True)


def simulated_problems(
    flow: ReplicatedFlow, tally: Tally, *, ways: int = WAYS
) -> Iterator[Problem]:
    """Yield what is wrong with the runs of a flow, each compared with one slot, replicas=1."""
    base: Results = {}

    def ran(kind: str, check: Callable[[], str]) -> Iterator[Problem]:
        tally.runs[kind] += 1
        if text := _outcome(check):
            yield kind, text

    def run_base() -> str:
        base.update(simulated(flow, ONE_SLOT))
        tally.rows += sum(len(rows) - 1 for rows in base.values())
        return ""

    rng = np.random.default_rng([flow.seed, flow.number, 1])
    drawn_ways = [draw_way(rng) for _ in range(ways)]
    yield from ran("replicas=1", run_base)
    if not base:
        return
    for way in drawn_ways:
        yield from ran("any replicas", partial(_beside, flow, way, base))
    yield from ran("replicas not written", lambda: _beside_unwritten(flow, base))
    parts = PARTS[flow.number % len(PARTS)]
    yield from ran(f"{parts} parts", lambda: _in_parts(flow, drawn_ways[0], parts, base))
    if flow.number % RESTORED_EACH == 0:
        yield from ran("restored", lambda: _beside_restored(flow, drawn_ways[0]))
    if flow.number % RESUMED_EACH == 0:
        yield from ran("resumed", lambda: _beside_resumed(flow, drawn_ways))


def ray_problems(flow: ReplicatedFlow, tally: Tally, cluster: sw.Cluster) -> Iterator[Problem]:
    """Yield what is wrong with a run on Ray, compared with one in the simulator."""
    way = draw_way(np.random.default_rng([flow.seed, flow.number, 1]))
    tally.runs["Ray"] += 1

    def check() -> str:
        drawn = way.made(flow)
        job = cluster.submit(drawn.flow, limits=sw.Limits(**way.limits))
        return difference(results_of(drawn, job), simulated(flow, ONE_SLOT))

    if text := _outcome(check):
        yield "Ray", text


def simulated(flow: ReplicatedFlow, way: Way) -> Results:
    """Return the results of a run in the simulator."""
    drawn = way.made(flow)
    return results_of(drawn, way.submitted(drawn))


def _outcome(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as problem:  # the others are to run
        where = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__} in {where.name}: {problem}"


def _beside(flow: ReplicatedFlow, way: Way, base: Results) -> str:
    return difference(simulated(flow, way), base)


def _beside_unwritten(flow: ReplicatedFlow, base: Results) -> str:
    drawn = UNWRITTEN.made(flow)
    found = results_of(drawn, UNWRITTEN.submitted(drawn))
    return loose_difference(found, base, [*drawn.comparable, LEDGER])


def _in_parts(flow: ReplicatedFlow, way: Way, parts: int, base: Results) -> str:
    if " 0 late" not in base[LEDGER][0]:
        return ""  # each part has its own newest row, so other rows are late
    drawn = way.made(flow, parts=parts)
    found = results_of(drawn, replace(way, placed=None).submitted(drawn))
    return loose_difference(found, base, [*drawn.unordered, LEDGER])


def _beside_restored(flow: ReplicatedFlow, way: Way) -> str:
    expected, _ = restored(flow, ONE_SLOT, None)
    found, _ = restored(flow, way, flow.number)
    return difference(found, expected)


def _beside_resumed(flow: ReplicatedFlow, ways: Sequence[Way]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        expected, _ = resumed(flow, [ONE_SLOT], Path(folder) / "at once", flow.number)
        found, _ = resumed(flow, ways, Path(folder) / "resumed", flow.number)
    return difference(found, expected)


def main(arguments: list[str]) -> int:
    """Run one flow alone, its graph first; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine.any_replicas")
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int)
    parser.add_argument("--ray", action="store_true", help="on local nodes")
    given = parser.parse_args(arguments)
    flow = ReplicatedFlow(given.seed, given.number)
    print(ONE_SLOT.made(flow).flow.explain())
    rng = np.random.default_rng([flow.seed, flow.number, 1])
    for _ in range(WAYS):
        print(draw_way(rng))
    tally = Tally()
    if given.ray:
        with sw.Cluster.local(NODES) as cluster:
            _add(tally, flow, lambda one, counts: ray_problems(one, counts, cluster))
    else:
        _add(tally, flow, simulated_problems)
    print("\n".join(tally.failures) or "one set of bytes")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
