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
from slackwater.runtime.model import START_NS, Batch, Column, Columns, Int64Array
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

    It remembers codes of keys, which saves finding them again.
    """

    def __init__(self, step: CombineStep) -> None:
        of = step.of
        self._aggregates, self._key_names = step.aggregates, of.keys
        self._pane_ns = Windows(of.window).pane_ns
        self._keys = KeyIndex(len(of.keys))
        sums = [
            aggregate.column
            for name, aggregate in step.aggregates.items()
            if aggregate.kind == "sum" and pa.types.is_integer(step.schema.field(name).type)
        ]
        self._sums = [column for column in dict.fromkeys(sums) if column is not None]

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        times = batch.event_time_ns
        rows = len(times)
        panes = times // self._pane_ns
        if rows < _FEW_ROWS or not self._fits(batch, rows):
            return self._alone(batch, panes)
        if len(self._keys) > _MOST_KEYS:
            self._keys = KeyIndex(len(self._key_names))
        codes = self._keys.codes([batch.columns[name] for name in self._key_names], rows)
        keys, first = len(self._keys), panes.item(panes.argmin())
        size = (panes.item(panes.argmax()) - first + 1) * keys
        if size > 4 * rows:  # cells are as many as rows: little is gained
            return self._alone(batch, panes)
        return self._combined(batch, panes, (panes - first) * keys + codes, size)

    def _combined(self, batch: Batch, panes: Int64Array, cells: Int64Array, size: int) -> Batch:
        """Return a row for each cell, in the order of panes.

        Args:
            batch: the rows.
            panes: shape (rows,), the pane of each.
            cells: shape (rows,), the cell of each, less than `size`.
            size: number of possible cells.
        """
        rows = len(cells)
        last = np.full(size, -1, dtype=np.int64)
        last[cells] = np.arange(rows)  # of equal indices the last one stays
        there = (last >= 0).nonzero()[0]
        last = last.take(there)
        columns = {name: batch.columns[name].take(last) for name in self._key_names}
        for name, aggregate in self._aggregates.items():
            columns[name] = _of_cells(batch, aggregate, cells, size, there)
        stimuli = np.full(size, START_NS, dtype=np.int64)
        np.maximum.at(stimuli, cells, batch.stimulus_time_ns)
        marks = batch.marks
        if marks is not None:
            of_cells = np.zeros(size, dtype=marks.dtype)
            np.bitwise_or.at(of_cells, cells, marks)
            marks = of_cells.take(there)
        return Batch(
            event_time_ns=(panes.take(last) + 1) * self._pane_ns - 1,
            stimulus_time_ns=stimuli.take(there),
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

    def _alone(self, batch: Batch, panes: Int64Array) -> Batch:
        """Return each row as a partial result of its own."""
        columns: Columns = {name: batch.columns[name] for name in self._key_names}
        for name, aggregate in self._aggregates.items():
            if aggregate.kind == "count":
                columns[name] = _counted(batch, aggregate)
            else:
                assert aggregate.column is not None, "only a count needs no column"
                column = batch.columns[aggregate.column]
                columns[name] = _widened(column) if aggregate.kind == "sum" else column
        times = (panes + 1) * self._pane_ns - 1
        return batch.with_(event_time_ns=times, columns=columns, writers=None)


def _of_cells(
    batch: Batch, aggregate: Aggregate, cells: Int64Array, size: int, there: Int64Array
) -> Column:
    """Return an aggregate of each cell that has rows; null where it has no value."""
    if aggregate.column is None:
        return np.bincount(cells, minlength=size).take(there)
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
