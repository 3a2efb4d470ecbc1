"""Covariances: sums of products of distances to a pair of the cell.

As `moments.py` does for one column: each cell has a shift for either, its first pair, so that no
digits are lost where means are far from zero. Rows are added in order, so no cut shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.decimals import as_float
from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.exact_casts import zero_for_null
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.moments import distances
from slackwater.runtime.operators.ground.arrays import ChangingArray

__all__ = ["FloatArray", "PairAccumulator", "PairMoments", "correlation", "intercept", "slope"]

FloatArray = npt.NDArray[np.float64]
_SUMS = ("_shift_y", "_shift_x", "_sum_y", "_sum_x", "_square_y", "_square_x", "_product")


class PairMoments(NamedTuple):
    """Moments of the pairs of each result, y and x.

    Attributes:
        counts: number of pairs.
        mean_y: mean of y, as is `mean_x` of x.
        square_y: squared distances of y to their mean, summed, as is `square_x` of x.
        products: products of both distances, summed.
    """

    counts: Int64Array
    mean_y: FloatArray
    mean_x: FloatArray
    square_y: FloatArray
    square_x: FloatArray
    products: FloatArray

    def has_line(self, kind: str) -> BoolArray:
        """Return whether a correlation, slope or intercept of each result is there."""
        has_x: BoolArray = (self.counts > 0) & (self.square_x != 0)
        if kind == "corr":
            has_x &= self.square_y != 0
        return has_x


def correlation(of: PairMoments) -> FloatArray:
    """Return the correlation of each result, from −1 to 1."""
    # Roots apart: the product of both squares may be beyond all floats.
    return np.clip(of.products / np.sqrt(of.square_y) / np.sqrt(of.square_x), -1.0, 1.0)


def slope(of: PairMoments) -> FloatArray:
    """Return the slope of the line of least squares of each result."""
    return of.products / of.square_x


def intercept(of: PairMoments) -> FloatArray:
    """Return the value of that line where x is 0."""
    return of.mean_y - slope(of) * of.mean_x


class PairAccumulator:
    """A PairAccumulator holds what the covariance of two columns is computed from.

    Args:
        y: name of the first column.
        x: name of the second column.
    """

    STATE = Fields(*(Field(name, by=OWNER) for name in ("_counts", *_SUMS)))

    def __init__(self, y: str, x: str) -> None:
        self._names = (y, x)
        self._counts = ChangingArray(np.int64)
        self._shift_y, self._shift_x = ChangingArray(np.float64), ChangingArray(np.float64)
        self._sum_y, self._sum_x = ChangingArray(np.float64), ChangingArray(np.float64)
        self._square_y, self._square_x = ChangingArray(np.float64), ChangingArray(np.float64)
        self._product = ChangingArray(np.float64)

    @property
    def _sums(self) -> Sequence[ChangingArray]:
        return [getattr(self, name) for name in _SUMS]

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - see Accumulator
        for array in (self._counts, *self._sums):
            if size > len(array):
                array.resize(size)
        columns = [batch.columns[name] for name in self._names]
        (y, x), masks = map(_numbers, columns), [valid_of(column) for column in columns]
        for valid in masks:
            if valid is not None:
                there = np.logical_and.reduce([mask for mask in masks if mask is not None])
                cells, y, x = cells[there], y[there], x[there]
                break
        if not len(cells):
            return
        fresh = (self._counts.values.take(cells) == 0).nonzero()[0]
        if len(fresh):
            new, first = np.unique(cells.take(fresh), return_index=True)
            rows = fresh.take(first)
            self._shift_y.change(np.add, new, y.take(rows).astype(np.float64))
            self._shift_x.change(np.add, new, x.take(rows).astype(np.float64))
        dy = distances(y, self._shift_y.values.take(cells))
        dx = distances(x, self._shift_x.values.take(cells))
        self._counts.change(np.add, cells, 1)
        sums = (self._sum_y, self._sum_x, self._square_y, self._square_x, self._product)
        for array, values in zip(sums, (dy, dx, dy * dy, dx * dx, dy * dx), strict=True):
            array.change(np.add, cells, values)

    def combined(self, pairs: Pairs) -> PairMoments:
        """Return the moments of each result: cells are put together by their means."""
        there = self._counts.values.take(pairs.cells) > 0
        cells, results = pairs.cells[there], pairs.results[there]
        own = self._counts.values.take(cells)
        shift_y, shift_x, sum_y, sum_x, square_y, square_x, product = (
            array.values.take(cells) for array in self._sums
        )
        counts = np.zeros(pairs.size, dtype=np.int64)
        np.add.at(counts, results, own)
        with np.errstate(all="ignore"):  # NaN, infinity, and results without a pair
            square_y = np.maximum(square_y - sum_y * (sum_y / own), 0.0)
            square_x = np.maximum(square_x - sum_x * (sum_x / own), 0.0)
            product = product - sum_y * (sum_x / own)
            away_y, mean_y = _away(shift_y, sum_y / own, own, pairs, results, counts)
            away_x, mean_x = _away(shift_x, sum_x / own, own, pairs, results, counts)
            return PairMoments(
                counts,
                mean_y,
                mean_x,
                _summed(square_y + own * away_y * away_y, results, pairs.size),
                _summed(square_x + own * away_x * away_x, results, pairs.size),
                _summed(product + own * away_y * away_x, results, pairs.size),
            )


def _away(
    shifts: FloatArray,
    means: FloatArray,
    own: Int64Array,
    pairs: Pairs,
    results: Int64Array,
    counts: Int64Array,
) -> tuple[FloatArray, FloatArray]:
    """Return distances of the means of cells to those of results, and the latter.

    Args:
        shifts: shape (cells,), the shift of each.
        means: shape (cells,), the mean of the distances to it.
        own: shape (cells,), the number of pairs of each.
        pairs: pairs of cells and results.
        results: shape (cells,), the result of each.
        counts: shape (results,), the number of pairs of each.
    """
    # The first cell of a result has a value of it, which is near all others.
    origins = np.zeros(pairs.size)
    first_results, first = np.unique(results, return_index=True)
    origins[first_results] = shifts.take(first)
    near = (shifts - origins.take(results)) + means
    middle = _summed(own * near, results, pairs.size) / counts
    return near - middle.take(results), origins + middle


def _summed(values: FloatArray, results: Int64Array, size: int) -> FloatArray:
    sums = np.zeros(size)
    np.add.at(sums, results, values)
    return sums


def _numbers(column: Any) -> npt.NDArray[Any]:
    if isinstance(column, pa.Array):
        numbers: npt.NDArray[Any] = as_float(zero_for_null(column))
        return numbers
    return column.values if isinstance(column, Nullable) else column
