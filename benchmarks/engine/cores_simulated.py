"""The joins of `cores` on up to 64 slots of a node, in the simulator, with measured costs.

A flow for n slots has partitions, n replicas and a sink without order (`cores_work.py`); on one
slot everything is in it, without any of these. All have the same rows.

```
slice     its own costs (`cores_costs.py`), each frame and row that it sends
          each frame and row that came to its slot since the last slice there
```

No result of it was timed.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.engine.cores_costs import Cost, Costs, SliceCosts, Wire, counted
from benchmarks.engine.cores_work import DENSE, FAR, Work
from benchmarks.frame import Claim, Result, check
from benchmarks.jobs import finished
from slackwater.runtime.schedule import Send, Slice

TARGETS = {DENSE: {8: 0.65, 64: 0.5}, FAR: {8: 0.9, 64: 0.8}}
"""{work: {slots: part of linear}}"""
WORTH_TELLING = 0.05  # of the time
SINK = "out"


@dataclass
class Spent:
    """Time that a slot has spent, by what for, ns; and frames that it has not read yet."""

    by_cause: dict[str, float] = field(default_factory=dict)
    frames: int = 0
    frame_rows: int = 0

    def add(self, cause: str, took_ns: float) -> float:
        """Note a part of a slice's time; return it."""
        self.by_cause[cause] = self.by_cause.get(cause, 0.0) + took_ns
        return took_ns


@dataclass(frozen=True, kw_only=True)
class WiredCosts(sw.testing.CostModel):
    """Costs of slices, and of both ends of channels between slots.

    Attributes:
        slots: slot of each stage, {stage: slot}.
        names: step of each stage, {stage: step}.
        writers: number of channels that come to each stage, {stage: number}.
        steps: costs of each step.
        written_ns: cost of a row that is written.
        wire: costs of frames and their rows.
        spent: {slot: what it has spent}.
    """

    slots: Mapping[str, str]
    names: Mapping[str, str]
    writers: Mapping[str, int]
    steps: Mapping[str, SliceCosts]
    written_ns: float = 0.0
    wire: Wire = field(default_factory=lambda: Wire(Cost(0, 0), Cost(0, 0)))
    spent: dict[str, Spent] = field(default_factory=dict)

    def slice_ns(self, done: Slice, rng: np.random.Generator, *, now_ns: int = 0) -> int:
        """Return the virtual time of a slice with its frames."""
        del rng, now_ns
        if done.has_read:  # what it costs is in the slice that hands the rows over
            return 0
        step, own = self.names[done.stage], self._spent(self.slots[done.stage])
        received, sent = self.wire.received, self.wire.sent
        counts = counted(done, own.frames, self.writers[done.stage])
        took_ns = own.add(step, self.steps[step].of(counts))
        if step == SINK:
            took_ns += own.add(step, done.rows * self.written_ns)
        took_ns += own.add("receiving", _ends_ns(received, own.frames, own.frame_rows))
        own.frames = own.frame_rows = 0
        for action in done.actions:
            if isinstance(action, Send):
                rows, other = action.message.rows, self._spent(self.slots[action.channel.target])
                took_ns += own.add("sending", _ends_ns(sent, 1, rows))
                other.frames += 1
                other.frame_rows += rows
        return max(1, round(took_ns))

    def _spent(self, slot: str) -> Spent:
        return self.spent.setdefault(slot, Spent())


def _ends_ns(cost: Cost, frames: int, rows: int) -> float:
    return frames * cost.per_frame_ns + rows * cost.per_row_ns


def report_simulated(
    result: Result, work: Work, costs: Costs, folder: Path, *, slots: tuple[int, ...]
) -> None:
    """Simulate a flow on each number of slots; say its part of linear, and what limits it."""
    rates: dict[int, float] = {}
    figures = {}
    for number in slots:
        report, spent = simulated(work, number, costs, folder / f"{work.name} {number}")
        rates[number] = work.events / report.elapsed_s / 1e6
        times = rates[number] / rates[slots[0]]
        limit = _limit(report, spent)
        told = f"{times / number:.0%} of linear; {limit}"
        result.rows.append([work.name, number, "simulated", rates[number], times, told])
        figures[str(number)] = {
            "million_per_s": rates[number],
            "times_one_slot": times,
            "part_of_linear": times / number,
            "limit": limit,
            "cpu_ns_an_event": {
                cause: ns / work.events for cause, ns in sorted(_sums(spent).items())
            },
        }
        if (bound := TARGETS.get(work.name, {}).get(number)) is not None:
            what = f"{work.name}, simulated, {number} slots: part of linear"
            result.claims.append(Claim(what, times / number, ">=", bound))
    result.figures[f"{work.name}, simulated"] = figures


def simulated(
    work: Work, slots: int, costs: Costs, results: Path
) -> tuple[sw.JobReport, dict[str, Spent]]:
    """Run a flow in virtual time on some slots; its results go to a new folder.

    Returns:
        The report, and {slot: what it has spent}.
    """
    assert work.spread is not None, "it is one of the joins"
    flow = work.spread(slots, results)
    plan = sw.Simulation(nodes=1, cores=slots).plan(flow)
    model = WiredCosts(
        slots=plan.slots,
        names={stage.name: stage.subject.step for stage in plan.stages},
        writers={stage.name: len(stage.inputs) for stage in plan.stages},
        steps=costs.steps[slots],
        written_ns=costs.written_ns,
        wire=costs.wire,
    )
    check(set(plan.slots.values()) == set(plan.slot_names), f"{work.name}: a slot has no stage")
    gc.disable()  # it would look at all rows again and again
    try:
        with sw.Simulation(nodes=1, cores=slots, seed=1, cost=model) as host:
            report = finished(host.submit(flow))
    finally:
        gc.enable()
    work.verify(pq.read_table(results))
    return report, model.spent


def _sums(spent: Mapping[str, Spent]) -> dict[str, float]:
    """Return the time of all slots, by what for."""
    sums: dict[str, float] = {}
    for own in spent.values():
        for cause, took_ns in own.by_cause.items():
            sums[cause] = sums.get(cause, 0.0) + took_ns
    return sums


def _limit(report: sw.JobReport, spent: Mapping[str, Spent]) -> str:
    """Return what the busiest slot was busy with, as shares of the run's time; and the mean."""
    elapsed_ns = report.elapsed_s * 1e9
    slot = max(spent, key=lambda name: sum(spent[name].by_cause.values()))
    told = [
        f"{cause} {took_ns / elapsed_ns:.0%}"
        for cause, took_ns in sorted(spent[slot].by_cause.items(), key=lambda one: -one[1])
        if took_ns >= WORTH_TELLING * elapsed_ns
    ]
    mean = sum(_sums(spent).values()) / len(spent) / elapsed_ns
    return f"{slot} busy with {', '.join(told)}; all slots {mean:.0%} busy"
