"""The example of windows that close in time, on real fixes."""

from __future__ import annotations

import pytest

import slackwater as sw
from examples import buses_in_time
from slackwater.runtime.closing.policy import ClosingCounts


def closed(policy: object, rows: int = 40_000) -> ClosingCounts:
    flow = buses_in_time.build(sw.table(buses_in_time.fixes(rows)), policy)  # type: ignore[arg-type]
    report = sw.Simulation(nodes=1).submit(flow).wait()
    assert report.state == "done", report.error
    (found,) = [stage.closing for stage in report.stages if stage.closing is not None]
    return found


@pytest.mark.data
def test_windows_close_sooner_than_to_be_sure_and_miss_no_more_than_was_promised() -> None:
    sure, in_time = closed(buses_in_time.TO_BE_SURE), closed(buses_in_time.IN_TIME)
    assert sure.missed == 0
    assert in_time.promised == 0.1
    assert in_time.missed_share <= 0.1
    assert in_time.mean_slack_ns < sure.mean_slack_ns - 5e9
