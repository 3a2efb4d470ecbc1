"""Trigger of a search for new slacks, by laxity. Source: [ssg] §5.2.2."""

from __future__ import annotations

from enum import Enum


class Search(Enum):
    """Kind of search, if any."""

    NONE = "none"
    RELAX = "relax"
    """Too little laxity, Eq. 9: begin with small slacks, to keep the deadline again soon."""
    RAISE = "raise"
    """Much laxity, Eq. 10: begin with the current slacks."""


def triggered(
    latency_ns: float, *, deadline_ns: int, alpha: float, slack_ready: float = 0.0
) -> Search:
    """Return the search that the laxity, deadline − latency, requires.

    Args:
        latency_ns: the latency expected under the current slacks.
        deadline_ns: deadline of the flow.
        alpha: α, in (0, 1); the smaller, the sooner slacks are raised.
        slack_ready: rows expected to leave as slack-ready under the current slacks.

    Source: [ssg] Eq. 9 and 10. Differs: a search also begins while rows leave as slack-ready. Where
    gates share a deadline the laxity can be small with the slack at the wrong gate.
    """
    laxity_ns = deadline_ns - latency_ns
    if laxity_ns <= 0 or slack_ready >= 1:
        return Search.RELAX
    return Search.RAISE if laxity_ns >= alpha * deadline_ns else Search.NONE
