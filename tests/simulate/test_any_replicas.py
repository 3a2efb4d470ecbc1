"""Keyed flows at random give the same bytes for any replicas; `any-replicas` runs 2,000."""

from __future__ import annotations

from benchmarks.engine.any_replicas import Tally, simulated_problems
from benchmarks.engine.replicated_flows import ReplicatedFlow
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
