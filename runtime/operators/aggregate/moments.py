"""Variances: sums of distances to a value of the cell, and of their squares.

A sum of squares alone loses all digits where the mean is far from zero. So each cell has a shift,
its first value, and sums the distances to it. As that is a value of the cell, its distance to the
mean is no more than the spread allows. Rows are added one after the other, so no cut shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs, Values
from slackwater.runtime.operators.ground.arrays import ChangingArray

_HALF = 2.0**32


class Moments(NamedTuple):
    """The number of values of each result, and their squared distances to their mean, summed."""

    counts: Int64Array
    squares: npt.NDArray[np.float64]


class MomentAccumulator:
    """A MomentAccumulator holds what the variance of a cell is computed from."""

    STATE = Fields(*(Field(name, by=OWNER) for name in ("_counts", "_shifts", "_sums", "_squares")))

    def __init__(self, values: Values) -> None:
        self._of_batch = values
        self._counts = ChangingArray(np.int64)
        self._shifts = ChangingArray(np.float64)
        self._sums = ChangingArray(np.float64)
        self._squares = ChangingArray(np.float64)

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - see Accumulator
        cells, values = self._of_batch(batch, cells)
        for array in (self._counts, self._shifts, self._sums, self._squares):
            if size > len(array):
                array.resize(size)
        if not len(cells):
            return
        fresh = (self._counts.values.take(cells) == 0).nonzero()[0]
        if len(fresh):
            new, first = np.unique(cells.take(fresh), return_index=True)
            own = values.take(fresh.take(first)).astype(np.float64)
            self._shifts.change(np.add, new, own)
        away = distances(values, self._shifts.values.take(cells))
        self._counts.change(np.add, cells, 1)
        self._sums.change(np.add, cells, away)
        self._squares.change(np.add, cells, away * away)

    def combined(self, pairs: Pairs) -> Moments:
        """Return the moments of each result: cells are put together by their means."""
        there = self._counts.values.take(pairs.cells) > 0
        cells, results = pairs.cells[there], pairs.results[there]
        own, shifts, sums, squares = (
            array.values.take(cells)
            for array in (self._counts, self._shifts, self._sums, self._squares)
        )
        counts = np.zeros(pairs.size, dtype=np.int64)
        totals, summed = np.zeros(pairs.size), np.zeros(pairs.size)
        np.add.at(counts, results, own)
        with np.errstate(all="ignore"):  # NaN, infinity, and results without a value
            within = np.maximum(squares - sums * (sums / own), 0.0)  # NaN stays
            within[np.isnan(within) & np.isfinite(sums)] = np.inf  # squares beyond all floats
            if not pairs.are_single:
                # The first cell of a result has a value of it, which is near all others.
                first_results, first = np.unique(results, return_index=True)
                origins = np.zeros(pairs.size)
                origins[first_results] = shifts.take(first)
                means = (shifts - origins.take(results)) + sums / own
                np.add.at(totals, results, own * means)
                away = means - (totals / counts).take(results)
                within = within + own * away * away
            np.add.at(summed, results, within)
        return Moments(counts, summed)


def variance(of: Moments, ddof: int, *, scale: int = 0) -> npt.NDArray[np.float64]:
    """Return the variance of each result; any number where it has `ddof` values or fewer.

    Args:
        of: the moments of the results.
        ddof: degrees of freedom less than values: 1 of a sample, 0 of all that there is.
        scale: scale of decimals, whose last digits were added; else 0.
    """
    with np.errstate(all="ignore"):
        spread: npt.NDArray[np.float64] = of.squares / (of.counts - ddof)
        return spread / 100.0**scale if scale else spread


def distances(values: npt.NDArray[Any], shifts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values less shifts, rounded once: whole numbers of 64 bits too."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return values.astype(np.float64, copy=False) - shifts
    high, low = np.floor(shifts / _HALF), np.remainder(shifts, _HALF)
    above = (values >> np.int64(32) if values.dtype.kind == "i" else values >> np.uint64(32)) - high
    below = (values & values.dtype.type(2**32 - 1)) - low
    away: npt.NDArray[np.float64] = above * _HALF + below
    return away
