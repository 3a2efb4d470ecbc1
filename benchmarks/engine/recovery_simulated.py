"""Jobs that recover from faults in the simulator: each row is decided once.

The runs of a flow are known by a seed and its number. To see them alone:

    python -m benchmarks.engine.recovery_simulated SEED FLOW
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.engine.random_flows.twin import one_of
from benchmarks.engine.replicated_flows import ReplicatedFlow, draw_way, moved_plan
from benchmarks.frame import Claim, Options, Result, counted
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.simulate import (
    Checkpoints,
    CostModel,
    Fault,
    HostFallsSilent,
    LinkModel,
    Replace,
    Simulation,
    SlotDies,
    SlotRaises,
)
from slackwater.runtime.simulate.ordinal_sinks import OrdinalSinks
from slackwater.runtime.tune import Paths
from tests.support.any_flow import AnyHolds, any_flow

FLOWS, QUICK = 1_250, 50
RUNS = 4
"""Runs with faults of each flow, beside one without."""
MS = 1_000_000
MOMENTS = ("work", "mark", "commit", "recovery", "move")
MOST_ROWS = 60

Rows = dict[str, list[str]]


@dataclass(frozen=True)
class Subject:
    """A flow that is to recover.

    Attributes:
        is_repeatable: whether each run gives the same rows in the same order.
    """

    plan: Plan
    seed: int
    is_repeatable: bool
    cost: CostModel
    link: LinkModel

    @classmethod
    def drawn(cls, seed: int, number: int, most_rows: int) -> Subject:
        """Return a flow: each second is of keyed steps that wait, the others of any steps."""
        if number % 2:
            plan = any_flow(1_000 * seed + number)
            plan = replace(plan, limits=replace(plan.limits, most_kept_rows=4_096))
            link = LinkModel(jitter_ns=(1, 20)[number // 2 % 2] * MS)
            return cls(plan, number, False, CostModel(jitter=2.0), link)
        way = draw_way(np.random.default_rng([seed, number, 1]))
        with closing(way.submitted(way.made(ReplicatedFlow(seed, number, most_rows)))) as job:
            return cls(job.plan, way.seed, True, *way.models())

    @property
    def sinks(self) -> list[str]:
        """Names of the sinks."""
        return [stage.name for stage in self.plan.stages if stage.kind == "sink"]

    def run(
        self,
        sinks: OrdinalSinks,
        *,
        faults: tuple[Fault, ...] = (),
        moves: tuple[Replace, ...] = (),
        checkpoints: Checkpoints | None = None,
    ) -> Simulation:
        """Return a run, before its beginning."""
        tuned = Paths.of(FlowGraph.of(self.plan)).tuned
        simulation = Simulation(
            self.plan,
            egress=sinks,
            seed=self.seed,
            cost=self.cost,
            link=self.link,
            policy=AnyHolds(tuned, self.seed) if self.plan.deadline_ns is not None else None,
            faults=faults,
            checkpoints=checkpoints,
        )
        for move in moves:
            simulation.replacing.add(move)
        return simulation


@dataclass
class Tally:
    """Runs with faults, and what came of them."""

    runs: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    strikes: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, seed: int, number: int, *, most_rows: int = MOST_ROWS) -> None:
        """Run one flow without faults, and several times with them."""
        for run, problem in self._problems(seed, number, most_rows):
            again = f"python -m benchmarks.engine.recovery_simulated {seed} {number}, run {run}"
            self.failures.append(f"{again}: {problem}")
            print(self.failures[-1], file=sys.stderr, flush=True)

    def _problems(self, seed: int, number: int, most_rows: int) -> Iterator[tuple[int, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject = Subject.drawn(seed, number, most_rows)
        kind = "same rows" if subject.is_repeatable else "held rows"
        base = OrdinalSinks(subject.sinks)
        elapsed_ns = round(subject.run(base).run().elapsed_s * 1e9)
        for run in range(RUNS):
            self.runs[kind] += 1
            rng = np.random.default_rng([seed, number, run, 7])
            try:
                problem = self._ran(subject, base.rows, elapsed_ns, rng)
            except Exception as error:  # the others are to run
                where = traceback.extract_tb(error.__traceback__)[-1]
                problem = f"{type(error).__name__} in {where.name}: {str(error)[:300]}"
            if problem:
                self.wrong[kind] += 1
                yield run, problem

    def _ran(self, subject: Subject, base: Rows, elapsed_ns: int, rng: np.random.Generator) -> str:
        """Run a flow with faults; return what is wrong with its rows; empty if nothing is."""
        sinks = OrdinalSinks(subject.sinks, says_last=bool(rng.random() < 0.5))
        every_ns = elapsed_ns // int(one_of(rng, [3, 8, 20])) + 1
        moves = [
            Replace(int(rng.integers(elapsed_ns + 1)), moved_plan(subject.plan, rng))
            for _ in range(int(one_of(rng, [0, 0, 2])))
        ]
        simulation = subject.run(
            sinks,
            faults=drawn_faults(subject.plan, moves, elapsed_ns, rng),
            moves=tuple(moves),
            checkpoints=Checkpoints(
                every_ns=every_ns,
                holds=frozenset() if subject.is_repeatable else frozenset(subject.sinks),
                is_repeatable=subject.is_repeatable,
                delay_ns=every_ns // int(one_of(rng, [2, 10])) + 1,
            ),
        )
        report = simulation.run()
        self.strikes.update(simulation.strikes)
        self.counts["recoveries"] += len(report.recoveries)
        again = [a.checkpoint == b.checkpoint for a, b in _pairs(report)]
        self.counts["recoveries in a row from one checkpoint"] += sum(again)
        self.counts["recoveries from the start"] += sum(
            recovery.checkpoint is None for recovery in report.recoveries
        )
        self.counts["checkpoints"] += len(simulation.marks.taken)
        self.counts["rows"] += sum(map(len, sinks.rows.values()))
        self.counts["rows that came again"] += sinks.again + sum(
            sink.came_again for sink in report.sinks
        )
        return fault_of(subject, report, sinks, base)


def _pairs(report: JobReport) -> Iterator[tuple[Any, Any]]:
    return zip(report.recoveries, report.recoveries[1:], strict=False)


def drawn_faults(
    plan: Plan, moves: list[Replace], elapsed_ns: int, rng: np.random.Generator
) -> tuple[Fault, ...]:
    """Return one to three faults: at any time, at once after another, or in a move."""
    faults: list[Fault] = []
    for text in "abc"[: int(rng.integers(1, 4))]:
        at_ns = int(rng.integers(elapsed_ns + 1))
        if faults and rng.random() < 0.6:
            at_ns = faults[-1].at_ns + int(rng.integers(300 * MS))
        elif moves and rng.random() < 0.5:
            at_ns = moves[0].at_ns + int(rng.integers(50 * MS))
        slot = one_of(rng, plan.slot_names)
        kind = rng.random()
        if kind < 0.5:
            faults.append(SlotRaises(at_ns=at_ns, slot=slot, said=f"fault {text}"))
        elif kind < 0.9:
            faults.append(SlotDies(at_ns=at_ns, slot=slot, reason=f"fault {text}"))
        else:
            faults.append(HostFallsSilent(at_ns=at_ns, node=slot))
    return tuple(faults)


def fault_of(subject: Subject, report: JobReport, sinks: OrdinalSinks, base: Rows) -> str:
    """Return what is wrong with a run that recovered; empty if nothing is.

    Rows that come twice with other content, or with one missing before them, are refused by the
    sinks; then the job has failed.
    """
    if report.state != "done" or (wrong := imbalances(report)):
        return f"state {report.state}: {report.error or wrong}"
    if sinks.ended != set(subject.sinks):
        return f"ended: {sorted(sinks.ended)}"
    for sink in report.sinks:
        rows = len(sinks.rows[sink.name])
        if rows != sink.rows:
            return f"sink {sink.name!r} has {rows:,} rows, and was given {sink.rows:,}"
    if subject.is_repeatable and sinks.rows != base:
        unlike = [sink for sink, rows in sinks.rows.items() if rows != base[sink]]
        return f"other rows than without faults at {unlike}"
    return ""


def run(options: Options) -> Result:
    """Let jobs of random flows fail in the simulator, and compare what their sinks have."""
    flows, tally = QUICK if options.quick else FLOWS, Tally()
    for number in counted(range(flows), of=flows, what="flows"):
        tally.add(options.seed, number)
    return result_of(tally, flows, options.seed)


def result_of(tally: Tally, flows: int, seed: int) -> Result:
    """Return the result: wrong runs by kind of flow, and faults by their moment."""
    result = Result(
        f"flows 0 to {flows - 1} of seed {seed}, {RUNS} runs each: one to three faults, moves, "
        "checkpoints 3 to 20 times a run; flows of even numbers wait for promises and write at "
        "once, others have slack, deadlines or close=, and hold rows",
        ["run or fault", "number", "wrong"],
    )
    for kind, runs in tally.runs.items():
        result.rows.append([kind, runs, tally.wrong[kind]])
        result.claims.append(Claim(f"{kind}: runs with a wrong row", tally.wrong[kind], "<=", 0))
    for moment in MOMENTS:
        result.rows.append([f"faults at {moment}", tally.strikes[moment], ""])
        result.claims.append(Claim(f"faults at {moment}", tally.strikes[moment], ">=", 1))
    result.rows += [[name, number, ""] for name, number in tally.counts.items()]
    result.claims.append(
        Claim("rows that came again", tally.counts["rows that came again"], ">=", 1)
    )
    result.notes += tally.failures
    result.figures = {
        "seed": seed,
        "runs": dict(tally.runs),
        "wrong": dict(tally.wrong),
        "strikes": dict(tally.strikes),
        "counts": dict(tally.counts),
    }
    return result


def main(arguments: list[str]) -> int:
    """Run the runs of one flow; return the exit code."""
    seed, number = map(int, arguments[:2])
    tally = Tally()
    tally.add(seed, number)
    print("\n".join(tally.failures) or "each row is decided once")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
