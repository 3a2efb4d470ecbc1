"""Rows that an operator stores by place, in a few batches, older ones longer.

```
batch 1   place 0 1 2 3      rows 1 and 2 are gone: once most are,
batch 2   place 4 5          the others get places from 0 on, in the same order
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array, concat_batches
from slackwater.runtime.model.divided import StayingNumbers
from slackwater.runtime.operators.ground.arrays import GrowableArray

_FEW_ROWS = 1_024


class StoredRows:
    """Rows with the codes of their keys, and a place each.

    It packs itself: batches never change, so what is saved are the batches themselves.
    """

    def __init__(self) -> None:
        self._parts: list[Batch] = []
        self._starts: list[int] = []  # place of the first row of each part
        self._is_gone = GrowableArray(np.bool_)
        self._gone = 0

    def __len__(self) -> int:
        return len(self._is_gone) - self._gone

    @property
    def end(self) -> int:
        """The place of the next row to come."""
        return len(self._is_gone)

    @property
    def places(self) -> Int64Array:
        """The places of all rows, ascending."""
        return (~self._is_gone.values).nonzero()[0]

    def append(self, rows: Batch) -> None:
        """Add rows with codes, and join short batches."""
        if not len(rows):
            return
        parts, starts = self._parts, self._starts
        parts.append(rows)
        starts.append(self.end)
        self._is_gone.resize(self.end + len(rows))
        while len(parts) > 1 and len(parts[-2]) < max(2 * len(parts[-1]), _FEW_ROWS):  # so few
            parts[-2:] = [concat_batches(parts[-2:])]
            del starts[-1]

    def take(self, places: Int64Array) -> Batch:
        """Return the rows at these places, at least one row being stored."""
        if len(self._parts) == 1:
            return self._parts[0].take(places)
        numbers = np.searchsorted(self._starts, places, "right") - 1
        order = numbers.argsort(kind="stable")
        bounds = numbers.take(order).searchsorted(np.arange(len(self._parts) + 1))
        chosen = []
        for number, part in enumerate(self._parts):
            own = order[bounds[number] : bounds[number + 1]]
            if len(own):
                chosen.append(part.take(places.take(own) - self._starts[number]))
        if not chosen:
            return self._parts[0].take(places)
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return concat_batches(chosen).take(back)

    def codes(self, places: Int64Array) -> Int64Array:
        """Return the codes of the rows at these places, at least one row being stored."""
        codes = [part.codes for part in self._parts if part.codes is not None]
        all_codes: Int64Array = np.concatenate(codes)
        return all_codes.take(places)

    def times_ns(self, places: Int64Array) -> Int64Array:
        """Return the event times of the rows at these places; see `codes`."""
        times_ns: Int64Array = np.concatenate([part.event_time_ns for part in self._parts])
        return times_ns.take(places)

    def are_there(self, places: Int64Array) -> BoolArray:
        """Return whether the row at each place is there."""
        is_there: BoolArray = ~self._is_gone.values.take(places)
        return is_there

    def drop(self, places: Int64Array) -> None:
        """Let the rows at these places go; each is there."""
        self._is_gone.values[places] = True
        self._gone += len(places)

    def tidy(self) -> bool:
        """Forget rows that are gone, if they are the most; return whether places changed."""
        if self._gone <= len(self) + _FEW_ROWS:
            return False
        self._hold(self.places)
        return True

    def clear(self) -> None:
        """Forget all rows."""
        self._hold(np.empty(0, dtype=np.int64))

    def _hold(self, places: Int64Array, codes: Int64Array | None = None) -> None:
        rows = self.take(places) if len(places) else None
        self._parts, self._starts, self._gone = [], [], 0
        self._is_gone = GrowableArray(np.bool_)
        if rows is not None:
            self.append(rows if codes is None else rows.with_(codes=codes))

    def renumber(self, staying: StayingNumbers) -> StayingNumbers:
        """Keep the rows of some keys; return the numbers of those that stay."""
        places = self.places
        if not len(places):
            return StayingNumbers(places)
        moved = staying.moved(self.codes(places))
        stays = (moved >= 0).nonzero()[0]
        self._hold(places.take(stays), moved.take(stays))
        return StayingNumbers(stays)

    def snapshot(self) -> dict[str, Any]:
        """Return the batches, which never change, and which of their rows are gone."""
        return {"parts": [*self._parts], "gone": self._is_gone.values.nonzero()[0]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take saved rows into a fresh store."""
        for part in state["parts"]:
            self.append(part)
        self.drop(state["gone"])
