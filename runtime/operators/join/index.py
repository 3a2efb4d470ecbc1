"""An index finds the held rows of a key within a span of event time.

A row's entry is one int64: its key in the high bits, its time in the low ones. Entries
stand in a few sorted runs, older ones longer, each with its number in the highest bits: so all
runs are searched by one binary search over the whole.

```
run      0               1         2
entry    a1 a7 b2 b3 b9  a8 a9 c8  b9        b within 8…9:  0 b9,  2 b9
row      0  4  1  2  5   6  7  3   8
```
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.ranges import unfolded
from slackwater.runtime.model.stable_order import order_of_digits
from slackwater.runtime.operators.ground.arrays import GrowableArray, slices_of_weight

_RUN_BITS = 5
_ENTRY_BITS = 63 - _RUN_BITS
_MATCHES_AT_ONCE = 1 << 20
_WORTH_SORTING = 256


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout makes an entry of key and time.

    Where the time does not fit, its lowest bits are cut off: searches then find too many rows,
    never too few, and `is_exact` is false.
    """

    base_ns: int
    key_bits: int
    shift: int

    @classmethod
    def for_span(cls, start_ns: int, end_ns: int, keys: int) -> Layout:
        """Return a layout for times in [start, end], with room for more of both."""
        key_bits = keys.bit_length() + 1
        span_bits = (end_ns - start_ns).bit_length() + 2
        return cls(start_ns, key_bits, max(0, span_bits - (_ENTRY_BITS - key_bits)))

    def fits(self, start_ns: int, end_ns: int, keys: int) -> bool:
        """Whether these times and all keys below `keys` have a place."""
        room = (end_ns - self.base_ns) >> (self.shift + _ENTRY_BITS - self.key_bits)
        return start_ns >= self.base_ns and not room and not keys >> self.key_bits

    @property
    def is_exact(self) -> bool:
        """Whether an entry holds all of its time."""
        return self.shift == 0

    def pack(self, keys: Int64Array, event_time_ns: Int64Array) -> Int64Array:
        """Return the entries of rows, shape (rows,), which sort by (key, time)."""
        times = event_time_ns - self.base_ns
        if self.shift:
            times >>= self.shift
        times |= keys << (_ENTRY_BITS - self.key_bits)
        return times


class RunIndex:
    """Sorted runs of entries, and the position of each entry's row."""

    def __init__(self) -> None:
        self._entries = GrowableArray(np.int64)
        self._rows = GrowableArray(np.int64)
        self._starts: list[int] = []  # the first entry of each run

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def runs(self) -> int:  # noqa: D102
        return len(self._starts)

    def add(self, entries: Int64Array, first_row: int, *, order: Int64Array | None = None) -> None:
        """Add a run: entries, in any order, of the rows from this position on.

        Args:
            entries: shape (rows,), as `Layout.pack` makes them.
            first_row: position of the first one's row.
            order: shape (rows,), the order of the entries, if it is known; see `order_by_key`.
        """
        if self.runs == 1 << _RUN_BITS:
            self._merge_from(0)
        if order is None:
            order = entries.argsort()
        run = entries.take(order)
        run |= self.runs << _ENTRY_BITS
        order += first_row
        self._starts.append(len(self))
        self._entries.append(run)
        self._rows.append(order)

    def matches(
        self,
        low: Int64Array,
        high: Int64Array,
        searching: Int64Array,
        *,
        order: Int64Array | None = None,
    ) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield pairs of (who searches, row found), some at a time, in no particular order.

        Args:
            low: the lowest entry of each search, shape (searches,).
            high: the highest entry of each search.
            searching: shape (searches,), who searches.
            order: shape (searches,), about the order of `low`, if it is known.
        """
        if not self.runs or not len(low):
            return
        if len(low) > _WORTH_SORTING:
            if order is None:
                order = low.argsort()  # neighbours look at the same memory: twice as fast
            low, high, searching = low.take(order), high.take(order), searching.take(order)
        if self.runs > 1:
            numbers = np.arange(self.runs)[:, np.newaxis] << _ENTRY_BITS
            searching = searching[np.newaxis].repeat(self.runs, 0).ravel()
            low, high = (numbers | low).ravel(), (numbers | high).ravel()
        entries = self._entries.values
        starts = entries.searchsorted(low)
        counts = entries.searchsorted(high, "right") - starts
        total = int(counts.sum())
        if 0 < total <= _MATCHES_AT_ONCE:
            yield searching.repeat(counts), self._rows.values.take(unfolded(starts, counts))
        elif total:
            for part in slices_of_weight(counts, _MATCHES_AT_ONCE):
                own = counts[part]
                found = self._rows.values.take(unfolded(starts[part], own))
                yield searching[part].repeat(own), found

    def tidy(self, first_row: int, held: int) -> None:
        """Forget entries of rows before this position once most are; merge short runs."""
        if len(self) > 2 * held + 64:
            stays = self._rows.values >= first_row
            self._entries.replace(self._entries.values[stays])
            self._rows.replace(self._rows.values[stays])
            self._starts = [0] if len(self) else []
            self._merge_from(0)
            return
        starts, end = self._starts, len(self)
        run = len(starts) - 1
        # Each run stays at least twice as long as the next, so there are few of them.
        while run > 0 and starts[run] - starts[run - 1] < 2 * (end - starts[run]):
            run -= 1
        if run + 1 < len(starts):
            self._merge_from(run)

    def _merge_from(self, run: int) -> None:
        """Merge this run and all later ones."""
        if not self.runs:
            return
        start = self._starts[run]
        del self._starts[run + 1 :]
        entries, rows = self._entries.values[start:], self._rows.values[start:]
        entries &= (1 << _ENTRY_BITS) - 1
        order = entries.argsort(kind="stable")  # finds the runs, and merges
        entries[:] = entries.take(order) | (run << _ENTRY_BITS)
        rows[:] = rows.take(order)


def order_by_key(keys: Int64Array, event_time_ns: Int64Array) -> Int64Array | None:
    """Return the order of rows by (key, time), shape (rows,); None: sort them.

    Rows mostly come in the order of time, so it is the order of their keys.
    """
    if len(keys) < _WORTH_SORTING or np.count_nonzero(event_time_ns[1:] < event_time_ns[:-1]):
        return None
    return order_of_digits(keys)
