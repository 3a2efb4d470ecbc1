"""What a report says of windows that closed in time."""

from __future__ import annotations

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.closing.policy import ClosingCounts
from slackwater.runtime.measure.report import JobReport
from tests.simulate.test_closing_flows import closing_flow


def test_misses_are_told_against_the_promise_in_text_and_json() -> None:
    flow = closing_flow(close=sw.closing.probslack(0.3, first_rows=8, ordered=False))
    report = sw.Simulation(nodes=1).submit(flow).wait()
    (closing,) = [stage.closing for stage in report.stages if stage.closing is not None]
    assert closing.promised == 0.3
    assert 0 < closing.missed_share <= 0.3
    again = JobReport.from_json(report.to_json())
    assert [stage.closing for stage in again.stages] == [one.closing for one in report.stages]
    (plain,) = [one["closing"] for one in report.to_json()["stages"] if one["closing"]]
    assert plain["missed_share"] == closing.missed / closing.windows
    assert plain["mean_slack_ns"] == closing.slack_ns / closing.windows
    text = report_text(report)
    assert "Windows that close in" in text
    assert f"{closing.missed_share:.3g}" in text
    assert "at most 0.3" in text


def test_nothing_is_promised_where_nothing_is_and_no_window_has_no_share() -> None:
    none = ClosingCounts(windows=0, early=0, missed=0, slack_ns=0, promised=None)
    assert (none.missed_share, none.mean_slack_ns) == (0.0, 0.0)
