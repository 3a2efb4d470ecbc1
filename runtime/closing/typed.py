"""A policy whose types of rows a column tells apart."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.closing.policy import Closing, ClosingRun
from slackwater.runtime.closing.windows import WindowEnds


@dataclass(frozen=True)
class Typed:
    """Another policy, to be told the values of a column as types.

    Attributes:
        policy: which.
        type: the column, of whole numbers or text; who asks the policy numbers its values.
    """

    policy: Closing
    type: str

    @property
    def text(self) -> str:
        """How `explain` says it."""
        return self.policy.text

    def part(self, of: int) -> Typed:
        """Return what each of so many replicas runs."""
        return Typed(self.policy.part(of), self.type)

    def begin(self, windows: WindowEnds) -> ClosingRun:
        """Return what closes these windows."""
        return self.policy.begin(windows)
