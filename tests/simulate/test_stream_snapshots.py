"""Two snapshots of a slot: results go on from the stream's alone."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.schedule import Slice
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.runtime.simulate.host import Simulation
from tests.simulate.test_replacing import MS, in_order
from tests.support.any_flow import any_flow

MOST_RESTARTS = 20
SEEDS = (43, 104, 139)
"""Ready-only flows of `any_flow` whose results have rows."""


def stream_alone(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state without its measures, as it travels."""
    own = {name: part for name, part in state.items() if name != "measures"}
    return pickle.loads(pickle.dumps(own))  # noqa: S301 - our own bytes


class Restarted(Simulation):
    """A run whose slots are replaced after some slices, from their streams alone."""

    restarts = 0
    chance: Random | None = None

    def _complete(self, name: str, done: Slice) -> None:
        super()._complete(name, done)
        if self.chance is None or self.restarts == MOST_RESTARTS or self.chance.random() > 0.1:
            return
        self.restart(stream_alone)
        self.restarts += 1


def ran(plan: Plan, seed: int, chance: Random | None) -> tuple[dict[str, list[Any]], Restarted]:
    """Return {sink: the bytes of its columns, by row}, and the run."""
    results: dict[str, list[Any]] = {s.name: [] for s in plan.stages if s.kind == "sink"}

    def egress(sink: str, batch: Any, is_end: bool) -> None:
        del is_end
        if batch is not None:
            table = pa.table({n: pa.array(c.tolist()) for n, c in batch.columns.items()})
            times = batch.event_time_ns.tolist()
            results[sink] += [repr(row) for row in zip(times, table.to_pylist(), strict=True)]

    one = Restarted(
        plan,
        egress=egress,
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=20 * MS),
    )
    one.chance = chance
    one.run()
    return results, one


@pytest.mark.parametrize("seed", SEEDS)
def test_restored_without_measures_the_same_rows_leave(seed: int) -> None:
    plan = any_flow(seed)
    results, _ = ran(plan, seed, None)
    again, one = ran(plan, seed, Random(seed))  # noqa: S311 - a draw, not a secret
    assert one.restarts > 0
    assert any(results.values())
    assert in_order(plan, again) == in_order(plan, results)


def test_ordinals_of_channels_go_on_where_reports_begin_again() -> None:
    plan = any_flow(70)
    _, whole = ran(plan, 1, None)
    _, again = ran(plan, 1, Random(1))  # noqa: S311 - a draw, not a secret
    assert again.restarts > 0

    def ordinals(one: Restarted, which: str) -> dict[str, int]:
        streams = [slot.snapshot()["stream"] for slot in one._slots.values()]
        return {channel: n for stream in streams for channel, n in stream[which].items()}

    sent = ordinals(whole, "sent")
    assert sum(sent.values()) > 0
    assert ordinals(again, "sent") == ordinals(again, "received") == sent
    counted = sum(c.rows_sent for s in again._slots.values() for c in s.channels.values())
    assert counted < sum(sent.values())
