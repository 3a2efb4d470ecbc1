"""A join holds rows, and an index over them that is made only when needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.join.index import Layout, RunIndex, order_by_key
from slackwater.runtime.operators.join.rows import Arrivals, HeldRows, Pairs, Reaches, sided

Found = Iterator[tuple[Int64Array, Int64Array]]
"""(who searches, row found), some at a time."""
_FITS_NOTHING = Layout(END_NS, 0, 0)
_MOSTLY_GONE = 8
"""An index of so many times the rows that are held is dropped: where a read spans more than the
window, each index is over rows that the read before has left, and all searches would run twice."""


class JoinState:
    """The rows of both sides that may still find a partner.

    Rows are indexed when the other side first searches for them: where one side is rare, most
    of the other's rows expire before that.

    Args:
        left: the left columns that are needed later.
        right: the right ones.
        reaches_ns: how far apart partners may be.
        has_matches: whether it notes which rows have a partner.
    """

    STATE = Fields(Field("rows", of=OWNER), "_newest_ns", "horizon_ns")

    def __init__(
        self,
        left: Sequence[str],
        right: Sequence[str],
        *,
        reaches_ns: Reaches,
        has_matches: bool = False,
    ) -> None:
        self._reaches_ns = reaches_ns
        self._within_ns = max(reaches_ns[0])
        self.rows = HeldRows(left, right, has_matches=has_matches)
        self._newest_ns = [START_NS, START_NS]  # of each side
        self._oldest_ns = END_NS  # of all rows since the layout was made
        self.horizon_ns = START_NS
        """Rows older than this are not held."""
        self._layout = _FITS_NOTHING  # so that the first rows decide
        self._forget_index()

    def _forget_index(self) -> None:
        self._index = RunIndex()
        self._is_untidy = False  # a run was added, or rows went, since the last `tidy`
        self._indexed = self.rows.start  # position of the first row that is not in it yet
        self._waiting = [True, True]  # whether there may be such rows, of each side

    @property
    def is_exact(self) -> bool:
        """Whether a search finds only rows that are held and near enough."""
        return self._layout.is_exact

    def held(self, side: int) -> int:
        """Return the number of rows held of one side."""
        return len(self.rows.sides[side])

    def append(self, new: Arrivals) -> None:
        """Hold these rows too."""
        self.rows.append(new)
        for side in (0, 1):
            batch = new.batches[side]
            if batch is not None:
                times = batch.event_time_ns
                self._oldest_ns = min(self._oldest_ns, times.item(0))
                self._newest_ns[side] = max(self._newest_ns[side], times.item(-1))
                self._waiting[side] = True

    def append_row(self, batch: Batch, side: int, key: int) -> None:
        """Hold one row too; see `HeldRows.append_row`."""
        self.rows.append_row(batch, side, key)
        time_ns = batch.event_time_ns.item(0)
        self._oldest_ns = min(self._oldest_ns, time_ns)
        self._newest_ns[side] = max(self._newest_ns[side], time_ns)
        self._waiting[side] = True

    def make_fit(self, new: Arrivals, *, keys: int) -> None:
        """Make a layout in which these rows, and searches for them, have entries.

        So have the rows appended since the last layout was made without a call of this.

        Args:
            new: rows that are to be appended.
            keys: all keys are less than this.
        """
        within_ns, rows = self._within_ns, self.rows
        times = [batch.event_time_ns for batch in new.batches if batch is not None]
        start = min(t.item(0) for t in times)
        end = max(t.item(-1) for t in times)
        if self._layout.fits(
            min(start, self._oldest_ns) - within_ns, max(end, *self._newest_ns) + within_ns, keys
        ):
            return
        self._forget_index()
        if len(rows):
            held = rows.times(rows.start, rows.end)
            start, end = min(start, int(held.min())), max(end, int(held.max()))
        self._oldest_ns = start
        start, end = start - within_ns, end + within_ns
        # Late rows may be a little older than all these, down to the horizon.
        before = max(START_NS, start - 2 * within_ns, end - END_NS)
        if self.horizon_ns > START_NS:
            before = min(before, max(self.horizon_ns - within_ns, end - END_NS))
        self._layout = Layout.for_span(min(start, before), end, keys)

    def reach(self, new: Arrivals, side: int) -> int:
        """Count the new rows of a side that are near held ones of the other."""
        reach_ns = self._newest_ns[1 - side] + self._within_ns
        return int(new.times_of(side).searchsorted(reach_ns, "right"))

    def settle(self, *sides: int) -> None:
        """Index all rows of these sides, and others that wait, as one run."""
        if not any(self._waiting[side] for side in sides):
            return
        start, end = max(self._indexed, self.rows.start), self.rows.end
        if start < end:
            keys, times = self.rows.keys(start, end), self.rows.times(start, end)
            order = order_by_key(keys, times)
            self._index.add(self._layout.pack(keys, times), start, order=order)
            self._is_untidy = True
        self._indexed = end
        self._waiting = [False, False]

    def scan(self, first: int) -> tuple[Int64Array, Int64Array]:
        """Return (left, right): all pairs of a row from `first` on and one before it.

        In the order of row-by-row processing; for a few rows, which then need no index.
        """
        rows = self.rows
        lefts: list[int] = []
        rights: list[int] = []
        for position in range(first, rows.end):
            side, partners = rows.partners_before(
                position, reaches_ns=self._reaches_ns, since_ns=self.horizon_ns
            )
            own = [position] * len(partners)
            lefts += partners if side else own
            rights += own if side else partners
        return np.array(lefts, dtype=np.int64), np.array(rights, dtype=np.int64)

    def partners(
        self,
        searching: Int64Array,
        keys: Int64Array,
        times: Int64Array,
        *,
        older: int = 0,
        since_ns: int = START_NS,
    ) -> Found:
        """Yield the indexed rows that may pair with rows of one side.

        Args:
            searching: shape (rows,), the positions.
            keys: shape (rows,).
            times: shape (rows,).
            older: the first so many search no rows older than `since_ns`.
            since_ns: an event time.
        """
        if not len(searching):
            return iter(())
        order = order_by_key(keys, times)
        back_ns, ahead_ns = self._reaches_ns[keys.item(0) & 1]
        keys = keys ^ 1  # the other side
        layout = self._layout
        low, high = times - back_ns, times + ahead_ns
        if self.horizon_ns > START_NS:
            np.maximum(low, self.horizon_ns, out=low)
        if older:
            np.maximum(low[:older], since_ns, out=low[:older])
            np.maximum(
                high[:older], since_ns - 1, out=high[:older]
            )  # an empty range, no negative one
        return self._index.matches(
            layout.pack(keys, low), layout.pack(keys, high), searching, order=order
        )

    def partners_among(self, new: Arrivals, which: Int64Array) -> Found:
        """Yield, among the new rows, the pairs of these of one side and others.

        Both are places among the new rows; the layout must fit them (`make_fit`).
        """
        if not len(which):
            return
        index, layout = RunIndex(), self._layout
        index.add(layout.pack(new.keys, new.times), 0)
        back_ns, ahead_ns = self._reaches_ns[new.keys.item(which.item(0)) & 1]
        keys, times = new.keys.take(which) ^ 1, new.times.take(which)
        low, high = layout.pack(keys, times - back_ns), layout.pack(keys, times + ahead_ns)
        yield from index.matches(low, high, which)

    def shared_candidates(self, new: Arrivals, is_ours: BoolArray, first: int) -> Iterator[Pairs]:
        """Yield pairs of a new row and a held one, then of two new rows.

        Args:
            new: rows that were appended, from position `first` on.
            is_ours: shape (rows,), which of them are this replica's.
            first: the position of the first new row.
        """
        positions = new.turns + first
        for side in (0, 1):
            rows = slice(0, new.lefts) if side == 0 else slice(new.lefts, len(positions))
            for own, held in self.partners(positions[rows], new.keys[rows], new.times[rows]):
                yield sided(own, held, side)
            ours = is_ours[rows].nonzero()[0] + rows.start
            for own, other in self.partners_among(new, ours):
                later = (new.turns.take(other) > new.turns.take(own)).nonzero()[0]
                pair = positions.take(own.take(later)), positions.take(other.take(later))
                yield sided(*pair, side)

    def held_rows(self, side: int, before: int) -> Int64Array:
        """Return the positions of one side's rows before a position that are not too old."""
        keys = self.rows.keys(self.rows.start, before)
        times = self.rows.times(self.rows.start, before)
        is_held = ((keys & 1) == side) & (times >= self.horizon_ns)
        positions: Int64Array = is_held.nonzero()[0] + self.rows.start
        return positions

    def expire(self, horizon_ns: int) -> bool:
        """Drop rows that are older than this; END_NS: all. Return whether some went."""
        self.horizon_ns = horizon_ns
        rows, have_gone = self.rows, True
        if horizon_ns == END_NS:
            rows.drop_before(rows.end)
        else:
            have_gone = rows.drop_older_than(horizon_ns)
        self._is_untidy = self._is_untidy or have_gone
        self.tidy()
        return have_gone

    def tidy(self) -> None:
        """Keep the index short, also where no rows go."""
        if not self._is_untidy:
            return
        held = max(self._indexed - self.rows.start, 0)
        if len(self._index) > _MOSTLY_GONE * held + 64:
            self._forget_index()  # the few remaining rows are sorted again, with those to come
        else:
            self._index.tidy(self.rows.start, held)
            self._is_untidy = False

    def count_between(self, start_ns: int, end_ns: int) -> int:
        """Return the number of rows held whose event time is in [start, end)."""
        times = self.rows.times(self.rows.start, self.rows.end)
        return int(((times >= start_ns) & (times < end_ns)).sum())

    def codes(self) -> Int64Array:
        """Return the codes of the keys of all rows held."""
        return self.rows.keys(self.rows.start, self.rows.end) >> 1

    def derive(self) -> None:
        """Find the oldest row; the index is made when it is needed."""
        self._forget_index()
        held = self.rows.times(self.rows.start, self.rows.end)
        self._oldest_ns = int(held.min()) if len(held) else END_NS
