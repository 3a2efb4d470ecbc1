"""The congestion flow on the city that it generates when it is given none."""

from __future__ import annotations

import slackwater as sw
from examples import city_congestion


def test_the_city_generates_and_runs_by_itself() -> None:
    flow = city_congestion.build()
    report = sw.Simulation().submit(flow).wait()
    assert report.sinks[0].rows > 0
    assert report.ledger.is_balanced
