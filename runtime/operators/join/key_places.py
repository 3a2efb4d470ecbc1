"""Places of keys in a table.

```
zone   rate           find [7, 3, null, 5]  ─▶  1  0  −1  −1
3      0.1
7      0.2
```

A null key has no place. Nothing is added by a search, so a machine that looks up has no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import BoolArray, Column, Int64Array
from slackwater.runtime.model.nullable import NUMBERS, Nullable, Numbers, valid_of
from slackwater.runtime.operators.ground.codes import HashCodes
from slackwater.runtime.operators.ground.keys import as_int64

__all__ = ["KeyPlaces"]

_SPAN = 1 << 20
"""Whole numbers in so short a range are places of an array (8 MB); others are searched."""


class KeyPlaces:
    """Places of distinct keys: the number of each key's row.

    Args:
        columns: key columns of the table, each of shape (rows,).
        rows: number of its rows.

    Attributes:
        rows: number of the table's rows.
        doubled: rows whose key an earlier row has, ascending.
    """

    def __init__(self, columns: Sequence[Column], rows: int) -> None:
        self.rows = rows
        self._columns = [_ranks_of(column) for column in columns]
        self._pairs: list[_Numbers] = []
        codes = np.zeros(rows, dtype=np.int64)
        for number, (ranks, column) in enumerate(zip(self._columns, columns, strict=True)):
            codes = _together(codes, ranks, column)
            if number:  # dense again, so that numbers of pairs fit in 64 bits
                self._pairs.append(_Numbers(codes, codes >= 0))
                codes = self._pairs[-1].find(codes, codes >= 0)
        has_key = (codes >= 0).nonzero()[0]
        self._row = np.full(int(codes.max(initial=-1)) + 2, -1, dtype=np.int64)
        self._row[codes.take(has_key[::-1])] = has_key[::-1]  # of equal keys the first row stays
        self.doubled = has_key[self._row.take(codes.take(has_key)) != has_key]

    def find(self, columns: Sequence[Column], rows: int) -> Int64Array:
        """Return the table's row of each key, shape (rows,); −1 without any."""
        codes = np.zeros(rows, dtype=np.int64)
        for number, (ranks, column) in enumerate(zip(self._columns, columns, strict=True)):
            codes = _together(codes, ranks, column)
            if number:
                codes = self._pairs[number - 1].find(codes, codes >= 0)
        return self._row.take(codes)  # −1 is the last place, which has no row


class _Ranks(Protocol):
    """Ranks number the distinct values of a column; −1: another value, or null."""

    size: int

    def of(self, column: Column) -> Int64Array: ...


def _together(codes: Int64Array, ranks: _Ranks, column: Column) -> Int64Array:
    """Return one number for a code and the next value; −1 without one."""
    own = ranks.of(column)
    return np.where((codes >= 0) & (own >= 0), codes * ranks.size + own, -1)


def _ranks_of(column: Column) -> _Ranks:
    return _NumberRanks(column) if isinstance(column, NUMBERS) else _OtherRanks(column)


class _NumberRanks:
    """Ranks of numbers, booleans and times."""

    def __init__(self, column: Numbers) -> None:
        self._is_unsigned = column.dtype == np.uint64
        numbers = _numbers(column)
        self._numbers = _Numbers(numbers, valid_of(column))
        self.size = self._numbers.size

    def of(self, column: Numbers) -> Int64Array:
        numbers = _numbers(column)
        codes = self._numbers.find(numbers, valid_of(column))
        if (column.dtype == np.uint64) is not self._is_unsigned:
            codes[numbers < 0] = -1  # beyond int64 on one side, below zero on the other
        return codes


def _numbers(column: Numbers) -> Int64Array:
    return as_int64(column.values if isinstance(column, Nullable) else column)


class _OtherRanks:
    """Ranks of text, decimals and other values of Arrow."""

    def __init__(self, column: pa.Array) -> None:
        self._codes = HashCodes(column.drop_null().unique().to_pylist())
        self.size = len(self._codes)

    def of(self, column: pa.Array) -> Int64Array:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = self._codes.find(encoded.dictionary.to_pylist())
        return codes.take(encoded.indices.to_numpy()) if len(codes) else _nowhere(len(column))


class _Numbers:
    """Ranks of int64 values."""

    def __init__(self, values: Int64Array, valid: BoolArray | None) -> None:
        self._values = np.unique(values if valid is None else values[valid])
        self.size = len(self._values)
        self._first, self._table = 0, None
        if self.size:
            low, high = int(self._values[0]), int(self._values[-1])
            if high - low < max(_SPAN, 4 * self.size) and low > -(2**63) and high < 2**63 - 1:
                self._first = low - 1  # both ends stay −1, for what is out of range
                self._table = np.full(high - low + 3, -1, dtype=np.int64)
                self._table[self._values - self._first] = np.arange(self.size)

    def find(self, values: Int64Array, valid: BoolArray | None) -> Int64Array:
        if not self.size:
            return _nowhere(len(values))
        if self._table is not None:
            codes = self._table.take(values - self._first, mode="clip")
        else:
            codes = np.minimum(self._values.searchsorted(values), self.size - 1)
            codes[self._values.take(codes) != values] = -1
        if valid is not None:
            codes[~valid] = -1
        return codes


def _nowhere(rows: int) -> Int64Array:
    return np.full(rows, -1, dtype=np.int64)
