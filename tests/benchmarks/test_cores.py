"""`cores`: its flows find what NumPy finds, and both ends of a channel are charged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine import cores_costs
from benchmarks.engine.cores_costs import Cost, Costs, Wire, read_costs, save_costs
from benchmarks.engine.cores_simulated import simulated
from benchmarks.engine.cores_work import DENSE, Sizes, Work, works_of
from benchmarks.frame import WrongResultError
from benchmarks.jobs import collected

SMALL = Sizes(100, 150, 20_000)
FREE = Cost(0.0, 1.0)
PLAIN = Costs(
    alone={"bus": Cost(10.0, 1.0), "scats": FREE, "pairs": Cost(50_000.0, 1.0), "out": FREE},
    divided={"bus": Cost(20.0, 2.0), "scats": FREE, "pairs": Cost(50_000.0, 1.0), "out": FREE},
    per_part_ns={"bus": 7.0, "scats": 8.0},
    merged_ns=0.0,
    comparison_ns=(1.0, 2.0),
    wire=Wire(Cost(0.0, 0.0), Cost(0.0, 0.0)),
)


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


@pytest.mark.parametrize(
    "dearer",
    [
        {"wire": Wire(Cost(1e6, 0.0), Cost(0.0, 0.0))},
        {"wire": Wire(Cost(0.0, 0.0), Cost(1e6, 0.0))},
        {"merged_ns": 1e6},
    ],
    ids=["sending", "receiving", "merging"],
)
def test_messages_between_slots_cost_time_at_either_end(
    works: list[Work], dearer: dict[str, object]
) -> None:
    costs = replace(PLAIN, **dearer)  # type: ignore[arg-type]
    assert simulated(works[0], 4, costs).elapsed_s > simulated(works[0], 4, PLAIN).elapsed_s
    assert simulated(works[0], 1, costs).elapsed_s == simulated(works[0], 1, PLAIN).elapsed_s
