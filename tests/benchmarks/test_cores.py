"""`cores`: its flows find what NumPy finds, and both ends of a channel are charged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine import cores_costs
from benchmarks.engine.cores_costs import (
    Cost,
    Costs,
    SliceCosts,
    Wire,
    fitted,
    read_costs,
    save_costs,
    step_costs,
)
from benchmarks.engine.cores_simulated import simulated
from benchmarks.engine.cores_work import DENSE, Sizes, Work, works_of
from benchmarks.frame import WrongResultError
from benchmarks.jobs import collected

SMALL = Sizes(100, 150, 20_000)
STEPS = {
    "bus": SliceCosts(slices=10_000, rows=1),
    "scats": SliceCosts(slices=10_000, rows=1),
    "pairs": SliceCosts(slices=50_000, rows=1, comparisons=1),
    "out": SliceCosts(rows=1),
}
PLAIN = Costs({1: STEPS, 4: STEPS}, 1.0, Wire(Cost(0.0, 0.0), Cost(0.0, 0.0)))


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> list[Work]:
    return works_of(1, SMALL, tmp_path_factory.mktemp("cores") / "rows")


@pytest.mark.parametrize("place", range(4))
def test_each_work_and_its_halves_find_what_numpy_finds(works: list[Work], place: int) -> None:
    work = works[place]
    with sw.Simulation(nodes=1, cores=2) as host:
        tables = [collected(host.submit(work.build(replicas)))[1] for replicas in (None, 1, 2)]
        job = host.submit(work.halves())
        job.wait()
        halves = [job.result(f"out-{n}") for n in (1, 2)]
    for table in tables:
        work.verify(table)
    assert tables[1].equals(tables[2])
    assert min(map(len, halves)) > 0, "a half without results tells nothing"
    both = pa.concat_tables(halves)
    work.verify(both.sort_by("window_start") if "window_start" in both.column_names else both)
    with pytest.raises(WrongResultError):
        work.verify(tables[0].slice(1))


def test_costs_are_read_as_they_were_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores_costs, "KEPT", tmp_path / "costs.json")
    path = save_costs({DENSE: PLAIN}, is_kept=True)
    assert read_costs(path) == {DENSE: PLAIN}


DEARER = {step: own._replace(messages=1e6) for step, own in STEPS.items()}


@pytest.mark.parametrize(
    "dearer",
    [
        {"wire": Wire(Cost(1e6, 0.0), Cost(0.0, 0.0))},
        {"wire": Wire(Cost(0.0, 0.0), Cost(1e6, 0.0))},
        {"steps": {1: DEARER, 4: DEARER}},
    ],
    ids=["sending", "receiving", "queueing"],
)
def test_messages_between_slots_cost_time_at_either_end(
    works: list[Work], tmp_path: Path, dearer: dict[str, Any]
) -> None:
    costs = replace(PLAIN, **dearer)
    for slots in (1, 4):
        plain, _ = simulated(works[0], slots, PLAIN, tmp_path / f"plain {slots}")
        more, _ = simulated(works[0], slots, costs, tmp_path / f"more {slots}")
        assert (more.elapsed_s > plain.elapsed_s) == (slots > 1)


def test_on_many_slots_each_has_a_part_of_both_inputs_a_replica_and_a_writer(
    works: list[Work], tmp_path: Path
) -> None:
    assert works[0].spread is not None
    plan = sw.Simulation(nodes=1, cores=3).plan(works[0].spread(3, tmp_path / "results"))
    for slot in plan.slot_names:
        steps = sorted(stage.subject.step for stage in plan.stages_of(slot))
        assert steps == ["bus", "out", "pairs", "scats"]


def test_costs_of_steps_are_measured_by_the_replay_of_a_slot(works: list[Work]) -> None:
    steps = step_costs(works[0], 3)
    assert steps.keys() == STEPS.keys()
    for step, cost in steps.items():
        assert min(cost) >= 0
        assert cost.of(SliceCosts(1, 1, 1, 100, 3, 3, 3, 100)) > 0, step


def test_costs_are_fitted_to_their_slices_and_none_is_negative() -> None:
    true = SliceCosts(slices=1_000, rows=10, comparisons=2)
    counts = [SliceCosts(slices=1, rows=n, comparisons=n * n) for n in range(1, 20)]
    assert fitted([(own, true.of(own)) for own in counts]) == pytest.approx(true)
    less = [(own, 1_000.0 - own.rows) for own in counts]
    assert min(fitted(less)) >= 0
