"""What is known of a type's events: histograms of g and d, and the chance that one is missing.

g is the time from one event of a type to the next, at their source; d is what an event takes from
its source to us. Both are whole ticks of the clock, so nothing is lost by counting them.

```
e_l, the last that came          next event e                     t, now
 |---------- g ------------------|--------- d ---------|          |
 |------------- α = end − e_l ------------)  in the window if g < α
 |------------- β = t − e_l --------------------------------------|  still to come if g + d > β
```
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.closing.policy import FloatArray
from runtime.model import Int64Array

MOST_VALUES = 256
"""Distinct values of g that are kept; beyond, neighbours share a bin, to the safe side."""
_AT_ONCE = 1 << 20  # cells of a table computed at once
_FILLED_AT_ONCE = 64  # so many entries of a line cost no more together than one does
_MOST_KEPT = 1 << 14  # cells of a table that is kept
_FAR_NS = 2**60  # 36 years: longer gaps and delays count as that, so that sums fit in 64 bits
ROUNDING = 1e-9
"""Sums of shares are off by less."""
NEVER_NS = -(2**62)
"""A β at and before which the chance is small enough: there is nothing to wait for."""


class Histograms:
    """The two histograms of one type, or of several together, at one time.

    Args:
        gaps_ns: g, shape (events,), at least one; negative ones count as 0.
        delays_ns: d, shape (events,), at least one; negative ones are as good as others.
        tick_ns: the resolution of both.
        at_most_ns: windows close so long after their end at the latest: what comes later is
            missed in any case, and nothing to wait for. None: without end.

    Source: [probslack] §3.1, *on-line fitting of g and d*, with the counts of Listing 4. Above
    MOST_VALUES distinct g, a bin's lowest decides whether an event is in the window, and its
    highest when it comes, so that a chance is never too small.
    """

    def __init__(
        self,
        gaps_ns: Int64Array,
        delays_ns: Int64Array,
        *,
        tick_ns: int,
        at_most_ns: int | None = None,
    ) -> None:
        values, counts = np.unique(np.clip(gaps_ns, 0, _FAR_NS), return_counts=True)
        self.low_ns = self.high_ns = values  # (bins,), ascending: of each bin of g
        if len(values) > MOST_VALUES:
            bins = np.cumsum(counts) * MOST_VALUES // (counts.sum() + 1)
            starts = np.flatnonzero(np.concatenate([[True], bins[1:] != bins[:-1]]))
            self.low_ns = values[starts]
            self.high_ns = values[np.concatenate([starts[1:] - 1, [len(values) - 1]])]
            counts = np.add.reduceat(counts, starts)
        self.shares: FloatArray = counts / counts.sum()  # (bins,), pdf_g
        delays_ns = np.clip(delays_ns, -_FAR_NS, _FAR_NS)
        self.delays_ns, counts = np.unique(delays_ns, return_counts=True)  # (values,), ascending
        later = counts[::-1].cumsum()[::-1] / counts.sum()
        self._tail: FloatArray = np.concatenate([later, [0.0]])  # P[d > x] by the index of x
        self.tick_ns = tick_ns
        self._at_most_ns = at_most_ns
        self._table: FloatArray | None = None

    @property
    def entries(self) -> int:
        """How many entries both histograms have, as counted in [probslack] Table 1."""
        return len(self.low_ns) + len(self.delays_ns)

    def classes(self, alpha_ns: Int64Array) -> Int64Array:
        """Return for each α how many bins of g are under it: all α of a class are alike."""
        found: Int64Array = np.searchsorted(self.low_ns, alpha_ns, side="left")
        return found

    def chance(self, classes: Int64Array, beta_ns: Int64Array) -> FloatArray:
        """Return P_miss: that the next event is in the window, and has not come by t.

        Args:
            classes: shape (n,), the class of each α (`classes`).
            beta_ns: shape (n,), β.

        Source: [probslack] §3.1, *P_miss efficient computation*: the sum over g of
        pdf_g(g) · (1 − cdf_d(β − g)); with `at_most_ns`, §3.3, Eq. 8. Differs: windows end before
        their end, so g < α; Eq. 8 counts what comes before t + mal, here before end + mal, after
        which nobody waits.
        """
        if not self.cells():
            return self._chances(classes, beta_ns)
        low, high = self.range_ticks()
        beta = np.clip(beta_ns // self.tick_ns, low, high) - low
        found: FloatArray = self.table()[classes, beta]
        return found

    def cells(self) -> int:
        """Return how many cells the table of all chances has; 0: it would be too large."""
        low, high = self.range_ticks()
        cells = (high - low + 1) * (len(self.low_ns) + 1)
        return cells if cells <= _MOST_KEPT else 0

    def table(self) -> FloatArray:
        """Return the chance of each class at each tick of `range_ticks`; shape (classes, ticks)."""
        if self._table is None:
            low, high = self.range_ticks()
            beta_ns = np.arange(low, high + 1) * self.tick_ns
            coming = self._later(beta_ns[:, None] - self.high_ns)  # (ticks, bins)
            classes = np.arange(len(self.low_ns) + 1)
            if self._at_most_ns is None:
                added = (coming * self.shares).cumsum(axis=1)  # as in _chance, one by one
                self._table = np.vstack([np.zeros(len(beta_ns)), added.T])
            else:
                every = np.repeat(classes, len(beta_ns))
                chances = self._chances(every, np.tile(beta_ns, len(classes)))
                self._table = chances.reshape(len(classes), len(beta_ns))
        return self._table

    def range_ticks(self) -> tuple[int, int]:
        """Return the ticks of β up to which all is still to come, and from which on nothing is."""
        low = (self.low_ns[0] + self.delays_ns[0]) // self.tick_ns - 1
        high = -(-(self.high_ns[-1] + self.delays_ns[-1]) // self.tick_ns)
        return int(low), int(high)

    def _chances(self, classes: Int64Array, beta_ns: Int64Array) -> FloatArray:
        chances = np.empty(len(classes))
        step = max(1, _AT_ONCE // len(self.low_ns))
        for begin in range(0, len(classes), step):
            part = slice(begin, begin + step)
            chances[part] = self._chance(classes[part], beta_ns[part])
        return chances

    def _chance(self, classes: Int64Array, beta_ns: Int64Array) -> FloatArray:
        most = int(classes.max(initial=0))
        coming = self._later(beta_ns[:, None] - self.high_ns[None, :most])
        if self._at_most_ns is not None:
            # The greatest α of each class: the least that comes too late anyway.
            alpha_ns = np.append(self.low_ns, 2**61)[classes]
            too_late = self._later(alpha_ns[:, None] + self._at_most_ns - self.high_ns[None, :most])
            coming = np.maximum(coming - too_late, 0.0)
        coming *= self.shares[:most]
        coming[np.arange(most) >= classes[:, None]] = 0.0
        # Added up one by one: a sum must not depend on how many are asked for together.
        total: FloatArray = coming.cumsum(axis=1)[:, -1] if most else np.zeros(len(classes))
        return total

    def _later(self, than_ns: Int64Array) -> FloatArray:
        """Return P[d > x] of each x; any shape."""
        index = np.searchsorted(self.delays_ns, than_ns, side="right")
        later: FloatArray = self._tail[index]
        return later

    def least_beta_ns(self, classes: Int64Array, bound: float) -> Int64Array:
        """Return the least β, in whole ticks, from which on the chance is at most `bound`.

        Args:
            classes: shape (n,), of α.
            bound: above 0.

        Returns:
            Shape (n,); NEVER_NS where the chance is that small whatever β is.

        Source: the poly-line of [probslack] Fig. 4, Listing 5, read from the other side: for each
        α the first β outside the grey area, found by halving.
        """
        tick_ns = self.tick_ns
        low, high = self.range_ticks()
        lows, highs = np.full(len(classes), low), np.full(len(classes), high)
        bound += ROUNDING
        waits = self.chance(classes, lows * tick_ns) > bound
        while bool((highs - lows > 1).any()):
            middle = (lows + highs) // 2
            waits_there = self.chance(classes, middle * tick_ns) > bound
            lows, highs = np.where(waits_there, middle, lows), np.where(waits_there, highs, middle)
        return np.where(waits, highs * tick_ns, NEVER_NS)


class PolyLine:
    """The least β of each class of α, computed when it is first asked for; short lines as a whole.

    Args:
        histograms: of a type.
        bound: what the chance may be, above 0.

    Source: [probslack] Listing 5 and its lazy version (§3.1, end). Differs: an entry is a β for
    each class of α, not an α for each range of β: the same line, but it says when a window will
    close, so nothing needs to be asked at every tick.
    """

    def __init__(self, histograms: Histograms, bound: float) -> None:
        self.histograms = histograms
        self._bound = bound
        self._least_ns = np.zeros(len(histograms.low_ns) + 1, dtype=np.int64)
        self._least_ns[0] = NEVER_NS  # no event is that soon
        self._known = np.zeros(len(histograms.low_ns) + 1, dtype=np.bool_)
        self._known[0] = True

    @property
    def entries(self) -> int:
        """How many have been computed."""
        return int(self._known[1:].sum())

    def fill(self) -> None:
        """Compute all: the cache as Listing 5 builds it."""
        self._fill(np.arange(len(self._known)))

    def least_beta_ns(self, alpha_ns: Int64Array) -> Int64Array:
        """Return for each α the β from which on the chance is small enough; shape (n,)."""
        classes = self.histograms.classes(alpha_ns)
        if not self._known[classes].all():
            few = len(self._known) <= _FILLED_AT_ONCE
            self._fill(np.arange(len(self._known)) if few else np.unique(classes))
        least: Int64Array = self._least_ns[classes]
        return least

    def _fill(self, classes: Int64Array) -> None:
        unknown = classes[~self._known[classes]]
        if len(unknown):
            self._least_ns[unknown] = self.histograms.least_beta_ns(unknown, self._bound)
            self._known[unknown] = True


def plain_histograms(one: Histograms) -> dict[str, Any]:
    """Return histograms as plain values."""
    return {
        "low_ns": one.low_ns,
        "high_ns": one.high_ns,
        "shares": one.shares,
        "delays_ns": one.delays_ns,
        "tail": one._tail,
        "at_most_ns": one._at_most_ns,
        "tick_ns": one.tick_ns,
    }


def histograms_of(state: dict[str, Any]) -> Histograms:
    """Return histograms from plain values."""
    one = Histograms.__new__(Histograms)
    one.low_ns, one.high_ns = state["low_ns"], state["high_ns"]
    one.shares = state["shares"]
    one.delays_ns, one._tail = state["delays_ns"], state["tail"]
    one._at_most_ns, one.tick_ns = state["at_most_ns"], state["tick_ns"]
    one._table = None
    return one
