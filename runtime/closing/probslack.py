"""ProbSlack: what it is told, and what runs by it."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.closing.policy import ClosingRun
from runtime.closing.probslack_run import ProbSlackRun
from runtime.closing.settings import Settings
from runtime.closing.windows import WindowEnds

__all__ = ["ProbSlack"]


@dataclass(frozen=True)
class ProbSlack(Settings):
    """Windows that close when the chance is small enough that something is still to come."""

    def begin(self, windows: WindowEnds) -> ClosingRun:
        """Return what closes these windows."""
        return ProbSlackRun(windows, self)
