"""Accumulators hold the state of cells: a count, sum, minimum or maximum, or all values.

Rows are added one after the other in the order of the stream, so how they were cut into batches
does not show, to the bit. Panes are combined in their order when a window closes. So a float sum
over a sliding window may differ in its last bit from one sum over all its rows, but never between
runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.row_marks import Marks, are_retracted
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.ranges import Ranges
from slackwater.runtime.operators.aggregate.runs import Runs, scan
from slackwater.runtime.operators.ground.arrays import ChangingArray, GrowableArray, order_of_floats

Values = Callable[[Batch, Int64Array], tuple[Int64Array, Any]]
"""The values of a batch for an accumulator: the cells of rows, and an array of as many values, or
one for all. A row without a value is left out."""


class Pairs(NamedTuple):
    """Pairs of cells and results: the cells that each result is computed from."""

    cells: Int64Array
    results: Int64Array
    size: int
    """The number of results."""
    are_single: bool = False
    """Whether each result is one cell, in order."""

    @property
    def firsts(self) -> Int64Array:
        """The first cell of each result, where results ascend and each has one."""
        cells: Int64Array = self.cells.take(self.results.searchsorted(np.arange(self.size)))
        return cells


class Accumulator(Protocol):
    """An accumulator holds one state per cell; what is saved is divided by cells."""

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:
        """Take rows; `cells` has shape (rows,), each less than `size`."""

    def combined(self, pairs: Pairs) -> Any:
        """Return the state of each result."""


def signs_of(batch: Batch) -> npt.NDArray[np.int8] | None:
    """Return −1 for each retracted row, else 1; None if no row is."""
    if batch.marks is None:
        return None
    retracted = are_retracted(batch.marks)
    return np.where(retracted, -1, 1).astype(np.int8) if retracted.any() else None


class RunningAccumulator(Protocol):
    """An accumulator that has a state after each row, too."""

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Any:
        """Take rows, and return the state after each entry of their runs.

        Args:
            batch: rows that count in the state.
            places: shape (rows,), their places in the read.
            runs: runs of all rows of the read.
            size: number of all cells.
        """


class RangeAccumulator(Protocol):
    """An accumulator that knows states of ranges of rows without having taken them."""

    def over(self, batch: Batch, places: Int64Array, rows: int, ranges: Ranges) -> Any:
        """Return the state of each range; nothing is changed.

        Args:
            batch: rows that count in the state.
            places: shape (rows,), their places among all rows, ascending.
            rows: number of all rows.
            ranges: ranges of all rows.
        """


class FoldAccumulator:
    """A fold holds one number per cell: `ufunc` over the values, beginning with its identity."""

    STATE = Fields(Field("_state", by=OWNER))

    def __init__(
        self, ufunc: np.ufunc, dtype: npt.DTypeLike, identity: Any, values: Values
    ) -> None:
        self._ufunc, self._identity, self._values = ufunc, identity, values
        self._state = ChangingArray(dtype, fill=identity)
        self._dtype = self._state.values.dtype

    @property
    def state(self) -> npt.NDArray[Any]:  # noqa: D102
        return self._state.values

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:
        """Take rows, in order: `ufunc.at` works from the first to the last.

        NaN and infinity propagate, as documented: the caller has silenced NumPy.
        """
        self.fold(*self._values(batch, cells), size)

    def fold(self, cells: Int64Array, values: Any, size: int) -> None:
        """Take values, in order."""
        if size > len(self._state):
            self._state.resize(size)
        if not len(cells):  # the nulls of a column: usually none
            return
        if isinstance(values, np.ndarray):
            values = values.astype(self._dtype, copy=False)
        self._state.change(self._ufunc, cells, values)

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> npt.NDArray[Any]:
        """Take rows, and return the state after each entry; see `RunningAccumulator`."""
        rows, values = self._values(batch, np.arange(len(places)))
        signs = signs_of(batch)
        if signs is not None:  # only sums have rows that are taken out
            values = values * signs.take(rows)
        return self.run(places.take(rows), values, runs, size)

    def over(self, batch: Batch, places: Int64Array, rows: int, ranges: Ranges) -> Any:
        """Return the state of each range of rows; see `RangeAccumulator`."""
        own, values = self._values(batch, np.arange(len(places)))
        return self.reduced(places.take(own), values, rows, ranges)

    def reduced(self, places: Int64Array, values: Any, rows: int, ranges: Ranges) -> Any:
        """Return the state of each range of so many rows, some of which have values."""
        if not len(places):
            return np.full(len(ranges.starts), self._identity, dtype=self._dtype)
        entries = np.full(rows, self._identity, dtype=self._dtype)
        entries[places] = values
        return ranges.reduced(self._ufunc, entries, self._identity)

    def cover(self, size: int) -> None:
        """Have a state for each of so many cells."""
        if size > len(self._state):
            self._state.resize(size)

    def tried(self, values: Any, runs: Runs, size: int) -> npt.NDArray[Any]:
        """Return the state after each entry as if rows with these values had come."""
        self.cover(size)
        entries = np.empty(runs.size, dtype=self._dtype)
        entries[runs.at] = values
        entries[runs.starts] = self.state.take(runs.cells)
        scan(self._ufunc, entries, runs.starts)
        return entries

    def run(self, places: Int64Array, values: Any, runs: Runs, size: int) -> npt.NDArray[Any]:
        """Take values of some rows, and return the state after each entry."""
        if size > len(self._state):
            self._state.resize(size)
        before = self.state.take(runs.cells)
        if runs.fresh is not None:
            before[runs.fresh] = self._identity
        if not len(places):
            if runs.fresh is not None:
                self._state.put(runs.cells, before)
            return before.repeat(runs.lengths)
        entries = np.full(runs.size, self._identity, dtype=self._dtype)
        entries[runs.at.take(places)] = values
        entries[runs.starts] = before
        scan(self._ufunc, entries, runs.starts)
        self._state.put(runs.cells, entries.take(runs.ends))
        return entries

    def combined(self, pairs: Pairs) -> npt.NDArray[Any]:  # noqa: D102 - see Accumulator
        if pairs.are_single:
            return self.state.take(pairs.cells)
        results = np.full(pairs.size, self._identity, dtype=self._dtype)
        with np.errstate(all="ignore"):
            self._ufunc.at(results, pairs.results, self.state.take(pairs.cells))
        return results


class MarkAccumulator:
    """Marks accumulate per cell: a cell has the marks of all its rows.

    Nothing is allocated until a row has a mark.
    """

    STATE = Fields(Field("_state", by=OWNER), elements={"_state": "_new_state"})

    def __init__(self) -> None:
        self._state: ChangingArray | None = None

    def _new_state(self) -> ChangingArray:
        return ChangingArray(np.uint8)

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - see Accumulator
        if batch.marks is None:
            return
        if self._state is None:
            self._state = self._new_state()
        self._cover(size)
        self._state.change(np.bitwise_or, cells, batch.marks)

    def running(self, batch: Batch, runs: Runs, size: int) -> Marks | None:
        """Take rows, and return the marks after each of them; None if none has any."""
        if batch.marks is None and self._state is None:
            return None
        if self._state is None:
            self._state = self._new_state()
        self._cover(size)
        entries: Marks = np.zeros(runs.size, dtype=np.uint8)
        if batch.marks is not None:
            entries[runs.at] = batch.marks
        entries[runs.starts] = self._state.values.take(runs.cells)
        scan(np.bitwise_or, entries, runs.starts)
        self._state.put(runs.cells, entries.take(runs.ends))
        marks: Marks = entries.take(runs.at)
        return marks if marks.any() else None

    def _cover(self, size: int) -> None:
        if self._state is not None and size > len(self._state):
            self._state.resize(size)

    def combined(self, pairs: Pairs) -> Marks | None:
        """Return the marks of each result; None if no result has any."""
        if self._state is None or not len(pairs.cells):
            return None
        self._cover(int(pairs.cells.max()) + 1)
        results: Marks = np.zeros(pairs.size, dtype=np.uint8)
        np.bitwise_or.at(results, pairs.results, self._state.values.take(pairs.cells))
        return results if results.any() else None


class SortedValues(NamedTuple):
    """Sorted values of all results, one result after the other; `starts` has their places."""

    values: npt.NDArray[np.float64]
    starts: Int64Array
    counts: Int64Array


class ValueAccumulator:
    """A ValueAccumulator keeps all values of each cell, for exact quantiles.

    Memory grows with open panes.
    """

    STATE = Fields(Field("_cells", of=OWNER), Field("_values", by="_cells"))

    def __init__(self, values: Values) -> None:
        self._of_batch = values
        self._cells = GrowableArray(np.int64, is_log=True)
        self._values = GrowableArray(np.float64, is_log=True)

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - no state per cell
        cells, values = self._of_batch(batch, cells)
        self._cells.append(cells)
        self._values.append(values)

    def combined(self, pairs: Pairs) -> SortedValues:
        """Return all values of each result, sorted."""
        # Group the log by cell, then copy each cell's group into the results that it is part of.
        cells = self._cells.values
        by_cell = stable_order(cells)
        grouped = cells[by_cell]
        starts = grouped.searchsorted(pairs.cells)
        counts = grouped.searchsorted(pairs.cells, "right") - starts
        entries, places = unfold(starts, counts)
        results = pairs.results.take(entries)
        values = self._values.values.take(by_cell.take(places))
        order = order_of_floats(values).argsort()
        values = values.take(order.take(stable_order(results.take(order))))
        sizes = np.bincount(results, minlength=pairs.size)
        return SortedValues(values, sizes.cumsum() - sizes, sizes)


def quantile(of: SortedValues, level: float) -> npt.NDArray[np.float64]:
    """Return the quantile of each result: linear between neighbours, as `np.quantile` computes it.

    0 if a result has no values. Next to one infinite value the quantile is that value, and
    between both infinities the nearer.
    """
    if not len(of.values):
        return np.zeros(len(of.counts))
    highest = np.maximum(of.counts - 1, 0)
    place = highest * level
    below = np.floor(place).astype(np.int64)
    part = place - below
    low = of.values.take(of.starts + below, mode="clip")
    high = of.values.take(of.starts + np.minimum(below + 1, highest), mode="clip")
    with np.errstate(invalid="ignore", over="ignore"):  # inf − inf, and 1e308 + 1e308
        step = high - low
        values = np.where(part >= 0.5, high - step * (1 - part), low + step * part)
        if not np.isfinite(step).all():
            values = np.where(np.isfinite(step), values, _beside_infinity(low, high, part))
    return np.where(of.counts == 0, 0.0, values)


def _beside_infinity(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], part: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    nearer = np.where(part < 0.5, low, high)
    between = np.where(np.isinf(low) & np.isinf(high), nearer, low * (1 - part) + high * part)
    return np.where((part == 0) | (low == high), low, between)
