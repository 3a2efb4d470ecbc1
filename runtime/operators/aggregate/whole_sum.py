"""Exact sums of whole numbers in 64 bits, and sums of means.

While the absolute values of all that was added sum to less than 2**63, each sum fits, and nothing
more is checked. Beyond that each sum is compared with one in floats: a sum that has wrapped is
2**64 away.

A mean fits where its sum does not. So its sum is kept in two halves, which no stream fills.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.expressions.whole import ends_of, refused
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.accumulators import FoldAccumulator, Pairs, Values

_MOST = 2**63 - 1
_FAR = 2.0**62
_HALF = 32
_LOW = (1 << _HALF) - 1
_EXACT = 2.0**53
"""Whole numbers up to here are the same as float64."""


class WholeSum(FoldAccumulator):
    """A sum per cell, of a column of whole numbers.

    Raises (add, combined): OperatorError, a sum or a value does not fit int64; its `place` is
        that of the row, or of the result.
    """

    def __init__(self, column: str, values: Values) -> None:
        super().__init__(np.add, np.int64, 0, values)
        self._column, self._of_batch = column, values
        self._at_most = 0  # a bound for the sum of the absolute values of all cells

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - see Accumulator
        cells, values = self._of_batch(batch, cells)
        if not len(values):
            return self.fold(cells, values, size)
        least, most = ends_of(values)
        if most > _MOST:
            raise self._too_large(int(values.argmax()), f"{most} does not fit int64")
        more = max(-least, most) * len(values)
        self._at_most += more
        if self._at_most > _MOST:
            self._at_most = self._absolute() + more
        if self._at_most <= _MOST:
            return self.fold(cells, values, size)
        return self._add_slowly(cells, size, values.astype(np.int64))

    def combined(self, pairs: Pairs) -> npt.NDArray[Any]:  # noqa: D102 - see Accumulator
        results = super().combined(pairs)
        if self._at_most > _MOST:
            about = np.zeros(pairs.size)
            np.add.at(about, pairs.results, self.state.take(pairs.cells).astype(np.float64))
            fits = np.abs(about - results) < _FAR
            if not fits.all():
                place = int(fits.argmin())
                cells = pairs.cells[pairs.results == place]
                total = sum(map(int, self.state.take(cells).tolist()))  # Python's sum is exact
                raise self._too_large(
                    place, f"that of its {len(cells)} panes is {total}, which does not fit int64"
                )
        return results

    def after_restore(self) -> None:  # noqa: D102
        self._at_most = self._absolute()

    def _absolute(self) -> int:
        return int(np.abs(self.state.astype(np.float64)).sum() * (1 + 1e-9)) + 1

    def _add_slowly(self, cells: Int64Array, size: int, values: Int64Array) -> None:
        before = np.zeros(size, dtype=np.int64)
        before[: len(self.state)] = self.state
        self.fold(cells, values, size)
        about = before.astype(np.float64)
        np.add.at(about, cells, values.astype(np.float64))
        fits = np.abs(about - self.state) < _FAR
        if fits.all():
            return
        cell = int(fits.argmin())
        total, place = int(before[cell]), 0
        for place in np.flatnonzero(cells == cell).tolist():
            if not -_MOST - 1 <= total + int(values[place]) <= _MOST:
                break
            total += int(values[place])
        raise self._too_large(place, f"{total} + {values[place]} does not fit int64")

    def _too_large(self, place: int, problem: str) -> Exception:
        return refused(
            f"sum of column {self._column!r}: {problem}; sum it as floats, "
            f".with_columns(x=col({self._column!r}).cast('float64'))",
            place,
        )


class Halves(NamedTuple):
    """Whole numbers of any size: high · 2**32 + low."""

    high: Int64Array
    low: Int64Array


class SumOfMean:
    """Sums of a mean, per cell: float sums of floats, exact sums of whole numbers."""

    STATE = Fields("_is_whole", "_folds", elements={"_folds": "_new_fold"})

    def __init__(self, values: Values) -> None:
        self._of_batch = values
        self._is_whole = False  # the first rows decide
        self._folds: list[FoldAccumulator] = []  # one of floats, or two of halves

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - see Accumulator
        cells, values = self._of_batch(batch, cells)
        is_whole = values.dtype.kind in "iu"
        if not self._folds:
            self._is_whole = is_whole
            self._folds = [self._new_fold(part) for part in range(2 if is_whole else 1)]
        if not is_whole:
            return self._folds[0].fold(cells, values, size)
        high, low = self._folds
        least, most = ends_of(values) if len(values) else (0, 0)
        if least >= -_LOW and most <= _LOW:  # the usual case; both ways give the same sums
            high.fold(cells[:0], values[:0], size)
            return low.fold(cells, values, size)
        high.fold(cells, values >> _HALF, size)
        return low.fold(cells, values & _LOW, size)

    def combined(self, pairs: Pairs) -> npt.NDArray[Any] | Halves:  # noqa: D102 - see Accumulator
        sums = [fold.combined(pairs) for fold in self._folds]
        return sums[0] if len(sums) == 1 else Halves(*sums)

    def keep(self, cells: Int64Array, moved: Int64Array) -> None:  # noqa: D102 - see Accumulator
        for fold in self._folds:
            fold.keep(cells, moved)

    def _new_fold(self, part: int) -> FoldAccumulator:
        del part  # both halves are alike
        dtype = np.int64 if self._is_whole else np.float64
        return FoldAccumulator(np.add, dtype, 0, self._of_batch)


def mean_of(
    sums: npt.NDArray[Any] | Halves, counts: Int64Array, *, scale: int = 0
) -> npt.NDArray[np.float64]:
    """Return the mean of each result: of whole numbers the float nearest to it.

    Args:
        sums: shape (results,).
        counts: shape (results,).
        scale: of decimals, whose last digits were summed; else 0.
    """
    if not isinstance(sums, Halves):
        return _quotients(sums, counts)
    high, low = sums.high + (sums.low >> _HALF), sums.low & _LOW
    about = high * float(1 << _HALF) + low  # exact, if less than 2**53
    divisors = counts * 10.0**scale
    means = _quotients(about, divisors)
    is_exact = (np.abs(about) < _EXACT) & (divisors < _EXACT) & (scale >= 0)
    up, down = 10 ** max(-scale, 0), 10 ** max(scale, 0)
    for place in (~is_exact & (counts > 0)).nonzero()[0].tolist():
        total = (high.item(place) << _HALF) + low.item(place)  # Python's quotient is exact
        means[place] = total * up / (counts.item(place) * down)
    return means


def _quotients(sums: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # nothing has no mean
        means: npt.NDArray[np.float64] = sums / counts
    return means
