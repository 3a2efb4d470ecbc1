"""Sessions: rows of a key that follow each other within a gap are one interval.

```
gap 10    rows  5  12  20           41  48         intervals [5, 20] and [41, 48]
          a late row of 30                         is at most 10 from both: one interval [5, 48]
```

A row holds its interval open until its gap is over; the gap may be its own. It joins the newest
open cell before it that is held so long, or opens one. Cells of which one holds until the next are
one interval, so the order in which rows come does not matter. A row is late if an interval of its
own would have closed, and no open one is within the gap. Without a gap all rows of a key are one
interval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    END_NS,
    LATEST_NS,
    LONGEST_NS,
    START_NS,
    Batch,
    BoolArray,
    Int64Array,
)
from slackwater.runtime.model.nullable import Nullable, without_mask
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import InCells, IntervalRule, Left
from slackwater.runtime.operators.aggregate.interval_words import Everything, Session
from slackwater.runtime.operators.ground.user_code import evaluated, row_of

Wanted = Callable[[Int64Array, Int64Array, Int64Array], BoolArray]
"""Function of cells by interval, the place of each interval's first, and the intervals' ends; it
returns whether each interval is wanted."""


class Sessions(IntervalRule):
    """Sessions are an `IntervalRule`.

    Args:
        window: the gap between neighbours; any, if it is `Everything`.
        step: name of the step, for errors.
    """

    STATE = Fields()

    def __init__(self, window: Session | Everything, step: str) -> None:
        self._window, self._step = window, step
        self._has_gap = isinstance(window, Session)

    def over_ns(self, until_ns: int) -> int:
        """Return the time such that intervals are over which no row holds so long."""
        return until_ns if self._has_gap or until_ns == END_NS else START_NS

    def _until(self, batch: Batch) -> Int64Array:
        """Return the time until which each row holds its interval open.

        Raises:
            OperatorError: a gap is null, or no length of time; names the row.
        """
        window, times = self._window, batch.event_time_ns
        if isinstance(window, Everything):
            return times
        if window.gap is None:
            return times + (window.gap_ns or 0)
        gaps = without_mask(evaluated(window.gap, batch, step=self._step))
        is_wrong = np.zeros(len(batch), dtype=np.bool_)
        if isinstance(gaps, Nullable):
            is_wrong |= ~gaps.valid
            gaps = gaps.values
        assert isinstance(gaps, np.ndarray), "checked when the step was made: whole numbers"
        is_wrong |= (gaps <= 0) | (gaps > LONGEST_NS)
        if is_wrong.any():
            place = int(is_wrong.argmax())
            raise OperatorError(
                f"step {self._step!r}: the gap of session {window.gap!s} is null, not more than "
                "zero, or above 73 years; filter such rows out before, or fill them\n"
                f"{row_of(batch, place)}"
            )
        return times + gaps

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
        times, until = batch.event_time_ns, self._until(batch)
        there = cells.of_keys(codes)
        # Open cells and rows by key and time; at one time a cell is before rows.
        code = np.concatenate([cells.codes.take(there), codes])
        time = np.concatenate([cells.firsts.take(there), times])
        last = np.concatenate([cells.lasts.take(there), until])
        order = np.lexsort((time, code))
        code, time, last = code.take(order), time.take(order), last.take(order)
        is_cell = order < len(there)
        begins = self._begins(code, time, last)
        is_late = ~is_cell & (last < over_ns)
        if is_late.any():
            is_late &= ~self._joins(code, time, last, is_cell, begins, is_late)
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
            return InCells(None, of_rows, until)
        in_time = np.flatnonzero(of_rows >= 0)
        return InCells(in_time, of_rows.take(in_time), until, of_rows < 0)

    def _begins(self, code: Int64Array, time: Int64Array, last: Int64Array) -> BoolArray:
        """Return where an interval begins, among cells and rows by key and time."""
        begins = np.append(True, code[1:] != code[:-1])
        if self._has_gap:
            begins[1:] |= time[1:] > _reached(code, last)[:-1]
        return begins

    def _joins(
        self,
        code: Int64Array,
        time: Int64Array,
        last: Int64Array,
        is_cell: BoolArray,
        begins: BoolArray,
        is_late: BoolArray,
    ) -> BoolArray:
        """Return the places where an open interval, or a row in time, takes late rows."""
        following = len(code) - 1 - _newest(is_cell[::-1])[::-1]  # the next cell
        is_near = is_cell.take(following) & (code.take(following) == code)
        if self._has_gap:
            is_near &= time.take(following) <= last
        is_in_time = ~is_late | (is_near & (following >= np.arange(len(code))))
        newest = np.maximum.accumulate(np.where(is_in_time, np.arange(len(code)), -1))
        joins: BoolArray = newest >= _newest(begins)
        return joins

    def over(self, cells: IntervalCells, held: Int64Array, until_ns: int) -> Left | None:  # noqa: D102
        del held
        before_ns = self.over_ns(until_ns)
        due = np.flatnonzero(cells.lasts < before_ns)
        left = self._left(cells, due, lambda _own, _starts, ends: ends < before_ns)
        return None if left is None else left._replace(gone=left.pairs.cells)

    def still_open(  # noqa: D102 - see IntervalRule
        self, cells: IntervalCells, held: Int64Array, some: Int64Array, at_ns: int
    ) -> Left | None:
        del held
        before_ns = self.over_ns(at_ns)

        def wanted(own: Int64Array, starts: Int64Array, ends: Int64Array) -> BoolArray:
            has_some: BoolArray = np.logical_or.reduceat(np.isin(own, some), starts)
            return has_some & (ends >= before_ns)

        return self._left(cells, some, wanted)

    def _left(self, cells: IntervalCells, of: Int64Array, wanted: Wanted) -> Left | None:
        """Return the wanted ones among the intervals of keys that some cells have."""
        own = cells.of_keys(cells.codes.take(of))
        if not len(own):
            return None
        codes, firsts, lasts = cells.codes.take(own), cells.firsts.take(own), cells.lasts.take(own)
        begins = self._begins(codes, firsts, lasts)
        starts = np.flatnonzero(begins)
        ends = np.maximum.reduceat(lasts, starts)
        chosen = np.flatnonzero(wanted(own, starts, ends))
        leaves_ns = ends if self._has_gap else np.full(len(ends), LATEST_NS)
        order = chosen.take(
            np.lexsort((np.minimum.reduceat(own, starts).take(chosen), leaves_ns.take(chosen)))
        )
        if not len(order):
            return None
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
        return Left(
            pairs,
            firsts.take(starts).take(order),
            ends.take(order),
            leaves_ns.take(order),
            gone=own[:0],
        )


def _newest(marks: BoolArray) -> Int64Array:
    """Return the place of the newest mark up to each place; 0 before the first."""
    return np.maximum.accumulate(np.where(marks, np.arange(len(marks)), 0))


def _reached(code: Int64Array, until: Int64Array) -> Int64Array:
    """Return the greatest time so far of each key, at each place; `code` ascends."""
    falls = (until[1:] < until[:-1]) & (code[1:] == code[:-1])
    if not falls.any():  # rows in order, with one gap
        return until
    ascending = np.sort(until)
    of_key = len(code) * np.append(0, (code[1:] != code[:-1]).cumsum())
    greatest = np.maximum.accumulate(of_key + ascending.searchsorted(until))
    reached: Int64Array = ascending.take(greatest - of_key)
    return reached
