"""Sliding-window join of two streams: pairs of equal keys whose event times are close.

```
within 2   left   1a      4a             row by row in the order (event time, port):
           right     2a  3b  5a          2a finds 1a;  4a finds 2a;  5a finds 4a
```

Rows are worked off many at a time, and the results put into the order that one at a time would
have given. A join of a stream with itself gives every pair (i, j) and (j, i), and each row
with itself. Null keys (NaN, null text) equal nothing, as in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.errors import SettingError
from runtime.flow.steps import JoinStep
from runtime.model import END_NS, START_NS, Batch, Int64Array, concat_batches, format_ns
from runtime.operators.contract import Released
from runtime.operators.join_index import Layout
from runtime.operators.join_state import JoinSide, Search
from runtime.operators.keys import KeyIndex, any_null
from runtime.operators.user_code import evaluated

Pairs = tuple[Int64Array, Int64Array]
"""Positions of left rows, and of the right row that each is paired with."""
_LEFT, _RIGHT = 0, 1
_LONGEST_WITHIN_NS = 1 << 61
"""73 years: sums of an event time of our age and a few times this fit in 64 bits."""


class JoinMachine:
    """The machine of a `JoinStep`.

    A row is held until the watermark is more than `within_ns` past it; it finds those rows of
    the other side that came before it and are held. Late rows are treated likewise, before the
    rows in order, and find rows that are ahead of them too; a late row that would not be held
    finds nothing and is counted in `late_dropped`. Event and stimulus time of a pair are the
    later ones of its rows. Source: [mace] Def. 2.

    Attributes:
        pairs_compared: pairs so far with equal keys and close times, `where` apart.

    Raises:
        SettingError: `within_ns` is more than 73 years.
    """

    def __init__(self, step: JoinStep) -> None:
        if step.within_ns > _LONGEST_WITHIN_NS:
            raise SettingError(
                f"step {step.name!r}: within={format_ns(step.within_ns)} is more than 73 years, "
                "the most that a join takes; give the events nearer times"
            )
        self._step = step
        renamed = {leaves: name for name, leaves in step.right_names.items()}
        self._origin = {  # {column that leaves: (side, column there)}
            name: (_RIGHT, renamed[name]) if name in renamed else (_LEFT, name)
            for name in step.schema.names
        }
        self._where_columns = sorted(step.where.columns()) if step.where is not None else []
        self._start()

    def _start(self) -> None:
        held = [
            [column for side, column in self._origin.values() if side == place]
            for place in (_LEFT, _RIGHT)
        ]
        self._sides = (
            JoinSide(self._step.left_on, held[_LEFT]),
            JoinSide(self._step.right_on, held[_RIGHT]),
        )
        self._keys = KeyIndex(len(self._step.left_on))
        self._layout = Layout(END_NS, 0, 0)  # fits nothing, so that the first rows decide
        self._watermark_ns = START_NS
        self._late_dropped = 0
        self.pairs_compared = 0

    def process(self, released: Released) -> Batch | None:
        """Take rows, late ones first; return the pairs that they make."""
        results = [self._join(*released.late), self._join(*released.ports)]
        if released.watermark_ns > self._watermark_ns:
            self._watermark_ns = released.watermark_ns
            for side in self._sides:
                side.expire(self._horizon_ns)
            self._forget_keys()
        found = [batch for batch in results if batch is not None]
        return concat_batches(found) if found else None

    def promise_ns(self, watermark_ns: int) -> int:
        """Return the watermark: a pair is as old as its later row."""
        return watermark_ns

    @property
    def rows_held(self) -> int:
        """Rows of both sides that may still find a partner."""
        return sum(len(side.rows) for side in self._sides)

    @property
    def late_dropped(self) -> int:
        """Rows so far that were more than `within_ns` behind the watermark."""
        return self._late_dropped

    @property
    def _horizon_ns(self) -> int:
        """Rows older than this are not held."""
        if self._watermark_ns == END_NS:
            return END_NS
        return max(START_NS, self._watermark_ns - self._step.within_ns)

    # -- rows in ------------------------------------------------------------------------

    def _join(self, left: Batch | None, right: Batch | None) -> Batch | None:
        new = [self._admitted(left, _LEFT), self._admitted(right, _RIGHT)]
        if not len(new[_LEFT].codes) + len(new[_RIGHT].codes):
            return None
        self._fit_layout(new)
        first = (self._sides[_LEFT].rows.end, self._sides[_RIGHT].rows.end)
        found = [self._selected(pairs) for pairs in self._candidates(new)]
        lefts = [pairs[_LEFT] for pairs in found if len(pairs[_LEFT])]
        rights = [pairs[_RIGHT] for pairs in found if len(pairs[_RIGHT])]
        if not lefts:
            return None
        return self._results(np.concatenate(lefts), np.concatenate(rights), first)

    def _admitted(self, batch: Batch | None, place: int) -> _Arrivals:
        """Return the rows that may find a partner, with the codes of their keys."""
        side, horizon_ns = self._sides[place], self._horizon_ns
        if batch is None or not len(batch):
            return _Arrivals(None, np.empty(0, dtype=np.int64))
        if horizon_ns > START_NS and int(batch.event_time_ns.min()) < horizon_ns:
            rows = len(batch)
            batch = batch.keep(batch.event_time_ns >= horizon_ns)
            self._late_dropped += rows - len(batch)
        keys = [batch.columns[name] for name in side.keys]
        nulls = any_null(keys)
        if nulls is not None:
            batch = batch.keep(~nulls)
            keys = [batch.columns[name] for name in side.keys]
        return _Arrivals(batch, self._keys.codes(keys, len(batch)))

    def _fit_layout(self, new: list[_Arrivals]) -> None:
        within_ns = self._step.within_ns
        times = [each.batch.event_time_ns for each in new if each.batch is not None and len(each)]
        start = max(START_NS, min(int(each.min()) for each in times) - within_ns)
        end = min(END_NS, max(int(each.max()) for each in times) + within_ns)
        if self._layout.fits(start, end, len(self._keys)):
            return
        for side in self._sides:
            side.forget_index()
            if len(side.rows):
                held = side.rows.times(side.rows.start, side.rows.end)
                start = min(start, int(held.min()) - within_ns)
                end = max(end, int(held.max()) + within_ns)
        # Late rows may come from a little before all these.
        start = min(start, max(START_NS, start - 2 * within_ns, end - END_NS))
        self._layout = Layout.for_span(start, end, len(self._keys))

    def _candidates(self, new: list[_Arrivals]) -> Iterator[Pairs]:
        """Take the new rows in; yield all pairs with a new row in them, each once.

        The side with fewer new rows searches all of the other one; then what it held before is
        matched with the other's new rows, whichever of the two are fewer.
        """
        large = _LEFT if len(new[_LEFT]) > len(new[_RIGHT]) else _RIGHT
        side, other = self._sides[large], self._sides[1 - large]
        held, held_start = len(other.rows), other.rows.start
        arrivals = new[large].search(self._step.within_ns, self._horizon_ns)
        first_new, other_first_new = side.rows.end, other.rows.end
        if held:
            reach_ns = other.rows.newest_ns + self._step.within_ns
            near = int(arrivals.event_time_ns.searchsorted(reach_ns, "right"))
            arrivals = arrivals.take(slice(0, near))
        is_turned = len(arrivals.codes) > 4 * held > 0
        if is_turned:
            side.settle(self._layout)
        elif held:
            other.settle(self._layout)
        first_run = side.runs
        for each, arrived in ((side, new[large]), (other, new[1 - large])):
            if arrived.batch is not None and len(arrived):
                each.append(arrived.batch, arrived.codes)
        if is_turned or len(new[1 - large]):
            side.settle(self._layout)
        search = new[1 - large].search(self._step.within_ns, self._horizon_ns)
        for found, rows in side.matches(search, self._layout):
            yield _in_order(large, rows, found + other_first_new)
        if is_turned:
            older = Search(
                other.rows.codes(held_start, other_first_new),
                other.rows.times(held_start, other_first_new),
                self._step.within_ns,
                self._horizon_ns,
            )
            held_rows = np.flatnonzero(older.event_time_ns >= self._horizon_ns)
            matches = side.matches(older.take(held_rows), self._layout, first_run=first_run)
            for found, rows in matches:
                yield _in_order(large, rows, held_rows.take(found) + held_start)
        elif held:
            for found, rows in other.matches(arrivals, self._layout):
                yield _in_order(large, found + first_new, rows)

    def _selected(self, pairs: Pairs) -> Pairs:
        """Return those pairs for which the predicate holds."""
        if not self._layout.is_exact:
            pairs = self._close_ones(pairs)
        self.pairs_compared += len(pairs[_LEFT])
        if self._step.where is None or not len(pairs[_LEFT]):
            return pairs
        event_time_ns = np.maximum(self._times(pairs, _LEFT), self._times(pairs, _RIGHT))
        columns = {name: self._column(name, pairs) for name in self._where_columns}
        # No expression sees stimulus times, so the event times stand in for them.
        batch = Batch(event_time_ns, event_time_ns, columns)
        mask = evaluated(self._step.where, batch, step=self._step.name)
        return _take(pairs, np.flatnonzero(mask))

    def _close_ones(self, pairs: Pairs) -> Pairs:
        """Return those pairs that are held and not more than `within_ns` apart."""
        for place, side in enumerate(self._sides):
            pairs = _take(pairs, np.flatnonzero(pairs[place] >= side.rows.start))
        left, right = self._times(pairs, _LEFT), self._times(pairs, _RIGHT)
        is_close = np.abs(left - right) <= self._step.within_ns
        is_close &= np.minimum(left, right) >= self._horizon_ns
        return _take(pairs, np.flatnonzero(is_close))

    # -- pairs out ----------------------------------------------------------------------

    def _results(self, left: Int64Array, right: Int64Array, first: tuple[int, int]) -> Batch:
        """Return the rows that leave, in order; `first` has the first new row of each side."""
        pairs = left, right
        times = self._times(pairs, _LEFT), self._times(pairs, _RIGHT)
        order = self._order(pairs, times, first)
        pairs = _take(pairs, order)
        event_time_ns = np.maximum(*times).take(order)
        stimuli = [
            side.rows.stimulus_time_ns(rows) for side, rows in zip(self._sides, pairs, strict=True)
        ]
        columns = {name: self._column(name, pairs) for name in self._step.schema.names}
        return Batch(event_time_ns, np.maximum(*stimuli), columns)

    def _order(
        self, pairs: Pairs, times: tuple[Int64Array, Int64Array], first: tuple[int, int]
    ) -> Int64Array:
        """Return the order of row-by-row processing: by turn of the later row, then the earlier's.

        A new row's turn is its place in the merged order of this read's new rows, left before
        right at equal times.
        """
        left, right = pairs
        if len(left) == 1:
            return np.zeros(1, dtype=np.int64)
        new_times = [
            side.rows.times(start, side.rows.end)
            for side, start in zip(self._sides, first, strict=True)
        ]
        is_right_later = (right >= first[_RIGHT]) & (
            (left < first[_LEFT]) | (times[_RIGHT] >= times[_LEFT])
        )
        left_turns, right_turns = _turns(*new_times)
        turn = np.where(
            is_right_later,
            right_turns.take(right - first[_RIGHT], mode="clip"),
            left_turns.take(left - first[_LEFT], mode="clip"),
        )
        earlier = np.where(is_right_later, left, right)
        earlier -= earlier.min()
        bits = int(earlier.max()).bit_length()
        if int(turn.max()) >> (63 - bits):
            return np.lexsort((earlier, turn))
        return ((turn << bits) | earlier).argsort()

    def _times(self, pairs: Pairs, place: int) -> Int64Array:
        return self._sides[place].rows.event_time_ns(pairs[place])

    def _column(self, name: str, pairs: Pairs) -> Any:
        place, column = self._origin[name]
        return self._sides[place].rows.column(column, pairs[place])

    # -- state --------------------------------------------------------------------------

    def _forget_keys(self) -> None:
        if not self._keys.is_worth_keeping(self.rows_held):
            return
        held = [side.rows.codes(side.rows.start, side.rows.end) for side in self._sides]
        moved = self._keys.keep(np.unique(np.concatenate(held)))
        for side in self._sides:
            side.rows.recode(moved)
            side.forget_index()

    def snapshot(self) -> dict[str, Any]:
        """Return all state."""
        return {
            "keys": self._keys.snapshot(),
            "sides": [side.snapshot() for side in self._sides],
            "watermark_ns": self._watermark_ns,
            "late_dropped": self._late_dropped,
            "pairs_compared": self.pairs_compared,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of a machine of the same step."""
        self._start()
        self._keys.restore(state["keys"])
        for side, own in zip(self._sides, state["sides"], strict=True):
            side.restore(own)
        self._watermark_ns = state["watermark_ns"]
        self._late_dropped = state["late_dropped"]
        self.pairs_compared = state["pairs_compared"]


