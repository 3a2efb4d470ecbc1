"""Partial results beside the source: a row for each key and pane of a batch.

```
source ─▶ combine                              ─▶ gate, aggregate
          a 3, a 5, b 1 of one second ─▶ a n=2 sum=8, b n=1 sum=1
```

The aggregate adds partial results up in place of rows. Which these are, and where a bit of a result
may change, is in `partial_aggregates.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.expressions.whole import ends_of
from slackwater.runtime.model import Batch, Column, Columns, Int64Array, concat_columns
from slackwater.runtime.model.nullable import Nullable, nulled, valid_of
from slackwater.runtime.operators.aggregate.needs import fold_of
from slackwater.runtime.operators.aggregate.step import CombineStep
from slackwater.runtime.operators.aggregate.window import Windows
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.contract import PlainStateless
from slackwater.runtime.operators.ground.keys import KeyIndex

__all__ = ["CombineMachine"]

_FEW_ROWS = 256
"""A smaller batch is not combined: that would take longer than the rows at their gate."""
_MOST_KEYS = 65_536
"""With more keys, those that are known are forgotten: only their codes of a batch matter."""
_LARGEST = 2**62


class CombineMachine(PlainStateless):
    """The machine of a `CombineStep`: no result depends on an earlier batch.

    It remembers keys and their codes, which saves looking for a row of each again.
    """

    def __init__(self, step: CombineStep) -> None:
        of = step.of
        self._aggregates, self._key_names = step.aggregates, of.keys
        self._windows = Windows(of.window)
        self._forget_keys()
        sums = [
            aggregate.column
            for name, aggregate in step.aggregates.items()
            if aggregate.kind == "sum" and pa.types.is_integer(step.schema.field(name).type)
        ]
        self._sums = [column for column in dict.fromkeys(sums) if column is not None]

    def _forget_keys(self) -> None:
        self._keys = KeyIndex(len(self._key_names))
        self._key_columns: list[Column] = []  # the key of each code
        self._known = 0  # number of these codes

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        times = batch.event_time_ns
        rows = len(times)
        if rows < _FEW_ROWS or not self._fits(batch, rows):
            return self._alone(batch)
        if self._known > _MOST_KEYS:
            self._forget_keys()
        columns = [batch.columns[name] for name in self._key_names]
        cells, known = self._keys.codes(columns, rows), self._known
        keys = self._known = len(self._keys)
        if keys > known:
            self._add_keys(columns, cells, known)
        first, last = self._windows.panes_of(np.array(ends_of(times))).tolist()
        size = (last - first + 1) * keys
        if size > 4 * rows:  # cells are as many as rows: little is gained
            return self._alone(batch)
        if last > first:
            panes = self._windows.panes_of(times) - first
            panes *= keys
            cells += panes
        return self._combined(batch, cells, size, first=first, keys=keys)

    def _add_keys(self, columns: list[Column], codes: Int64Array, known: int) -> None:
        """Remember the keys of new codes, which are those from `known` on."""
        rows = (codes >= known).nonzero()[0]
        row_of = np.empty(self._known - known, dtype=np.int64)
        row_of[codes.take(rows) - known] = rows
        new = [column.take(row_of) for column in columns]
        both = zip(self._key_columns, new, strict=True) if known else ((column,) for column in new)
        self._key_columns = [concat_columns(parts) for parts in both]

    def _combined(
        self, batch: Batch, cells: Int64Array, size: int, *, first: int, keys: int
    ) -> Batch:
        """Return a row for each cell, in the order of panes.

        Args:
            batch: rows that are put together.
            cells: shape (rows,), the cell of each, less than `size`.
            size: number of possible cells.
            first: pane of the first cells.
            keys: number of cells of each pane.
        """
        rows = np.bincount(cells, minlength=size)
        there = rows.nonzero()[0]
        panes = there // keys
        codes = there - panes * keys
        columns = {
            name: column.take(codes)
            for name, column in zip(self._key_names, self._key_columns, strict=True)
        }
        for name, aggregate in self._aggregates.items():
            columns[name] = _of_cells(batch, aggregate, cells, rows, there)
        marks = batch.marks
        if marks is not None:
            of_cells = np.zeros(size, dtype=marks.dtype)
            np.bitwise_or.at(of_cells, cells, marks)
            marks = of_cells.take(there)
        return Batch(
            event_time_ns=self._windows.lasts_ns(panes + first),
            stimulus_time_ns=_latest(batch.stimulus_time_ns, cells, size).take(there),
            columns=columns,
            marks=marks,
        )

    def _fits(self, batch: Batch, rows: int) -> bool:
        """Whether no partial sum of the batch leaves 64 bits."""
        for name in self._sums:
            least, most = ends_of(_values_of(batch.columns[name]))
            if max(abs(least), abs(most)) * rows >= _LARGEST:
                return False
        return True

    def _alone(self, batch: Batch) -> Batch:
        """Return each row as a partial result of its own."""
        columns: Columns = {name: batch.columns[name] for name in self._key_names}
        for name, aggregate in self._aggregates.items():
            if aggregate.kind == "count":
                columns[name] = _counted(batch, aggregate)
            else:
                assert aggregate.column is not None, "only a count needs no column"
                column = batch.columns[aggregate.column]
                columns[name] = _widened(column) if aggregate.kind == "sum" else column
        times = self._windows.lasts_ns(self._windows.panes_of(batch.event_time_ns))
        return batch.with_(event_time_ns=times, columns=columns, writers=None)


def _latest(stimuli: Int64Array, cells: Int64Array, size: int) -> Int64Array:
    """Return the latest stimulus of each cell."""
    earliest, latest = ends_of(stimuli)
    of_cells = np.full(size, earliest, dtype=np.int64)
    if latest > earliest:  # rows that are read at once have one
        np.maximum.at(of_cells, cells, stimuli)
    return of_cells


def _of_cells(
    batch: Batch, aggregate: Aggregate, cells: Int64Array, rows: Int64Array, there: Int64Array
) -> Column:
    """Return an aggregate of each cell that has rows; null where it has no value.

    Args:
        batch: rows that are put together.
        aggregate: the aggregate of rows.
        cells: shape (rows of the batch,), the cell of each.
        rows: shape (cells,), the number of rows of each.
        there: cells that have rows.
    """
    if aggregate.column is None:
        return rows.take(there)
    size = len(rows)
    column = batch.columns[aggregate.column]
    valid = valid_of(column)
    own = cells if valid is None else cells[valid]
    if aggregate.kind == "count":
        return np.bincount(own, minlength=size).take(there)
    values = _values_of(column)
    values = values if valid is None else values[valid]
    state: npt.NDArray[Any]
    if aggregate.kind != "sum":
        ufunc, identity = fold_of(aggregate.kind, values.dtype)
        state = np.full(size, identity, dtype=values.dtype)
        with np.errstate(invalid="ignore"):  # NaN
            ufunc.at(state, own, values)
    elif values.dtype.kind == "f":
        state = np.bincount(own, weights=values, minlength=size)
    else:
        state = np.zeros(size, dtype=np.int64)
        np.add.at(state, own, values.astype(np.int64, copy=False))
    if valid is None:
        return state.take(there)
    has_value = np.zeros(size, dtype=np.bool_)
    has_value[own] = True
    return nulled(state.take(there), has_value.take(there))


def _counted(batch: Batch, aggregate: Aggregate) -> Int64Array:
    valid = None if aggregate.column is None else valid_of(batch.columns[aggregate.column])
    if valid is None:
        return np.ones(len(batch.event_time_ns), dtype=np.int64)
    return valid.astype(np.int64)


def _values_of(column: Column) -> npt.NDArray[Any]:
    values = column.values if isinstance(column, Nullable) else column
    assert isinstance(values, np.ndarray), "numbers are arrays of NumPy"
    return values


def _widened(column: Column) -> Column:
    """Return numbers as sums have them: 64 bits."""
    values = _values_of(column)
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
    return Nullable(values, column.valid) if isinstance(column, Nullable) else values
