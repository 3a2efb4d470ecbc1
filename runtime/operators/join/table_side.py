"""A side of a join of tables finds its rows by key and by values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.row_marks import are_retracted
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray
from slackwater.runtime.operators.ground.in_order import in_order
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.stored_rows import StoredRows
from slackwater.runtime.operators.join.code_index import CodeIndex
from slackwater.runtime.operators.join.lives import BEFORE, Lives, Members

__all__ = ["TableSide", "Turns"]

_NOWHERE = np.empty(0, dtype=np.int64)


class Entering(NamedTuple):
    """New rows that stay.

    Attributes:
        codes: shape (rows,), codes of their keys.
        places: shape (rows,), where they are stored.
        values: shape (rows,), codes of their values; None if rows are never taken out.
        meets: shape (rows,), whether others may have their keys.
    """

    codes: Int64Array
    places: Int64Array
    values: Int64Array | None
    meets: BoolArray


class Turns(NamedTuple):
    """Changes of one side.

    Attributes:
        lives: rows that come or go, each later than it came.
        meets: shape (lives,), whether others may have their keys, which have no nulls.
        missing: places in the batch of rows that should have taken one out and found none.
        entering: rows that are there after all moments.
    """

    lives: Lives
    meets: BoolArray
    missing: Int64Array
    entering: Entering


_NO_TURNS = Turns(
    Lives(_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE),
    np.empty(0, dtype=np.bool_),
    _NOWHERE,
    Entering(_NOWHERE, _NOWHERE, None, np.empty(0, dtype=np.bool_)),
)


class TableSide:
    """Rows of one side.

    Args:
        on: names of its key columns.
        retracts: whether rows may be taken out.
    """

    STATE = Fields(Field("rows", of=OWNER), Field("waiting", of=OWNER, each=True))

    def __init__(self, on: Sequence[str], *, retracts: bool) -> None:
        self.rows = StoredRows()
        self.waiting: list[Batch] = []  # rows of event times that may not be over
        self.retracts = retracts
        self._on = on
        self.derive()

    def __len__(self) -> int:
        return len(self.rows) + sum(map(len, self.waiting))

    def derive(self) -> None:
        """Find rows by key, and by their values."""
        self._by_key = CodeIndex(self.rows)
        self._by_value = CodeIndex(self.rows)
        self._values: KeyIndex | None = None
        self._numbers = GrowableArray(np.int64)  # by key: rows that others can meet
        places = self.rows.places
        if len(places):
            rows = self.rows.take(places)
            self._index(rows, places)

    def _index(self, rows: Batch, places: Int64Array) -> None:
        assert rows.codes is not None, "rows are stored with codes"
        self._by_key.add(rows.codes, places)
        if self.retracts:
            self._by_value.add(self._values_of(rows), places)
        self._count(rows.codes[self._meets(rows)], 1)

    def _count(self, codes: Int64Array, step: int) -> None:
        if len(codes):
            self.cover(int(codes.max()) + 1)
            np.add.at(self._numbers.values, codes, step)

    def stored_codes(self) -> Int64Array:
        """Return the codes of stored rows."""
        places = self.rows.places
        return self.rows.codes(places) if len(places) else _NOWHERE

    def all_codes(self) -> Int64Array:
        """Return the codes of all rows."""
        waiting = [rows.codes for rows in self.waiting if rows.codes is not None]
        return np.concatenate([self.stored_codes(), *waiting])

    def cover(self, keys: int) -> None:
        """Have a number for each of so many keys."""
        if keys > len(self._numbers):
            self._numbers.resize(keys)

    @property
    def numbers(self) -> Int64Array:
        """The number of rows of each key that others can meet."""
        return self._numbers.values

    def _meets(self, rows: Batch) -> BoolArray:
        is_null = any_null([rows.columns[name] for name in self._on])
        return np.ones(len(rows), dtype=np.bool_) if is_null is None else ~is_null

    def _values_of(self, rows: Batch) -> Int64Array:
        """Return a code of the values of each row, equal for equal rows."""
        names = sorted(rows.columns)
        if self._values is None:
            self._values = KeyIndex(len(names))
        return self._values.codes([rows.columns[name] for name in names], len(rows))

    # -- rows that wait -----------------------------------------------------------------

    def wait(self, rows: Batch, codes: Callable[[Batch], Int64Array]) -> None:
        """Have rows wait, with codes of their keys."""
        own = rows.take(np.arange(len(rows)))
        self.waiting.append(own.with_(codes=codes(own), writers=None, arrivals=None))

    @property
    def oldest_ns(self) -> int | None:
        """Event time of the oldest row that waits; None if none does."""
        return min([rows.event_time_ns.item(0) for rows in self.waiting], default=None)

    def until(self, event_time_ns: int) -> Batch | None:
        """Take out the waiting rows that are older than this, in order."""
        if self.oldest_ns is None or self.oldest_ns >= event_time_ns:
            return None
        rows = in_order(self.waiting)
        older = int(rows.event_time_ns.searchsorted(event_time_ns))
        self.waiting = [rows.slice(older, len(rows))] if older < len(rows) else []
        return rows.slice(0, older)

    # -- rows that come and go ----------------------------------------------------------

    def turns(self, rows: Batch | None, moments: Int64Array, end: int) -> Turns:
        """Store new rows, and return what all do.

        Args:
            rows: rows with codes, in order; None if there are none.
            moments: shape (rows,), the moment of each, from 0.
            end: the moment after all others.
        """
        if rows is None:
            return _NO_TURNS
        codes, marks = rows.codes, rows.marks
        assert codes is not None, "rows come with codes"
        goes = np.zeros(len(rows), np.bool_) if marks is None else are_retracted(marks)
        new = (~goes).nonzero()[0]
        first = self.rows.end
        places = np.full(len(rows), -1, dtype=np.int64)
        places[new] = np.arange(first, first + len(new))
        values = self._values_of(rows) if self.retracts else None
        if values is not None and goes.any():
            places[goes] = self._places_of_gone(values, goes, places)
        self.rows.append(rows.take(new))
        out = (goes & (places >= 0)).nonzero()[0]
        going = places.take(out)
        self.rows.drop(going)  # so those that stay are found; the others can still be taken
        is_new = going >= first
        known, deaths = out[~is_new], np.full(len(new), end, dtype=np.int64)
        deaths[going[is_new] - first] = moments.take(out[is_new])
        lives = deaths > moments.take(new)  # others come and go at one moment
        came, stay = new[lives], new[deaths == end]
        of_lives = np.concatenate([known, came])
        meets = self._meets(rows)
        return Turns(
            Lives(
                codes.take(of_lives),
                places.take(of_lives),
                np.concatenate([np.full(len(known), BEFORE), moments.take(came)]),
                np.concatenate([moments.take(known), deaths[lives]]),
            ),
            meets.take(of_lives),
            (goes & (places < 0)).nonzero()[0],
            Entering(
                codes.take(stay),
                places.take(stay),
                None if values is None else values.take(stay),
                meets.take(stay),
            ),
        )

    def _places_of_gone(
        self, values: Int64Array, goes: BoolArray, places: Int64Array
    ) -> Int64Array:
        """Return the place of the row that each takes out; −1 without one.

        Of equal rows it is the oldest.

        Args:
            values: shape (rows,), codes of their values.
            goes: shape (rows,), whether each takes one out.
            places: shape (rows,), places of the others.
        """
        at = np.isin(values, values[goes]).nonzero()[0]
        at = at.take(stable_order(values.take(at)))
        own, is_out = values.take(at), goes.take(at)
        starts = starts_of_runs(own)
        run = np.zeros(len(at), dtype=np.int64)
        run[starts[1:]] = 1
        run = run.cumsum()
        of_known, known = self._by_value.find(own.take(starts))
        there = np.bincount(of_known, minlength=len(starts))
        # Rows of the value after each; the lowest so far says how many took out none.
        steps = np.where(is_out, -1, 1)
        numbers = steps.cumsum()
        numbers += (there - numbers.take(starts) + steps.take(starts)).take(run)
        apart = run * (2 * (int(np.abs(numbers).max()) + 1))
        lowest = np.minimum(np.minimum.accumulate(numbers - apart) + apart, 0)
        before = np.zeros(len(lowest), dtype=np.int64)
        before[1:] = lowest[:-1]
        before[starts] = 0
        finds = is_out & (lowest == before)
        # The n-th row that goes takes out the n-th of those that were there, and then came.
        turn = finds.cumsum()
        turn -= (turn.take(starts) - finds.take(starts)).take(run)
        came = (~is_out).nonzero()[0]
        of_all = np.concatenate([of_known, run.take(came)])
        in_turn = stable_order(of_all)
        firsts = of_all.take(in_turn).searchsorted(np.arange(len(starts)))
        all_places = np.concatenate([known, places.take(at.take(came))]).take(in_turn)
        gone = np.full(len(values), -1, dtype=np.int64)
        out = finds.nonzero()[0]
        gone[at.take(out)] = all_places.take(firsts.take(run.take(out)) + turn.take(out) - 1)
        return gone[goes]

    def members(self, turns: Turns, *, meeting: bool) -> Members:
        """Return the rows of this side; with `meeting` those alone that others can meet."""
        lives = turns.lives.keep(turns.meets) if meeting else turns.lives
        return Members(lives, self._by_key.find)

    def settle(self, turns: Turns) -> None:
        """Index the rows that stay, and forget those that went; their results are made."""
        lives, entering = turns.lives, turns.entering
        self._count(lives.codes[(lives.births == BEFORE) & turns.meets], -1)
        if len(entering.places):
            self._by_key.add(entering.codes, entering.places)
            if entering.values is not None:
                self._by_value.add(entering.values, entering.places)
            self._count(entering.codes[entering.meets], 1)
        if self.rows.tidy():
            self.derive()

    def all_go(self, keys: Int64Array) -> Turns:
        """Return that all rows of keys go, at moment 0 of 1."""
        _, places = self._by_key.find(keys)
        if not len(places):
            return _NO_TURNS
        rows = self.rows.take(places)
        assert rows.codes is not None, "rows are stored with codes"
        self.rows.drop(places)
        births, deaths = np.full(len(places), BEFORE), np.zeros(len(places), dtype=np.int64)
        lives = Lives(rows.codes, places, births, deaths)
        return Turns(lives, self._meets(rows), _NOWHERE, _NO_TURNS.entering)
