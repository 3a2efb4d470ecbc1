"""Checkpoints of flows whose stages are in other slots when a run goes on from them.

Flows at random do so in `test_renamed_steps.py`, with other names.
"""

from __future__ import annotations

from functools import partial

import pytest

import slackwater as sw
from slackwater.runtime.placement.key_shares import key_groups_of, with_groups
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.recovery.checkpoint import SlotPart, part_of_stages
from tests.plan.test_division import division_of, flow_of, planned
from tests.simulate.test_marks import had, marked, travelled, went_on

SHORT = sw.Limits(max_slice_rows=4)
"""Limits with so many slices that marks come between them."""


def elsewhere(plan: Plan, number: int, parts: dict[str, SlotPart]) -> dict[str, SlotPart]:
    """Return the parts of a checkpoint for the slots of another placement."""
    parts = travelled(number, parts)
    return {
        slot: part_of_stages(plan.stages_of(slot), parts.values(), slot=slot)
        for slot in plan.slot_names
    }


def sums(placement: dict[str, str]) -> Plan:
    """Sums of a backlog in two replicas, whose key groups follow from placement."""
    flow = sw.Dataflow("sums")
    n = list(range(6_000))
    rows = sw.table({"ts": n, "key": [7 * k % 97 for k in n], "n": n}, batch_rows=100)
    sums = flow.source("rows", rows, event_time="ts", time_unit="ms").aggregate(
        by="key", window=sw.tumbling("500ms"), total=sw.sum("n"), replicas=2, name="sums"
    )
    sums.sink("out", sw.collect_sink())
    with sw.Simulation(nodes=3) as nodes:
        return nodes.plan(flow, placement=placement)


def check_goes_on(plan: Plan, other: Plan) -> None:
    """Check that another plan goes on from each checkpoint of a plan with the same rows."""
    run, _ = marked(plan, 1)
    went_on_from = 0
    for number, parts, again, report in went_on(other, 1, run, partial(elsewhere, other)):
        went_on_from += 1
        rows = run.results["out"][: had(parts, "out")] + again["out"]
        assert rows == run.results["out"], number
        assert report.ledger.is_balanced
    assert went_on_from


def test_replicas_own_the_keys_of_the_checkpoint_in_other_slots() -> None:
    plan = sums({"rows": "node-1", "sums.1": "node-1", "sums.2": "node-2", "out": "node-3"})
    wanted = sums({"*": "node-2"})
    groups = key_groups_of(plan)
    assert groups != key_groups_of(wanted)
    other = with_groups(wanted, groups)
    assert key_groups_of(other) == groups
    assert other.slots == wanted.slots
    check_goes_on(plan, other)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_partitions_and_replicas_go_on_in_another_number_of_slots(nodes: int) -> None:
    plan = planned(flow_of(), 3, SHORT)
    other = planned(flow_of().with_division(division_of(plan)), nodes, SHORT)
    other = with_groups(other, key_groups_of(plan))
    check_goes_on(plan, other)
