"""The example of patterns and shedding, on real players."""

from __future__ import annotations

import pytest

import slackwater as sw
from examples import sprints


@pytest.mark.data
def test_each_match_is_a_sprint_and_four_others_that_were_near() -> None:
    job = sw.Simulation(nodes=1).submit(sprints.build(sw.table(sprints.positions(120))))
    report = job.wait()
    assert report.state == "done", report.error
    found = sprints.matches(job.result("found"))
    assert len(found) == 68  # of as many sprints, in the first two minutes
    rows = job.result("found")
    assert set(rows["sprint_player"].to_pylist()) == {sprints.STRIKER}
    assert min(rows["sprint_speed"].to_pylist()) >= 5
