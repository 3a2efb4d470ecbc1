"""How long gates wait, as people write it."""

from __future__ import annotations

from enum import Enum

from runtime.model import Duration, duration_ns, format_ns
from runtime.plan.step import ON_ARRIVAL_NS, READY_ONLY, TUNED_NS


class AsFlow(Enum):
    """The type of AS_FLOW."""

    AS_FLOW = "as the flow"


AS_FLOW = AsFlow.AS_FLOW
"""The slack that the flow was made with."""

Slack = Duration | None | AsFlow
"""None: wait until rows are ready. "500ms": at most so long, in event time. "0s": not at all."""


def slack_ns(slack: Duration | None, *, who: str) -> int | None:
    """Return slack in nanoseconds of event time, ON_ARRIVAL_NS for none at all.

    Raises:
        SettingError: not a length of time.
    """
    if slack is None:
        return READY_ONLY
    return duration_ns(slack, what=f"{who}: slack") or ON_ARRIVAL_NS


def slack_text(slack: int | None) -> str:
    """Return what a slack in nanoseconds means, in a few words."""
    if slack is None:
        return "ready-only"
    if slack == TUNED_NS:
        return "slack by the deadline"
    return "on arrival" if slack == ON_ARRIVAL_NS else f"slack {format_ns(slack)}"
