"""Keyed flows at random give the same bytes for any replicas; `any-replicas` runs 2,000."""

from __future__ import annotations

from benchmarks.engine.any_replicas import Tally, simulated_problems
from benchmarks.engine.replicated_flows import (
    ONE_SLOT,
    ReplicatedFlow,
    Way,
    difference,
    results_of,
)
from slackwater.runtime.plan.plan import plan_stages

FLOWS = range(1, 17)
"""Not 0, which is resumed, too, and writes files."""


def test_keyed_flows_give_the_same_bytes_for_any_replicas() -> None:
    tally = Tally()
    wrong = {}
    for number in FLOWS:
        flow = ReplicatedFlow(6, number, most_rows=40)
        if found := list(simulated_problems(flow, tally, ways=1)):
            wrong[repr(flow)] = found
    assert not wrong
    assert tally.rows > 10 * len(FLOWS)
    assert tally.runs["restored"] > 0


def test_a_flow_has_the_same_steps_for_any_replicas() -> None:
    flow = ReplicatedFlow(6, 3)
    one, many = flow.made((1,)).flow, flow.made((7,)).flow
    assert list(one.steps) == list(many.steps)
    assert len(plan_stages(one.graph)) < len(plan_stages(many.graph))


def test_gates_with_little_room_are_told_all_promises_of_rows_for_others() -> None:
    """A gate that was not told waited for its source, which had no credit at another."""
    flow = ReplicatedFlow(1, 406)
    little = {"credit_rows": 8, "gate_rows": 8, "source_gap_ns": 5_000_000}
    way = Way(replicas=(2, 1, 3), batch_rows=1, placed=1, limits=little, settings={"seed": 1})
    drawn = way.made(flow)
    found = results_of(drawn, way.submitted(drawn))
    expected = results_of(ONE_SLOT.made(flow), ONE_SLOT.submitted(ONE_SLOT.made(flow)))
    assert difference(found, expected) == ""
