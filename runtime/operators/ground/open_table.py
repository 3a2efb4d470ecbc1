"""An open hash table has the codes of whole numbers in any range.

All rows take a step at a time.

```
rows      7    9    7    4         of rows at a free place the first one marks it
step 1    at 3 at 5 at 3 at 5      7 and 9 have a place, the second 7 finds its equal
step 2                   at 6      4 finds 9, goes on, and has the next place
```

Equal values look at the same places in the same step, so each finds the first row that has it.
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.hashes import hashed

__all__ = ["OpenTable"]

_FREE, _FIRST_MARK = -1, -2
"""Content of a free place, and mark of row 0: that of row n is n less."""
_LEAST_ROOM, _ROOM = 2, 4
"""Places for each value, at least; with more values the table is made again, with so many each."""
_PIECE = 1 << 14
"""Values that get places together: what is computed of them fits the cache."""


class OpenTable:
    """Codes of whole numbers.

    The values are their owner's, by code: the table has the codes alone.

    Args:
        values: shape (codes,), the value of each code.
        codes: shape (values,), the codes that have a place.
    """

    def __init__(self, values: Int64Array, codes: Int64Array) -> None:
        self._make(values, codes, more=0)

    def _make(self, values: Int64Array, codes: Int64Array, *, more: int) -> None:
        self._used = len(codes)
        size = 1 << (_ROOM * (len(codes) + more) | 63).bit_length()
        self._codes = np.full(size, _FREE, dtype=np.int64)
        for start in range(0, len(codes), _PIECE):
            own = codes[start : start + _PIECE]
            _, places = self._claimed(values.take(own))
            self._codes[places] = own

    def find(self, wanted: Int64Array, values: Int64Array) -> Int64Array:
        """Return the code of each value wanted, −1 without one; shape (wanted,).

        Args:
            wanted: values to look up, shape (wanted,).
            values: shape (codes,), the value of each code.
        """
        places = self._places_of(wanted)
        codes = self._codes.take(places)
        rest = self._of_others(codes, wanted, values)
        places, wanted = places.take(rest), wanted.take(rest)
        while len(rest):
            places += 1
            places &= len(self._codes) - 1
            next_codes = self._codes.take(places)
            codes[rest] = next_codes
            on = self._of_others(next_codes, wanted, values)
            rest, places, wanted = rest.take(on), places.take(on), wanted.take(on)
        return codes

    def enter(self, new: Int64Array, values: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Give codes to values without one, in order of first appearance.

        Args:
            new: shape (rows,), the values; one may be there several times.
            values: shape (codes,), the value of each code so far.

        Returns:
            (The code of each row; the rows at which values appear first, ascending.)
        """
        if _LEAST_ROOM * (self._used + len(new)) > len(self._codes):
            self._make(values, self._codes[self._codes >= 0], more=len(new))
        owners, places = self._claimed(new)
        first = (owners == np.arange(len(new))).nonzero()[0]
        codes = np.empty(len(new), dtype=np.int64)
        codes[first] = np.arange(len(values), len(values) + len(first))
        self._codes[places.take(first)] = codes.take(first)
        self._used += len(first)
        return codes.take(owners), first

    @staticmethod
    def _of_others(codes: Int64Array, wanted: Int64Array, values: Int64Array) -> Int64Array:
        """Return which of these codes are of other values than the wanted."""
        if not len(values):
            return codes[:0]
        differs = values.take(codes, mode="clip") != wanted
        differs &= codes >= 0
        rows: Int64Array = differs.nonzero()[0]
        return rows

    def _claimed(self, values: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Mark a place for each distinct value, of which none has one.

        Returns:
            (The first row with the value of each row; the place of each row's value.)
        """
        table, rows = self._codes, np.arange(len(values))
        owners, places = np.empty_like(rows), np.empty_like(rows)
        own, at = values, self._places_of(values)  # of rows without a place so far
        while len(rows):
            free = (table.take(at) == _FREE).nonzero()[0][::-1]
            table[at.take(free)] = _FIRST_MARK - rows.take(free)  # of several the last one stays
            first = _FIRST_MARK - table.take(at)
            is_equal = values.take(first, mode="clip") == own
            is_equal &= first >= 0
            done, rest = is_equal.nonzero()[0], (~is_equal).nonzero()[0]
            owners[rows.take(done)] = first.take(done)
            places[rows.take(done)] = at.take(done)
            rows, own, at = rows.take(rest), own.take(rest), at.take(rest)
            at += 1
            at &= len(table) - 1
        return owners, places

    def _places_of(self, values: Int64Array) -> Int64Array:
        # The low bits: the high ones say which replica owns a key, so they may be all alike.
        hashes = hashed(values)
        hashes &= np.uint64(len(self._codes) - 1)
        return hashes.view(np.int64)
