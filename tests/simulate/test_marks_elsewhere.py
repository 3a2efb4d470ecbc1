"""Checkpoints of flows whose stages are in other slots when a run goes on from them."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.checkpoint import SlotPart, part_of_stages
from tests.simulate.test_marks import ALL_SEEDS, had, marked, travelled, went_on
from tests.simulate.test_replacing import READY_ONLY_SEEDS, in_order, moved
from tests.support.any_flow import any_flow


def elsewhere(plan: Plan, number: int, parts: dict[str, SlotPart]) -> dict[str, SlotPart]:
    """Return the parts of a checkpoint for the slots of another placement."""
    parts = travelled(number, parts)
    return {
        slot: part_of_stages(plan.stages_of(slot), parts.values(), slot=slot)
        for slot in plan.slot_names
    }


@pytest.mark.parametrize("seed", READY_ONLY_SEEDS)
def test_a_run_goes_on_in_other_slots_with_the_same_rows(seed: int) -> None:
    plan = any_flow(seed)
    other = moved(plan, Random(seed))  # noqa: S311 - a draw, not a secret
    run, _ = marked(plan, seed)
    for number, parts, again, _ in went_on(other, seed, run, partial(elsewhere, other)):
        whole = {sink: run.results[sink][: had(parts, sink)] + rows for sink, rows in again.items()}
        assert in_order(plan, whole) == in_order(plan, run.results), f"seed {seed}, {number}"


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_every_row_is_counted_in_other_slots(seed: int) -> None:
    plan = any_flow(seed)
    other = moved(plan, Random(~seed))  # noqa: S311 - a draw, not a secret
    run, _ = marked(plan, seed)
    for number, _, _, report in went_on(other, seed, run, partial(elsewhere, other)):
        assert report.ledger.is_balanced, f"seed {seed}, checkpoint {number}: {report.ledger}"
