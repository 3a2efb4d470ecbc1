"""Checkpoints by a mark: they disturb nothing, and a run goes on from each of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.checkpoint import SlotPart
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.runtime.simulate.host import Simulation
from tests.simulate.test_replacing import MS, READY_ONLY_SEEDS, in_order
from tests.support.any_flow import any_flow

MARKS = 6
SEEDS = (*range(12), *READY_ONLY_SEEDS)

Results = dict[str, list[Any]]


class Marked:
    """A run, its results, and the checkpoints that were taken of it."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.results: Results = {s.name: [] for s in plan.stages if s.kind == "sink"}
        self.simulation = Simulation(
            plan,
            egress=self._egress,
            seed=seed,
            cost=CostModel(jitter=2.0),
            link=LinkModel(jitter_ns=20 * MS),
        )

    def _egress(self, sink: str, batch: Any, is_end: bool) -> None:
        del is_end
        if batch is not None:
            table = pa.table({n: pa.array(c.tolist()) for n, c in batch.columns.items()})
            times = batch.event_time_ns.tolist()
            rows = zip(times, table.to_pylist(), strict=True)
            self.results[sink] += [repr(row) for row in rows]

    def mark_at(self, times_ns: list[int]) -> None:
        for at_ns in times_ns:
            self.simulation.at(at_ns, self._take)

    def _take(self) -> None:
        if not self.simulation.marks.is_under_way:  # else that one would be given up
            self.simulation.marks.take()

    def run(self) -> JobReport:
        return self.simulation.run()


def travelled(number: int, parts: dict[str, SlotPart]) -> dict[str, SlotPart]:
    """Return the parts of a checkpoint as another process would have them."""
    del number
    return pickle.loads(pickle.dumps(parts))  # type: ignore[no-any-return]  # noqa: S301 - our own


def marked(plan: Plan, seed: int) -> tuple[Marked, Results]:
    """Return a run in which checkpoints are taken, and the results of one without."""
    plain = Marked(plan, seed)
    elapsed_ns = int(plain.run().elapsed_s * 1e9)
    chance = Random(seed)  # noqa: S311 - a draw, not a secret
    run = Marked(plan, seed)
    run.mark_at(sorted(chance.randrange(elapsed_ns + 1) for _ in range(MARKS)))
    assert run.run().state == "done", f"seed {seed}"
    return run, plain.results


@pytest.mark.parametrize("seed", SEEDS)
def test_marks_disturb_nothing_and_a_run_goes_on_from_one(seed: int) -> None:
    plan = any_flow(seed)
    run, plain = marked(plan, seed)
    assert in_order(plan, run.results) == in_order(plan, plain), f"seed {seed}"
    assert run.simulation.marks.number, f"seed {seed}"
    for number, parts, again, report in went_on(plan, seed, run):
        assert report.ledger.is_balanced, f"seed {seed}, checkpoint {number}: {report.ledger}"
        if seed in READY_ONLY_SEEDS:
            whole = {
                sink: run.results[sink][: had(parts, sink)] + rows for sink, rows in again.items()
            }
            assert in_order(plan, whole) == in_order(plan, run.results), f"seed {seed}, {number}"


def test_most_runs_complete_a_checkpoint() -> None:
    runs = [marked(any_flow(seed), seed)[0] for seed in SEEDS[::4]]
    assert sum(bool(run.simulation.marks.taken) for run in runs) >= len(runs) // 2


def went_on(
    plan: Plan,
    seed: int,
    run: Marked,
    carried: Callable[[int, dict[str, SlotPart]], dict[str, SlotPart]] = travelled,
) -> Iterator[tuple[int, dict[str, SlotPart], Results, JobReport]]:
    """Yield each second checkpoint, and the results and the report of a run that goes on there."""
    every = [*run.simulation.marks.taken.items()]
    for number, taken in every[seed % 2 :: 2] or every:
        again = Marked(plan, seed + number)
        again.simulation.go_on_from(carried(number, taken.parts), taken.at_ns)
        report = again.run()
        assert report.state == "done", f"seed {seed}, checkpoint {number}"
        yield number, taken.parts, again.results, report


def had(parts: dict[str, SlotPart], sink: str) -> int:
    """Return how many rows a sink had when its slot was cut."""
    meters = [part.results["meters"] for part in parts.values()]
    (meter,) = [own[sink] for own in meters if sink in own]
    rows: int = meter["rows"]
    return rows