class _Arrivals:
    """New rows of one side, and the codes of their keys."""

    __slots__ = ("batch", "codes")

    def __init__(self, batch: Batch | None, codes: Int64Array) -> None:
        self.batch, self.codes = batch, codes

    def __len__(self) -> int:
        return len(self.codes)

    def search(self, within_ns: int, horizon_ns: int) -> Search:
        times = self.codes if self.batch is None else self.batch.event_time_ns
        return Search(self.codes, times, within_ns, horizon_ns)


def _turns(left: Int64Array, right: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the place of each row in the merged order; both ascending, left first among equals.

    The side with fewer rows is looked up in the other; never empty, so that a place can be taken.
    """
    if len(left) <= len(right):
        before = right.searchsorted(left)  # right rows before each left one
        shift = np.bincount(before, minlength=len(right) + 1).cumsum()
        return np.arange(len(left) + 1) + np.append(before, 0), np.arange(len(right) + 1) + shift
    after = left.searchsorted(right, "right")
    shift = np.bincount(after, minlength=len(left) + 1).cumsum()
    return np.arange(len(left) + 1) + shift, np.arange(len(right) + 1) + np.append(after, 0)


def _take(pairs: Pairs, places: Int64Array) -> Pairs:
    return pairs[_LEFT].take(places), pairs[_RIGHT].take(places)


def _in_order(large: int, rows: Int64Array, others: Int64Array) -> Pairs:
    """Return rows of the larger side and of the other one as left and right."""
    return (rows, others) if large == _LEFT else (others, rows)
