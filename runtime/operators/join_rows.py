"""The rows that a join holds, of both sides, in the order in which they were processed.

A row is known by its position: 0 for the first row ever, whether it is still held or not. Times
and keys of both sides stand in one array, the columns of each side in arrays of its own.

```
position  7  8  9 10 11         start 7: rows 0…6 have gone
side      L  R  R  L  R
place     3  4  5  4  6         where in its side's columns
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from runtime.model import START_NS, Batch, Column, Int64Array
from runtime.operators.join_columns import HeldColumns

_KEY, _TIME, _STIMULUS, _PLACE, _NEWEST = range(5)  # _NEWEST: the newest event time up to each row


class Arrivals:
    """New rows of both sides, each in event-time order: all left ones, then all right ones.

    Attributes:
        batches: left and right rows; None for none.
        lefts: how many of them are left.
        keys: shape (rows,), as in `HeldRows`.
        times: shape (rows,), the event times.
        turns: shape (rows,), where each row stands in the order (event time, side).
    """

    __slots__ = ("batches", "keys", "lefts", "times", "turns")

    def __init__(
        self, left: Batch | None, right: Batch | None, left_codes: Int64Array, codes: Int64Array
    ) -> None:
        self.batches = (left, right)
        self.lefts = len(left_codes)
        if left is None or right is None:
            one = left if right is None else right
            assert one is not None
            self.keys = left_codes << 1 if right is None else (codes << 1) | 1
            self.times = one.event_time_ns
            self.turns = np.arange(len(self.times))
        else:
            self.keys = np.concatenate([left_codes, codes]) << 1
            self.keys[self.lefts :] |= 1
            self.times = np.concatenate([left.event_time_ns, right.event_time_ns])
            self.turns = _turns(left.event_time_ns, right.event_time_ns)

    def count(self, side: int) -> int:
        """Return how many rows are of one side (0 left, 1 right)."""
        return len(self.keys) - self.lefts if side else self.lefts

    def times_of(self, side: int) -> Int64Array:
        """Return the event times of one side."""
        return self.times[self.lefts :] if side else self.times[: self.lefts]


def _turns(left: Int64Array, right: Int64Array) -> Int64Array:
    """Return the place of each time, left ones first, in the merged order; left before right.

    Both are ascending. The one with fewer rows is looked up in the other.
    """
    turns = np.arange(len(left) + len(right))
    turns[len(left) :] -= len(left)
    if len(left) <= len(right):
        before = right.searchsorted(left)  # right rows before each left one
        turns[: len(left)] += before
        turns[len(left) :] += np.bincount(before, minlength=len(right)).cumsum()[: len(right)]
    else:
        before = left.searchsorted(right, "right")  # left rows before each right one
        turns[len(left) :] += before
        turns[: len(left)] += np.bincount(before, minlength=len(left)).cumsum()[: len(left)]
    return turns


class HeldRows:
    """A queue of rows: they come at the end, leave at the front, and are read anywhere.

    A row's key is twice the code of its key, plus one on the right side: so the rows that it
    may be paired with have its key with the last bit turned.

    Args:
        left: the left columns to hold.
        right: the right ones.
    """

    def __init__(self, left: Sequence[str], right: Sequence[str]) -> None:
        self._names = (tuple(left), tuple(right))
        self._clear()

    def _clear(self) -> None:
        self.sides = (HeldColumns(self._names[0]), HeldColumns(self._names[1]))
        self._own: npt.NDArray[np.int64] = np.empty((5, 64), dtype=np.int64)
        self.origin = 0
        """Position of the first place of the arrays; changes with `append` only."""
        self.start = 0
        """Position of the first row held."""
        self.end = 0
        """Position of the next row to come."""

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, new: Arrivals) -> None:
        """Add rows."""
        newest, rows = self.newest_ns, len(new.keys)
        self._make_room(rows)
        start = self.end - self.origin
        own = self._own[:, start : start + rows]
        self.end += rows
        rows_of = np.empty((4, rows), dtype=np.int64)
        rows_of[_KEY], rows_of[_TIME] = new.keys, new.times
        for columns, batch, at in zip(
            self.sides, new.batches, (slice(new.lefts), slice(new.lefts, rows)), strict=True
        ):
            if batch is not None:
                rows_of[_STIMULUS, at] = batch.stimulus_time_ns
                rows_of[_PLACE, at] = np.arange(columns.end, columns.end + len(batch))
                columns.append(batch)
        if 0 < new.lefts < rows:
            for row, values in zip(own, rows_of, strict=False):  # twice as fast as all in one
                row[new.turns] = values
        else:
            own[:_NEWEST] = rows_of
        np.maximum.accumulate(own[_TIME], out=own[_NEWEST])
        if newest > own[_NEWEST, 0]:
            np.maximum(own[_NEWEST], newest, out=own[_NEWEST])

    def _make_room(self, rows: int) -> None:
        first, last = self.start - self.origin, self.end - self.origin
        capacity = self._own.shape[1]
        if last + rows <= capacity:
            return
        capacity = max(capacity, 2 * (last - first + rows))
        own = np.empty((5, capacity), dtype=np.int64)
        own[:, : last - first] = self._own[:, first:last]
        self._own = own
        self.origin = self.start

    @property
    def newest_ns(self) -> int:
        """The newest event time held; START_NS for none."""
        return int(self._own[_NEWEST, self.end - self.origin - 1]) if len(self) else START_NS

    def keys(self, start: int, stop: int) -> Int64Array:
        """Return the keys of the rows at positions [start, stop): a view."""
        return self._own[_KEY, start - self.origin : stop - self.origin]

    def times(self, start: int, stop: int) -> Int64Array:
        """Return the event times of the rows at positions [start, stop): a view."""
        return self._own[_TIME, start - self.origin : stop - self.origin]

    def keys_at(self, positions: Int64Array) -> Int64Array:
        """Return the keys of the rows at these positions."""
        return self._row(_KEY).take(positions - self.origin)

    def event_time_ns(self, positions: Int64Array) -> Int64Array:
        """Return the event times of the rows at these positions."""
        return self._row(_TIME).take(positions - self.origin)

    def stimulus_time_ns(self, positions: Int64Array) -> Int64Array:
        """Return the stimulus times of the rows at these positions."""
        return self._row(_STIMULUS).take(positions - self.origin)

    def _row(self, which: int) -> Int64Array:
        row: Int64Array = self._own[which]
        return row

    def columns(self, names: Iterable[str], positions: Int64Array, *, side: int) -> list[Column]:
        """Return columns of the rows at these positions, all of one side (0 left, 1 right)."""
        places = self._own[_PLACE].take(positions - self.origin)
        return self.sides[side].take(names, places)

    def recode(self, moved: Int64Array) -> None:
        """Give each row the key of its new code; `moved` has it for each old code."""
        keys = self.keys(self.start, self.end)
        keys[:] = (moved.take(keys >> 1) << 1) | (keys & 1)

    def drop_older_than(self, event_time_ns: int) -> None:
        """Let the rows at the front go that are older; none, until they are worth the effort.

        A late row is let go with the rows that came before it.
        """
        first, last = self.start - self.origin, self.end - self.origin
        probe = first + (last - first) // 32
        if first < last and int(self._own[_NEWEST, probe]) < event_time_ns:
            newest = self._own[_NEWEST, first:last]
            self.drop_before(self.start + int(newest.searchsorted(event_time_ns)))

    def drop_before(self, position: int) -> None:
        """Let the rows before this position go."""
        rows = position - self.start
        right = int(np.bitwise_and(self.keys(self.start, position), 1).sum())
        self.start = position
        for side, gone in zip(self.sides, (rows - right, right), strict=True):
            side.drop(gone)

    def snapshot(self) -> dict[str, Any]:
        """Return the rows held."""
        own = self._own[:, self.start - self.origin : self.end - self.origin].copy()
        for number, side in enumerate(self.sides):
            own[_PLACE, (own[_KEY] & 1) == number] -= side.start
        return {"own": own, "columns": [side.snapshot() for side in self.sides]}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot; the rows get positions from 0 on."""
        self._clear()
        rows = state["own"].shape[1]
        self._make_room(rows)
        self.end = rows
        self._own[:, :rows] = state["own"]
        for side, columns in zip(self.sides, state["columns"], strict=True):
            side.restore(columns)
