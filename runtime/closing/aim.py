"""What the chance of a miss is held under: given, or fitted so that a budget is used, not passed.

[probslack] holds it under ε·δ. The share of windows that miss something is another figure: each of
several events may let a window close, each with that chance, and most windows close at a chance
well below it. So the share is above ε·δ where windows are long beside the gaps between events, and
the guard has the last word; or below, and budget is left. Fitted, the bound follows the share.
"""

from __future__ import annotations

from math import exp

from slackwater.runtime.closing.budget import Budget
from slackwater.runtime.model.state import Fields

_STEP = 0.35  # at most by e to that, up or down, at a time
_LEAST_WINDOWS = 16
_LEAST, _MOST = 1e-4, 0.9
_LEAST_BY_SLACK = 1e-6
_FIRST = 0.01  # where slack is bounded: low, for what it costs at first is made up for later
_USED = 0.97  # of the budget: what is left keeps it from being forced
_MARGIN = 0.01  # the same of slack, as a share of it or of a slide


class Aim:
    """The bound of the chance.

    Args:
        share: δ; None where slack is bounded.
        scale: ε; None: fitted, from 1.
        slack_ns: Δ, the mean slack, where misses are not bounded; then the bound is fitted.
        slide_ns: of the windows.

    Attributes:
        bound: what the chance may be, over all types.
        is_fitted: whether it follows the budget.

    Source: [probslack] §3.1, the scaling factor ε, for one that is given. Fitted: ours, and for
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
        self._seen = self._state_of(None)  # of the budget, when it was fitted last

    def fit(self, budget: Budget) -> bool:
        """Follow what windows have come to; return whether the bound is another."""
        now = self._state_of(budget)
        windows, missed, slack_ns, early, denied = (
            new - old for new, old in zip(now, self._seen, strict=True)
        )
        if not self.is_fitted or windows < _LEAST_WINDOWS:
            return False
        if self._share is not None:
            # What the share would be without the guard: of those that it held as many had missed.
            wanted = missed / windows * (1.0 + denied / max(early, 1))
            off = 1.0 - wanted / (_USED * self._share)
        else:
            assert self._slack_ns is not None
            # At the bound itself it is the bound that closes windows, not what is likely.
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
        """Return what the chance of each of so many types may be: 1 − Π (1 − P) is the bound."""
        return float(1.0 - (1.0 - self.bound) ** (1.0 / types))
