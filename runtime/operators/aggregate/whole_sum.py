"""Sums of whole numbers that no stream fills, and means.

A sum may leave 64 bits on its way and return, as rows come in any order and are cut anyhow. So it
is kept in two halves, and only the sum of a whole window has to fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.expressions.whole import ends_of, refused
from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import (
    FoldAccumulator,
    Pairs,
    Values,
    signs_of,
)
from slackwater.runtime.operators.aggregate.ranges import Ranges
from slackwater.runtime.operators.aggregate.runs import Runs

_HALF = 32
_LOW = (1 << _HALF) - 1
_HIGHEST = 2**31 - 1
"""The high half of the largest int64."""
_EXACT = 2.0**53
"""Whole numbers up to here are the same as float64."""


class Halves(NamedTuple):
    """Whole numbers of any size: high · 2**32 + low."""

    high: Int64Array
    low: Int64Array

    def carried(self) -> Halves:
        """Return the same numbers with a low half from 0 to 2**32 − 1."""
        return Halves(self.high + (self.low >> _HALF), self.low & _LOW)


Sums = npt.NDArray[Any] | Halves
"""Shape (results,): floats, or whole numbers."""


class SumAccumulator:
    """A sum per cell: of floats as floats, of whole numbers exactly."""

    STATE = Fields(
        "_is_whole", Field("_folds", by=OWNER, each=True), elements={"_folds": "_new_fold"}
    )

    def __init__(self, values: Values) -> None:
        self._of_batch = values
        self._is_whole = False  # the first rows decide
        self._folds: list[FoldAccumulator] = []  # one of floats, or two of halves

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - see Accumulator
        cells, values = self._of_batch(batch, cells)
        for fold, part in zip(self._folds_of(values), _parts_of(values), strict=True):
            fold.fold(cells[: len(part)], part, size)

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Sums:
        """Take rows, and return the sum after each entry; see `RunningAccumulator`."""
        places, values = self._of_batch(batch, places)
        signs, sums = signs_of(batch), []
        for fold, part in zip(self._folds_of(values), _parts_of(values), strict=True):
            own = part
            if signs is not None:
                own = part.astype(fold.state.dtype) * signs[: len(part)]
            sums.append(fold.run(places[: len(part)], own, runs, size))
        return sums[0] if len(sums) == 1 else Halves(*sums)

    def over(self, batch: Batch, places: Int64Array, rows: int, ranges: Ranges) -> Sums:
        """Return the sum of each range of rows; see `RangeAccumulator`."""
        places, values = self._of_batch(batch, places)
        sums = [
            fold.reduced(places[: len(part)], part, rows, ranges)
            for fold, part in zip(self._folds_of(values), _parts_of(values), strict=True)
        ]
        return sums[0] if len(sums) == 1 else Halves(*sums)

    def _folds_of(self, values: npt.NDArray[Any]) -> list[FoldAccumulator]:
        if not self._folds:
            self._is_whole = values.dtype.kind in "iu"
            self._folds = [self._new_fold(part) for part in range(2 if self._is_whole else 1)]
        return self._folds

    def combined(self, pairs: Pairs) -> Sums:  # noqa: D102 - see Accumulator
        sums = [fold.combined(pairs) for fold in self._folds]
        return sums[0] if len(sums) == 1 else Halves(*sums)

    def _new_fold(self, part: int) -> FoldAccumulator:
        del part  # both halves are alike
        dtype = np.int64 if self._is_whole else np.float64
        return FoldAccumulator(np.add, dtype, 0, self._of_batch)


def _parts_of(values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return floats as they are, whole numbers as high and low halves."""
    if values.dtype.kind not in "iu":
        return [values]
    least, most = ends_of(values) if len(values) else (0, 0)
    if least >= -_LOW and most <= _LOW:  # the usual case; both ways give the same sums
        return [values[:0], values]
    return [values >> _HALF, values & _LOW]


def sum_of(sums: Sums, column: str) -> npt.NDArray[Any]:
    """Return the sum of each result: floats, or int64.

    Raises:
        OperatorError: a sum does not fit int64; its `place` is that of the result.
    """
    if not isinstance(sums, Halves):
        return sums
    high, low = sums.carried()
    fits = (high >= -_HIGHEST - 1) & (high <= _HIGHEST)
    if not fits.all():
        place = int(fits.argmin())
        total = (high.item(place) << _HALF) + low.item(place)
        raise refused(
            f"sum of column {column!r}: {total} does not fit int64; sum it as floats, "
            f".with_columns(x=col({column!r}).cast('float64'))",
            place,
        )
    whole: Int64Array = (high << _HALF) + low
    return whole


def mean_of(sums: Sums, counts: Int64Array, *, scale: int = 0) -> npt.NDArray[np.float64]:
    """Return the mean of each result: of whole numbers the float nearest to it.

    Args:
        sums: shape (results,), the sum of each.
        counts: shape (results,), the number of values of each.
        scale: scale of decimals, whose last digits were summed; else 0.
    """
    if not isinstance(sums, Halves):
        return _quotients(sums, counts)
    high, low = sums.carried()
    about = high * float(1 << _HALF) + low  # exact, if less than 2**53
    divisors = counts * 10.0**scale
    means = _quotients(about, divisors)
    is_exact = (np.abs(about) < _EXACT) & (divisors < _EXACT)
    for place in (~is_exact & (counts > 0)).nonzero()[0].tolist():
        total = (high.item(place) << _HALF) + low.item(place)  # Python's quotient is exact
        means[place] = total / (counts.item(place) * 10**scale)
    return means


def _quotients(sums: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # nothing has no mean
        means: npt.NDArray[np.float64] = sums / counts
    return means
