"""A change of the stream, which [espice] leaves open: matches are of other events.

Hits of the model and those since are compared by type and part of the window, by a χ² of two
samples. Hits are not independent draws: those of a match come together, and windows overlap. So χ²
over its degrees of freedom is not 1 without a change, but it is about the same each time. What
counts is how far it is above its own mean, or above 1 if that is less. As a normal deviate that is
summed up (Page's CUSUM), so a small shift shows after some turns, a large one at once.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.table import UtilityTable

PARTS = 8
"""So many parts of a window are told apart."""
_LEAST_HITS = 5.0  # expected hits of a type in a part; smaller cells are put together
_LEAST_TURNS = 3  # turns before the mean is used
_MOST_FREEDOM = 8  # hits of a match are not independent, so they count as few
_SLACK, _LIMIT = 1.0, 5.0  # deviates: each must be above the slack, and their sum above the limit
_MOST = 8.0  # the most that one turn adds
_FEW, _ENOUGH = 0.1, 50.0  # with so few hits where so many were expected, the type has ended


class ChangeTest:
    """A test compares χ² of each turn with the mean of those before.

    Attributes:
        statistic: χ² over its degrees of freedom, of the last turn; 0: nothing to compare.

    Source: [espice] §3.6 leaves it to future work. Page, *Continuous inspection schemes*, 1954.
    """

    STATE = Fields("statistic", "_turns", "_sum", "_above")

    def __init__(self) -> None:
        self.statistic = 0.0
        self._turns = 0
        self._sum = 0.0
        self._above = 0.0

    def is_another(self, table: UtilityTable) -> bool:
        """Return whether hits since the last turn are of another stream; if so, start over."""
        windows = table.windows()
        if not min(windows):
            return False
        old, new = table.hits_by_type(PARTS)
        wanted = float(old.sum()) * windows[1] / windows[0]
        has_ended = wanted >= _ENOUGH and float(new.sum()) < _FEW * wanted
        compared = chi_square(old, new)
        if compared is not None:
            statistic, freedom = compared
            self.statistic = statistic
            if self._turns >= _LEAST_TURNS:
                mean = max(self._sum / self._turns, 1.0)
                off = min(_deviate(statistic / mean, freedom), _MOST)
                self._above = max(self._above + off - _SLACK, 0.0)
        if has_ended or self._above > _LIMIT:
            self._turns, self._sum, self._above = 0, 0.0, 0.0
            return True
        if compared is not None:
            self._turns, self._sum = self._turns + 1, self._sum + self.statistic
        return False


def _deviate(share: float, freedom: int) -> float:
    # By Wilson and Hilferty.
    spread = 2.0 / (9.0 * min(freedom, _MOST_FREEDOM))
    return float((np.cbrt(share) - (1.0 - spread)) / np.sqrt(spread))


def chi_square(first: FloatArray, second: FloatArray) -> tuple[float, int] | None:
    """Return χ² of two samples over its degrees of freedom, and these.

    None if there are too few to compare.

    Args:
        first: counts of the first.
        second: counts, of the same shape.
    """
    a, b = first.ravel(), second.ravel()
    together = a + b
    total = float(together.sum())
    if not total:
        return None
    least = min(float(a.sum()), float(b.sum())) / total
    rare = together * least < _LEAST_HITS
    a, b = (np.append(counts[~rare], counts[rare].sum()) for counts in (a, b))
    together = a + b
    a, b, together = a[together > 0], b[together > 0], together[together > 0]
    if len(together) < 2 or min(float(a.sum()), float(b.sum())) == 0:
        return None
    by = np.sqrt(float(b.sum()) / float(a.sum()))
    freedom = len(together) - 1
    return float(((by * a - b / by) ** 2 / together).sum() / freedom), freedom
