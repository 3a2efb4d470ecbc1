"""Values of each cell, each with the number of its rows.

```
rows of a cell   5  7  5  −5  −5        numbers   5: 1 1 2 1 0   7: 0 1 1 1 1
                                        least     5 5 5 5 7
```
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.divided import keep
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import (
    FoldAccumulator,
    Values,
    signs_of,
)
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.ground.arrays import GrowableArray, order_of_floats
from slackwater.runtime.operators.ground.codes import IntCodes
from slackwater.runtime.operators.ground.keys import KeyIndex

_HALF = 32
_COUNTED = (
    "_values",
    Field("_pair_cells", of=OWNER),
    Field("_pair_values", by="_pair_cells"),
    Field("_pair_counts", by="_pair_cells"),
    Field("_distinct", by=OWNER),
)


class Distinct(NamedTuple):
    """Numbers of values that differ."""

    counts: Int64Array


class CountedPairs(NamedTuple):
    """Rows with a value: their places, their pairs, and numbers of rows.

    Attributes:
        places: shape (rows,), their places in the read.
        pairs: shape (rows,), the pair of each.
        counts: shape (rows,), the number of rows of the pair after each.
        signs: shape (rows,), −1 for rows that are taken out.
    """

    places: Int64Array
    pairs: Int64Array
    counts: Int64Array
    signs: Int64Array


class CountedValues:
    """CountedValues holds the values of each cell without nulls, and how many rows have each.

    A value of a cell is a pair, of a cell and the code of the value.

    Args:
        column: the column of the values.
    """

    STATE = Fields(*_COUNTED)

    def __init__(self, column: str) -> None:
        self._column = column
        self._values = KeyIndex(1)
        self._pair_cells = GrowableArray(np.int64, is_log=True)
        self._pair_values = GrowableArray(np.int64, is_log=True)
        self._pair_counts = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._distinct = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._pairs = IntCodes()
        self._tidied = 0

    def __len__(self) -> int:
        return len(self._pair_cells)

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Any:
        """Take rows, and return the number of values after each entry.

        See `RunningAccumulator`.
        """
        if len(self) > 2 * self._tidied + 1024:
            self.tidy()
        counted = self._count(batch, places, runs)
        return Distinct(self._changed(counted, runs, size))

    def unknown(self, batch: Batch, places: Int64Array, cells: Int64Array) -> Int64Array:
        """Return places of rows that take out a value which is not there.

        Args:
            batch: rows that count in the state.
            places: shape (rows,), their places in the read.
            cells: shape (rows,), their cells.
        """
        column, rows = self._there(batch)
        signs = signs_of(batch)
        if signs is None or not len(rows):
            return places[:0]
        pairs = self._pairs_of(cells.take(rows), column)
        of_pairs = Runs.of(pairs)
        counts = self._pair_counts.tried(signs.take(rows), of_pairs, len(self._pairs))
        return places.take(rows[counts.take(of_pairs.at) < 0])

    def _count(self, batch: Batch, places: Int64Array, runs: Runs) -> CountedPairs:
        column, rows = self._there(batch)
        signs = signs_of(batch)
        own = np.ones(len(rows), np.int64) if signs is None else signs.take(rows).astype(np.int64)
        places = places.take(rows)
        if not len(places):
            return CountedPairs(places, places, places, own)
        cells = runs.cells.repeat(runs.lengths).take(runs.at.take(places))
        pairs = self._pairs_of(cells, column)
        of_pairs = Runs.of(pairs)
        every = np.arange(len(pairs))
        counts = self._pair_counts.run(every, own, of_pairs, len(self._pairs))
        return CountedPairs(places, pairs, counts.take(of_pairs.at), own)

    def _changed(self, counted: CountedPairs, runs: Runs, size: int) -> Int64Array:
        """Return the number of values after each entry."""
        is_new = (counted.counts == 1) & (counted.signs > 0)
        is_gone = (counted.counts == 0) & (counted.signs < 0)
        changes = is_new.astype(np.int64) - is_gone
        numbers: Int64Array = self._distinct.run(counted.places, changes, runs, size)
        return numbers

    def _there(self, batch: Batch) -> tuple[Column, Int64Array]:
        """Return the values without nulls, and the rows that have them."""
        column = batch.columns[self._column]
        valid = valid_of(column)
        if valid is None:
            return column, np.arange(len(batch))
        rows = valid.nonzero()[0]
        column = column.take(rows)
        return (column.values if isinstance(column, Nullable) else column), rows

    def _pairs_of(self, cells: Int64Array, column: Column) -> Int64Array:
        codes = self._values.codes([column], len(cells))
        known = len(self._pairs)
        pairs = self._pairs.codes(cells << _HALF | codes)
        both = self._pairs.values[known:]
        self._pair_cells.append(both >> _HALF)
        self._pair_values.append(both & ((1 << _HALF) - 1))
        self._pair_counts.cover(len(self._pairs))
        return pairs

    def tidy(self) -> None:
        """Forget values without rows."""
        alive = self._pair_counts.state.nonzero()[0]
        if len(alive) < len(self):
            keep(self, "_pair_cells", alive)
        self._tidied = len(self)

    def derive(self) -> None:  # noqa: D102
        used = np.unique(self._pair_values.values)
        if len(self._values) > 2 * len(used):
            moved = self._values.keep(used)
            self._pair_values.replace(moved.take(self._pair_values.values))
        self._pairs.replace(self._pair_cells.values << _HALF | self._pair_values.values)


class CountedExtremes(CountedValues):
    """The least or greatest of counted values of each cell.

    Each cell has a heap of its values. A value without rows goes once it is the first there.

    Args:
        column: the column of the values.
        is_least: whether it is the least; else the greatest.
        identity: the state of a cell without values.
        dtype: type of the state.
        values: returns the values as numbers.
    """

    STATE = Fields(*_COUNTED, Field("_numbers", by="_pair_cells"))

    def __init__(
        self,
        column: str,
        *,
        is_least: bool,
        identity: Any,
        dtype: npt.DTypeLike,
        values: Values,
    ) -> None:
        super().__init__(column)
        self._numbers = GrowableArray(dtype, is_log=True)
        self._is_least, self._identity, self._numbers_of = is_least, identity, values
        self._heaps: dict[int, list[tuple[int, int]]] | None = None  # {cell: (key, pair)}

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Any:  # noqa: D102
        if len(self) > 2 * self._tidied + 1024:
            self.tidy()
        heaps = self._known_heaps()
        counted = self._count(batch, places, runs)
        self._changed(counted, runs, size)
        entries = np.full(runs.size, self._identity, dtype=self._numbers.values.dtype)
        numbers, state = self._numbers.values, self._pair_counts.state
        at, pairs, counts = runs.at.take(counted.places), counted.pairs, counted.counts
        keys = self._keys_of(numbers.take(pairs)).tolist()
        rows = zip(pairs.tolist(), counts.tolist(), keys, strict=True)
        changes = dict(zip(at.tolist(), rows, strict=True))
        # Rows of each pair before the first row of the read, then before the next row.
        before = counts - counted.signs
        live = dict(zip(pairs.tolist()[::-1], before.tolist()[::-1], strict=True))
        bounds = (runs.cells.tolist(), runs.starts.tolist(), (runs.ends + 1).tolist())
        for cell, start, stop in zip(*bounds, strict=True):
            heap = heaps.setdefault(cell, [])
            for entry in range(start, stop):
                if entry in changes:
                    pair, count, key = changes[entry]
                    if count > live[pair] == 0:
                        heappush(heap, (key, pair))
                    live[pair] = count
                while heap and not live.get(heap[0][1], state.item(heap[0][1])):
                    heappop(heap)
                if heap:
                    entries[entry] = numbers[heap[0][1]]
        return entries

    def _pairs_of(self, cells: Int64Array, column: Column) -> Int64Array:
        known = len(self._pairs)
        pairs = super()._pairs_of(cells, column)
        if len(self._pairs) > known:
            rows = Batch(
                event_time_ns=cells, stimulus_time_ns=cells, columns={self._column: column}
            )
            _, values = self._numbers_of(rows, cells)
            new, first = np.unique(pairs, return_index=True)
            first = first[new >= known]
            self._numbers.append(values.take(first).astype(self._numbers.values.dtype))
        return pairs

    def _known_heaps(self) -> dict[int, list[tuple[int, int]]]:
        if self._heaps is None:
            self._heaps = {}
            alive = self._pair_counts.state.nonzero()[0]
            keys = self._keys_of(self._numbers.values.take(alive))
            cells = self._pair_cells.values.take(alive)
            order = keys.argsort(kind="stable")  # so each list is a heap
            for place in order.tolist():
                entry = (keys.item(place), alive.item(place))
                self._heaps.setdefault(cells.item(place), []).append(entry)
        return self._heaps

    def _keys_of(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return whole numbers of which the least is the number that is sought."""
        keys = order_of_floats(numbers) if numbers.dtype.kind == "f" else numbers
        return keys if self._is_least else ~keys

    def derive(self) -> None:  # noqa: D102
        super().derive()
        self._heaps = None
