"""Slack of a gate, as users write it."""

from __future__ import annotations

from enum import Enum

from slackwater.runtime.model import ON_ARRIVAL, READY_ONLY, Duration, ReleaseRule, duration_ns


class AsFlow(Enum):
    """The type of AS_FLOW."""

    AS_FLOW = "as the flow"


AS_FLOW = AsFlow.AS_FLOW
"""The slack that the flow was made with."""

Slack = Duration | None | AsFlow
"""The slack of a gate: None until rows are ready; "500ms" at most, in event time; "0s" none."""


def rule_of(slack: Duration | None, *, who: str) -> ReleaseRule:
    """Return the rule of a slack as it is written; "0s" holds nothing.

    Raises:
        SettingError: not a length of time.
    """
    if slack is None:
        return READY_ONLY
    slack_ns = duration_ns(slack, what=f"{who}: slack")
    return ReleaseRule.slack(slack_ns) if slack_ns else ON_ARRIVAL
