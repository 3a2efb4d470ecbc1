"""Nexmark on several replicas, and with a slot that dies in the middle, in the simulator."""

from __future__ import annotations

from typing import NamedTuple

import slackwater as sw
from benchmarks.conformance.cases import Case, differences, results
from benchmarks.conformance.nexmark import NEXMARK, QUERIES, Streams
from slackwater.runtime.simulate import Checkpoints, Simulation, SlotDies
from slackwater.runtime.simulate.ordinal_sinks import OrdinalSinks

REPLICAS = (1, 2, 3)
OUT = "answer"


class Kills(NamedTuple):
    """Runs with a kill, and their problems.

    Attributes:
        recoveries: times that the job went back to a checkpoint, or to its start.
        again: rows that came to the sink again.
        problem: what is wrong with the rows, or "".
    """

    recoveries: int
    again: int
    problem: str


def replicas_problem(case: Case, replicas: int) -> str:
    """Return how the rows of a query differ from its answer on so many replicas; "" if not."""
    make = QUERIES[case.name]
    rows = results(lambda flow: make(Streams(flow, case, replicas)))
    own, theirs = differences(rows, NEXMARK.answer(case))
    return f"{case.name} on {replicas}: {own[:3]}, {theirs[:3]}" if own or theirs else ""


def killed(case: Case, replicas: int) -> Kills:
    """Run a query whose slots die one after the other, in the middle, and compare its rows."""
    flow = sw.Dataflow("case")
    QUERIES[case.name](Streams(flow, case, replicas)).sink(OUT, sw.collect_sink())
    with sw.Simulation(nodes=2) as nodes:
        plan = nodes.plan(flow)
    base, recoveries, again = OrdinalSinks([OUT]), 0, 0
    elapsed_ns = round(Simulation(plan, egress=base).run().elapsed_s * 1e9)
    for slot in plan.slot_names:
        sinks = OrdinalSinks([OUT], says_last=False)
        every_ns = elapsed_ns // 8 + 1
        run = Simulation(
            plan,
            egress=sinks,
            faults=(SlotDies(at_ns=elapsed_ns // 2, slot=slot),),
            checkpoints=Checkpoints(
                every_ns=every_ns, is_repeatable=True, delay_ns=every_ns // 4 + 1
            ),
        )
        report = run.run()
        recoveries, again = recoveries + len(report.recoveries), again + sinks.again
        if report.state != "done" or sinks.rows != base.rows:
            return Kills(
                recoveries, again, f"{case.name} on {replicas}, {slot} killed: {report.state}"
            )
    return Kills(recoveries, again, "")
