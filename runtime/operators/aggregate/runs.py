"""Runs of a read: the rows of each key, and the state before them.

```
read    a b a c a        at  1 5 2 7 3        entries   a₀ a a a  b₀ b  c₀ c
                                                        └ the state before the run
```

A scan gives each entry the state after it, from the first row to the last: so its floats are added
as the stream has them, and no cut into reads shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.operators.ground.user_code import row_of

_CALL = 3
"""Cost of a step over many runs, relative to that of a scan of one run."""


class Runs(NamedTuple):
    """Rows of a read by cell; a cell's rows are a run, in order.

    Attributes:
        cells: shape (runs,), the cell of each.
        starts: shape (runs,), the entries that have the state before each run.
        at: shape (rows,), the entry of each row of the read.
        size: number of entries: rows and runs.
        fresh: shape (runs,), whether each begins without the state of its cell; None if none
            does. A cell may then have several runs, of which the last has its state.
    """

    cells: Int64Array
    starts: Int64Array
    at: Int64Array
    size: int
    fresh: BoolArray | None = None

    @classmethod
    def of(cls, cells: Int64Array, is_last: BoolArray | None = None) -> Runs:
        """Return the runs of rows with these cells, shape (rows,), at least one row.

        Args:
            cells: shape (rows,), the cell of each row.
            is_last: shape (rows,), whether a fresh run follows; None if none does.
        """
        order = stable_order(cells)
        in_order = cells.take(order)
        starts = starts_of_runs(in_order)
        fresh = None
        if is_last is not None:
            after = is_last.take(order)[:-1].nonzero()[0] + 1
            of_cells, starts = starts, np.union1d(starts, after)
            fresh = ~np.isin(starts, of_cells)
        lengths = np.diff(starts, append=len(cells))
        at = np.empty(len(cells), dtype=np.int64)
        at[order] = np.arange(1, len(cells) + 1) + np.arange(len(starts)).repeat(lengths)
        size = len(cells) + len(starts)
        return cls(in_order.take(starts), starts + np.arange(len(starts)), at, size, fresh)

    def row_at(self, rows: Batch, entry: int) -> str:
        """Return the row of an entry as text; "" if it has none."""
        places = (self.at == entry).nonzero()[0]
        return row_of(rows, int(places[0])) if len(places) else ""

    @property
    def lengths(self) -> Int64Array:
        """Shape (runs,), the entries of each."""
        return np.diff(self.starts, append=self.size)

    @property
    def ends(self) -> Int64Array:
        """Shape (runs,), the last entry of each."""
        return self.starts + (self.lengths - 1)


def scan(ufunc: np.ufunc, values: npt.NDArray[Any], starts: Int64Array) -> None:
    """Put at each place `ufunc` over the values of its run so far.

    Long runs are scanned one after the other, short ones together, step by step: both go from the
    first value to the last, so the result is the same to the bit.

    Args:
        ufunc: a function of two values.
        values: shape (places,), changed in place.
        starts: shape (runs,), where runs begin, ascending.
    """
    lengths = np.diff(starts, append=len(values))
    by_length = (-lengths).argsort(kind="stable")
    lengths, starts = lengths.take(by_length), starts.take(by_length)
    costs = np.arange(len(starts) + 1)
    costs[:-1] += _CALL * lengths
    alone = int(costs.argmin())
    pairs = zip(starts[:alone].tolist(), lengths[:alone].tolist(), strict=True)
    for start, length in pairs:
        run = values[start : start + length]
        ufunc.accumulate(run, out=run)
    starts, shorter = starts[alone:], -lengths[alone:]
    for step in range(1, -int(shorter[0]) if len(shorter) else 0):
        here = starts[: shorter.searchsorted(-step)] + step
        values[here] = ufunc(values.take(here - 1), values.take(here))
