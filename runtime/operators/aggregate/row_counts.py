"""Count windows: so many rows of a key, in the order in which they come.

```
size 4, every 2    cells of gcd(4, 2) = 2 rows        a a │ a a │ a a │ a
                   windows                            [──0───)
                                                            [──1───)
                                                                  [──2──  leaves at the end
```

A window leaves with its last row. A late row is counted as it comes.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from slackwater.runtime.model import END_NS, LATEST_NS, START_NS, Batch, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs, unfold, unfolded
from slackwater.runtime.model.stable_order import lexical_order, stable_order
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import InCells, Left
from slackwater.runtime.operators.aggregate.interval_words import Rows
from slackwater.runtime.operators.ground.arrays import newest_marks, places_in_runs

_NO_CELLS = np.empty(0, dtype=np.int64)


class RowCounts:
    """RowCounts are an `IntervalRule`: the oldest open cell of a key begins a window."""

    STATE = Fields()
    past_end_ns: int | None = None

    def __init__(self, window: Rows) -> None:
        self._rows = gcd(window.size, window.every)  # of a cell
        self._size, self._every = window.size // self._rows, window.every // self._rows
        self._filled: list[Int64Array] = []  # cells filled by the rows of this read, in order

    def over_ns(self, until_ns: int) -> int:
        """Return the end once it has come: no row is late before."""
        return END_NS if until_ns == END_NS else START_NS

    def over_after(self, cells: IntervalCells, codes: Int64Array, held: Int64Array) -> Int64Array:
        """Return the places of rows that fill a cell, ascending."""
        order, _, numbers = self._numbered(cells, codes, held)
        return np.sort(order[numbers % self._rows == self._rows - 1])

    def _numbered(
        self, cells: IntervalCells, codes: Int64Array, held: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return rows by key, their cells that have room, else −1, and their numbers there."""
        order = stable_order(codes)
        by_key = codes.take(order)
        newest = cells.newest_of(by_key)
        has = np.append(held, 0).take(newest)
        newest[has == self._rows] = -1
        return order, newest, has % self._rows + places_in_runs(starts_of_runs(by_key), len(by_key))

    def take(  # noqa: D102 - see IntervalRule
        self,
        cells: IntervalCells,
        batch: Batch,
        codes: Int64Array,
        held: Int64Array,
        *,
        over_ns: int,
    ) -> InCells:
        if over_ns == END_NS:
            late = np.ones(len(codes), dtype=np.bool_)
            return InCells(_NO_CELLS, _NO_CELLS, late=late)
        order, cell, numbers = self._numbered(cells, codes, held)
        place = numbers % self._rows
        has_room = (cell >= 0) & (numbers < self._rows)
        opens = (place == 0) & ~has_room
        cell[opens] = cells.add_for(order[opens], codes, batch.event_time_ns)
        cell = cell.take(newest_marks(has_room | opens))
        of_rows = np.empty(len(codes), dtype=np.int64)
        of_rows[order] = cell
        is_full = np.empty(len(codes), dtype=np.bool_)
        is_full[order] = place == self._rows - 1
        self._filled.append(of_rows[is_full])
        return InCells(None, of_rows)

    def over(self, cells: IntervalCells, held: Int64Array, until_ns: int) -> Left | None:  # noqa: D102
        filled, self._filled = np.concatenate([*self._filled, _NO_CELLS]), []
        is_end = until_ns == END_NS
        own = cells.of_keys(cells.codes.take(cells.open_cells() if is_end else filled))
        if not len(own):
            return None
        own = own.take(lexical_order((own, cells.codes.take(own))))  # in the order of their rows
        starts = starts_of_runs(cells.codes.take(own))
        counts = np.diff(starts, append=len(own))
        full = np.add.reduceat((held.take(own) == self._rows).astype(np.int64), starts)
        whole = np.maximum((full - self._size) // self._every + 1, 0)
        windows = -(-counts // self._every) if is_end else whole
        keys, numbers = unfold(np.zeros(len(windows), np.int64), windows)
        first = starts.take(keys) + numbers * self._every
        stop = np.minimum(first + self._size, (starts + counts).take(keys))
        is_rest = numbers >= whole.take(keys)
        turn = np.full(len(cells), len(filled))  # those that the end closes are last
        turn[filled] = np.arange(len(filled))
        turn = np.where(is_rest, len(filled), turn.take(own.take(stop - 1)))
        order = lexical_order((own.take(first), turn))
        first, stop, is_rest = first.take(order), stop.take(order), is_rest.take(order)
        left = Left.of(cells, own, first, stop - first)
        if left is None:
            return None
        gone = counts if is_end else np.minimum(whole * self._every, counts)
        times_ns = np.where(is_rest, LATEST_NS, left.end_ns)
        return left._replace(event_time_ns=times_ns, gone=own.take(unfolded(starts, gone)))

    def still_open(  # noqa: D102 - see IntervalRule
        self, cells: IntervalCells, held: Int64Array, some: Int64Array, at_ns: int
    ) -> Left | None:
        del at_ns  # each window is one cell, where results leave early
        own = np.unique(some)
        own = own[(cells.lasts.take(own) < END_NS) & (held.take(own) < self._rows)]
        return Left.of(cells, own, np.arange(len(own)), np.ones(len(own), np.int64))
