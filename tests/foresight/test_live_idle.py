"""Costs of rows, as a slot shows them that is seldom busy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.live import LiveEstimate
from tests.foresight.test_live import COSTS, EXPECTED, GRAPH, estimated_s, fed, second, shifts_of


@pytest.mark.parametrize("rows", [200, 40])
def test_a_slot_that_is_idle_shows_that_rows_cost_less_than_was_predicted(rows: int) -> None:
    """Predicted: behind by a second more each second. Seen: a slot that is busy for a tenth."""
    dear = replace(COSTS.operators[1], cost_s=(2 / rows,))
    graph = QueryGraph(COSTS.sources, (COSTS.operators[0], dear))
    report = fed(
        LiveEstimate(GRAPH, replace(EXPECTED, graph=graph)),
        (second(n, rows=rows, busy_s=0.1) for n in range(80)),
    )
    assert max(estimated_s(report)) < 0.2
    assert ("work", "cost") in shifts_of(report)


def test_an_idle_slot_does_not_show_that_rows_cost_more() -> None:
    """A row in a short slice bears more of its fixed part than one of a backlog will."""
    report = fed(LiveEstimate(GRAPH, EXPECTED), (second(n, rows=20, busy_s=0.4) for n in range(20)))
    assert ("work", "cost") not in shifts_of(report)
