"""Covariances: sums of products of distances to a pair of the cell.

As `moments.py` does for one column: each cell has a shift for either, its first pair, so that no
digits are lost where means are far from zero. Rows are added in order, so no cut shows.

Squares of numbers beyond 1e±154 do not fit. So a column of a cell has an exponent: 0 of ordinary
numbers, else that of its greatest one, by which its distances are divided.

```
y 3e200, 5e200    exponent 668    distances 0, 0.09    square 0.0081 · 2^1336
```
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
_EXPONENTS = ("_exponent_y", "_exponent_x")
_OF_COLUMNS = [("_shift_y", "_sum_y", "_square_y"), ("_shift_x", "_sum_x", "_square_x")]
_LEAST, _MOST = 1e-100, 1e100
"""Ordinary numbers: their products, and sums of these, fit."""
_OF_ZERO = -5_000
"""Exponent of zero, less than any other."""


class PairMoments(NamedTuple):
    """Moments of the pairs of each result, y and x.

    Attributes:
        counts: number of pairs.
        mean_y: mean of y, as is `mean_x` of x.
        square_y: squared distances of y to their mean, summed, as is `square_x` of x.
        products: products of both distances, summed.
        exponent_y: exponent of 2 by which y is divided, as is `exponent_x` of x.
    """

    counts: Int64Array
    mean_y: FloatArray
    mean_x: FloatArray
    square_y: FloatArray
    square_x: FloatArray
    products: FloatArray
    exponent_y: Int64Array
    exponent_x: Int64Array

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


def covariance(of: PairMoments, ddof: int) -> FloatArray:
    """Return the covariance of each result; infinite if it is beyond all floats."""
    own = of.products / (of.counts - ddof)
    covariances: FloatArray = np.ldexp(own, of.exponent_y + of.exponent_x)
    return covariances


def slope(of: PairMoments) -> FloatArray:
    """Return the slope of the line of least squares of each result."""
    slopes: FloatArray = np.ldexp(of.products / of.square_x, of.exponent_y - of.exponent_x)
    return slopes


def intercept(of: PairMoments) -> FloatArray:
    """Return the value of that line where x is 0."""
    own = of.mean_y - of.products / of.square_x * of.mean_x
    intercepts: FloatArray = np.ldexp(own, of.exponent_y)
    return intercepts


class PairAccumulator:
    """A PairAccumulator holds what the covariance of two columns is computed from.

    Args:
        y: name of the first column.
        x: name of the second column.
    """

    STATE = Fields(*(Field(name, by=OWNER) for name in ("_counts", *_SUMS, *_EXPONENTS)))

    def __init__(self, y: str, x: str) -> None:
        self._names = (y, x)
        self._counts = ChangingArray(np.int64)
        self._shift_y, self._shift_x = ChangingArray(np.float64), ChangingArray(np.float64)
        self._sum_y, self._sum_x = ChangingArray(np.float64), ChangingArray(np.float64)
        self._square_y, self._square_x = ChangingArray(np.float64), ChangingArray(np.float64)
        self._product = ChangingArray(np.float64)
        self._exponent_y, self._exponent_x = ChangingArray(np.int64), ChangingArray(np.int64)

    @property
    def _sums(self) -> Sequence[ChangingArray]:
        return [getattr(self, name) for name in (*_SUMS, *_EXPONENTS)]

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
        self._fit_exponents(cells, y, x)
        dy = _divided(y, self._shift_y.values.take(cells), self._exponent_y.values.take(cells))
        dx = _divided(x, self._shift_x.values.take(cells), self._exponent_x.values.take(cells))
        self._counts.change(np.add, cells, 1)
        sums = (self._sum_y, self._sum_x, self._square_y, self._square_x, self._product)
        for array, values in zip(sums, (dy, dx, dy * dy, dx * dx, dy * dx), strict=True):
            array.change(np.add, cells, values)

    def _fit_exponents(self, cells: Int64Array, y: npt.NDArray[Any], x: npt.NDArray[Any]) -> None:
        """Raise exponents of cells as new pairs need; divide what the cells hold."""
        known = [getattr(self, name) for name in _EXPONENTS]
        is_scaled = any(array.values.take(cells).any() for array in known)
        if not is_scaled and _are_ordinary(y) and _are_ordinary(x):
            return
        own, places = np.unique(cells, return_inverse=True)
        product = self._product.values.take(own)
        for values, exponent, names in zip((y, x), known, _OF_COLUMNS, strict=True):
            shift, total, square = (getattr(self, name) for name in names)
            held = (array.values.take(own) for array in (exponent, shift, total, square))
            before = _exponents_of_cells(*held)
            after = before.copy()
            np.maximum.at(after, places, _exponents(values))
            less = before - after
            total.put(own, np.ldexp(total.values.take(own), less))
            square.put(own, np.ldexp(square.values.take(own), 2 * less))
            product = np.ldexp(product, less)
            exponent.put(own, np.where(after == _OF_ZERO, 0, after))
        self._product.put(own, product)

    def combined(self, pairs: Pairs) -> PairMoments:
        """Return the moments of each result: cells are put together by their means."""
        there = self._counts.values.take(pairs.cells) > 0
        cells, results = pairs.cells[there], pairs.results[there]
        own = self._counts.values.take(cells)
        shift_y, shift_x, sum_y, sum_x, square_y, square_x, product, exponent_y, exponent_x = (
            array.values.take(cells) for array in self._sums
        )
        counts = np.zeros(pairs.size, dtype=np.int64)
        np.add.at(counts, results, own)
        of_y = of_x = np.zeros(pairs.size, dtype=np.int64)
        with np.errstate(all="ignore"):  # NaN, infinity, and results without a pair
            if exponent_y.any() or exponent_x.any():
                of_y, less_y = _common(
                    _exponents_of_cells(exponent_y, shift_y, sum_y, square_y), results, pairs.size
                )
                of_x, less_x = _common(
                    _exponents_of_cells(exponent_x, shift_x, sum_x, square_x), results, pairs.size
                )
                shift_y = np.ldexp(shift_y, -of_y.take(results))
                shift_x = np.ldexp(shift_x, -of_x.take(results))
                sum_y, square_y = np.ldexp(sum_y, less_y), np.ldexp(square_y, 2 * less_y)
                sum_x, square_x = np.ldexp(sum_x, less_x), np.ldexp(square_x, 2 * less_x)
                product = np.ldexp(product, less_y + less_x)
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
                of_y,
                of_x,
            )


def _are_ordinary(values: npt.NDArray[Any]) -> bool:
    """Return whether all numbers are ordinary, or zero."""
    if values.dtype.kind in "iu":
        return True
    sizes = np.abs(values.astype(np.float64, copy=False))
    return bool((((sizes >= _LEAST) & (sizes <= _MOST)) | (sizes == 0)).all())


def _exponents(values: npt.NDArray[Any]) -> Int64Array:
    """Return the exponent that each number needs; of zero, or of no number, the least."""
    sizes = np.abs(values.astype(np.float64, copy=False))
    exponents = np.frexp(sizes)[1].astype(np.int64)
    exponents[(sizes >= _LEAST) & (sizes <= _MOST)] = 0
    exponents[(sizes == 0) | ~np.isfinite(sizes)] = _OF_ZERO
    return exponents


def _exponents_of_cells(
    known: Int64Array, shifts: FloatArray, sums: FloatArray, squares: FloatArray
) -> Int64Array:
    """Return the greatest exponent of the numbers in each cell."""
    return np.where((sums != 0) | (squares != 0), known, _exponents(shifts))


def _common(exponents: Int64Array, results: Int64Array, size: int) -> tuple[Int64Array, Int64Array]:
    """Return exponents of results, and how much less those of their cells are."""
    most = np.full(size, _OF_ZERO)
    np.maximum.at(most, results, exponents)
    return most, exponents - most.take(results)


def _divided(values: npt.NDArray[Any], shifts: FloatArray, exponents: Int64Array) -> FloatArray:
    """Return the distances of values to shifts, divided by powers of 2 with these exponents."""
    away = distances(values, shifts)
    if not exponents.any():
        return away
    own = np.ldexp(values.astype(np.float64, copy=False), -exponents)
    return np.where(exponents == 0, away, own - np.ldexp(shifts, -exponents))


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
