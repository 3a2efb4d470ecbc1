"""The example of a policy of one's own."""

from __future__ import annotations

import slackwater as sw
from examples import own_policy


def test_a_policy_of_ones_own_keeps_its_deadline() -> None:
    flow = own_policy.build()
    with sw.Simulation() as nodes:
        report = nodes.submit(flow, tuning=sw.Tuning(policy=own_policy.Leftover)).wait()
    assert report.ledger.is_balanced
    tuning = report.tuning
    assert tuning is not None
    assert (tuning.policy, tuning.over, tuning.errors) == ("leftover", 0, 0)
    assert tuning.gates[0].by == "leftover"
    assert tuning.gates[0].slack_ready > 0
