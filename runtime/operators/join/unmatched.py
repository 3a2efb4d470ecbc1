"""Unmatched rows of a join leave in order with the pairs.

```
how="left", within 2   left    1a     4b    6a      promise 7: rows older than 5 are decided
                       right      3a                1a 3a wait as a pair of 3, and leave; so does
                                                    4b alone; 6a may still find a partner
```

They leave once no partner can follow. A row of such a side is decided by its event time alone, so
results do not depend on the cut of rows into reads. A row that comes after its time was decided is
late, and counts nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, Columns, Int64Array
from slackwater.runtime.model.schema import nulls_of
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.in_order import InOrder, in_order
from slackwater.runtime.operators.join.rows import Arrivals, HeldRows, Pairs, take_pairs
from slackwater.runtime.operators.join.step import JoinStep

_POSITION = "position"


class Unmatched:
    """Unmatched rows of a join, and all of its results that wait for their turn.

    Results leave by event time. Those of one time leave thus: pairs as they were made, then rows
    with null keys, then other rows without a partner, left ones first.

    Args:
        step: step of the join.
        rows: rows that it holds; they note matches.

    Attributes:
        gone_ns: older rows of the sides that may leave alone have left.
        missed: rows so far that could have been partners of rows which had left alone.
    """

    STATE = Fields(Field("_pairs", of=OWNER), Field("_null_keys", of=OWNER), "gone_ns", "missed")

    def __init__(self, step: JoinStep, rows: HeldRows) -> None:
        self.sides = step.alone
        self._schema, self._reaches_ns = step.schema, step.reaches_ns
        self._rows = rows
        self._columns = (step.columns_alone(0), step.columns_alone(1))
        self._pairs, self._null_keys, self._open = InOrder(), InOrder(), InOrder()
        self.gone_ns = START_NS
        self.missed = 0

    @property
    def rows_held(self) -> int:
        """Rows of input that are held here alone."""
        return len(self._null_keys)

    def hold(self, new: Arrivals, first: int) -> None:
        """Note new rows, which get positions from `first` on."""
        for side in self.sides:
            if not new.count(side):
                continue
            positions, _, times = new.searches(side, new.count(side), first)
            self._open.add(_placed(positions, times.copy()))

    def hold_null_keys(self, batch: Batch, side: int, codes: Int64Array) -> None:
        """Hold rows that equal nothing, for one of the sides that may leave alone."""
        columns = {name: batch.columns[name] for name in self._columns[side].values()}
        self._null_keys.add(
            self._result(side, batch.with_(columns=columns, codes=codes), len(batch))
        )

    def paired(self, pairs: Pairs) -> Pairs:
        """Note matches; return the pairs without those of rows that have left."""
        rows = self._rows
        if self.gone_ns > START_NS:
            stays = np.ones(len(pairs[0]), np.bool_)
            for side in self.sides:
                stays &= rows.event_time_ns(pairs[side]) >= self.gone_ns
            if not stays.all():
                pairs = take_pairs(pairs, stays.nonzero()[0])
        for side in self.sides:
            rows.match(pairs[side])
        return pairs

    def count_late(self, batch: Batch, side: int) -> None:
        """Count rows that could have been partners of rows which have left alone."""
        if 1 - side in self.sides and self.gone_ns > START_NS:
            back_ns, _ = self._reaches_ns[side]
            until_ns = min(self.gone_ns, END_NS - back_ns) + back_ns
            self.missed += int(np.count_nonzero(batch.event_time_ns < until_ns))

    def wait(self, results: Batch, pairs: Pairs) -> None:
        """Hold results of pairs until no older result can follow."""
        codes = self._rows.keys_at(pairs[0]) >> 1
        self._pairs.add(results.with_(codes=codes))

    def leave(self, until_ns: int, stimulus_ns: int) -> Batch | None:
        """Return all results older than this, in order: no partner of such a row follows.

        Args:
            until_ns: an event time; END_NS: the end.
            stimulus_ns: stimulus time of what lets them leave.
        """
        if until_ns <= self.gone_ns:
            return None
        self.gone_ns = until_ns
        parts = [*self._pairs.until(until_ns), *self._null_keys.until(until_ns)]
        parts += self._alone(self._open.until(until_ns))
        if not parts:
            return None
        rows = in_order(part.with_(codes=None) for part in parts)
        return rows.with_(stimulus_time_ns=np.maximum(rows.stimulus_time_ns, stimulus_ns))

    def _alone(self, decided: list[Batch]) -> Iterable[Batch]:
        """Yield results of those rows that have no partner."""
        if not decided:
            return
        held = self._rows
        positions = _positions(in_order(decided))
        positions = positions.compress(~held.are_matched(positions))
        sides = held.keys_at(positions) & 1
        for side in self.sides:
            own = positions.compress(sides == side)
            if not len(own):
                continue
            names = list(self._columns[side].values())
            columns = dict(zip(names, held.columns(names, own, side=side), strict=True))
            rows = Batch(
                event_time_ns=held.event_time_ns(own),
                stimulus_time_ns=held.stimulus_time_ns(own),
                columns=columns,
                marks=held.marks((own, own)),
            )
            yield self._result(side, rows, len(own))

    def _result(self, side: int, rows: Batch, count: int) -> Batch:
        """Return results of rows of one side: the other's columns are null."""
        own = self._columns[side]
        columns: Columns = {
            field.name: rows.columns[own[field.name]]
            if field.name in own
            else nulls_of(field.type, count)
            for field in self._schema
        }
        return Batch(
            event_time_ns=rows.event_time_ns,
            stimulus_time_ns=rows.stimulus_time_ns,
            columns=columns,
            marks=rows.marks,
            codes=rows.codes,
        )

    def codes(self) -> list[Int64Array]:
        """Return the codes of the keys of results that wait."""
        return [*self._pairs.codes(), *self._null_keys.codes()]

    def derive(self) -> None:
        """Find the rows that are not decided yet among those that are held."""
        rows, self._open = self._rows, InOrder()
        keys, times = rows.keys(rows.start, rows.end), rows.times(rows.start, rows.end)
        is_open = np.isin(keys & 1, self.sides) & (times >= self.gone_ns)
        positions = is_open.nonzero()[0]
        if len(positions):
            placed = _placed(positions + rows.start, times.take(positions))
            self._open.add(placed.take(stable_order(placed.event_time_ns)))


def _placed(positions: Int64Array, times: Int64Array) -> Batch:
    return Batch(event_time_ns=times, stimulus_time_ns=times, columns={_POSITION: positions})


def _positions(batch: Batch) -> Int64Array:
    positions = batch.columns[_POSITION]
    assert isinstance(positions, np.ndarray), "made above: whole numbers"
    return positions
