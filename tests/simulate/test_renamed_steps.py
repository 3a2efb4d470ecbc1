"""Checkpoints of flows whose steps have other names and slots when a run goes on from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import pytest

from slackwater.runtime.plan.former_names import FormerNames
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.checkpoint import SlotPart, part_of_stages
from slackwater.runtime.recovery.fingerprint import fingerprint_of, renamed_fingerprint
from tests.simulate.test_marks import SEEDS, had, marked, travelled, went_on
from tests.simulate.test_replacing import READY_ONLY_SEEDS, in_order, moved
from tests.support.any_flow import any_flow

OLD = "formerly-"


def renamings(plan: Plan) -> dict[str, str]:
    """Return {old name: new name} of all steps of a flow."""
    steps = [step.name for stage in plan.stages for step in stage.chain]
    return {OLD + step: step for step in [*(stage.subject.step for stage in plan.stages), *steps]}


def carried(plan: Plan, number: int, parts: dict[str, SlotPart]) -> dict[str, SlotPart]:
    """Return the parts of a checkpoint of the flow with its old names, for the slots of a plan."""
    names, former = FormerNames.of(plan, renamings(plan)), travelled(number, parts).values()
    return {
        slot: part_of_stages(plan.stages_of(slot), former, slot=slot, names=names)
        for slot in plan.slot_names
    }


def texts(plain: Any) -> Iterator[str]:
    """Yield all texts of plain values."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict):
        for key, value in plain.items():
            yield from texts(key)
            yield from texts(value)
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from texts(value)


@pytest.mark.parametrize("seed", SEEDS)
def test_renamed_steps_go_on_in_other_slots_with_each_row_and_no_old_name(seed: int) -> None:
    plan = moved(any_flow(seed), Random(seed))  # noqa: S311 - a draw, not a secret
    run, _ = marked(any_flow(seed, OLD), seed)
    results = {sink.removeprefix(OLD): rows for sink, rows in run.results.items()}
    for number, parts, again, report in went_on(plan, seed, run, partial(carried, plan)):
        assert report.ledger.is_balanced, f"seed {seed}, checkpoint {number}: {report.ledger}"
        old = [text for text in texts(report.to_json()) if OLD in text]
        assert not old, f"seed {seed}, checkpoint {number}"
        if seed in READY_ONLY_SEEDS:
            whole = {
                sink: results[sink][: had(parts, OLD + sink)] + more for sink, more in again.items()
            }
            assert in_order(plan, whole) == in_order(plan, results), f"seed {seed}, {number}"


def test_a_fingerprint_is_the_same_but_for_names() -> None:
    for seed in SEEDS:
        plan = any_flow(seed)
        then = fingerprint_of(any_flow(seed, OLD))
        assert renamed_fingerprint(then, renamings(plan)) == fingerprint_of(plan), f"seed {seed}"
