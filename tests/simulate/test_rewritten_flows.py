"""Whatever rewrites are done to a flow, its sinks get the same rows in the same order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.rewrite.moves import FlowPlan, rewrites_of
from tests.support.filtered_flows import draw_filtered_flow, results_of

MOST_REWRITES = 12


def walked(plan: FlowPlan, seed: int) -> FlowPlan:
    """Return a plan behind rewrites at random."""
    rng = np.random.default_rng(seed)
    for _ in range(MOST_REWRITES):
        found = list(rewrites_of(plan))
        if not found:
            break
        plan = found[int(rng.integers(len(found)))][1]
    return plan


@given(seed=st.integers(0, 1 << 30), walk=st.integers(0, 1 << 30))
def test_rewritten_flows_give_the_same_bytes(seed: int, walk: int) -> None:
    flow = draw_filtered_flow(seed, rows=24)
    plan = walked(FlowPlan(flow.graph), walk)
    try:
        expected = results_of(flow, seed)
    except SlackwaterError:
        return  # a condition that a row is refused by: it may be refused of none, rewritten
    found = results_of(flow.with_steps(plan.graph.steps.values()), walk)
    assert found == expected, plan.rewrites
