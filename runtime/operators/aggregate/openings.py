"""Windows that rows open: each row that fits opens a window of its key.

```
length 10    rows of a key   3   5*  9   12*  14   16        * fits
             windows             [5 ────────── 15)            5  9  12  14
                                          [12 ───────── 22)         12  14  16
```

A row counts in each open window that holds its time; most count in none. A late row opens none, so
it has missed the window that it would have opened.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import END_NS, Batch, Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import InCells, IntervalRule, Left
from slackwater.runtime.operators.aggregate.interval_words import OpenedBy
from slackwater.runtime.operators.ground.user_code import holds


class Openings(IntervalRule):
    """Openings are an `IntervalRule`: a cell is a window, which begins with its first row.

    Args:
        window: the condition and the length.
        step: name of the step, for errors.
    """

    STATE = Fields()
    past_end_ns: int | None = 0

    def __init__(self, window: OpenedBy, step: str) -> None:
        self._where, self._length_ns, self._step = window.where, window.length_ns, step

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
        times, rows = batch.event_time_ns, np.arange(len(codes))
        is_late = times < over_ns
        there = cells.of_keys(codes)
        fits = holds(self._where, batch, step=self._step)
        opening, opens_none = np.flatnonzero(fits & ~is_late), fits & is_late
        made = cells.add(codes.take(opening), times.take(opening))
        windows = np.concatenate([there, made])
        opened_by = np.concatenate([np.full(len(there), -1), opening])
        key, start = cells.codes.take(windows), cells.firsts.take(windows)
        windows = windows.take(np.lexsort((opened_by, start, key)))
        begun = _before((opened_by, start, key), (rows, times, codes))
        ended = _before((start + self._length_ns, key), (times, codes))
        of_row, places = unfold(ended, begun - ended)
        is_late &= begun == ended
        late = is_late if is_late.any() else None
        return InCells(
            of_row,
            windows.take(places),
            late=late,
            opens_none=opens_none if opens_none.any() else None,
        )

    def over(self, cells: IntervalCells, held: Int64Array, until_ns: int) -> Left | None:  # noqa: D102
        del held
        due = cells.open_cells()
        if until_ns != END_NS:
            due = due[cells.firsts.take(due) <= until_ns - self._length_ns]
        return self._left(cells, due)

    def still_open(  # noqa: D102 - see IntervalRule
        self, cells: IntervalCells, held: Int64Array, some: Int64Array, at_ns: int
    ) -> Left | None:
        del held
        own = np.unique(some)
        ends_ns = cells.firsts.take(own) + self._length_ns
        return self._left(cells, own[(cells.lasts.take(own) < END_NS) & (ends_ns > at_ns)])

    def _left(self, cells: IntervalCells, of: Int64Array) -> Left | None:
        """Return the windows of some cells, by their starts; None if there are none."""
        of = of.take(cells.firsts.take(of).argsort(kind="stable"))
        left = Left.of(cells, of, np.arange(len(of)), np.ones(len(of), np.int64))
        if left is None:
            return None
        ends_ns = left.start_ns + self._length_ns
        return left._replace(end_ns=ends_ns, event_time_ns=ends_ns - 1)


def _before(windows: tuple[Int64Array, ...], rows: tuple[Int64Array, ...]) -> Int64Array:
    """Return how many windows are not after each row, by keys as `np.lexsort` takes them."""
    count = len(windows[0])
    order = np.lexsort([np.concatenate(pair) for pair in zip(windows, rows, strict=True)])
    is_window = order < count
    before = np.empty(len(rows[0]), dtype=np.int64)
    before[order[~is_window] - count] = is_window.cumsum()[~is_window]
    return before
