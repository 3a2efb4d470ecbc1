"""The rows that one side of a join holds, as columns, in the order they were processed.

A row is known by its position: 0 for the first row ever, whether it is still held or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from runtime.model import START_NS, Batch, Column, Int64Array, concat_columns

_CODE, _TIME, _STIMULUS, _NEWEST = range(4)  # _NEWEST: the newest event time up to each row


class HeldRows:
    """A queue of rows: they come at the end, leave at the front, and are read anywhere.

    Args:
        names: the columns to hold.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._clear(0)

    def _clear(self, start: int) -> None:
        self._own = np.empty((4, 64), dtype=np.int64)
        self._numbers: dict[str, npt.NDArray[Any]] = {}
        self._texts: dict[str, TextQueue] = {}
        self._origin = start  # position of the first place of the arrays
        self.start = start
        """Position of the first row held."""
        self.end = start
        """Position of the next row to come."""

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def newest_ns(self) -> int:
        """The newest event time held; START_NS for none."""
        return int(self._own[_NEWEST, self.end - self._origin - 1]) if len(self) else START_NS

    def append(self, batch: Batch, codes: Int64Array) -> None:
        """Add rows; `codes` are those of their keys."""
        newest = self.newest_ns
        times = batch.event_time_ns
        self._make_room(len(batch))
        places = slice(self.end - self._origin, self.end - self._origin + len(batch))
        self._own[_CODE, places] = codes
        self._own[_TIME, places] = times
        self._own[_STIMULUS, places] = batch.stimulus_time_ns
        np.maximum(np.maximum.accumulate(times), newest, out=self._own[_NEWEST, places])
        for name in self._names:
            column = batch.columns[name]
            if not isinstance(column, np.ndarray):
                self._texts.setdefault(name, TextQueue(self.end)).append(column)
                continue
            if name not in self._numbers:
                self._numbers[name] = np.empty(self._own.shape[1], dtype=column.dtype)
            self._numbers[name][places] = column
        self.end += len(batch)

    def _make_room(self, rows: int) -> None:
        first, last = self.start - self._origin, self.end - self._origin
        capacity = self._own.shape[1]
        if last + rows <= capacity:
            return
        if 2 * (last - first + rows) > capacity:
            capacity = max(2 * capacity, 2 * (last - first + rows))
        own = np.empty((4, capacity), dtype=np.int64)
        own[:, : last - first] = self._own[:, first:last]
        self._own = own
        for name, old in self._numbers.items():
            self._numbers[name] = np.empty(capacity, dtype=old.dtype)
            self._numbers[name][: last - first] = old[first:last]
        self._origin = self.start

    def codes(self, start: int, stop: int) -> Int64Array:
        """Return the key codes of the rows at positions [start, stop): a view."""
        return self._own[_CODE, start - self._origin : stop - self._origin]

    def times(self, start: int, stop: int) -> Int64Array:
        """Return the event times of the rows at positions [start, stop): a view."""
        return self._own[_TIME, start - self._origin : stop - self._origin]

    def event_time_ns(self, positions: Int64Array) -> Int64Array:
        """Return the event times of the rows at these positions."""
        times: Int64Array = self._own[_TIME]
        return times.take(positions - self._origin)

    def stimulus_time_ns(self, positions: Int64Array) -> Int64Array:
        """Return the stimulus times of the rows at these positions."""
        stimuli: Int64Array = self._own[_STIMULUS]
        return stimuli.take(positions - self._origin)

    def column(self, name: str, positions: Int64Array) -> Column:
        """Return one column of the rows at these positions."""
        if name in self._texts:
            return self._texts[name].take(positions)
        return self._numbers[name].take(positions - self._origin)

    def recode(self, moved: Int64Array) -> None:
        """Give each row the new code of its key; `moved` has it for each old one."""
        codes = self.codes(self.start, self.end)
        codes[:] = moved.take(codes)

    def drop_older_than(self, event_time_ns: int) -> None:
        """Let the rows at the front go that are older.

        A late row is let go with the rows that came before it.
        """
        newest = self._own[_NEWEST, self.start - self._origin : self.end - self._origin]
        if len(newest) and newest[0] < event_time_ns:
            self.drop_before(self.start + int(newest.searchsorted(event_time_ns)))

    def drop_before(self, position: int) -> None:
        """Let the rows before this position go."""
        self.start = position
        for text in self._texts.values():
            text.drop_before(position)

    def snapshot(self) -> dict[str, Any]:
        """Return the rows held."""
        places = slice(self.start - self._origin, self.end - self._origin)
        columns: dict[str, Column] = {n: a[places].copy() for n, a in self._numbers.items()}
        columns |= {
            n: text.take(np.arange(self.start, self.end)) for n, text in self._texts.items()
        }
        return {"start": self.start, "own": self._own[:, places].copy(), "columns": columns}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        own, columns = state["own"], state["columns"]
        self._clear(state["start"])
        if columns or own.shape[1]:
            self.append(Batch(own[_TIME], own[_STIMULUS], columns), own[_CODE])
            self._own[_NEWEST, : own.shape[1]] = own[_NEWEST]


class TextQueue:
    """The text column of such rows: a few Arrow arrays, older ones longer.

    Args:
        start: position of the first row to come.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._pieces: list[pa.Array] = []

    def append(self, column: pa.Array) -> None:
        """Add rows, and put short pieces together: each is at least twice as long as the next."""
        pieces = self._pieces
        pieces.append(column)
        while len(pieces) > 1 and len(pieces[-2]) < 2 * len(pieces[-1]):
            pieces[-2:] = [concat_columns(pieces[-2:])]

    def take(self, positions: Int64Array) -> pa.Array:
        """Return the text at these positions."""
        if len(self._pieces) == 1:
            return self._pieces[0].take(positions - self._start)
        found = pa.chunked_array(self._pieces, pa.string()).take(positions - self._start)
        return concat_columns(found.chunks) if found.num_chunks else pa.array([], pa.string())

    def drop_before(self, position: int) -> None:
        """Let the rows before this position go; memory is given back piece by piece."""
        pieces = self._pieces
        while pieces and self._start < position:
            gone = min(position - self._start, len(pieces[0]))
            self._start += gone
            if gone == len(pieces[0]):
                del pieces[0]
            else:
                pieces[0] = pieces[0][gone:]
        self._start = max(self._start, position)
