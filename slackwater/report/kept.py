"""Text of how well a deadline was kept, and of slacks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import NS_PER_SECOND, ReleaseRule, format_ns
from slackwater.runtime.plurals import count_of


def policy_words(status: Mapping[str, Any]) -> str:
    """Return a policy's status as text: 'fits 3, seconds (safe rule 30, model 120)'."""
    return ", ".join(
        f"{key} ({policy_words(value)})" if isinstance(value, Mapping) else f"{key} {value}"
        for key, value in status.items()
        if value != {}
    )


def results_kept(report: JobReport) -> str:
    """Return the share of results in time: '99.98 % of 90,000 results in time'."""
    counted = report.results_in_time
    if counted is None or not counted[1]:
        return ""
    in_time, rows = counted
    if in_time == rows:
        return f"all {rows:,} results in time"
    return f"{math.floor(10_000 * in_time / rows) / 100:.2f} % of {rows:,} results in time"


def kept(tuning: TuningReport) -> str:
    """Return how well a deadline was kept: 'kept in 329 of 330 seconds (sltuner)'."""
    is_second = tuning.interval_ns == NS_PER_SECOND
    if not tuning.seconds:
        return f"no {'second' if is_second else 'interval'} is over yet ({tuning.policy})"
    noun = "second" if is_second else "interval"
    length = "" if is_second else f" of {format_ns(tuning.interval_ns)}"
    seconds = count_of(tuning.seconds, noun)
    kept_in = f"kept in {tuning.seconds - tuning.over:,} of {seconds}{length}"
    return f"{kept_in} ({tuning.policy})"


def slack_words(rule: ReleaseRule) -> str:
    """Return a rule's text for a table: its slack, or its hold without one."""
    return rule.text if rule.slack_ns is None else format_ns(rule.slack_ns)
