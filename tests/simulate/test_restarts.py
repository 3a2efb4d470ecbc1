"""Any slot, stopped at any step, goes on in a new one as if nothing had happened."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pytest

from runtime.measure import imbalances
from runtime.model import Batch
from runtime.simulate import CostModel, LinkModel, Simulation
from runtime.tune import Paths
from tests.support.any_flow import MS, AnyHolds, any_flow
from tests.support.states import canonical, differences

FLOWS = 60


class Restarting(Simulation):
    """Takes every slot down at some steps; what goes on has come through pickle."""

    restarts: frozenset[int] = frozenset()
    steps = 0

    def _try(self, name: str) -> None:
        self.steps += 1
        if self.steps in self.restarts:
            for one, slot in self._slots.items():
                again = self._new_slot(one)
                again.restore(carried(slot.snapshot()))
                assert differences(slot, again) == []
            self.restart(carried)
        super()._try(name)


def carried(state: dict[str, Any]) -> Any:
    canonical(state)  # nothing but plain values
    return pickle.loads(pickle.dumps(state))  # noqa: S301 - our own bytes


def run(seed: int, restarts: frozenset[int] = frozenset()) -> tuple[int, dict[str, Any]]:
    """Return how many steps a flow took, and all that can be seen of it."""
    plan, limits = any_flow(seed)
    out: list[Any] = []

    def egress(stage: str, batch: Batch | None, is_end: bool) -> None:
        rows = (
            None
            if batch is None
            else canonical([batch.event_time_ns, batch.stimulus_time_ns, batch.columns])
        )
        out.append((stage, rows, is_end, one.now_ns))

    one = Restarting(
        plan,
        egress=egress,
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=20 * MS),
        limits=limits,
        policy=AnyHolds(Paths.of(plan).tuned, seed) if plan.deadline_ns is not None else None,
    )
    one.restarts = restarts
    report = one.run()
    assert imbalances(report) == []
    return one.steps, {
        "out": out,
        "report": report.to_json(),
        "samples": one.samples,
        "settings": one.settings,
    }


@pytest.mark.parametrize("part", range(4))
def test_a_restart_of_all_slots_at_any_step_shows_nowhere(part: int) -> None:
    for seed in range(part, FLOWS, 4):
        steps, whole = run(seed)
        chance = Random(seed)  # noqa: S311 - a draw, not a secret
        restarts = frozenset(chance.randint(1, steps) for _ in range(3))
        _, broken = run(seed, restarts)
        for what in whole:
            assert broken[what] == whole[what], f"{what} of seed {seed}, restarted at {restarts}"
