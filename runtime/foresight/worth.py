"""Whether a running flow is better off elsewhere: what a move gains, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.latency_estimate import LatencyEstimate

__all__ = ["MoveWorth", "move_worth"]


@dataclass(frozen=True, kw_only=True)
class MoveWorth:
    """What is predicted of a move.

    Attributes:
        now_s: the worst latency ahead where the stages are; inf: it grows without bound.
        then_s: the same where they would be.
        gap_s: how long the slots concerned stand still for it.
    """

    now_s: float
    then_s: float
    gap_s: float

    @property
    def gain_s(self) -> float:
        """By how much the worst latency is less than it would be; below 0 it is more."""
        if self.then_s == float("inf"):
            return 0.0 if self.now_s == self.then_s else -self.then_s
        return self.now_s - self.then_s

    @property
    def is_worth(self) -> bool:
        """Whether the gain beats the cost: rows that come in the gap wait for its length more."""
        return self.gain_s > self.gap_s


def move_worth(now: LatencyEstimate, then: LatencyEstimate, *, gap_s: float) -> MoveWorth:
    """Return what a move is worth, by estimates for the same arrivals.

    The measure is the worst latency, Mace_WC's own: behind the gap there is at most its length of
    work more in every queue, so no row waits for longer than `then` says and the gap on top. A slot
    that falls behind for ever is worth any gap, if no other one does then; where both do, nothing
    is gained for good. So it is with a gate that holds rows for longer than is looked ahead.

    Args:
        now: as the flow is placed.
        then: as it would be.
        gap_s: how long the slots concerned stand still, >= 0.

    Raises:
        SettingError: gap_s is negative.
    """
    if gap_s < 0:
        raise SettingError(f"gap_s={gap_s:g} is how long slots stand still, and is at least 0")
    return MoveWorth(now_s=now.lasting_worst_s, then_s=then.lasting_worst_s, gap_s=gap_s)
