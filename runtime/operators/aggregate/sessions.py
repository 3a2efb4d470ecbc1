"""Sessions: rows of a key that follow each other within a gap are one interval.

```
gap 10    rows  5  12  20           41  48         intervals [5, 20] and [41, 48]
          a late row of 30                         is at most 10 from both: one interval [5, 48]
```

A row holds its interval open until its gap is over; the gap may be its own. It joins the newest
open cell before it that is held so long, or opens one. Cells of which one holds until the next are
one interval, so the order in which rows come does not matter. A row is late if an interval of its
own would have closed, and no open one is within the gap.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import LONGEST_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.stable_order import lexical_order
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import InCells, IntervalRule, Left
from slackwater.runtime.operators.aggregate.interval_words import Session
from slackwater.runtime.operators.ground.arrays import newest_marks
from slackwater.runtime.operators.ground.user_code import evaluated, row_of


class Sessions(IntervalRule):
    """Sessions are an `IntervalRule`.

    Args:
        window: the gap between neighbours.
        step: name of the step, for errors.
    """

    STATE = Fields()
    past_end_ns: int | None = 1  # a row at the end is within the gap

    def __init__(self, window: Session, step: str) -> None:
        self._window, self._step = window, step

    def _until(self, batch: Batch) -> Int64Array:
        """Return the time until which each row holds its interval open.

        Raises:
            OperatorError: a gap is null, or no length of time; names the row.
        """
        window, times = self._window, batch.event_time_ns
        if window.gap is None:
            return times + (window.gap_ns or 0)
        gaps = evaluated(window.gap, batch, step=self._step)
        if isinstance(gaps, Nullable):
            gaps = gaps.values  # 0 if null
        assert isinstance(gaps, np.ndarray), "checked when the step was made: whole numbers"
        is_wrong = (gaps <= 0) | (gaps > LONGEST_NS)
        if is_wrong.any():
            raise OperatorError(
                f"step {self._step!r}: the gap of session {window.gap!s} is null, not more than "
                "zero, or above 73 years; filter such rows out before, or fill them\n"
                f"{row_of(batch, int(is_wrong.argmax()))}"
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
        cell = np.concatenate([there, np.full(len(codes), -1)])
        order = lexical_order((time, code))
        code, time, last, cell = (each.take(order) for each in (code, time, last, cell))
        begins = _begins(code, time, last)
        is_late = _are_late(code, time, last, cell >= 0, begins, over_ns)
        begins[1:] |= is_late[:-1]
        is_row = cell < 0
        rows = order[is_row] - len(there)
        opens = begins & is_row & ~is_late
        cell[opens] = cells.add_for(order[opens] - len(there), codes, times)
        of_rows = np.empty(len(codes), dtype=np.int64)
        of_rows[rows] = cell.take(newest_marks(cell >= 0))[is_row]
        if not is_late.any():
            return InCells(None, of_rows, until)
        of_rows[rows[is_late[is_row]]] = -1
        in_time = (of_rows >= 0).nonzero()[0]
        return InCells(in_time, of_rows.take(in_time), until, of_rows < 0)

    def over(self, cells: IntervalCells, held: Int64Array, until_ns: int) -> Left | None:  # noqa: D102
        del held
        return _left(cells, (cells.lasts < until_ns).nonzero()[0], until_ns, are_over=True)

    def still_open(  # noqa: D102 - see IntervalRule
        self, cells: IntervalCells, held: Int64Array, some: Int64Array, at_ns: int
    ) -> Left | None:
        del held
        return _left(cells, some, at_ns, are_over=False)


def _begins(code: Int64Array, time: Int64Array, last: Int64Array) -> BoolArray:
    """Return where an interval begins, among cells and rows by key and time."""
    begins = np.append(True, code[1:] != code[:-1])
    begins[1:] |= time[1:] > _reached(code, last)[:-1]
    return begins


def _are_late(
    code: Int64Array,
    time: Int64Array,
    last: Int64Array,
    is_cell: BoolArray,
    begins: BoolArray,
    over_ns: int,
) -> BoolArray:
    """Return which rows are late: they and open intervals do not reach each other.

    Args:
        code: keys of cells and rows, which are by key, then by time.
        time: first times of cells, and times of rows.
        last: times until which they hold an interval open.
        is_cell: whether each is a cell.
        begins: marks of the first of each interval, if no row is late.
        over_ns: time before which rows may be late.
    """
    in_time = last >= over_ns
    if in_time.all():
        return ~in_time
    following = len(code) - 1 - newest_marks(is_cell[::-1])[::-1]  # the next cell, or itself
    is_near = is_cell.take(following) & (code.take(following) == code)
    in_time |= is_near & (time.take(following) <= last)
    so_far = in_time.cumsum()
    late: BoolArray = so_far == (so_far - in_time).take(newest_marks(begins))
    return late


def _left(cells: IntervalCells, some: Int64Array, at_ns: int, *, are_over: bool) -> Left | None:
    """Return the intervals of some cells that are over at a time, or are open."""
    own = cells.of_keys(cells.codes.take(some))
    if not len(own):
        return None
    codes, firsts, lasts = cells.codes.take(own), cells.firsts.take(own), cells.lasts.take(own)
    starts = _begins(codes, firsts, lasts).nonzero()[0]
    ends = np.maximum.reduceat(lasts, starts)
    has_some = np.logical_or.reduceat(np.isin(own, some), starts)
    wanted = (has_some & ((ends < at_ns) == are_over)).nonzero()[0]
    wanted = wanted.take(lexical_order((np.minimum.reduceat(own, starts)[wanted], ends[wanted])))
    counts = np.diff(starts, append=len(own))
    return Left.of(cells, own, starts.take(wanted), counts.take(wanted))


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
