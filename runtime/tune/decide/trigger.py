"""Whether slacks must be set anew: by laxity. Source: [ssg] §5.2.2."""

from __future__ import annotations

from enum import Enum


class Search(Enum):
    """How to search, if at all."""

    NONE = "none"
    RELAX = "relax"
    """Too little laxity, Eq. 9: begin with small slacks, to keep the deadline soon."""
    RAISE = "raise"
    """Much laxity, Eq. 10: begin with the slacks that there are."""


def triggered(
    latency_ns: float, *, deadline_ns: int, alpha: float, slack_ready: float = 0.0
) -> Search:
    """Return what the laxity, deadline − latency, asks for.

    Args:
        latency_ns: the latency to be expected under the slacks that there are.
        deadline_ns: of the flow.
        alpha: in (0, 1); the smaller, the sooner slacks are raised.
        slack_ready: rows that are expected to leave as slack-ready under them.

    Source: [ssg] Eq. 9 and 10. Differs: while rows leave as slack-ready the search begins anew,
    too. Where gates share a deadline the laxity can be small with the slack at the wrong one.
    """
    laxity_ns = deadline_ns - latency_ns
    if laxity_ns <= 0 or slack_ready >= 1:
        return Search.RELAX
    return Search.RAISE if laxity_ns >= alpha * deadline_ns else Search.NONE
