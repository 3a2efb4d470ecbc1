"""Whole flows at random, in the simulator and on local nodes, beside pandas and DuckDB.

A flow is known by a seed and a number. To see one alone, with its graph:

    python -m benchmarks.engine.flows_at_random SEED NUMBER [--ray]
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import slackwater as sw
from benchmarks.engine.random_flows import DRAWN, DrawnFlow, differences, draw_flow
from benchmarks.frame import Claim, Options, Result, counted

FLOWS, ON_RAY, QUICK = 2_000, 50, (120, 8)
NODES = 3
TIMEOUT_S = 120.0
Submit = Callable[[DrawnFlow], "sw.Job | sw.testing.SimulatedJob"]


@dataclass
class Tally:
    """What became of some flows."""

    flows: int = 0
    rows: int = 0
    errors: int = 0
    different: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, drawn: DrawnFlow, found: list[str], *, is_error: bool) -> None:
        """Count a run."""
        self.flows += 1
        self.rows += sum(len(twin.rows) for twin in drawn.answers.values())
        self.errors += is_error
        self.different += bool(found) and not is_error
        self.steps.update(type(step).__name__ for step in drawn.flow.steps.values())
        self.kinds.update(drawn.kinds)


def run(options: Options) -> Result:
    """Run the first so many flows of a seed in the simulator, and the first of them on Ray."""
    flows, on_ray = QUICK if options.quick else (FLOWS, ON_RAY)
    began_s = time.monotonic()
    simulated = tally(options.seed, range(flows), lambda drawn: drawn.simulated(), how="")
    simulated_s = time.monotonic() - began_s
    with sw.Cluster.local(NODES) as cluster:
        began_s = time.monotonic()
        on_nodes = tally(
            options.seed, range(on_ray), lambda drawn: cluster.submit(drawn.flow), how=" --ray"
        )
        on_nodes_s = time.monotonic() - began_s
    result = Result(
        f"flows 0 to {flows - 1} of the seed in the simulator, 0 to {on_ray - 1} on "
        f"{NODES} local nodes, all by one cluster; ready-only, up to 150 rows a source",
        ["where", "flows", "rows of all sinks", "errors", "different", "s"],
    )
    for where, one, took_s in (
        ("simulator", simulated, simulated_s),
        ("Ray", on_nodes, on_nodes_s),
    ):
        result.rows.append([where, one.flows, one.rows, one.errors, one.different, took_s])
        result.figures[where] = {
            "flows": one.flows,
            "rows": one.rows,
            "errors": one.errors,
            "different": one.different,
            "steps": dict(sorted(one.steps.items())),
            "kinds": dict(sorted(one.kinds.items())),
        }
        result.claims += [
            Claim(f"{where}: flows", one.flows, ">=", flows if one is simulated else on_ray),
            Claim(f"{where}: errors", one.errors, "<=", 0),
            Claim(f"{where}: flows that differ from pandas and DuckDB", one.different, "<=", 0),
        ]
        result.notes += one.failures
    undrawn = DRAWN.keys() - simulated.kinds.keys()
    result.claims.append(Claim("kinds of steps that were not drawn", len(undrawn), "<=", 0))
    return result


def tally(seed: int, numbers: Sequence[int], submit: Submit, *, how: str) -> Tally:
    """Run flows one after the other, and say of each that fails how to repeat it."""
    tallied = Tally()
    for number in counted(numbers, of=len(numbers), what="flows"):
        drawn = draw_flow(seed, number)
        found, is_error = outcome(drawn, submit)
        tallied.add(drawn, found, is_error=is_error)
        if found:
            again = f"python -m benchmarks.engine.flows_at_random {seed} {number}{how}"
            tallied.failures.append(f"{again}: {'; '.join(found)}")
            print(tallied.failures[-1], file=sys.stderr, flush=True)
    return tallied


def outcome(drawn: DrawnFlow, submit: Submit) -> tuple[list[str], bool]:
    """Return what was wrong with a run, and whether it ended in an error."""
    try:
        job = submit(drawn)
        try:
            report = job.wait(timeout=TIMEOUT_S)
            return differences(drawn, report, job.result), False
        finally:
            job.close()
    except Exception as problem:
        where = traceback.extract_tb(problem.__traceback__)[-1]
        return [f"{type(problem).__name__} in {where.name}: {problem}"], True


def main(arguments: list[str]) -> int:
    """Run one flow alone, its graph first; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine.flows_at_random")
    parser.add_argument("seed", type=int)
    parser.add_argument("number", type=int)
    parser.add_argument("--ray", action="store_true", help="on local nodes")
    given = parser.parse_args(arguments)
    drawn = draw_flow(given.seed, given.number)
    print(drawn.flow.explain())
    if given.ray:
        with sw.Cluster.local(NODES) as cluster:
            found, _ = outcome(drawn, lambda one: cluster.submit(one.flow))
    else:
        print(drawn.settings, drawn.limits)
        found, _ = outcome(drawn, lambda one: one.simulated())
    print("\n".join(found) or "as pandas and DuckDB have it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
