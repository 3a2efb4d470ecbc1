"""Early results: a window leaves before its end, again and again, as its rows come.

```
early="10s"   rows  3  7        14      windows of a minute: at 10 and at 20 of event time each open
                     10 ▲     20 ▲      window and key leaves that has had rows since it last left
early=2       rows  3  7        14      each second row of a window and key makes its result leave
                       ▲                with that row's time
```

When they leave depends on event times and counts of rows alone, so no cut of reads shows. A late
row counts from the watermark on at which it came. With `early_counts="new"` a cell begins again
once its result has left.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slackwater.runtime.model import START_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray, places_in_runs


class EveryTime:
    """EveryTime knows the cells whose results leave with a slot of event time.

    Args:
        every_ns: length of a slot; 0 if results do not leave by time.
    """

    STATE = Fields(Field("_changed", by=OWNER), "_slot")

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self._changed = GrowableArray(np.bool_)  # by cell, since results left
        self._slot = START_NS  # of the rows that have come since; START_NS: none has

    def parts(self, batch: Batch, passed_ns: int) -> Iterator[tuple[int, Batch]]:
        """Yield the rows of each slot of a batch, with the slot's beginning.

        Args:
            batch: rows by event time, or late ones.
            passed_ns: the watermark: older rows count from then on.
        """
        slots = np.maximum(batch.event_time_ns, passed_ns) // self._every_ns
        starts = starts_of_runs(slots)
        stops = [*starts[1:].tolist(), len(batch)]
        for start, stop in zip(starts.tolist(), stops, strict=True):
            yield int(slots[start]) * self._every_ns, batch.slice(start, stop)

    def note(self, cells: Int64Array, begins_ns: int) -> None:
        """Note the cells that rows of a slot have changed."""
        self._slot = begins_ns // self._every_ns
        self._changed.resize(max(len(self._changed), int(cells.max(initial=-1)) + 1))
        self._changed.values[cells] = True

    def due_ns(self) -> int | None:
        """Return the time at which results leave next; None if no row has come since."""
        return None if self._slot == START_NS else (self._slot + 1) * self._every_ns

    def take(self) -> Int64Array:
        """Return the cells that have changed, ascending; from now on none has."""
        self._slot = START_NS
        cells = np.flatnonzero(self._changed.values)
        self._changed.values[cells] = False
        return cells


def rounds(
    cells: Int64Array, held: Int64Array, every: int, groups: Int64Array | None = None
) -> Iterator[tuple[Int64Array, BoolArray]]:
    """Yield rows in rounds, each as far as a cell's result leaves.

    Args:
        cells: shape (rows,), the cell of each row, in order.
        held: shape (cells so far or fewer,), the number of rows in each.
        every: number of rows with which a cell's result leaves.
        groups: shape (rows,), the group of each row: results of a group leave one after the other.
            None if those of each cell do.

    Yields:
        places of the rows of a round, ascending, and whether each makes its cell's result leave.
    """
    order = cells.argsort(kind="stable")
    by_cell = cells.take(order)
    starts = starts_of_runs(by_cell)
    before = np.zeros(len(starts), dtype=np.int64)
    own = by_cell.take(starts)
    is_known = own < len(held)
    before[is_known] = held.take(own[is_known])
    sizes = np.diff(starts, append=len(cells))
    number = before.repeat(sizes) + places_in_runs(starts, len(cells))  # of each row, from 0
    leaves = np.empty(len(cells), dtype=np.bool_)
    leaves[order] = number % every == every - 1
    if groups is not None:
        order = groups.argsort(kind="stable")
        starts = starts_of_runs(groups.take(order))
        sizes = np.diff(starts, append=len(cells))
    left = leaves.take(order)
    left_before = left.cumsum() - left  # results that leave before each row, by group
    number_of_round = np.empty(len(cells), dtype=np.int64)
    number_of_round[order] = left_before - left_before.take(starts).repeat(sizes)
    by_round = number_of_round.argsort(kind="stable")
    begins = starts_of_runs(number_of_round.take(by_round))
    for rows in np.split(by_round, begins[1:]):
        yield rows, leaves.take(rows)
