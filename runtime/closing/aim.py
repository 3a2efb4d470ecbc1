"""Bound of the chance of a miss: given, or fitted to use the budget.

[probslack] holds the chance under ε·δ. The share of windows that miss a row is another figure. Each
of several events may close a window, each with that chance, and most windows close at a chance well
below it. So the share is above ε·δ where windows are long beside the gaps between events, and the
guard decides; or below, and budget is left. A fitted bound follows the share.
"""

from __future__ import annotations

from math import exp

from slackwater.runtime.closing.budget import Budget
from slackwater.runtime.model.state import Fields

_STEP = 0.35  # the bound changes by a factor of at most e^0.35 at a time
_LEAST_WINDOWS = 16
_LEAST, _MOST = 1e-4, 0.9
_LEAST_BY_SLACK = 1e-6
_FIRST = 0.01  # where slack is bounded: low, since slack spent at first is saved later
_USED = 0.97  # share of the budget to use: the rest keeps the guard from deciding
_MARGIN = 0.01  # the part of the slack to leave, as a share of the slack or of a slide


class Aim:
    """Bound of the chance of a miss.

    Args:
        share: δ; None if slack is bounded.
        scale: ε; None if the bound is fitted, from 1.
        slack_ns: Δ, the mean slack; None if misses are bounded. With it the bound is fitted.
        slide_ns: slide of the windows.

    Attributes:
        bound: the largest chance allowed, over all types.
        is_fitted: whether the bound follows the budget.

    Source: [probslack] §3.1, the scaling factor ε, for a given bound. Fitted: ours, and also for
    the dual problem (§3.3), which the paper leaves open.
    """

    STATE = Fields("bound", "_seen")

    def __init__(
        self, share: float | None, scale: float | None, slack_ns: int | None, *, slide_ns: int
    ) -> None:
        self.bound = (_FIRST if share is None else share) * (1.0 if scale is None else scale)
        self._share = share
        self._slack_ns = slack_ns
        self._slide_ns = slide_ns
        self.is_fitted = share is None or scale is None
        self._seen = self._state_of(None)  # counts of the budget at the last fit

    def fit(self, budget: Budget) -> bool:
        """Move the bound by what the budget counted; return whether it changed."""
        now = self._state_of(budget)
        windows, missed, slack_ns, early, denied = (
            new - old for new, old in zip(now, self._seen, strict=True)
        )
        if not self.is_fitted or windows < _LEAST_WINDOWS:
            return False
        if self._share is not None:
            # The share without the guard, if the windows that it held had missed as often.
            wanted = missed / windows * (1.0 + denied / max(early, 1))
            off = 1.0 - wanted / (_USED * self._share)
        else:
            assert self._slack_ns is not None
            # The margin: at the bound itself the bound closes windows, and chances no longer count.
            range_ns = max(self._slack_ns, self._slide_ns)
            wanted_ns = self._slack_ns - _MARGIN * range_ns
            off = (slack_ns / windows - wanted_ns) / (range_ns / 10)
        self._seen = now
        least = _LEAST_BY_SLACK if self._share is None else _LEAST
        bound = min(max(self.bound * exp(_STEP * min(max(off, -1.0), 1.0)), least), _MOST)
        changed, self.bound = bound != self.bound, bound
        return changed

    @staticmethod
    def _state_of(budget: Budget | None) -> list[int]:
        if budget is None:
            return [0] * 5
        return [budget.windows, budget.missed, budget.slack_sum_ns, budget.early, budget.denied]

    def of_each(self, types: int) -> float:
        """Return the bound of each type: all together miss with the chance `bound`."""
        return float(1.0 - (1.0 - self.bound) ** (1.0 / types))
