"""Newest event time up to each row, over all rows or over its writer's rows.

```
times        3 1 4 2 | 6 5 8 7    blocks of rows
newest           4   |     8      up to the end of each
may be older   1     |            than 4 - 2, or 8 - 2: only such a row is compared with those
                                  before it, where no row may be more than 2 older than the newest
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import START_NS, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.progress.frontier_of_rows import by_writer

__all__ = ["NewestByRow", "newest_before", "running_max"]

_FEW_ROWS, _MANY_ROWS = 64, 4_096
"""Up to the first each row is looked at; from the second on blocks of rows are."""
_BLOCK = 128
_ALONE = 256
"""With fewer than a 256th of the rows older than the one before, most late rows stand alone."""
_FEW_NEWER, _FEW_OLDER = 4, 64
"""At most a fourth of the rows is newer than all blocks before; at most a 64th may be too old."""


def running_max(values: Int64Array, before: int) -> Int64Array:
    """Return the largest value so far at each position, shape (rows,), `before` included.

    The result may be `values` itself: treat both as frozen.
    """
    if len(values) <= _FEW_ROWS:
        running: Int64Array = np.maximum.accumulate(values)
    else:
        running = _running_max_of_many(values)
    if len(running) and before > running[0]:
        running = np.maximum(running, before)
    return running


def _running_max_of_many(values: Int64Array) -> Int64Array:
    """Return the largest value so far, by few passes over all rows.

    NumPy's accumulate takes 3 ns a row, a pass here 0.2 to 0.5.

    ```
    values         5 3 6 2 7      a look at the row before is enough where each late row stands
    1 back         5 5 6 6 7      alone
    ```
    """
    first = values[:_MANY_ROWS]
    if len(values) >= _MANY_ROWS and np.count_nonzero(first[1:] < first[:-1]) * _ALONE > len(first):
        return _running_max_by_blocks(values)
    if not np.count_nonzero(values[1:] < values[:-1]):
        return values
    running = values.copy()
    np.maximum(values[1:], values[:-1], out=running[1:])
    if np.count_nonzero(running[1:] < running[:-1]):
        np.maximum.accumulate(running, out=running)
    return running


def _running_max_by_blocks(values: Int64Array) -> Int64Array:
    """Return the largest value so far, where few rows are the newest as they come.

    Only these few, and others that are newer than all blocks before theirs, are accumulated.
    """
    blocks = values[: len(values) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    newest = np.maximum.accumulate(blocks.max(axis=1))
    is_newer = np.ones(len(values), dtype=np.bool_)  # the first block is, and the rest is few
    of_blocks = is_newer[_BLOCK : blocks.size].reshape(-1, _BLOCK)
    np.greater(blocks[1:], newest[:-1, np.newaxis], out=of_blocks)
    rows = is_newer.nonzero()[0]
    if len(rows) * _FEW_NEWER > len(values):
        running: Int64Array = np.maximum.accumulate(values)
        return running
    newest = np.maximum.accumulate(values.take(rows))
    return newest.repeat(np.diff(rows, append=len(values)))


class NewestByRow:
    """Newest times up to rows of a block, computed when they are asked for.

    A source that is not paced asks once a slice, and needs no others.

    Args:
        times_ns: shape (rows,), rows > 0; treat them as frozen.
        before_ns: newest time of earlier rows.
        lag_ns: time by which each answer is before the newest.
        least_ns: least answer for any row.
    """

    __slots__ = ("_all_ns", "_before_ns", "_blocks_ns", "_lag_ns", "_least_ns", "_times_ns")

    def __init__(
        self, times_ns: Int64Array, before_ns: int, lag_ns: int = 0, least_ns: int = START_NS
    ) -> None:
        self._times_ns, self._before_ns = times_ns, before_ns
        self._lag_ns, self._least_ns = lag_ns, least_ns
        self._all_ns: Int64Array | None = None
        self._blocks_ns: Int64Array | None = None  # the newest before each block, and after all

    def __len__(self) -> int:
        return len(self._times_ns)

    def __getitem__(self, row: int) -> int:
        """Return the answer of a row, from the newest time up to it."""
        if self._all_ns is not None:
            return int(self._all_ns[row])
        block = (row + 1) // _BLOCK
        newest_ns, times_ns = int(self._newest_before()[block]), self._times_ns
        if row + 1 > block * _BLOCK:
            newest_ns = max(newest_ns, int(times_ns[block * _BLOCK : row + 1].max()))
        return max(newest_ns - self._lag_ns, self._least_ns)

    @property
    def last(self) -> int:
        """Answer of the last row."""
        return self[len(self._times_ns) - 1]

    def all(self) -> Int64Array:
        """Return the answers of all rows, shape (rows,); treat them as frozen."""
        if self._all_ns is None:
            self._all_ns = running_max(self._times_ns, self._before_ns)
            if self._lag_ns or self._least_ns > START_NS:
                self._all_ns = np.maximum(self._all_ns - self._lag_ns, self._least_ns)
        return self._all_ns

    def lagging(self, lag_ns: int, least_ns: int) -> NewestByRow:
        """Return answers that are so long before the newest, and `least_ns` at least."""
        made = NewestByRow(self._times_ns, self._before_ns, lag_ns, least_ns)
        made._blocks_ns = self._newest_before()
        return made

    def is_none_older(self) -> bool:
        """Whether no row is older than the answer of the row before it."""
        times_ns = self._times_ns
        if len(times_ns) < _MANY_ROWS:
            return self._is_none_of_all_older()
        at_end_ns = np.maximum(self._newest_before() - self._lag_ns, self._least_ns)
        blocks = times_ns[: len(times_ns) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
        may_be = np.ones(len(times_ns), dtype=np.bool_)  # the rest is few
        of_blocks = may_be[: blocks.size].reshape(-1, _BLOCK)
        np.less(blocks, at_end_ns[1 : len(blocks) + 1, np.newaxis], out=of_blocks)
        rows = may_be.nonzero()[0]
        if len(rows) * _FEW_OLDER > len(times_ns) + _BLOCK * _FEW_OLDER:
            return self._is_none_of_all_older()
        block, place = np.divmod(rows, _BLOCK)
        places = np.arange(_BLOCK)
        near_ns = times_ns.take((rows - place)[:, np.newaxis] + places, mode="clip")
        near_ns[places >= place[:, np.newaxis]] = START_NS
        newest_ns = np.maximum(near_ns.max(axis=1), self._newest_before().take(block))
        promised_ns = np.maximum(newest_ns, START_NS + self._lag_ns) - self._lag_ns
        promised_ns = np.maximum(promised_ns, self._least_ns)
        if len(rows) and not rows[0]:  # before the first row only the least is said
            promised_ns[0] = self._least_ns
        return not np.count_nonzero(times_ns.take(rows) < promised_ns)

    def _is_none_of_all_older(self) -> bool:
        times_ns, answers_ns = self._times_ns, self.all()
        is_older = np.count_nonzero(times_ns[1:] < answers_ns[:-1])
        return not is_older and bool(times_ns[0] >= self._least_ns)

    def _newest_before(self) -> Int64Array:
        """Return the newest time before each block; that before the rest is the last."""
        if self._blocks_ns is None:
            whole = self._times_ns[: len(self._times_ns) // _BLOCK * _BLOCK]
            newest_ns = whole.reshape(-1, _BLOCK).max(axis=1)
            newest_ns = np.maximum.accumulate(np.append(self._before_ns, newest_ns))
            self._blocks_ns = newest_ns
        return self._blocks_ns


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
    starts = starts_of_runs(writer)
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
