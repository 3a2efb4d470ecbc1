"""Stamped sources in jobs that recover: each row has the time that it had before the failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.checkpoints.spool import SpoolName
from slackwater.actors.slot.spooled import SpooledInput
from slackwater.ingest.stamped import StampedInput
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, Stage, plan_stages
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.simulate import SlotDies
from tests.simulate.test_replacing import in_order
from tests.simulate.test_spooled_sources import ran

NODES = ["node-1", "node-2"]
SEEDS = range(6)


def stamped_flow(seed: int, folder: Path) -> Plan:
    """Two stamped sources, spooled; windows by their times, of replicas, and a join."""
    rng = np.random.default_rng(seed)
    flow = sw.Dataflow("stamped")
    both = []
    for name in ("left", "right"):
        rows = pa.table({"key": rng.integers(0, 3, 300), "value": rng.integers(0, 9, 300)})
        given = sw.stamped(sw.table(rows, batch_rows=3))
        both.append(flow.source(name, given, event_time="read_at"))
    window = sw.cumulative("12ms", "3ms")
    both[0].aggregate(by="key", window=window, n=sw.sum("value"), replicas=2, name="so-far").sink(
        "totals", sw.collect_sink()
    )
    both[0].join(both[1], on="key", within="2ms").sink("pairs", sw.collect_sink())
    stages = plan_stages(flow.graph)
    plan = place(
        flow.name,
        stages,
        NODES,
        placement={stage.name: NODES[n % 2] for n, stage in enumerate(stages)},
    )

    def spooled(stage: Stage) -> Stage:
        step = stage.step
        if not isinstance(step, SourceStep):
            return stage
        given = step.source.input
        assert isinstance(given, StampedInput)
        own = SpooledInput(SpoolName(folder, "f", stage.name), given.simulated(), plan.limits)
        return replace(stage, step=replace(step, source=replace(step.source, input=own)))

    return replace(plan, stages=tuple(map(spooled, plan.stages)))


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_have_the_times_that_they_had_before_failures(seed: int, tmp_path: Path) -> None:
    (tmp_path / "well").mkdir()
    (tmp_path / "ill").mkdir()
    expected, rows = ran(stamped_flow(seed, tmp_path / "well"), seed)
    elapsed_ns = round(expected.run().elapsed_s * 1e9)
    draw = Random(seed)  # noqa: S311 - a draw, not a secret
    faults = tuple(
        SlotDies(at_ns=draw.randrange(elapsed_ns), slot=draw.choice(NODES)) for _ in range(3)
    )
    plan = stamped_flow(seed, tmp_path / "ill")
    simulation, had = ran(plan, seed, faults)
    report = simulation.run()
    assert (report.state, imbalances(report)) == ("done", []), f"seed {seed}"
    assert in_order(plan, had.rows) == in_order(plan, rows.rows), f"seed {seed}: {faults}"
    assert any(rows.rows.values())
    assert report.recoveries, f"seed {seed}: nothing failed"
