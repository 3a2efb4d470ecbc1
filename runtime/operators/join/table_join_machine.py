"""A join of tables stores the rows of both sides by key.

```
left  a 1     right  a 7   a 8        leaves      left join
  +                                   +1 null
                 +                    −1 null  +1 7
                       +              +1 8
                 −                    −1 7
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    START_NS,
    Batch,
    BoolArray,
    Column,
    Columns,
    GateRead,
    Int64Array,
)
from slackwater.runtime.model.batch import concat_columns
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.row_marks import RETRACTED, REVISED, are_retracted
from slackwater.runtime.model.schema import nulls_of
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.late_rows import OR_LATE, LateRows, Missed
from slackwater.runtime.operators.ground.stored_rows import StoredRows
from slackwater.runtime.operators.ground.user_code import holds, sample_of
from slackwater.runtime.operators.join.table_join import TableJoinStep

_INSERT, _DELETE = 0, RETRACTED.bit
_CHANGE_BITS = np.uint8(RETRACTED.bit | REVISED.bit)
_NOBODY: dict[int, None] = {}


class _Side:
    """Rows of one side, by key and by their values.

    Args:
        retracts: whether rows may be taken out.
    """

    STATE = Fields(Field("rows", of=OWNER))

    def __init__(self, *, retracts: bool) -> None:
        self.rows = StoredRows()
        self._retracts = retracts
        self.derive()

    def derive(self) -> None:
        """Find rows by key, and by their values."""
        self.by_key: dict[int, dict[int, None]] = {}
        self._values: KeyIndex | None = None
        self._by_value: dict[int, dict[int, None]] = {}
        places = self.rows.places
        if len(places):
            self._index(self.rows.take(places), places)

    def turns(
        self, side: int, rows: Batch, codes: Int64Array, is_null: BoolArray | None
    ) -> list[tuple[int, int, int, bool, int]]:
        """Store new rows, and return what each does; `insert` says when it is there.

        Args:
            side: 0 left, 1 right.
            rows: rows of one side of a read.
            codes: codes of their keys.
            is_null: whether a key of each is null; None if none is.

        Returns:
            The side, the row's place or ~number of a row that takes one out, the code of its key,
            whether others may have its key, and the code of its values.
        """
        marks = rows.marks
        goes = np.zeros(len(rows), np.bool_) if marks is None else are_retracted(marks)
        new = np.flatnonzero(~goes)
        places = ~np.arange(len(rows))
        places[new] = np.arange(self.rows.end, self.rows.end + len(new))
        values = self.values(rows)
        stored = rows.take(new).with_(codes=codes.take(new), writers=None, arrivals=None)
        self.rows.append(stored)
        meets = np.ones(len(rows), np.bool_) if is_null is None else ~is_null
        lists = (places.tolist(), codes.tolist(), meets.tolist(), values.tolist())
        return [(side, *turn) for turn in zip(*lists, strict=True)]

    def _index(self, batch: Batch, places: Int64Array) -> None:
        assert batch.codes is not None, "rows are stored with codes"
        values = self.values(batch)
        for place, code, value in zip(
            places.tolist(), batch.codes.tolist(), values.tolist(), strict=True
        ):
            self.insert(place, code, value)

    def values(self, batch: Batch) -> Int64Array:
        """Return a code of the values of each row, equal for equal rows."""
        if not self._retracts:
            return np.zeros(len(batch), dtype=np.int64)
        names = sorted(batch.columns)
        if self._values is None:
            self._values = KeyIndex(len(names))
        return self._values.codes([batch.columns[name] for name in names], len(batch))

    def insert(self, place: int, code: int, value: int) -> None:
        """Note that the row at a place is there."""
        self.by_key.setdefault(code, {})[place] = None
        if self._retracts:
            self._by_value.setdefault(value, {})[place] = None

    def take_out(self, code: int, value: int) -> int:
        """Take out the oldest row of these values; return its place, −1 without any."""
        places = self._by_value.get(value)
        if not places:
            return -1
        place = next(iter(places))
        del places[place], self.by_key[code][place]
        if not places:
            del self._by_value[value]
        if not self.by_key[code]:
            del self.by_key[code]
        return place

    def tidy(self) -> None:
        """Forget rows that are gone, if they are the most."""
        if self.rows.tidy():
            self.derive()


class _Pairs:
    """Results of a read: places of both rows (−1: none), kinds, and causes."""

    def __init__(self) -> None:
        self.places: tuple[list[int], list[int]] = ([], [])
        self.bits: list[int] = []
        self.causes: list[int] = []
        self.cause = 0

    def add(self, side: int, own: int, other: int, bits: int) -> None:
        """Add a result of a row of one side and one of the other."""
        self.places[side].append(own)
        self.places[1 - side].append(other)
        self.bits.append(bits)
        self.causes.append(self.cause)


class TableJoinMachine(LateOperator):
    """The machine of a `TableJoinStep`.

    Rows are taken in the order (event time, side), left before right. A row's results leave with
    its event time, partners in the order in which they came. Pairs have no key of their own, so
    they are inserted and deleted, and never updated.

    Args:
        step: the keys, and what leaves.
        most_kept_rows: more rows than this on both sides are an error.

    Attributes:
        missing_rows: rows so far that should have gone and were not there.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_left", of="_keys"),
        Field("_right", of="_keys"),
        "_done_ns",
        "_missed",
        "missing_rows",
    )

    def __init__(self, step: TableJoinStep, *, most_kept_rows: int) -> None:
        self._step, self._most_rows = step, most_kept_rows
        self._keys = KeyIndex(len(step.left_on))
        self._left, self._right = (_Side(retracts=takes_out) for takes_out in step.retracts)
        self._done_ns = START_NS
        self._missed = Missed(keeps=step.keeps_late)
        self.missing_rows = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        sides = [self._in_time(released, port) for port in (0, 1)]
        results = self._changed(sides) if any(side is not None for side in sides) else None
        self._done_ns = max(self._done_ns, released.progress.promise_ns)
        if released.progress.is_end:
            keep_keys(self, np.empty(0, dtype=np.int64))
        return Result(results, released.progress.promise_ns, *self._missed.take())

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {"missing_rows": self.missing_rows} if self.missing_rows else {}

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._left.rows) + len(self._right.rows)

    def _in_time(self, released: GateRead, port: int) -> Batch | None:
        """Return the rows of a port that are in time; the others are dropped."""
        late, rows = released.late[port], released.ports[port]
        if late is not None and len(late):
            self._drop(late, port)
        if rows is None or not len(rows):
            return None
        if rows.event_time_ns.item(0) >= self._done_ns:
            return rows
        is_late = rows.event_time_ns < self._done_ns
        self._drop(rows.keep(is_late), port)
        return None if is_late.all() else rows.keep(~is_late)

    def _drop(self, rows: Batch, port: int) -> None:
        self._missed.dropped += len(rows)
        if self._missed.keeps:
            late_by_ns = np.maximum(self._done_ns - rows.event_time_ns, 1)
            dropped = np.ones(len(rows), dtype=np.bool_)
            self._missed.add([LateRows(port, rows, late_by_ns, dropped)])

    # -- rows in ------------------------------------------------------------------------

    def _changed(self, came: list[Batch | None]) -> Batch | None:
        """Return what rows of both sides change."""
        pairs = _Pairs()
        sides = (self._left, self._right)
        times: list[Int64Array] = []
        turns: list[tuple[int, int, int, bool, int]] = []
        for number, (rows, keys) in enumerate(
            zip(came, (self._step.left_on, self._step.right_on), strict=True)
        ):
            if rows is not None:
                columns = [rows.columns[name] for name in keys]
                codes = self._keys.codes(columns, len(rows))
                turns += sides[number].turns(number, rows, codes, any_null(columns))
                times.append(rows.event_time_ns)
        order = np.concatenate(times).argsort(kind="stable")
        gone: tuple[list[int], list[int]] = ([], [])
        for pairs.cause in order.tolist():
            side, place, code, meets, value = turns[pairs.cause]
            if place >= 0:
                self._moves(pairs, side, place, code if meets else -1, comes=True)
                sides[side].insert(place, code, value)
            elif (there := sides[side].take_out(code, value)) >= 0:
                gone[side].append(there)
                self._moves(pairs, side, there, code if meets else -1, comes=False)
            else:
                self._refuse_missing(came[side], ~place, side)
        results = self._results(pairs, [rows for rows in came if rows is not None])
        for own, places_gone in zip(sides, gone, strict=True):
            if places_gone:
                own.rows.drop(np.array(places_gone))
                own.tidy()
        self._check_room()
        return results

    def _partners(self, side: int, code: int) -> Mapping[int, None]:
        other = self._left if side else self._right
        return other.by_key.get(code, _NOBODY) if code >= 0 else _NOBODY

    def _moves(self, pairs: _Pairs, side: int, place: int, code: int, *, comes: bool) -> None:
        """Add results of a row that comes or goes; it is not stored.

        Args:
            pairs: results of the read so far.
            side: 0 left, 1 right.
            place: place of the row.
            code: code of its key; −1 if no key equals it.
            comes: whether the row is new.
        """
        partners, how = self._partners(side, code), self._step.how
        is_only = code >= 0 and not self._partners(1 - side, code)
        own, opposite = (_INSERT, _DELETE) if comes else (_DELETE, _INSERT)
        if how in ("semi", "anti"):
            if side == 0:
                if bool(partners) is (how == "semi"):
                    pairs.add(0, place, -1, own)
            elif is_only:
                for partner in partners:
                    pairs.add(0, partner, -1, own if how == "semi" else opposite)
            return
        is_alone = is_only and (1 - side) in self._step.alone
        for partner in partners:  # what is deleted leaves first
            if comes and is_alone:
                pairs.add(side, -1, partner, opposite)
            pairs.add(side, place, partner, own)
            if is_alone and not comes:
                pairs.add(side, -1, partner, opposite)
        if not partners and side in self._step.alone:
            pairs.add(side, place, -1, own)

    def _refuse_missing(self, rows: Batch | None, at: int, side: int) -> None:
        self.missing_rows += 1
        if self._step.on_missing == "error":
            assert rows is not None, "a row of it is taken out"
            raise OperatorError(
                f"step {self._step.name!r}: a row of its {'right' if side else 'left'} side is "
                f"taken out, and no equal one is there\n{sample_of(rows, at, at + 1)}\n"
                f"omit columns that differ, such as the time of the change{OR_LATE}; or write "
                "on_missing='count' to count such rows"
            )

    def _check_room(self) -> None:
        if self.rows_held > self._most_rows:
            raise OperatorError(
                f"step {self._step.name!r}: {self.rows_held:,} rows are kept, more than "
                f"{most_text(self._step, self._most_rows)}\n"
                "without within= both sides are tables of all their rows\n"
                "give it within=, or allow more with limits=sw.Limits(most_kept_rows=…)"
            )
        if self._keys.is_worth_keeping(len(self._left.by_key) + len(self._right.by_key)):
            codes = {*self._left.by_key, *self._right.by_key}
            keep_keys(self, np.array(sorted(codes), dtype=np.int64))

    # -- rows out -----------------------------------------------------------------------

    def _results(self, pairs: _Pairs, came: list[Batch]) -> Batch | None:
        """Return results as rows.

        Args:
            pairs: results of a read.
            came: its rows, left ones first; numbers of causes follow that order.
        """
        if not pairs.bits:
            return None
        causes = np.array(pairs.causes, dtype=np.int64)
        times = np.concatenate([rows.event_time_ns for rows in came]).take(causes)
        stimuli = np.concatenate([rows.stimulus_time_ns for rows in came]).take(causes)
        marks = np.array(pairs.bits, dtype=np.uint8)
        columns: dict[str, Column] = {}
        keys: list[list[Column]] = []
        for side, own in enumerate((self._left, self._right)):
            places = np.array(pairs.places[side], dtype=np.int64)
            is_there = np.flatnonzero(places >= 0)
            names = self._step.names[side]
            rows = own.rows.take(places.take(is_there)) if len(is_there) else None
            if rows is not None:
                stimuli[is_there] = np.maximum(stimuli.take(is_there), rows.stimulus_time_ns)
                if rows.marks is not None:
                    marks[is_there] |= rows.marks & ~_CHANGE_BITS
            row_of = np.full(len(places), 0 if rows is None else len(rows), dtype=np.int64)
            row_of[is_there] = np.arange(len(is_there))
            columns |= self._columns_of(names, rows, row_of)
            if 1 in self._step.alone:
                on = (self._step.left_on, self._step.right_on)[side]
                by_name = dict(zip(self._step.left_on, on, strict=True))
                leaving = self._step.schema.names
                wanted = {name: own for name, own in by_name.items() if name in leaving}
                keys.append(list(self._columns_of(wanted, rows, row_of).values()))
        if keys:
            self._fill_keys(columns, keys, np.array(pairs.places[0], dtype=np.int64))
        made: Columns = {name: columns[name] for name in self._step.schema.names}
        results = Batch(
            event_time_ns=times,
            stimulus_time_ns=stimuli,
            columns=made,
            marks=marks if marks.any() else None,
        )
        if self._step.where is None:
            return results
        results = results.keep(holds(self._step.where, results, step=self._step.name))
        return results if len(results) else None

    def _columns_of(
        self, names: Mapping[str, str], rows: Batch | None, row_of: Int64Array
    ) -> dict[str, Column]:
        """Return {name it leaves under: column}; row `len(rows)` is a row of nulls."""
        columns: dict[str, Column] = {}
        for leaves, came in names.items():
            if rows is None:
                columns[leaves] = nulls_of(self._type_of(leaves), len(row_of))
                continue
            column = rows.columns[came]
            if len(rows) < len(row_of):
                column = concat_columns([column, nulls_of(self._type_of(leaves), 1)])
            columns[leaves] = column.take(row_of)
        return columns

    def _type_of(self, name: str) -> Any:
        return self._step.schema.field(name).type

    def _fill_keys(
        self, columns: dict[str, Column], keys: list[list[Column]], lefts: Int64Array
    ) -> None:
        """Give rows without a left row the keys of their right one."""
        rows = len(lefts)
        chosen = np.where(lefts >= 0, np.arange(rows), np.arange(rows) + rows)
        names = [name for name in self._step.left_on if name in columns]
        for name, left, right in zip(names, *keys, strict=True):
            columns[name] = concat_columns([left, right]).take(chosen)
