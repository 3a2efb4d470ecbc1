"""The policy of holds that are known beforehand."""

from __future__ import annotations

from benchmarks.sltuner.floor.planned_slack import PlannedSlack
from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject


def test_planned_holds_come_one_second_ahead() -> None:
    policy = PlannedSlack({0: {Subject("one"): 7}, 2: {Subject("one"): 8, Subject("two"): 9}})
    assert policy.begin() == [SetRelease(Subject("one"), ReleaseRule.hold(7), by="clairvoyant")]
    assert policy.decide(0, {}) == []
    assert [one.rule.hold_ns for one in policy.decide(1, {})] == [8, 9]
