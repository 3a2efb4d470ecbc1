"""The flows of `cores` on up to 64 slots of a node, in the simulator, with costs measured on Ray.

```
slice of a source     slices, rows, each part more, each frame and row that it sends
slice of a replica    frames and rows that came to its slot since; slices, rows, comparisons
```

No result of it was timed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import slackwater as sw
from benchmarks.engine.cores_costs import FEW, Cost, Costs, Wire
from benchmarks.engine.cores_work import DENSE, FAR, Work
from benchmarks.frame import Claim, Result
from benchmarks.jobs import collected
from slackwater.runtime.schedule import Send, Slice

TARGETS = {DENSE: {8: 0.65, 64: 0.5}, FAR: {8: 0.9, 64: 0.8}}
"""{work: {slots: part of linear}}"""
WORTH_TELLING = 0.05  # of the time
ROLES = {"source": "source", "sink": "the sink"}


@dataclass(frozen=True, kw_only=True)
class WiredCosts(sw.testing.CostModel):
    """Costs of work, of dividing, and of both ends of channels between slots.

    Attributes:
        slots: slot of each stage, {stage: slot}.
        wire: costs of frames and their rows.
        merged_ns: {stage: cost of a frame that goes to its gate}, beside that of receiving it.
        due_ns: {slot: cost of frames that it has not read yet}; it pays with its next slice.
    """

    slots: Mapping[str, str] = field(default_factory=dict)
    wire: Wire = field(default_factory=lambda: Wire(Cost(0, 0), Cost(0, 0)))
    merged_ns: Mapping[str, float] = field(default_factory=dict)
    due_ns: dict[str, float] = field(default_factory=dict)

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return the virtual time of a slice with its frames."""
        took_ns: float = super().slice_ns(done, rng, now_ns=now_ns)
        if done.has_read:
            return round(took_ns)
        took_ns += self.due_ns.pop(self.slots[done.stage], 0.0)
        for action in done.actions:
            if isinstance(action, Send):
                rows, target = action.message.rows, self.slots[action.channel.target]
                sent, received = self.wire.sent, self.wire.received
                took_ns += sent.per_slice_ns + rows * sent.per_row_ns
                owed_ns = received.per_slice_ns + rows * received.per_row_ns
                owed_ns += self.merged_ns.get(action.channel.target, 0.0)
                self.due_ns[target] = self.due_ns.get(target, 0.0) + owed_ns
        return round(took_ns)


def report_simulated(result: Result, work: Work, costs: Costs, *, slots: tuple[int, ...]) -> None:
    """Simulate a flow on each number of slots; say its part of linear, and what limits it."""
    rates: dict[int, float] = {}
    figures = {}
    for number in slots:
        report = simulated(work, number, costs)
        rates[number] = work.events / report.elapsed_s / 1e6
        times = rates[number] / rates[1]
        limit = _limit(report)
        told = f"{times / number:.0%} of linear; {limit}"
        result.rows.append([work.name, number, "simulated", rates[number], times, told])
        figures[str(number)] = {
            "million_per_s": rates[number],
            "times_one_slot": times,
            "part_of_linear": times / number,
            "limit": limit,
        }
        if (bound := TARGETS.get(work.name, {}).get(number)) is not None:
            what = f"{work.name}, simulated, {number} slots: part of linear"
            result.claims.append(Claim(what, times / number, ">=", bound))
    result.figures[f"{work.name}, simulated"] = figures


def simulated(work: Work, slots: int, costs: Costs) -> sw.JobReport:
    """Run a flow in virtual time, with as many replicas as slots; in one slot without any."""
    flow = work.build(slots if slots > 1 else None)
    plan = sw.Simulation(nodes=1, cores=slots).plan(flow)
    known = costs.divided if slots > 1 else costs.alone
    of_stages = {stage.name: known[stage.subject.step] for stage in plan.stages}
    further = max(slots - FEW, 0)
    model = WiredCosts(
        stages={name: cost.per_row_ns for name, cost in of_stages.items()},
        slices={
            name: cost.per_slice_ns + further * costs.per_part_ns.get(name, 0.0)
            for name, cost in of_stages.items()
        },
        per_comparison_ns=costs.comparison_ns[slots > 1],
        slots=plan.slots,
        wire=costs.wire,
        merged_ns={"out": costs.merged_ns} if slots > 1 else {},
    )
    with sw.Simulation(nodes=1, cores=slots, seed=1, cost=model) as host:
        report, rows = collected(host.submit(flow))
    work.verify(rows)
    return report


def _limit(report: sw.JobReport) -> str:
    """Return what the busiest slot was busy with, as shares of the run's time."""
    busy: dict[str, dict[str, float]] = {}  # {slot: {what: part of the time}}
    for stage in report.stages:
        own = busy.setdefault(stage.slot, {})
        what = ROLES.get(stage.kind, "replica")
        part = stage.service_ns / 1e9 / report.elapsed_s
        own[what] = own.get(what, 0.0) + part
    slot, parts = max(busy.items(), key=lambda one: sum(one[1].values()))
    told = [
        f"{what} {part:.0%}"
        for what, part in sorted(parts.items(), key=lambda one: -one[1])
        if part >= WORTH_TELLING
    ]
    return f"{slot} busy with {', '.join(told)}"
