"""Policy whose types of rows are the values of a column."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.closing.policy import Closing, ClosingRun
from slackwater.runtime.closing.windows import WindowEnds


@dataclass(frozen=True)
class Typed:
    """Policy that takes the values of a column as types.

    Attributes:
        policy: the policy for these types.
        type: the column, of whole numbers or text; the caller of the policy numbers its values.
    """

    policy: Closing
    type: str

    @property
    def text(self) -> str:  # noqa: D102 - see Closing
        return self.policy.text

    def part(self, of: int) -> Typed:  # noqa: D102 - see Closing
        return Typed(self.policy.part(of), self.type)

    def begin(self, windows: WindowEnds) -> ClosingRun:  # noqa: D102 - see Closing
        return self.policy.begin(windows)
