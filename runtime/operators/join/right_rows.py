"""Right rows of an as-of join: of each key those that are needed.

```
key a     1   4   6 │ 7   9        left rows older than 7 have left: of 1, 4 and 6 the newest stays
key b     3         │
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.runtime.model import Batch, Column, Int64Array
from slackwater.runtime.model.divided import StayingNumbers
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.operators.join.columns import HeldColumns

__all__ = ["RightRows", "Sought", "neighbours"]

_CODE, _TIME, _STIMULUS, _MARKS = "\0code", "\0time", "\0stimulus", "\0marks"
_OWN = (_CODE, _TIME, _STIMULUS, _MARKS)
_NONE = np.empty(0, dtype=np.int64)


class Sought(NamedTuple):
    """Rows by key and time: codes and event times, shape (rows,), ascending by time."""

    codes: Int64Array
    times: Int64Array


def neighbours(left: Sought, right: Sought, *, strict: bool, after: bool = False) -> Int64Array:
    """Return the nearest right row before each left one, shape (left rows,); −1 without any.

    Args:
        left: the rows that search, in order of time.
        right: the rows among which each finds at most one, with its code.
        strict: whether rows of the same time do not count.
        after: whether to look for rows after each.
    """
    lefts, rights = len(left.codes), len(right.codes)
    if not lefts or not rights:
        return np.full(lefts, -1, dtype=np.int64)
    # In one order by time: rows of one time stand on the side on which the left one looks.
    right_first = strict if after else not strict
    at_right = np.arange(rights) + left.times.searchsorted(
        right.times, "left" if right_first else "right"
    )
    at_left = np.arange(lefts) + right.times.searchsorted(
        left.times, "right" if right_first else "left"
    )
    codes = np.empty(lefts + rights, dtype=np.int64)
    codes[at_left], codes[at_right] = left.codes, right.codes
    rows = np.full(lefts + rights, -1, dtype=np.int64)  # of the right; −1: a left one
    rows[at_right] = np.arange(rights)
    order = stable_order(codes)
    codes, rows = codes.take(order), rows.take(order)
    places = np.arange(lefts + rights)
    if after:
        far = lefts + rights
        near = np.where(rows >= 0, places, far)[::-1]
        near = np.minimum.accumulate(near)[::-1]
        is_there = near < far
    else:
        near = np.maximum.accumulate(np.where(rows >= 0, places, -1))
        is_there = near >= 0
    near = np.where(is_there, near, 0)
    by_code = np.where(is_there & (codes.take(near) == codes), rows.take(near), -1)
    by_time = np.empty_like(by_code)
    by_time[order] = by_code
    return by_time.take(at_left)


class RightRows:
    """Right rows that the gate has released, and that left rows may need.

    It packs itself. A row's place is its number among those that are stored.

    Args:
        names: columns that are stored, beside four of its own.
        needs_newest: whether the newest row of each key stays.
    """

    def __init__(self, names: Sequence[str], *, needs_newest: bool) -> None:
        self._names = (*names, *_OWN)
        self._needs_newest = needs_newest
        self._rows = HeldColumns(self._names)
        self._recent = _NONE  # places by event time, of rows that are not older than left rows
        self._newest = _NONE  # by code: place of the newest of the others; −1 for none
        self._needed = 0  # rows that were needed when the store was last made short

    def __len__(self) -> int:
        return len(self._recent) + int(np.count_nonzero(self._newest >= 0))

    def codes(self) -> Int64Array:
        """Return the codes of the keys of all rows."""
        return np.concatenate([self._own(_CODE, self._recent), (self._newest >= 0).nonzero()[0]])

    def append(self, batch: Batch, *, gone_ns: int) -> None:
        """Add rows in event-time order, with the codes of their keys.

        Args:
            batch: rows that the gate has released.
            gone_ns: all left rows that are to come are at least as new as this.
        """
        codes, marks, times = batch.codes, batch.marks, batch.event_time_ns
        assert codes is not None, "rows come with codes"
        own: dict[str, Column] = {
            _CODE: codes,
            _TIME: times,
            _STIMULUS: batch.stimulus_time_ns,
            _MARKS: np.zeros(len(codes), dtype=np.uint8) if marks is None else marks,
        }
        first = self._rows.end
        self._rows.append(batch.with_(columns={**batch.columns, **own}))
        late = int(times.searchsorted(gone_ns))
        if late and self._needs_newest:
            self._keep_newest(np.arange(first, first + late))
        new = np.arange(first + late, self._rows.end)
        recent = np.concatenate([self._recent, new]) if len(self._recent) else new
        times = self.times(recent)
        if np.count_nonzero(times[1:] < times[:-1]):
            recent = recent.take(stable_order(times))
        self._recent = recent

    def before(self, left: Sought, *, strict: bool) -> Int64Array:
        """Return the place of the newest row before each left one; −1 without any."""
        places = self._placed(neighbours(left, self._sought(), strict=strict))
        others = ((places < 0) & (left.codes < len(self._newest))).nonzero()[0]
        places[others] = self._newest.take(left.codes.take(others))
        return places

    def after(self, left: Sought, *, strict: bool) -> Int64Array:
        """Return the place of the oldest row after each left one; −1 without any."""
        return self._placed(neighbours(left, self._sought(), strict=strict, after=True))

    def _sought(self) -> Sought:
        return Sought(self._own(_CODE, self._recent), self.times(self._recent))

    def _placed(self, numbers: Int64Array) -> Int64Array:
        """Return the places of recent rows; −1 stays."""
        if not len(self._recent):
            return numbers
        return np.where(numbers >= 0, self._recent.take(np.maximum(numbers, 0)), -1)

    def times(self, places: Int64Array) -> Int64Array:
        """Return the event times of rows."""
        return self._own(_TIME, places)

    def rows(self, names: Sequence[str], places: Int64Array) -> Batch:
        """Return rows, with these columns."""
        columns = self._rows.take(names, places) if len(places) else []
        marks = self._own(_MARKS, places).astype(np.uint8)
        return Batch(
            event_time_ns=self.times(places),
            stimulus_time_ns=self._own(_STIMULUS, places),
            columns=dict(zip(names, columns, strict=False)),
            marks=marks,
        )

    def forget(self, until_ns: int, oldest_ns: int) -> bool:
        """Forget rows that no left row needs; return whether some went.

        Args:
            until_ns: left rows older than this have left.
            oldest_ns: right rows older than this are too far from all others.
        """
        gone = int(self.times(self._recent).searchsorted(until_ns))
        if gone:
            if self._needs_newest:
                self._keep_newest(self._recent[:gone])
            self._recent = self._recent[gone:]
        if len(self._rows) <= 2 * self._needed + 1024:
            return False
        newest = (self._newest >= 0).nonzero()[0]
        self._newest[newest[self.times(self._newest.take(newest)) < oldest_ns]] = -1
        self._tidy()
        self._needed = len(self)
        return True

    def _keep_newest(self, places: Int64Array) -> None:
        """Make these rows, in order of time, the newest of their keys where they are."""
        codes = self._own(_CODE, places)
        most = int(codes.max())
        if most >= len(self._newest):
            grown = np.full(2 * most + 64, -1, dtype=np.int64)
            grown[: len(self._newest)] = self._newest
            self._newest = grown
        before = self._newest.take(codes)
        known = (before >= 0).nonzero()[0]
        if len(known):
            newer = np.ones(len(codes), dtype=np.bool_)
            newer[known] = self.times(places.take(known)) >= self.times(before.take(known))
            codes, places = codes[newer], places[newer]
        self._newest[codes] = places  # of several of one key the last stays

    def clear(self) -> None:
        """Forget all rows."""
        self._rows = HeldColumns(self._names)
        self._recent = self._newest = _NONE

    def _tidy(self) -> None:
        """Store only the rows that are needed."""
        newest = (self._newest >= 0).nonzero()[0]
        codes, recent = newest, self._recent
        newest = self._newest.take(codes)
        if not len(newest) and not len(recent):
            self.clear()
            return
        stays = np.zeros(len(self._rows), dtype=np.bool_)
        stays[newest - self._rows.start] = stays[recent - self._rows.start] = True
        moved = stays.cumsum() - 1
        self._recent = moved.take(recent - self._rows.start)
        self._newest[codes] = moved.take(newest - self._rows.start)
        self._rows.keep(stays)

    def _own(self, name: str, places: Int64Array) -> Int64Array:
        if not len(places):
            return _NONE
        (values,) = self._rows.take([name], places)
        assert isinstance(values, np.ndarray), "of whole numbers without nulls"
        return values

    def renumber(self, staying: StayingNumbers) -> StayingNumbers:
        """Keep the rows of some keys, with new codes; return the places of recent rows."""
        known = (self._newest >= 0).nonzero()[0]
        moved, recent = staying.moved(known), staying.moved(self._own(_CODE, self._recent))
        newest = self._newest.take(known[moved >= 0])
        stays = (recent >= 0).nonzero()[0]
        rows = np.concatenate([newest, self._recent.take(stays)])
        codes = np.concatenate([moved[moved >= 0], recent.take(stays)])
        values = self._rows.take(self._names, rows) if len(rows) else []
        self.clear()
        if len(rows):
            columns = dict(zip(self._names, values, strict=True)) | {_CODE: codes}
            self._rows.append(Batch(event_time_ns=codes, stimulus_time_ns=codes, columns=columns))
            self._newest = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
            self._newest[codes[: len(newest)]] = np.arange(len(newest))
            self._recent = np.arange(len(newest), len(rows))
        return StayingNumbers(stays)

    def snapshot(self) -> dict[str, Any]:
        """Return the rows, as views: a row that is stored never changes."""
        start = self._rows.start
        return {
            "rows": self._rows.snapshot(),
            "recent": self._recent - start,
            "newest": np.where(self._newest >= 0, self._newest - start, -1),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take saved rows into a fresh store."""
        self._rows.restore(state["rows"])
        self._recent, self._newest = state["recent"], state["newest"].copy()
