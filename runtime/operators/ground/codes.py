"""Values of a column become dense codes, in order of first appearance.

Whole numbers in a small range use a table (about 2 ns a row), others an open hash table; all other
values Arrow's dictionary encoding and a Python dict over the distinct values of the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray
from slackwater.runtime.operators.ground.open_table import OpenTable

_TABLE_SPAN = 1 << 20
"""A table may always be this long (8 MB); beyond, only if at least a quarter of it is used."""
PIECE = 1 << 13
"""Values in each array of a snapshot but the last."""
_HEAD_ROWS, _HEADS = 1_024, 8
"""Of new values at least so many are looked at first, and at least such a part."""


class HashCodes:
    """Codes for any Arrow values, nulls included. Never forgets; its owner starts a new one.

    It packs itself: texts are saved as arrays of `PIECE` values, and a whole one is made once.

    Args:
        values: distinct values to begin with, coded in their order.
    """

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self._set(values, [])

    def _set(self, values: Sequence[Any], pieces: list[Piece]) -> None:
        """Hold these values; the first of them are in whole pieces already."""
        self.values: list[Any] = list(values)
        self._pieces = pieces
        self._code: dict[Hashable, int] = {v: code for code, v in enumerate(self.values)}

    def snapshot(self) -> list[Piece]:
        """Return the values in pieces: arrays of text, or lists of other values."""
        values, pieces = self.values, self._pieces
        while len(values) >= (len(pieces) + 1) * PIECE:
            start = len(pieces) * PIECE
            pieces.append(_piece_of(values[start : start + PIECE]))
        rest = values[len(pieces) * PIECE :]
        return [*pieces, _piece_of(rest)] if rest else [*pieces]

    def restore(self, state: list[Piece]) -> None:
        """Hold saved values."""
        whole = [piece for piece in state if len(piece) == PIECE]
        self._set([value for piece in state for value in _listed(piece)], whole)

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, values: pa.Array) -> Int64Array:
        """Return the code of each value; values not seen yet get new codes."""
        encoded = values.dictionary_encode(null_encoding="encode")
        known = self._code
        distinct = encoded.dictionary.to_pylist()
        codes = np.array([known.setdefault(value, len(known)) for value in distinct], np.int64)
        if len(known) > len(self.values):
            # Arrow lists distinct values in order of first appearance, so new codes ascend.
            size = len(self.values)
            self.values += [distinct[at] for at in np.flatnonzero(codes >= size).tolist()]
        row_codes: Int64Array = codes.take(encoded.indices.to_numpy())
        return row_codes

    def find(self, values: Sequence[Hashable]) -> Int64Array:
        """Return the code of each value, −1 for values not seen yet; shape (values,)."""
        return np.array([self._code.get(value, -1) for value in values], dtype=np.int64)


Piece: TypeAlias = pa.Array | list[Any]
"""Values of `HashCodes`: texts and nulls as an array, else a list."""


def _piece_of(values: list[Any]) -> Piece:
    if not set(map(type, values)) <= {str, NoneType}:
        return values
    try:
        return pa.array(values, pa.large_string())
    except UnicodeEncodeError:  # half a character
        return values


def _listed(piece: Piece) -> list[Any]:
    return piece if isinstance(piece, list) else piece.to_pylist()


class IntCodes:
    """Codes for int64 values, and one for null once a row is null.

    Attributes:
        null: the code of null; None: no row was null.
    """

    STATE = Fields("_values", "null")

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.null: int | None = None
        self._values = GrowableArray(np.int64, is_log=True)
        self._base = 0
        # {value − base: code, −1 for none}; both ends stay −1, for what is out of range.
        self._table = np.full(2, -1, dtype=np.int64)
        self._sparse: OpenTable | None = None  # in place of the table, for a wide range

    def __len__(self) -> int:
        return len(self._values)

    @property
    def values(self) -> Int64Array:
        """The value of each code, 0 for null's."""
        return self._values.values

    def codes(self, values: Int64Array, valid: BoolArray | None = None) -> Int64Array:
        """Return the code of each row, shape (rows,); values not seen yet get new codes.

        Args:
            values: shape (rows,).
            valid: shape (rows,): which rows have a value; None: all have one.
        """
        if not len(values):
            return np.empty(0, dtype=np.int64)
        if valid is not None:
            return self._codes_or_null(values, valid)
        codes = self.find(values)
        if np.minimum.reduce(codes) >= 0:
            return codes
        rows = (codes < 0).nonzero()[0]
        new = values.take(rows)
        if self._sparse is None and not self._covers(new):
            self._cover(new)
        if self._sparse is None:
            new -= self._base
            self._enter_all(self._table, new, self._base)
            codes[rows] = self._table.take(new)
        else:
            codes[rows] = self._enter_sparse(self._sparse, new)
        return codes

    def _enter_sparse(self, sparse: OpenTable, new: Int64Array) -> Int64Array:
        codes, first = sparse.enter(new, self.values)
        self._values.append(new.take(first))
        return codes

    def _codes_or_null(self, values: Int64Array, valid: BoolArray) -> Int64Array:
        nulls = (~valid).nonzero()[0]
        if not len(nulls):
            return self.codes(values)
        if self.null is None:
            self.codes(values[: nulls.item(0)])  # those before the first null
            self.null = len(self)
            self._values.append(np.zeros(1, np.int64))
        codes = self.find(values)
        codes[nulls] = self.null
        if np.minimum.reduce(codes) < 0:
            rows = valid.nonzero()[0]
            codes[rows] = self.codes(values.take(rows))
        return codes

    def codes_from(self, first: int, offsets: Int64Array, *, span: int) -> Int64Array:
        """Return the codes of the values first + offset, as `codes` does, shape (rows,).

        Quicker for many rows: only a small part of the table is looked at.

        Args:
            first: the least value that there may be.
            offsets: shape (rows,), from 0 to span − 1.
            span: the number of values that there may be.
        """
        last = first + span - 1
        is_covered = self._base < first and last - self._base < len(self._table) - 1
        if self._sparse is None and not is_covered:
            self._cover(np.array([first, last]))
        if self._sparse is not None:
            return self.codes(offsets + first)
        start = first - self._base
        return self._codes_in(self._table[start : start + span], offsets, first)

    def _codes_in(self, table: Int64Array, places: Int64Array, base: int) -> Int64Array:
        """Return codes at places of a part of the table; `base` is its first value."""
        codes = table.take(places, mode="clip")
        unknown = (codes < 0).nonzero()[0]
        if len(unknown) == len(places):
            self._enter_all(table, places, base)
            return table.take(places, mode="clip")
        if len(unknown):
            new = places.take(unknown)
            self._enter_all(table, new, base)
            codes[unknown] = table.take(new)
        return codes

    def _enter_all(self, table: Int64Array, places: Int64Array, base: int) -> None:
        """Give codes to the distinct values among these places, in their order; none has one.

        Where values repeat, as keys do, most are among the first few.
        """
        head = max(_HEAD_ROWS, len(places) // _HEADS)
        if len(table) <= len(places):  # the table shows which are new
            head = len(places)
        while len(places) > 2 * head:
            entered = self._enter(table, places[:head], base)
            places = places[head:]
            places = places.take((table.take(places, mode="clip") < 0).nonzero()[0])
            if 2 * entered > head:  # these values hardly repeat
                break
        self._enter(table, places, base)

    def find(self, values: Int64Array) -> Int64Array:
        """Return the code of each value, −1 for values not seen yet; shape (rows,)."""
        if self._sparse is not None:
            return self._sparse.find(values, self.values)
        return self._table.take(values - self._base, mode="clip")

    def _covers(self, values: Int64Array) -> bool:
        low, high = int(values.min()), int(values.max())
        return self._base < low and high - self._base < len(self._table) - 1

    def keep(self, codes: Int64Array) -> Int64Array:
        """Forget all but these codes (ascending); the rest close up, in the same order.

        Returns:
            The new code of each old one, shape (old length,); −1 for the forgotten.
        """
        moved = np.full(len(self), -1, dtype=np.int64)
        moved[codes] = np.arange(len(codes))
        self.replace(self.values[codes], None if self.null is None else codes != self.null)
        return moved

    def replace(self, values: Int64Array, valid: BoolArray | None = None) -> None:
        """Start over with these distinct values, coded in their order; at most one is null."""
        values = values.copy()
        self._clear()
        self.codes(values, valid)

    def derive(self) -> None:  # noqa: D102
        self.keep(np.arange(len(self)))

    def _enter(self, table: Int64Array, places: Int64Array, base: int) -> int:
        """Give codes to the distinct values among these places, without codes so far.

        Return their number.
        """
        marks = np.arange(-2, -2 - len(places), -1)
        table[places[::-1]] = marks[::-1]  # of equal places, the first one's mark stays
        if len(table) <= len(places):
            rows = -2 - table[table < -1]
            rows.sort()
        else:
            rows = (table.take(places) == marks).nonzero()[0]
        first = places.take(rows)
        table[first] = np.arange(len(self), len(self) + len(first))
        self._values.append(first + base)
        return len(first)

    def _cover(self, values: Int64Array) -> None:
        """Extend the table to these values, with room to grow; or give it up."""
        codes = np.arange(len(self))
        if self.null is not None:
            codes = np.delete(codes, self.null)
        known = self.values.take(codes)
        low, high = int(values.min()), int(values.max())
        is_downward = False
        if len(known):
            is_downward = low < int(known.min())
            low, high = min(low, int(known.min())), max(high, int(known.max()))
        span = high - low + 1
        lowest = -(2**63) + 1  # the lowest value needs a place before its own
        if span > max(_TABLE_SPAN, 4 * (len(known) + len(values))) or low < lowest:
            self._sparse = OpenTable(self.values, codes)
            self._table = np.full(2, -1, dtype=np.int64)
            return
        size = 1 << (span - 1).bit_length()
        self._base = (max(high + 1 - size, lowest) if is_downward else low) - 1
        self._table = np.full(size + 2, -1, dtype=np.int64)
        self._table[known - self._base] = codes
