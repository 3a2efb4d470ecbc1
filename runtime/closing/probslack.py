"""ProbSlack: its settings, and the run that they begin."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slackwater.runtime.closing.policy import ClosingRun
from slackwater.runtime.closing.probslack_run import ProbSlackRun
from slackwater.runtime.closing.settings import Settings
from slackwater.runtime.closing.windows import WindowEnds

__all__ = ["ProbSlack"]


@dataclass(frozen=True)
class ProbSlack(Settings):
    """Policy that closes a window when a further row is unlikely enough."""

    def part(self, of: int) -> ProbSlack:  # noqa: D102 - see Closing
        # A window misses a row if it does in any replica, so each has a share of the budget.
        return self if self.miss is None else replace(self, miss=self.miss / of)

    def of_sources(self, most_disorder_ns: int) -> ProbSlack:
        """Return the policy for sources, each a type, whose disorder is surely no more."""
        in_order = self.ordered is None and not most_disorder_ns
        return replace(self, ordered=True) if in_order else self

    def begin(self, windows: WindowEnds) -> ClosingRun:  # noqa: D102 - see Closing
        return ProbSlackRun(windows, self)
