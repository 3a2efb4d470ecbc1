"""An index finds places of stored rows by a code, as of their key.

```
part 1   code  0  1  1  4      part 2   code  1  4       code 1:  places 0 3 5
         place 2  0  3  1               place 5  4
```
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.ranges import starts_of_runs, unfold
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.operators.ground.stored_rows import StoredRows

__all__ = ["CodeIndex"]

_RATIO = 4
"""Least ratio of the lengths of a part and the next: so parts are few."""
_FEW_ROWS = 1_024
"""Rows of a part that is joined with the next whatever its length: to sort both costs less than to
look into one more part."""


class _Part(NamedTuple):
    """Places by code; those of a code ascend.

    Attributes:
        codes: shape (codes,), distinct and ascending.
        starts: shape (codes + 1,), where the places of each begin.
        places: places of the rows, by code, shape (rows,).
    """

    codes: Int64Array
    starts: Int64Array
    places: Int64Array


class CodeIndex:
    """Places of rows by code, in a few sorted parts, earlier ones longer.

    Rows that are gone stay in a part until it is joined with others, and are never found.

    Args:
        rows: rows that have the places.
    """

    def __init__(self, rows: StoredRows) -> None:
        self._rows = rows
        self._parts: list[_Part] = []

    def add(self, codes: Int64Array, places: Int64Array) -> None:
        """Add rows, whose places are above all others and ascend."""
        if not len(places):
            return
        while self._parts and len(self._parts[-1].places) < max(_RATIO * len(places), _FEW_ROWS):
            last = self._parts.pop()
            is_there = self._rows.are_there(last.places)
            known = last.codes.repeat(np.diff(last.starts))[is_there]
            codes = np.concatenate([known, codes])
            places = np.concatenate([last.places[is_there], places])
        if not len(places):
            return
        order = stable_order(codes)
        codes = codes.take(order)
        starts = starts_of_runs(codes)
        bounds = np.append(starts, len(codes))
        self._parts.append(_Part(codes.take(starts), bounds, places.take(order)))

    def find(self, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return pairs of (number of a code, place of a row), both ascending.

        Args:
            codes: shape (codes,), those whose rows are sought, in any order.
        """
        numbers, places = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for part in self._parts:
            at = np.minimum(part.codes.searchsorted(codes), len(part.codes) - 1)
            known = (part.codes.take(at) == codes).nonzero()[0]
            at = at.take(known)
            starts = part.starts.take(at)
            of, entries = unfold(starts, part.starts.take(at + 1) - starts)
            own = part.places.take(entries)
            is_there = self._rows.are_there(own)
            numbers.append(known.take(of[is_there]))
            places.append(own[is_there])
        number, place = np.concatenate(numbers), np.concatenate(places)
        if len(self._parts) > 1:  # places of later parts are higher
            order = number.argsort(kind="stable")
            number, place = number.take(order), place.take(order)
        return number, place
