"""Histograms of a type's g and d, and the chance that an event is missing.

g is the time from one event of a type to the next, at their source; d is the time that an event
takes from its source to us. Both are whole ticks of the clock, so counting them is exact.

```
e_l, the last that came          next event e                     t, now
 |---------- g ------------------|--------- d ---------|          |
 |------------- α = end − e_l ------------)  in the window if g < α
 |------------- β = t − e_l --------------------------------------|  still to come if g + d > β
```
At t, e has not come. So the chance is P[g < α, g + d > β] / P[g + d > β]: it may rise with β, and a
window with a small enough chance now may have to wait again a moment later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.ranges import starts_of_runs

MOST_VALUES = 256
"""Most bins of g: with more distinct values neighbours share a bin, to the safe side."""
_FEWEST_CELLS = 64  # cells of β, however many classes of α
_DELAYS = 64  # quantiles of d that coarse cells are made of
_LEAST_TAIL = 1e-4
_FAR_NS = 2**60  # 36 years: longer gaps and delays count as that, so that sums fit in 64 bits
ROUNDING = 1e-9
"""Largest rounding error of sums of shares."""


@dataclass(frozen=True, eq=False)
class Histograms:
    """Histograms of g and d, of one type or of several together, at one time.

    Attributes:
        low_ns: shape (bins,), ascending, the least value of each bin of g.
        high_ns: shape (bins,), the greatest.
        shares: shape (bins,), pdf_g.
        delays_ns: shape (values,), ascending, the values of d.
        tail: shape (values + 1,), P[d > x] by the index of x.
        unforeseen: the chance that the next wait is longer than all known ones.
        tick_ns: the resolution of clocks, as `of` took it.
        at_most_ns: the bound on a wait, as `of` took it.
        conditional: the setting of the same name that `of` took.

    Source: [probslack] §3.1, *on-line fitting of g and d*, with the counts of Listing 4. Above
    MOST_VALUES distinct g, a bin's lowest value decides whether an event is in the window, and its
    highest when the event comes, so that a chance is never too small.
    """

    low_ns: Int64Array
    high_ns: Int64Array
    shares: FloatArray
    delays_ns: Int64Array
    tail: FloatArray
    unforeseen: float
    tick_ns: int
    at_most_ns: int | None
    conditional: bool

    @classmethod
    def of(
        cls,
        gaps_ns: Int64Array,
        delays_ns: Int64Array,
        *,
        tick_ns: int,
        at_most_ns: int | None = None,
        conditional: bool = True,
    ) -> Histograms:
        """Return the histograms of events.

        Args:
            gaps_ns: g, shape (events,), at least one; negative ones count as 0.
            delays_ns: d, shape (events,), at least one; they may be negative.
            tick_ns: the resolution of both.
            at_most_ns: the largest slack of a window: later events are missed in any case. None if
                slack is unbounded.
            conditional: whether the chance counts that the next event has not come. False: P_miss
                as [probslack] prints it, for its experiments.
        """
        low_ns, counts = np.unique(np.clip(gaps_ns, 0, _FAR_NS), return_counts=True)
        high_ns = low_ns
        if (values := len(low_ns)) > MOST_VALUES:
            bins = np.cumsum(counts) * MOST_VALUES // (counts.sum() + 1)
            starts = starts_of_runs(bins)
            high_ns = low_ns[np.concatenate([starts[1:] - 1, [values - 1]])]
            low_ns = low_ns[starts]
            counts = np.add.reduceat(counts, starts)
        unforeseen = 1 / (1 + len(delays_ns)) if conditional else 0.0
        delays_ns = np.clip(delays_ns, -_FAR_NS, _FAR_NS)
        delays_ns, times = np.unique(delays_ns, return_counts=True)
        tail = np.concatenate([times[::-1].cumsum()[::-1] / times.sum(), [0.0]])
        shares = counts / counts.sum()
        of_delays = (delays_ns, tail, unforeseen)
        return cls(low_ns, high_ns, shares, *of_delays, tick_ns, at_most_ns, conditional)

    @property
    def entries(self) -> int:
        """Number of entries of both histograms, as counted in [probslack] Table 1."""
        return len(self.low_ns) + len(self.delays_ns)

    def classes(self, alpha_ns: Int64Array) -> Int64Array:
        """Return the class of each α: the number of bins of g below it."""
        classes: Int64Array = np.searchsorted(self.low_ns, alpha_ns, side="left")
        return classes

    def cells_ns(self, most: int) -> Int64Array:
        """Return where the cells of β begin, ascending: a chance holds for a whole cell.

        Each tick has its own cell, if `most` cells of all classes suffice. Otherwise cells are
        equally likely, and those of the last, unlikely β are thinner still.
        """
        low, high = self._range_ticks()
        most = max(most // (len(self.low_ns) + 1), _FEWEST_CELLS)
        if high - low < most:
            return np.arange(low, high + 1) * self.tick_ns
        levels = (np.arange(_DELAYS) + 0.5) / _DELAYS
        delays = self.delays_ns[np.searchsorted(1.0 - self.tail[1:], levels)]
        sums = (self.high_ns[:, None] + delays).ravel()
        order = np.argsort(sums, kind="stable")
        reached = np.cumsum(np.repeat(self.shares, _DELAYS)[order]) / _DELAYS
        tails = 1.0 - np.geomspace(1.0, _LEAST_TAIL, most // 2 - 1)
        wanted = np.concatenate([np.linspace(0.0, 1.0, most // 2 - 1), tails])
        places = np.minimum(np.searchsorted(reached, wanted), len(sums) - 1)
        ticks = sums[order][places] // self.tick_ns
        return np.unique(np.concatenate([[low, high], np.clip(ticks, low, high)])) * self.tick_ns

    def _range_ticks(self) -> tuple[int, int]:
        # Up to β = low all is still to come, from high on nothing is.
        low = (self.low_ns[0] + self.delays_ns[0]) // self.tick_ns - 1
        high = -(-(self.high_ns[-1] + self.delays_ns[-1]) // self.tick_ns)
        return int(low), int(high)

    def chances(self, cells_ns: Int64Array) -> FloatArray:
        """Return the chance that a window closed in a cell of β misses a row.

        Where a cell has several ticks, it is the largest chance there.

        Args:
            cells_ns: shape (cells,), where each begins.

        Returns:
            Shape (classes of α, cells).

        Source: [probslack] §3.1, *P_miss efficient computation*: the sum over g of
        pdf_g(g) · (1 − cdf_d(β − g)). Differs: a window ends before its end, so g < α; and the sum
        is divided by P[g + d > β], since no event has come.
        """
        return self._given_nothing_came(self._coming(cells_ns), cells_ns)

    def stated(self, chances: FloatArray) -> FloatArray:
        """Return `chances` as reported: 1/(n + 1) after the longest known wait, not 0.

        That is the chance that a wait is longer than those of n other events. It holds no window
        open: a type that has gone will not come.
        """
        chances[:, -1] = np.maximum(chances[:, -1], self.unforeseen)
        return chances

    def waits(self, cells_ns: Int64Array, chances: FloatArray) -> FloatArray:
        """Return the chance that waiting longer spares a miss, for comparison with a bound.

        It is `chances`, less that of rows that come too late in any case: [probslack] §3.3, Eq. 8.
        Differs: Eq. 8 counts rows that come before t + mal; here they come before end + mal, after
        which no window waits.
        """
        if self.at_most_ns is None:
            return chances
        coming = self._later(cells_ns[:, None] - self.high_ns)  # (cells, bins)
        coming_in_time = np.zeros((len(self.low_ns) + 1, len(cells_ns)))
        # The greatest α of each class, so that the fewest rows count as too late.
        alpha_ns = np.append(self.low_ns, 2**61)
        for of in range(1, len(coming_in_time)):
            too_late = self._later(alpha_ns[of] + self.at_most_ns - self.high_ns[:of])
            in_time = np.maximum(coming[:, :of] - too_late, 0.0) * self.shares[:of]
            coming_in_time[of] = in_time.cumsum(axis=1)[:, -1]
        return self._given_nothing_came(coming_in_time, cells_ns)

    def _coming(self, cells_ns: Int64Array) -> FloatArray:
        # P[g < α, g + d > β] of each class and cell.
        coming = self._later(cells_ns[:, None] - self.high_ns)  # (cells, bins)
        added = (coming * self.shares).cumsum(axis=1)
        return np.vstack([np.zeros(len(cells_ns)), added.T])

    def _given_nothing_came(self, coming: FloatArray, cells_ns: Int64Array) -> FloatArray:
        if not self.conditional:
            return coming
        lasts_ns = np.append(cells_ns[1:] - self.tick_ns, cells_ns[-1:])
        # A bin's lowest g and a cell's last β make the divisor as small as it may be.
        later = self._later(lasts_ns[:, None] - self.low_ns)
        nothing = (later * self.shares).cumsum(axis=1)[:, -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            chances = np.minimum(coming / nothing, 1.0)
        return np.where(coming > 0, chances, 0.0)

    def _later(self, than_ns: Int64Array) -> FloatArray:
        index = np.searchsorted(self.delays_ns, than_ns, side="right")
        later: FloatArray = self.tail[index]  # P[d > x]
        return later
