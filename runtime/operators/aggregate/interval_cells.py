"""Cells of intervals: each has rows of a key, and is held until a time.

```
key a    [--cell 0--]      [-cell 2-]       cells of a key do not overlap; one interval may have
key b           [----cell 1----]            several, once a late row has closed the gap
```

Cells are numbered in order of first appearance, as those of panes are.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, Int64Array
from slackwater.runtime.model.divided import distinct, keep
from slackwater.runtime.model.stable_order import lexical_order, stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import ChangingArray, GrowableArray


class IntervalCells:
    """IntervalCells knows each cell's key and times, and the open cells of each key."""

    STATE = Fields(
        Field("_codes", of=OWNER), Field("_firsts", by="_codes"), Field("_lasts", by="_codes")
    )

    def __init__(self) -> None:
        self._codes = GrowableArray(np.int64, is_log=True)
        self._firsts = ChangingArray(np.int64)
        self._lasts = ChangingArray(np.int64)  # END_NS: the cell has left
        self._newest = GrowableArray(np.int64, fill=-1)  # by key: its newest open cell
        self._older = GrowableArray(np.int64, fill=-1)  # by cell: the open one before, of its key
        self.open = 0

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def codes(self) -> Int64Array:
        """The key's code of each cell."""
        return self._codes.values

    @property
    def firsts(self) -> Int64Array:
        """The time of the first row of each cell."""
        return self._firsts.values

    @property
    def lasts(self) -> Int64Array:
        """The last time until which rows hold each cell; END_NS: it has left."""
        return self._lasts.values

    def open_cells(self) -> Int64Array:
        """Return the open cells, ascending."""
        return np.flatnonzero(self.lasts < END_NS)

    def newest_of(self, codes: Int64Array) -> Int64Array:
        """Return the newest open cell of each key; −1 if it has none."""
        if len(codes) and (size := int(codes.max()) + 1) > len(self._newest):
            self._newest.resize(size)
        newest: Int64Array = self._newest.values.take(codes)
        return newest

    def of_keys(self, codes: Int64Array) -> Int64Array:
        """Return the open cells of some keys, by key, then by time."""
        known = distinct(codes)
        cells = self._newest.values.take(known[: known.searchsorted(len(self._newest))])
        each = []
        while len(cells := cells[cells >= 0]):
            each.append(cells)
            cells = self._older.values.take(cells)
        if len(each) <= 1:
            return np.concatenate([cells, *each])
        cells = np.concatenate(each)
        return cells.take(lexical_order((self.firsts.take(cells), self.codes.take(cells))))

    def add(self, codes: Int64Array, times: Int64Array) -> Int64Array:
        """Open cells, each with a first row; return their numbers."""
        size = len(self)
        self._codes.append(codes)
        self._firsts.append(times)
        self._lasts.append(times)
        self._older.resize(len(self))
        cells = np.arange(size, len(self))
        self._link(cells)
        return cells

    def add_for(self, rows: Int64Array, codes: Int64Array, times: Int64Array) -> Int64Array:
        """Open cells for some rows; return their numbers, which ascend as the rows do.

        Args:
            rows: shape (cells,), places of the rows that open them, in any order.
            codes: shape (all rows,), codes of the rows' keys.
            times: shape (all rows,), event times of the rows.
        """
        order = rows.argsort()
        ascending = rows.take(order)
        cells = np.empty_like(rows)
        cells[order] = self.add(codes.take(ascending), times.take(ascending))
        return cells

    def extend(self, cells: Int64Array, times: Int64Array, until: Int64Array) -> None:
        """Note rows of cells, with their times, and those until which they hold them."""
        self._firsts.change(np.minimum, cells, times)
        self._lasts.change(np.maximum, cells, until)

    def leave(self, cells: Int64Array) -> None:
        """Close some open cells."""
        self._lasts.change(np.maximum, cells, END_NS)
        others = self.of_keys(self.codes.take(cells))
        self._newest.values[self.codes.take(cells)] = -1
        self.open -= len(others)
        self._link(np.sort(others[self.lasts.take(others) < END_NS]))

    def begin_again(self, cells: Int64Array) -> Int64Array:
        """Close some open cells, and open others of their keys and times; return their numbers."""
        codes, times, until = (each.take(cells) for each in (self.codes, self.firsts, self.lasts))
        self.leave(cells)
        again = self.add(codes, times)
        self.extend(again, times, until)
        return again

    def keep(self, cells: Int64Array) -> None:
        """Forget all other cells; `cells` ascends."""
        keep(self, "_codes", cells)

    def derive(self) -> None:  # noqa: D102
        self._newest = GrowableArray(np.int64, fill=-1)
        self._older = GrowableArray(np.int64, fill=-1)
        self._older.resize(len(self))
        self.open = 0
        self._link(self.open_cells())

    def _link(self, cells: Int64Array) -> None:
        """Add ascending open cells to those of their keys."""
        self.open += len(cells)
        if not len(cells):
            return
        by_key = cells.take(stable_order(self.codes.take(cells)))
        codes = self.codes.take(by_key)
        if codes[-1] >= len(self._newest):
            self._newest.resize(int(codes[-1]) + 1)
        is_first = np.append(True, codes[1:] != codes[:-1])
        before = self._newest.values.take(codes)
        self._older.values[by_key] = np.where(is_first, before, np.append(-1, by_key[:-1]))
        is_last = np.append(is_first[1:], True)
        self._newest.values[codes[is_last]] = by_key[is_last]
