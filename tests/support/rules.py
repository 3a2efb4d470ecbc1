"""Rules as tests draw them: by one number, as event times are small ones."""

from __future__ import annotations

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject


def rule(slack_ns: int | None, *, hold_ns: int | None = None, in_full: bool = False) -> ReleaseRule:
    """Return the rule of a slack: None is ready-only, -1 on arrival, and neither is in full."""
    if slack_ns is None:
        return ReleaseRule(hold_ns=hold_ns)
    if slack_ns == -1:
        return ReleaseRule("on arrival", hold_ns=hold_ns)
    return ReleaseRule("in full" if in_full else "slack", slack_ns, hold_ns)


def release(
    step: str, slack_ns: int | None, *, hold_ns: int | None = None, in_full: bool = False
) -> SetRelease:
    """Return the command that sets it."""
    return SetRelease(Subject(step), rule(slack_ns, hold_ns=hold_ns, in_full=in_full))
