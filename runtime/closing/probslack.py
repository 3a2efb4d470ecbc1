"""ProbSlack: what it is told, and what runs by it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slackwater.runtime.closing.policy import ClosingRun
from slackwater.runtime.closing.probslack_run import ProbSlackRun
from slackwater.runtime.closing.settings import Settings
from slackwater.runtime.closing.windows import WindowEnds

__all__ = ["ProbSlack"]


@dataclass(frozen=True)
class ProbSlack(Settings):
    """Windows that close when the chance is small enough that something is still to come."""

    def part(self, of: int) -> ProbSlack:
        """Return one with its share of the budget: a window misses if it does in any replica."""
        return self if self.miss is None else replace(self, miss=self.miss / of)

    def begin(self, windows: WindowEnds) -> ClosingRun:
        """Return what closes these windows."""
        return ProbSlackRun(windows, self)
