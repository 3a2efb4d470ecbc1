"""Newest event time up to each row, over all rows or over its writer's rows.

```
times     3 1 4 2 | 6 5 8 7     blocks of rows
steps     3   4     6   8       rows that are newer than all blocks before theirs, at least
newest    3 3 4 4   6 6 8 8
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.progress.frontier_of_rows import by_writer

__all__ = ["NewestByRow", "newest_before", "running_max"]

_FEW_ROWS, _MANY_ROWS = 64, 4_096
"""Up to the first each row is looked at; from the second on blocks of rows are."""
_BLOCK = 256
_ALONE = 256
"""With fewer than a 256th of the rows older than the one before, most late rows stand alone."""
_FEW_STEPS = 4
"""At most a fourth of the rows are steps; of more, each row is looked at."""


def running_max(values: Int64Array, before: int) -> Int64Array:
    """Return the largest value so far at each position, shape (rows,), `before` included.

    The result may be `values` itself: treat both as frozen.
    """
    return NewestByRow(values, before).all()


class NewestByRow:
    """Newest time up to each row, or the largest of other values.

    Where late rows are many, few rows are the newest as they come. Then it is kept as steps, and a
    source that asks once a slice needs no more.

    Args:
        values: shape (rows,), rows > 0; treat them as frozen.
        before: least answer, that of earlier rows.
    """

    __slots__ = ("_all", "_largest", "_steps", "_values")

    def __init__(self, values: Int64Array, before: int) -> None:
        self._values = values
        self._steps: Int64Array | None = None  # rows of the steps, ascending; 0 is the first
        self._all: Int64Array | None = None  # of each row, once that is known
        if len(values) <= _FEW_ROWS:
            largest = np.maximum.accumulate(values)
        elif len(values) >= _MANY_ROWS and not _is_mostly_ordered(values[:_MANY_ROWS]):
            largest = self._with_steps()
        elif not np.count_nonzero(values[1:] < values[:-1]):
            largest = values
        else:
            largest = _with_row_before(values)
        if len(values) and before > largest[0]:
            largest = np.maximum(largest, before)
        self._largest = largest  # at each step, or of each row
        if self._steps is None:
            self._all = largest

    def _with_steps(self) -> Int64Array:
        """Return the largest value so far at each step, or at each row if steps are many."""
        values = self._values
        whole = len(values) // _BLOCK * _BLOCK
        blocks = values[:whole].reshape(-1, _BLOCK)
        before = np.maximum.accumulate(blocks.max(axis=1))[:-1, np.newaxis]
        is_newer = np.ones(len(values), dtype=np.bool_)  # the first block is, and the rest is few
        np.greater(blocks[1:], before, out=is_newer[_BLOCK:whole].reshape(-1, _BLOCK))
        if _FEW_STEPS * np.count_nonzero(is_newer) > len(values):
            each: Int64Array = np.maximum.accumulate(values)
            return each
        self._steps = is_newer.nonzero()[0]
        newest: Int64Array = np.maximum.accumulate(values.take(self._steps))
        return newest

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: int) -> int:
        """Return the largest value up to a row, that one included."""
        if self._all is not None or self._steps is None:
            return int(self.all()[row])
        largest: int = self._largest.item(self._steps.searchsorted(row, side="right") - 1)
        return largest

    @property
    def last(self) -> int:
        """The largest value of all."""
        return int(self._largest[-1])

    def all(self) -> Int64Array:
        """Return the largest value up to each row, shape (rows,)."""
        if self._all is None:
            assert self._steps is not None, "else each row is known"
            self._all = self._largest.repeat(np.diff(self._steps, append=len(self._values)))
        return self._all

    def lagging(self, lag: int, least: int) -> NewestByRow | None:
        """Return this less `lag`, or `least` where that is more.

        None if a row is below that of the row before, or may be where steps are not kept.
        """
        if self._steps is None:
            return None
        values, steps = self._values, self._steps
        lagging = np.maximum(self._largest - lag, least)
        whole = len(values) // _BLOCK * _BLOCK
        ends = np.arange(_BLOCK - 1, whole, _BLOCK)
        at_end = lagging.take(steps.searchsorted(ends, side="right") - 1)
        is_below = np.ones(len(values), dtype=np.bool_)  # perhaps: those of the rest are few
        np.less(
            values[:whole].reshape(-1, _BLOCK),
            at_end[:, np.newaxis],
            out=is_below[:whole].reshape(-1, _BLOCK),
        )
        rows = is_below.nonzero()[0]
        before = lagging.take(np.maximum(steps.searchsorted(rows) - 1, 0))
        if values.item(0) < least or np.count_nonzero(values.take(rows) < before):
            return None
        made = NewestByRow.__new__(NewestByRow)
        made._values, made._steps, made._largest, made._all = values, steps, lagging, None
        return made


def _is_mostly_ordered(values: Int64Array) -> bool:
    """Whether few rows are older than the one before, so that most stand alone."""
    return _ALONE * int(np.count_nonzero(values[1:] < values[:-1])) <= len(values)


def _with_row_before(values: Int64Array) -> Int64Array:
    """Return the largest value so far, by few passes over all rows.

    NumPy's accumulate takes 3 ns a row, a pass here 0.2 to 0.5.

    ```
    values         5 3 6 2 7      a look at the row before is enough where each late row stands
    1 back         5 5 6 6 7      alone
    ```
    """
    running = values.copy()
    np.maximum(values[1:], values[:-1], out=running[1:])
    if np.count_nonzero(running[1:] < running[:-1]):
        np.maximum.accumulate(running, out=running)
    return running


def newest_before(
    writers: Int64Array, event_time_ns: Int64Array, newest_ns: Int64Array
) -> Int64Array:
    """Return each row's newest earlier event of the same writer, and note these rows.

    Args:
        writers: numbers of writers, shape (rows,).
        event_time_ns: event times, shape (rows,).
        newest_ns: shape (writers,), the newest event of each so far; it is updated in place.

    Returns:
        Shape (rows,); the value in `newest_ns` for a writer's first row.
    """
    if len(writers) == 0:
        return event_time_ns
    if bool((writers == writers[0]).all()):  # as those of a partition are
        return _newest_of_single(writers.item(0), event_time_ns, newest_ns)
    order = by_writer(writers, len(newest_ns))
    writer = writers[order]
    times = event_time_ns[order]
    starts = np.concatenate(([0], np.flatnonzero(writer[1:] != writer[:-1]) + 1))
    stops = np.append(starts[1:], len(times))

    before = np.empty_like(times)
    before[1:] = times[:-1]
    before[starts] = newest_ns[writer[starts]]
    # The row before is the newest only while a writer is in order; redo the other writers.
    late = np.flatnonzero(times < before)
    for group in np.unique(np.searchsorted(starts, late, side="right") - 1):
        start, stop = starts[group], stops[group]
        before[start + 1 : stop] = times[start : stop - 1]
        before[start:stop] = np.maximum.accumulate(before[start:stop])

    newest_ns[writer[starts]] = np.maximum(times[stops - 1], before[stops - 1])
    unsorted = np.empty_like(before)
    unsorted[order] = before
    return unsorted


def _newest_of_single(writer: int, times_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
    """Return what `newest_before` does for rows of one writer."""
    before = np.empty_like(times_ns)
    before[0] = newest_ns[writer]
    before[1:] = times_ns[:-1]
    if bool((times_ns < before).any()):
        np.maximum.accumulate(before, out=before)
    newest_ns[writer] = max(times_ns.item(-1), before.item(-1))
    return before
