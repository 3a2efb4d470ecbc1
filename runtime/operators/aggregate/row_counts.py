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
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import InCells, Left
from slackwater.runtime.operators.aggregate.interval_words import Rows
from slackwater.runtime.operators.ground.arrays import places_in_runs, starts_of_runs

_NO_CELLS = np.empty(0, dtype=np.int64)


class RowCounts:
    """RowCounts are an `IntervalRule`: the oldest open cell of a key begins a window."""

    STATE = Fields()

    def __init__(self, window: Rows) -> None:
        self._rows = gcd(window.size, window.every)  # of a cell
        self._size, self._every = window.size // self._rows, window.every // self._rows
        self._filled: list[Int64Array] = []  # cells filled by the rows of this read, in order

    def over_ns(self, until_ns: int) -> int:
        """Return the end once it has come: no row is late before."""
        return END_NS if until_ns == END_NS else START_NS

    def over_after(self, cells: IntervalCells, codes: Int64Array, held: Int64Array) -> Int64Array:
        """Return the places of rows that fill a cell, ascending."""
        order, _, number = self._numbered(cells, codes, held)
        return np.sort(order[number % self._rows == self._rows - 1])

    def _numbered(
        self, cells: IntervalCells, codes: Int64Array, held: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return rows by key, those in their newest cells, and their numbers."""
        order = codes.argsort(kind="stable")
        by_key = codes.take(order)
        newest = cells.newest_of(by_key)  # −1 where a key has none
        has = np.append(held, 0).take(newest) % self._rows
        return order, has, has + places_in_runs(starts_of_runs(by_key), len(by_key))

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
        order, has, number = self._numbered(cells, codes, held)
        newest = cells.newest_of(codes.take(order))
        place = number % self._rows
        opens = place == 0
        opening = np.sort(order[opens])  # by appearance
        made = cells.add(codes.take(opening), batch.event_time_ns.take(opening))
        cell = np.full(len(order), -1)
        cell[opens] = made.take(opening.searchsorted(order[opens]))
        opened = cell.take(np.maximum.accumulate(np.where(opens, np.arange(len(order)), 0)))
        cell = np.where((has > 0) & (number < self._rows), newest, opened)
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
        own = own.take(np.lexsort((own, cells.codes.take(own))))  # in the order of their rows
        starts = starts_of_runs(cells.codes.take(own))
        counts = np.diff(starts, append=len(own))
        full = np.add.reduceat((held.take(own) == self._rows).astype(np.int64), starts)
        whole = np.maximum((full - self._size) // self._every + 1, 0)
        windows = -(-counts // self._every) if is_end else whole
        keys, numbers = unfold(np.zeros(len(windows), np.int64), windows)
        if not len(keys):
            return None
        first = starts.take(keys) + numbers * self._every
        stop = np.minimum(first + self._size, (starts + counts).take(keys))
        is_rest = numbers >= whole.take(keys)
        turn = np.full(len(cells), len(filled))  # those that the end closes are last
        turn[filled] = np.arange(len(filled))
        turn = np.where(is_rest, len(filled), turn.take(own.take(stop - 1)))
        order = np.lexsort((own.take(first), turn))
        first, stop, is_rest = first.take(order), stop.take(order), is_rest.take(order)
        results, entries = unfold(first, stop - first)
        pairs = Pairs(own.take(entries), results, len(order), are_single=len(entries) == len(order))
        lasts = cells.lasts.take(own)
        begins = np.append(0, (stop - first).cumsum())[:-1]
        ends_ns = np.maximum.reduceat(lasts.take(entries), begins)
        firsts_ns = np.minimum.reduceat(cells.firsts.take(own.take(entries)), begins)
        gone = counts if is_end else np.minimum(whole * self._every, counts)
        _, places = unfold(starts, gone)
        times = np.where(is_rest, LATEST_NS, ends_ns)
        return Left(pairs, firsts_ns, ends_ns, times, own.take(places))

    def still_open(  # noqa: D102 - see IntervalRule
        self, cells: IntervalCells, held: Int64Array, some: Int64Array, at_ns: int
    ) -> Left | None:
        del at_ns  # each window is one cell, where results leave early
        own = np.unique(some)
        own = own[(cells.lasts.take(own) < END_NS) & (held.take(own) < self._rows)]
        if not len(own):
            return None
        pairs = Pairs(own, np.arange(len(own)), len(own), are_single=True)
        lasts_ns = cells.lasts.take(own)
        return Left(pairs, cells.firsts.take(own), lasts_ns, lasts_ns, gone=own[:0])
