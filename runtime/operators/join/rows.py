"""The rows that a join holds, of both sides, in the order of processing.

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

from slackwater.runtime.model import START_NS, Batch, BoolArray, Column, Int64Array
from slackwater.runtime.model.divided import StayingNumbers
from slackwater.runtime.model.row_marks import Marks
from slackwater.runtime.operators.join.columns import HeldColumns

Pairs = tuple[Int64Array, Int64Array]
"""Positions of left rows, and of the right row that each is paired with."""
Reaches = tuple[tuple[int, int], tuple[int, int]]
"""How far a left row looks back and ahead for right ones, and a right row for left ones."""
_LEFT, _RIGHT = 0, 1
_FEW_ROWS = 64
_FEW_FOUND = 8  # up to so many are looked at one by one
_SAVED = ("_keys", "_times", "_stimuli", "_newest")
_ARRAYS = (*_SAVED, "_places")  # places follow from the sides


class Arrivals:
    """New rows of both sides, each in event-time order: left rows, then right ones.

    Attributes:
        batches: left and right rows; None if there are none.
        lefts: the number of left rows.
        keys: shape (rows,), as in `HeldRows`.
        times: shape (rows,), the event times.
        turns: shape (rows,), the place of each row in the order (event time, side).
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

    def keep(self, mask: BoolArray) -> Arrivals | None:
        """Return the rows where `mask`, shape (rows,), is true; None if it is true nowhere."""
        if not mask.any():
            return None
        masks, codes = (mask[: self.lefts], mask[self.lefts :]), self.keys >> 1
        left, right = (
            batch.keep(own) if batch is not None and own.any() else None
            for batch, own in zip(self.batches, masks, strict=True)
        )
        return Arrivals(left, right, codes[: self.lefts][masks[0]], codes[self.lefts :][masks[1]])

    def count(self, side: int) -> int:
        """Return the number of rows of one side (0 left, 1 right)."""
        return len(self.keys) - self.lefts if side else self.lefts

    def keys_of(self, side: int) -> Int64Array:
        """Return the keys of one side."""
        return self.keys[self.lefts :] if side else self.keys[: self.lefts]

    def times_of(self, side: int) -> Int64Array:
        """Return the event times of one side."""
        return self.times[self.lefts :] if side else self.times[: self.lefts]

    def searches(
        self, side: int, rows: int, first: int
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return positions, keys and times of a side's first rows, each of shape (rows,).

        Args:
            side: 0 left, 1 right.
            rows: the number of first rows.
            first: the position of the first new row of both sides.
        """
        begin = self.lefts if side else 0
        some = slice(begin, begin + rows)
        return self.turns[some] + first, self.keys[some], self.times[some]


def _turns(left: Int64Array, right: Int64Array) -> Int64Array:
    """Return the place of each time in the merged order; left before right.

    Left times are first in the result; both sides ascend. The side with fewer rows is looked up in
    the other.
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
    """A queue of rows: they leave at the front, and are read anywhere.

    A row's key is twice the code of its key, plus one on the right side: so the rows that it
    may be paired with have its key with the last bit turned.

    It packs itself: it keeps room for more rows. What is saved are views, so what is in the arrays
    of a row that is held is never changed: rows are added after it, or all arrays are new ones.

    Args:
        left: the left columns to hold.
        right: the right columns to hold.
        has_matches: whether it notes which rows have a partner.
    """

    def __init__(
        self, left: Sequence[str], right: Sequence[str], *, has_matches: bool = False
    ) -> None:
        self.sides = (HeldColumns(left), HeldColumns(right))
        self._keys = np.empty(64, dtype=np.int64)
        self._times = np.empty(64, dtype=np.int64)
        self._stimuli = np.empty(64, dtype=np.int64)
        self._places = np.empty(64, dtype=np.int64)
        self._newest = np.empty(64, dtype=np.int64)  # the newest event time up to each row
        self._marks: Marks | None = None  # None: no row has ever had one
        self._matched = np.zeros(64, dtype=np.bool_) if has_matches else None
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
        before_ns, rows = self.newest_ns, len(new.keys)
        self._make_room(rows)
        first = self.end - self.origin
        last = first + rows
        self.end += rows
        if self._matched is not None:
            self._matched[first:last] = False
        left, right = new.batches
        if left is None or right is None:
            side = _LEFT if right is None else _RIGHT
            self._add_side(side, new, slice(first, last))
        else:
            at = new.turns + first
            self._add_side(_LEFT, new, at[: new.lefts])
            self._add_side(_RIGHT, new, at[new.lefts :])
        times, newest = self._times[first:last], self._newest[first:last]
        if rows > _FEW_ROWS and not np.count_nonzero(times[1:] < times[:-1]):
            newest[:] = times  # usually in order: a tenth of the time of accumulating
        else:
            np.maximum.accumulate(times, out=newest)
        if before_ns > newest.item(0):
            np.maximum(newest, before_ns, out=newest)

    def _add_side(self, side: int, new: Arrivals, at: slice | Int64Array) -> None:
        batch = new.batches[side]
        assert batch is not None
        columns = self.sides[side]
        self._keys[at] = new.keys_of(side)
        self._times[at] = batch.event_time_ns
        self._stimuli[at] = batch.stimulus_time_ns
        self._places[at] = np.arange(columns.end, columns.end + len(batch.event_time_ns))
        if batch.marks is not None and self._marks is None:
            self._marks = np.zeros(len(self._keys), dtype=np.uint8)
        if self._marks is not None:
            self._marks[at] = 0 if batch.marks is None else batch.marks
        columns.append(batch)

    def append_row(self, batch: Batch, side: int, key: int) -> None:
        """Add one row without marks, number by number, where `append` has arrays.

        Args:
            batch: a batch of one row.
            side: 0 left, 1 right.
            key: the key of the row, as in `_keys`.
        """
        newest_ns = self.newest_ns
        self._make_room(1)
        at, columns, time_ns = self.end - self.origin, self.sides[side], batch.event_time_ns.item(0)
        self._keys[at], self._times[at] = key, time_ns
        self._stimuli[at], self._places[at] = batch.stimulus_time_ns.item(0), columns.end
        self._newest[at] = time_ns if time_ns > newest_ns else newest_ns
        if self._marks is not None:
            self._marks[at] = 0
        self.end += 1
        columns.append_row(batch)

    def _make_room(self, rows: int) -> None:
        first, last = self.start - self.origin, self.end - self.origin
        capacity = len(self._keys)
        if last + rows <= capacity:
            return
        capacity = max(capacity, 2 * (last - first + rows))
        for name in _ARRAYS:
            grown = np.empty(capacity, dtype=np.int64)
            grown[: last - first] = getattr(self, name)[first:last]
            setattr(self, name, grown)
        if self._marks is not None:
            marks = np.zeros(capacity, dtype=np.uint8)
            marks[: last - first] = self._marks[first:last]
            self._marks = marks
        if self._matched is not None:
            matched = np.zeros(capacity, dtype=np.bool_)
            matched[: last - first] = self._matched[first:last]
            self._matched = matched
        self.origin = self.start

    @property
    def newest_ns(self) -> int:
        """The newest event time held; START_NS for none."""
        if self.end == self.start:
            return START_NS
        return self._newest.item(self.end - self.origin - 1)

    def keys(self, start: int, stop: int) -> Int64Array:
        """Return the keys of the rows at positions [start, stop): a view."""
        return self._keys[start - self.origin : stop - self.origin]

    def times(self, start: int, stop: int) -> Int64Array:
        """Return the event times of the rows at positions [start, stop): a view."""
        return self._times[start - self.origin : stop - self.origin]

    def keys_at(self, positions: Int64Array) -> Int64Array:
        """Return the keys of the rows at these positions."""
        return self._keys.take(positions - self.origin)

    def event_time_ns(self, positions: Int64Array) -> Int64Array:
        """Return the event times of the rows at these positions."""
        return self._times.take(positions - self.origin)

    def columns(self, names: Iterable[str], positions: Int64Array, *, side: int) -> list[Column]:
        """Return columns of rows of one side (0 left, 1 right) by their positions."""
        places = self._places.take(positions - self.origin)
        return self.sides[side].take(names, places)

    def partners_before(
        self, position: int, *, reaches_ns: Reaches, since_ns: int
    ) -> tuple[int, list[int]]:
        """Return a row's side, and the positions of earlier rows that may pair with it.

        Each row is looked at: among a few thousand that is quicker than any index.

        Args:
            position: the position of the row that searches.
            reaches_ns: reaches of both sides.
            since_ns: leave out rows older than this.
        """
        at, first = position - self.origin, self.start - self.origin
        key, time_ns = self._keys.item(at), self._times.item(at)
        back_ns, ahead_ns = reaches_ns[key & 1]
        places = (self._keys[first:at] == key ^ 1).nonzero()[0]
        if len(places) <= _FEW_FOUND:
            oldest_ns, newest_ns = max(time_ns - back_ns, since_ns), time_ns + ahead_ns
            item = self._times.item
            near = [n for n in places.tolist() if oldest_ns <= item(first + n) <= newest_ns]
            return key & 1, [n + self.start for n in near]
        times = self._times[first:at].take(places)
        is_near = times >= max(time_ns - back_ns, since_ns)
        is_near &= times <= time_ns + ahead_ns
        places = places[is_near]
        places += self.start
        return key & 1, places.tolist()

    def later(self, pairs: tuple[Int64Array, Int64Array]) -> tuple[Int64Array, Int64Array]:
        """Return the later event time and the later stimulus time of each pair of rows."""
        left, right = pairs[0] - self.origin, pairs[1] - self.origin
        times, stimuli = self._times, self._stimuli
        return (
            np.maximum(times.take(left), times.take(right)),
            np.maximum(stimuli.take(left), stimuli.take(right)),
        )

    def last_pair(self, partner: int) -> tuple[int, int, int]:
        """Return the later times of the last row and a partner, and the partner's place.

        Returns:
            (event time, stimulus time, place among the rows of its side).
        """
        own, other = self.end - 1 - self.origin, partner - self.origin
        times, stimuli = self._times.item, self._stimuli.item
        time_ns = max(times(own), times(other))
        return time_ns, max(stimuli(own), stimuli(other)), self._places.item(other)

    def stimulus_time_ns(self, positions: Int64Array) -> Int64Array:
        """Return the stimulus times of the rows at these positions."""
        return self._stimuli.take(positions - self.origin)

    def are_matched(self, positions: Int64Array) -> BoolArray:
        """Return whether the rows at these positions have had a partner."""
        assert self._matched is not None, "it notes matches"
        return self._matched.take(positions - self.origin)

    def match(self, positions: Int64Array) -> None:
        """Note that the rows at these positions have a partner."""
        assert self._matched is not None, "it notes matches"
        self._matched[positions - self.origin] = True

    @property
    def has_marks(self) -> bool:
        """Whether a row has ever had a mark."""
        return self._marks is not None

    def marks(self, pairs: tuple[Int64Array, Int64Array]) -> Marks | None:
        """Return the marks of each pair, those of both rows; None without any."""
        if self._marks is None:
            return None
        left, right = (self._marks.take(rows - self.origin) for rows in pairs)
        both: Marks = left | right
        return both if both.any() else None

    def renumber(self, kept: StayingNumbers) -> StayingNumbers:
        """Give rows the keys of their new codes; return the places that stay.

        If some go, the others get positions from 0 on.
        """
        keys = self.keys(self.start, self.end)
        codes = kept.moved(keys >> 1)
        stays, moved = codes >= 0, (codes << 1) | (keys & 1)
        if stays.all():
            self._keys = self._keys.copy()  # a snapshot may have the old
            self.keys(self.start, self.end)[:] = moved
        else:
            self._keep(stays, moved)
        return StayingNumbers(stays.nonzero()[0])

    def _keep(self, stays: BoolArray, keys: Int64Array) -> None:
        """Hold only some rows, in new arrays: a snapshot may have the old.

        Args:
            stays: shape (rows held,), which rows stay.
            keys: shape (rows held,), the new keys.
        """
        held = slice(self.start - self.origin, self.end - self.origin)
        sides = self._keys[held] & 1
        own = {name: getattr(self, name)[held][stays] for name in _ARRAYS}
        own["_keys"] = keys[stays]
        for number, side in enumerate(self.sides):
            side.keep(stays[sides == number])
            is_own = (own["_keys"] & 1) == number
            own["_places"][is_own] = np.arange(len(side))
        np.maximum.accumulate(own["_times"], out=own["_newest"])
        marks = None if self._marks is None else self._marks[held][stays]
        self._hold(own, marks, None if self._matched is None else self._matched[held][stays])

    def _hold(
        self, own: dict[str, Int64Array], marks: Marks | None, matched: BoolArray | None
    ) -> None:
        """Hold these rows alone, from position 0 on, in new arrays."""
        rows = len(own["_keys"])
        self.origin = self.start = 0
        self.end = rows
        capacity = max(64, 2 * rows)
        for name, values in own.items():
            grown = np.empty(capacity, dtype=np.int64)
            grown[:rows] = values
            setattr(self, name, grown)
        self._marks = None
        if marks is not None:
            self._marks = np.zeros(capacity, dtype=np.uint8)
            self._marks[:rows] = marks
        if matched is not None:
            self._matched = np.zeros(capacity, dtype=np.bool_)
            self._matched[:rows] = matched

    def newest_of(self, rows: int) -> int:
        """Return the newest event time of the first `rows` rows held, at least one."""
        return self._newest.item(self.start - self.origin + rows - 1)

    def would_drop(self, event_time_ns: int) -> bool:
        """Whether enough rows at the front are older to be worth the effort."""
        first, last = self.start - self.origin, self.end - self.origin
        probe = first + (last - first) // 32
        return first != last and self._newest.item(probe) < event_time_ns

    def drop_older_than(self, event_time_ns: int) -> bool:
        """Drop the older rows at the front; none, until they are worth the effort.

        Return whether some went. A late row goes with the rows that came before it.
        """
        if not self.would_drop(event_time_ns):
            return False
        first, last = self.start - self.origin, self.end - self.origin
        newest = self._newest[first:last]
        self.drop_before(self.start + int(newest.searchsorted(event_time_ns)))
        return True

    def drop_from(self, position: int) -> None:
        """Drop the rows from this position on; the next to come has it again."""
        rows = self.end - position
        right = int(np.bitwise_and(self.keys(position, self.end), 1).sum())
        self.end = position
        for side, gone in zip(self.sides, (rows - right, right), strict=True):
            side.drop_last(gone)

    def drop_before(self, position: int) -> None:
        """Drop the rows before this position."""
        rows = position - self.start
        right = int(np.bitwise_and(self.keys(self.start, position), 1).sum())
        self.start = position
        for side, gone in zip(self.sides, (rows - right, right), strict=True):
            side.drop(gone)

    def snapshot(self) -> dict[str, Any]:
        """Return the rows held, as views: of those only `_matched` ever changes."""
        held = slice(self.start - self.origin, self.end - self.origin)
        return {
            "own": {name: getattr(self, name)[held] for name in _SAVED},
            "marks": None if self._marks is None else self._marks[held],
            "matched": None if self._matched is None else self._matched[held].copy(),
            "columns": [side.snapshot() for side in self.sides],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take saved rows into a fresh queue; they get positions from 0 on."""
        sides = state["own"]["_keys"] & 1
        right = sides.cumsum()
        places = np.where(sides == _RIGHT, right - 1, np.arange(len(sides)) - right)
        self._hold({**state["own"], "_places": places}, state["marks"], state["matched"])
        for side, columns in zip(self.sides, state["columns"], strict=True):
            side.restore(columns)


def order_of_pairs(pairs: Pairs, first: int, start: int) -> Int64Array:
    """Return the order of row-by-row processing: by the later row's turn, then the earlier's."""
    if len(pairs[0]) == 1:
        return np.zeros(1, dtype=np.int64)
    later, earlier = np.maximum(*pairs) - first, np.minimum(*pairs) - start
    bits = int(earlier.max()).bit_length()
    if int(later.max()) >> (63 - bits):
        return np.lexsort((earlier, later))
    turns: Int64Array = (later << bits) | earlier
    return turns.argsort()


def sided(rows: Int64Array, others: Int64Array, side: int) -> Pairs:
    """Return rows of one side, and their partners, as left and right."""
    return (rows, others) if side == _LEFT else (others, rows)


def take_pairs(pairs: Pairs, places: Int64Array) -> Pairs:
    """Return the pairs at these places."""
    return pairs[_LEFT].take(places), pairs[_RIGHT].take(places)
