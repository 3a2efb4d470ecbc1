"""The columns of one side of a join are queues: rows leave at the front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model import Batch, BoolArray, Column, Int64Array, concat_columns
from slackwater.runtime.model.nullable import NUMBERS, Nullable, without_mask


class HeldColumns:
    """Columns of some rows; a row's place is 0 for the first ever.

    It packs itself: it keeps room for more rows, and Arrow's arrays in pieces. What is saved are
    views; so values are added after those that are held, or all arrays are new ones.

    Args:
        names: the columns to hold.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[str, npt.NDArray[Any]] = {}
        self._valid: dict[str, BoolArray] = {}  # of columns that have had a null
        self._arrays: dict[str, ArrayQueue] = {}
        self._capacity = 64
        self._origin = 0  # place of the first value of the arrays
        self.start = 0
        """Place of the first row held."""
        self.end = 0
        """Place of the next row to come."""

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, batch: Batch) -> None:
        """Add rows."""
        self._make_room(len(batch))
        self._extend({name: batch.columns[name] for name in self._names}, len(batch))

    def append_row(self, batch: Batch) -> None:
        """Add a batch of one row, each number as it is."""
        self._make_room(1)
        at, numbers = self.end - self._origin, self._numbers
        for name in self._names:
            column = batch.columns[name]
            if name in numbers and name not in self._valid and isinstance(column, np.ndarray):
                numbers[name][at] = column[0]
            else:
                self._put(name, column, 1)
        self.end += 1

    def _extend(self, columns: dict[str, Column], rows: int) -> None:
        for name, column in columns.items():
            self._put(name, column, rows)
        self.end += rows

    def _put(self, name: str, column: Column, rows: int) -> None:
        if not isinstance(column, NUMBERS):
            self._arrays.setdefault(name, ArrayQueue(self.end)).append(column)
            return
        if name not in self._numbers:
            self._numbers[name] = np.empty(self._capacity, dtype=column.dtype)
        first = self.end - self._origin
        here = slice(first, first + rows)
        if not isinstance(column, Nullable):
            self._numbers[name][here] = column
            if name in self._valid:
                self._valid[name][here] = True
            return
        if name not in self._valid:
            self._valid[name] = np.ones(self._capacity, np.bool_)
        self._numbers[name][here], self._valid[name][here] = column.values, column.valid

    def _make_room(self, rows: int) -> None:
        first, last = self.start - self._origin, self.end - self._origin
        if last + rows <= self._capacity:
            return
        self._capacity = max(self._capacity, 2 * (last - first + rows))
        every: tuple[dict[str, npt.NDArray[Any]], ...] = (self._numbers, self._valid)
        for arrays in every:
            for name, old in arrays.items():
                arrays[name] = np.empty(self._capacity, dtype=old.dtype)
                arrays[name][: last - first] = old[first:last]
        self._origin = self.start

    def take(self, names: Iterable[str], places: Int64Array) -> list[Column]:
        """Return these columns of the rows at these places."""
        own = places - self._origin
        return [self._taken(name, own, places) for name in names]

    def _taken(self, name: str, own: Int64Array, places: Int64Array) -> Column:
        if (numbers := self._numbers.get(name)) is None:
            return self._arrays[name].take(places)
        if (valid := self._valid.get(name)) is None:
            return numbers.take(own)
        return without_mask(Nullable(numbers.take(own), valid.take(own)))

    def row(self, name: str, place: int) -> Column:
        """Return a column of one row, shape (1,): a copy."""
        if (numbers := self._numbers.get(name)) is not None and name not in self._valid:
            at = place - self._origin
            return numbers[at : at + 1].copy()
        return self.take([name], np.array([place]))[0]

    def drop_last(self, rows: int) -> None:
        """Drop so many rows at the end."""
        self.end -= rows
        for array in self._arrays.values():
            array.drop_from(self.end)

    def drop(self, rows: int) -> None:
        """Drop so many rows at the front."""
        self.start += rows
        for array in self._arrays.values():
            array.drop_before(self.start)

    def keep(self, stays: BoolArray) -> None:
        """Hold only the rows where `stays` is true, at places from 0 on.

        Args:
            stays: shape (rows held,).
        """
        places = self.start + stays.nonzero()[0]
        held = [name for name in self._names if name in self._numbers or name in self._arrays]
        columns = dict(zip(held, self.take(held, places), strict=True))
        self._clear()
        self._make_room(len(places))
        self._extend(columns, len(places))

    def snapshot(self) -> dict[str, Any]:
        """Return the rows held, as views: a value that is held never changes."""
        held = slice(self.start - self._origin, self.end - self._origin)
        columns: dict[str, Any] = {}
        for name, values in self._numbers.items():
            valid = self._valid.get(name)
            own = values[held]
            columns[name] = own if valid is None else without_mask(Nullable(own, valid[held]))
        columns |= {name: array.pieces for name, array in self._arrays.items()}
        return {"rows": len(self), "columns": columns}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the rows of a snapshot into a fresh queue, with places from 0 on."""
        self._make_room(state["rows"])
        for name, column in state["columns"].items():
            if isinstance(column, list):
                self._arrays[name] = ArrayQueue(0, column)
            else:
                self._put(name, column, state["rows"])
        self.end += state["rows"]


class ArrayQueue:
    """A column of text, or another of Arrow's types: a few arrays, older ones longer.

    Args:
        start: place of the first row, or of the first to come.
        pieces: arrays of a saved queue, which stay as they are.
    """

    def __init__(self, start: int, pieces: Sequence[pa.Array] = ()) -> None:
        self._start = start
        self._pieces: list[pa.Array] = [piece for piece in pieces if len(piece)]
        self._kind = pieces[0].type if pieces else pa.string()

    @property
    def pieces(self) -> list[pa.Array]:
        """The arrays, at least one."""
        return [*self._pieces] or [pa.array([], self._kind)]

    def append(self, column: pa.Array) -> None:
        """Add rows, and join short pieces: each is at least twice the next."""
        pieces, self._kind = self._pieces, column.type
        pieces.append(column)
        while len(pieces) > 1 and len(pieces[-2]) < 2 * len(pieces[-1]):
            pieces[-2:] = [concat_columns(pieces[-2:])]

    def take(self, places: Int64Array) -> pa.Array:
        """Return the values at these places."""
        if len(self._pieces) == 1:
            return self._pieces[0].take(places - self._start)
        values = pa.chunked_array(self._pieces, self._kind).take(places - self._start)
        return concat_columns(values.chunks) if values.num_chunks else pa.array([], self._kind)

    def drop_from(self, place: int) -> None:
        """Drop the rows from this place on."""
        pieces = self._pieces
        kept = place - self._start
        for number, piece in enumerate(pieces):
            if kept <= len(piece):
                pieces[number] = piece[:kept]
                del pieces[number + 1 :]
                return
            kept -= len(piece)

    def drop_before(self, place: int) -> None:
        """Drop the rows before this place; memory is given back piece by piece."""
        pieces = self._pieces
        while pieces and self._start < place:
            gone = min(place - self._start, len(pieces[0]))
            self._start += gone
            if gone == len(pieces[0]):
                del pieces[0]
            else:
                pieces[0] = pieces[0][gone:]
