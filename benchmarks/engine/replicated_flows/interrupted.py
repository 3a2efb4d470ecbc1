"""Runs that are interrupted: slots restored or moved in mid-run, jobs that die and are resumed."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import slackwater as sw
from benchmarks.engine.replicated_flows.compare import Results, balanced
from benchmarks.engine.replicated_flows.draw import ReplicatedFlow
from benchmarks.engine.replicated_flows.ways import Way
from slackwater.runtime.errors import WorkerDied
from slackwater.runtime.model import Batch
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.schedule import Slice
from slackwater.runtime.simulate import Replace, Simulation

MS = 1_000_000
MOST_RESTARTS, MOVES, DEATHS = 6, 2, 2
PART_ROWS = 20


class _Restored(Simulation):
    """A run whose slots are put away after some slices, and go on as new ones."""

    restarts = 0
    chance: np.random.Generator | None = None

    def _complete(self, name: str, done: Slice) -> None:
        super()._complete(name, done)
        if self.chance is None or self.restarts == MOST_RESTARTS or self.chance.random() > 0.1:
            return
        self.restart(_carried)
        self.restarts += 1


def _carried(state: dict[str, Any]) -> dict[str, Any]:
    carried: dict[str, Any] = pickle.loads(pickle.dumps(state))  # noqa: S301 - our own bytes
    return carried


def restored(flow: ReplicatedFlow, way: Way, seed: int | None) -> tuple[Results, int]:
    """Return the rows of a run, and how often its slots were restored.

    Args:
        flow: the flow.
        way: how it runs.
        seed: draws where slots are restored, and where stages move; None: nowhere.
    """
    drawn = way.made(flow)
    with closing(way.submitted(drawn)) as job:
        plan = job.plan
    found: Results = {sink: [] for sink in drawn.sinks}

    def egress(sink: str, batch: Batch | None, is_end: bool) -> None:
        del is_end
        if batch is not None:
            columns = [batch.event_time_ns, *batch.columns.values()]
            found[sink] += map(repr, zip(*[each.tolist() for each in columns], strict=True))

    cost, link = way.models()
    run = _Restored(plan, egress=egress, seed=way.seed, cost=cost, link=link)
    if seed is not None:
        rng = run.chance = np.random.default_rng(seed)
        for _ in range(MOVES):
            run.replacing.add(Replace(int(rng.integers(200 * MS)), moved_plan(plan, rng)))
    balanced(run.run())
    return found, run.restarts


def moved_plan(plan: Plan, rng: np.random.Generator) -> Plan:
    """Return the plan with each stage in any of five slots."""
    slots = {stage.name: f"node-{rng.integers(1, 6)}" for stage in plan.stages}
    return replace(
        plan, slots=slots, places={one: SlotPlace(one, one, 1) for one in slots.values()}
    )


def resumed(flow: ReplicatedFlow, ways: Sequence[Way], folder: Path, seed: int) -> tuple[Any, int]:
    """Return the lines that all runs together wrote, and how many of the runs died.

    Args:
        flow: the flow.
        ways: how it runs: all but the last die.
        folder: a folder for its output.
        seed: draws when a slot dies.
    """
    rng, deaths = np.random.default_rng(seed), 0
    for number, way in enumerate(ways):
        drawn = way.made(
            flow,
            output=lambda sink: sw.jsonl_sink(folder / sink, rows=PART_ROWS, resume=True),
        )
        faults = []
        if number + 1 < len(ways):
            with closing(way.submitted(drawn)) as job:
                slots = job.plan.slot_names
            at_ns = int(rng.integers(one_of_scales(number)))
            slot = slots[int(rng.integers(len(slots)))]
            faults = [sw.testing.SlotDies(at_ns=at_ns, slot=slot)]
        with closing(way.submitted(drawn, faults=faults)) as job:
            try:
                job.wait()
            except WorkerDied:
                deaths += 1
    written = {sink: _lines(folder / sink) for sink in drawn.sinks}
    return written, deaths


def one_of_scales(number: int) -> int:
    """Return a time by which a run has just begun, or has gone on for long."""
    return (3 * MS, 100 * MS)[number % 2]


def _lines(folder: Path) -> list[str]:
    return [line for part in sorted(folder.glob("*.jsonl")) for line in part.open()]
