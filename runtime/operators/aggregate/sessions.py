"""Sessions: rows of a key that follow each other within a gap are one interval.

```
gap 10    rows  5  12  20           41  48         intervals [5, 20] and [41, 48]
          a late row of 30                         is at most 10 from both: one interval [5, 48]
```

A row joins the open cell before it, or opens one. Cells at most a gap apart are one interval, so
the order in which rows come does not matter. A row is late if an interval of its own would have
closed, and no open one is within the gap. Without a gap all rows of a key are one interval.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, LATEST_NS, START_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import InCells, Left


class Sessions:
    """Sessions are an `IntervalRule`.

    Args:
        gap_ns: longest time between neighbours; None if any.
    """

    STATE = Fields()

    def __init__(self, gap_ns: int | None) -> None:
        self._gap_ns = gap_ns

    def over_ns(self, until_ns: int) -> int:
        """Return the time such that intervals are over whose last row is older."""
        if until_ns in (START_NS, END_NS):
            return until_ns
        return START_NS if self._gap_ns is None else max(until_ns - self._gap_ns, START_NS)

    def take(  # noqa: D102 - see IntervalRule
        self,
        cells: IntervalCells,
        batch: Batch,
        codes: Int64Array,
        held: Int64Array,
        *,
        over_ns: int,
    ) -> InCells:
        del held
        times = batch.event_time_ns
        there = cells.of_keys(codes)
        # Open cells and rows by key and time; at one time a cell is before rows.
        code = np.concatenate([cells.codes.take(there), codes])
        time = np.concatenate([cells.firsts.take(there), times])
        last = np.concatenate([cells.lasts.take(there), times])
        order = np.lexsort((time, code))
        code, time, last = code.take(order), time.take(order), last.take(order)
        is_cell = order < len(there)
        begins = self._begins(code, time, last, is_cell)
        is_late = ~is_cell & (time < over_ns)
        if is_late.any():
            is_late &= ~self._joins(code, time, is_cell, begins, is_late)
            begins[1:] |= is_late[:-1]
        opens = begins & ~is_cell & ~is_late
        rows = order - len(there)
        opening = np.sort(rows[opens])  # by appearance
        cell = np.concatenate([there, np.full(len(codes), -1)]).take(order)
        cell[opens] = cells.add(codes.take(opening), times.take(opening)).take(
            opening.searchsorted(rows[opens])
        )
        own = cell.take(_newest(is_cell | opens))
        own[is_late] = -1
        of_rows = np.empty(len(codes), dtype=np.int64)
        of_rows[rows[~is_cell]] = own[~is_cell]
        if not is_late.any():
            return InCells(None, of_rows)
        in_time = np.flatnonzero(of_rows >= 0)
        return InCells(in_time, of_rows.take(in_time), of_rows < 0)

    def _begins(
        self, code: Int64Array, time: Int64Array, last: Int64Array, is_cell: BoolArray
    ) -> BoolArray:
        """Return where an interval begins, among cells and rows by key and time."""
        before = _newest(is_cell)  # cells do not overlap, so the newest reaches furthest
        is_own = code.take(before) == code
        reached = np.where(is_own, np.maximum(last, last.take(before)), last)
        begins = np.append(True, code[1:] != code[:-1])
        if self._gap_ns is not None:
            begins[1:] |= time[1:] - reached[:-1] > self._gap_ns
        return begins

    def _joins(
        self,
        code: Int64Array,
        time: Int64Array,
        is_cell: BoolArray,
        begins: BoolArray,
        is_late: BoolArray,
    ) -> BoolArray:
        """Return the places where an open interval, or a row in time, takes late rows."""
        following = len(code) - 1 - _newest(is_cell[::-1])[::-1]  # the next cell
        is_near = is_cell.take(following) & (code.take(following) == code)
        if self._gap_ns is not None:
            is_near &= time.take(following) - time <= self._gap_ns
        is_in_time = ~is_late | (is_near & (following >= np.arange(len(code))))
        newest = np.maximum.accumulate(np.where(is_in_time, np.arange(len(code)), -1))
        joins: BoolArray = newest >= _newest(begins)
        return joins

    def over(self, cells: IntervalCells, held: Int64Array, until_ns: int) -> Left | None:  # noqa: D102
        del held
        before_ns = self.over_ns(until_ns)
        due = np.flatnonzero(cells.lasts < before_ns)
        if not len(due):
            return None
        own = cells.of_keys(cells.codes.take(due))
        codes, firsts, lasts = cells.codes.take(own), cells.firsts.take(own), cells.lasts.take(own)
        begins = self._begins(codes, firsts, lasts, np.ones(len(own), dtype=np.bool_))
        starts = np.flatnonzero(begins)
        ends = np.maximum.reduceat(lasts, starts)
        over = np.flatnonzero(ends < before_ns)
        leaves_ns = np.full(len(ends), LATEST_NS) if self._gap_ns is None else ends + self._gap_ns
        order = over.take(
            np.lexsort((np.minimum.reduceat(own, starts).take(over), leaves_ns.take(over)))
        )
        place = np.full(len(starts), -1)  # of each interval among those that leave
        place[order] = np.arange(len(order))
        results = place.take(begins.cumsum() - 1)
        leaving = np.flatnonzero(results >= 0)
        leaving = leaving.take(results.take(leaving).argsort(kind="stable"))
        pairs = Pairs(
            own.take(leaving),
            results.take(leaving),
            len(order),
            are_single=len(leaving) == len(order),
        )
        end_ns = ends if self._gap_ns is None else leaves_ns
        return Left(
            pairs,
            firsts.take(starts).take(order),
            end_ns.take(order),
            leaves_ns.take(order),
            gone=pairs.cells,
        )


def _newest(marks: BoolArray) -> Int64Array:
    """Return the place of the newest mark up to each place; 0 before the first."""
    return np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))
