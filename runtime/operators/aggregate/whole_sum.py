"""Sums of whole numbers in 64 bits, and an error for one that does not fit.

While the absolute values of all that was added come to less than 2**63, so does every sum, and
nothing more is asked. Beyond that each sum is compared with one in floats: a sum that has wrapped
is 2**64 away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from runtime.expressions.whole import ends_of, refused
from runtime.model import Batch, Int64Array
from runtime.operators.aggregate.accumulators import FoldAccumulator, Pairs, Values

_MOST = 2**63 - 1
_FAR = 2.0**62


class WholeSum(FoldAccumulator):
    """A sum per cell, of a column of whole numbers.

    Raises (add, combined): OperatorError, a sum or a value does not fit int64; its `place` is
        that of the row, or of the result.
    """

    def __init__(self, column: str, values: Values) -> None:
        super().__init__(np.add, np.int64, 0, values)
        self._column, self._of_batch = column, values
        self._at_most = 0  # the absolute values of all cells come to no more

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:
        """Take rows."""
        cells, values = self._of_batch(batch, cells)
        if not len(values):
            return self._fold(cells, values, size)
        least, most = ends_of(values)
        if most > _MOST:
            raise self._too_large(int(values.argmax()), f"{most} does not fit int64")
        more = max(-least, most) * len(values)
        self._at_most += more
        if self._at_most > _MOST:
            self._at_most = self._absolute() + more
        if self._at_most <= _MOST:
            return self._fold(cells, values, size)
        return self._add_slowly(cells, size, values.astype(np.int64))

    def combined(self, pairs: Pairs) -> npt.NDArray[Any]:
        """Return the sum over the cells of each result."""
        results = super().combined(pairs)
        if self._at_most > _MOST:
            about = np.zeros(pairs.size)
            np.add.at(about, pairs.results, self.state.take(pairs.cells).astype(np.float64))
            fits = np.abs(about - results) < _FAR
            if not fits.all():
                place = int(fits.argmin())
                cells = pairs.cells[pairs.results == place]
                total = sum(map(int, self.state.take(cells).tolist()))  # of Python: exact
                raise self._too_large(
                    place, f"that of its {len(cells)} panes is {total}, which does not fit int64"
                )
        return results

    def restore(self, state: list[npt.NDArray[Any]]) -> None:
        """Continue from a snapshot."""
        super().restore(state)
        self._at_most = self._absolute()

    def _absolute(self) -> int:
        return int(np.abs(self.state.astype(np.float64)).sum() * (1 + 1e-9)) + 1

    def _add_slowly(self, cells: Int64Array, size: int, values: Int64Array) -> None:
        before = np.zeros(size, dtype=np.int64)
        before[: len(self.state)] = self.state
        self._fold(cells, values, size)
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
            f".assign(x=col({self._column!r}).cast('float64'))",
            place,
        )
