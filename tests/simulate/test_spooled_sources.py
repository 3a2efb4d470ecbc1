"""Sources that are read once, in jobs that recover: the spool has what a failure took away."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.simulate import (
    Checkpoints,
    CostModel,
    Fault,
    LinkModel,
    Simulation,
    SlotDies,
    SlotRaises,
)
from slackwater.runtime.simulate.ordinal_sinks import OrdinalSinks
from tests.simulate.test_replacing import MOVES, READY_ONLY_SEEDS, in_order
from tests.simulate.test_replacing import ran as moved
from tests.support.any_flow import MS, any_flow
from tests.support.read_once import spooling

SEEDS = READY_ONLY_SEEDS[::2]


def ran(plan: Plan, seed: int, faults: tuple[Fault, ...] = ()) -> tuple[Simulation, OrdinalSinks]:
    names = [stage.name for stage in plan.stages if stage.kind == "sink"]
    sinks = OrdinalSinks(names)
    simulation = Simulation(
        plan,
        egress=sinks,
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=20 * MS),
        faults=faults,
        checkpoints=Checkpoints(every_ns=150 * MS, is_repeatable=True),
    )
    return simulation, sinks


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_an_input_gave_once_survive_failures(seed: int, tmp_path: Path) -> None:
    expected, rows = ran(any_flow(seed), seed)
    elapsed_ns = round(expected.run().elapsed_s * 1e9)
    plan, _ = spooling(any_flow(seed), tmp_path)
    draw = Random(seed)  # noqa: S311 - a draw, not a secret
    slots = sorted({plan.slots[s.name] for s in plan.stages if s.kind == "source"})
    kinds = (SlotDies, SlotRaises)
    faults = tuple(
        draw.choice(kinds)(at_ns=draw.randrange(elapsed_ns + 1), slot=draw.choice(slots))
        for _ in range(3)
    )
    simulation, had = ran(plan, seed, faults)
    report = simulation.run()
    assert (report.state, imbalances(report)) == ("done", []), f"seed {seed}"
    assert in_order(plan, had.rows) == in_order(plan, rows.rows), (
        f"seed {seed}: {simulation.strikes}"
    )


def test_many_of_these_failures_strike_sources_that_had_read(tmp_path: Path) -> None:
    lost = 0
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        plan, _ = spooling(any_flow(seed), folder)
        slot = next(plan.slots[s.name] for s in plan.stages if s.kind == "source")
        simulation, _ = ran(plan, seed, (SlotDies(at_ns=400 * MS, slot=slot),))
        lost += len(simulation.run().recoveries)
    assert lost >= len(SEEDS) // 2, "else the test above tests nothing"


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_a_source_that_is_read_once_moves_with_its_spool(seed: int, tmp_path: Path) -> None:
    results, before = moved(any_flow(seed), seed=seed)
    plan, _ = spooling(any_flow(seed), tmp_path)
    within_ns = int(before.elapsed_s * 5e8) + 1
    again, report = moved(plan, seed=seed, moves=MOVES, within_ns=within_ns)
    assert report.state == "done", f"seed {seed}"
    assert any(done.problem is None for done in report.replaced), f"seed {seed}: nothing moved"
    assert in_order(plan, again) == in_order(plan, results), f"seed {seed}"
