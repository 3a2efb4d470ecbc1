"""A join of tables stores the rows of both sides by key.

```
time      1        2              2              3
left      a 1                                    −a 1
right              −a 7           a 8
leaves    a 1 7    −(a 1 7), a 1 8               −(a 1 8)
```

What rows of one event time do to a key leaves as one change, from the result before that time to
the result after it. So a key has no result in between: above none without a right row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Column,
    Columns,
    GateRead,
    Int64Array,
    joined_batches,
)
from slackwater.runtime.model.batch import concat_columns
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.row_marks import CHANGE_BITS, RETRACTED, Marks
from slackwater.runtime.model.schema import nulls_of
from slackwater.runtime.model.stable_order import stable_order, stable_order_of_pairs
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import OR_LATER, Missed
from slackwater.runtime.operators.ground.untouched import Untouched
from slackwater.runtime.operators.ground.user_code import holds, sample_of
from slackwater.runtime.operators.join.lives import (
    BEFORE,
    NO_ROW,
    Met,
    emptiness,
    meetings,
)
from slackwater.runtime.operators.join.table_join import TableJoinStep
from slackwater.runtime.operators.join.table_side import TableSide, Turns


class TableJoinMachine(LateOperator):
    """The machine of a `TableJoinStep`.

    Rows have the order (event time, side), left before right. Results of a key and event time
    leave once the watermark has passed that: what is deleted first, then by the places of left and
    right rows. Keys have the order of their first rows of that time. Pairs have no key of their
    own, so they are inserted and deleted, and never updated. Where rows are only added, each
    leaves its pairs as it comes.

    A change that comes late counts all the same, at the time until which all was done: without it
    a table would stay wrong. Rows of a side that only grows are dropped.

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
        Field("_newest", by="_keys"),
        "_done_ns",
        "_untouched",
        "_missed",
        "missing_rows",
    )

    def __init__(self, step: TableJoinStep, *, most_kept_rows: int) -> None:
        self._step, self._most_rows = step, most_kept_rows
        self._keys = KeyIndex(len(step.left_on))
        self._left, self._right = (
            TableSide(on, retracts=takes_out)
            for on, takes_out in zip((step.left_on, step.right_on), step.retracts, strict=True)
        )
        self._newest = GrowableArray(np.int64, fill=START_NS)  # times of rows, where keys go
        self._done_ns = START_NS  # older rows are late
        self._untouched = Untouched(step.keep_ns)
        self._missed = Missed(keeps=step.keeps_late)
        self.missing_rows = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        for port, side in enumerate(self._sides):
            rows = self._missed.in_time(
                released, self._done_ns, port=port, takes_late=side.retracts
            )
            if rows is not None:
                side.wait(rows, self._codes_of(port))
        self._done_ns = max(self._done_ns, released.watermark_ns)
        until_ns = END_NS if self._step.only_adds else self._done_ns
        results = self._until(until_ns, released)
        if released.progress.is_end:
            keep_keys(self, np.empty(0, dtype=np.int64))
        return Result(results, released.progress.promise_ns, *self._missed.take())

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        missing = {"missing_rows": self.missing_rows} if self.missing_rows else {}
        return missing | self._untouched.counts()

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._left) + len(self._right)

    @property
    def _sides(self) -> tuple[TableSide, TableSide]:
        return self._left, self._right

    # -- rows in ------------------------------------------------------------------------

    def _codes_of(self, port: int) -> Callable[[Batch], Int64Array]:
        on = (self._step.left_on, self._step.right_on)[port]
        return lambda rows: self._keys.codes([rows.columns[name] for name in on], len(rows))

    def _until(self, until_ns: int, released: GateRead) -> Batch | None:
        """Return changes by rows that are older than a time, and by keys that go."""
        made: list[Batch | None] = []
        stimulus_ns = released.progress.stimulus_ns
        while True:
            oldest = [ns for side in self._sides if (ns := side.oldest_ns) is not None]
            end_ns = self._untouched.next_ns(min(oldest, default=None), released.reached_ns)
            made.append(self._changed(until_ns if end_ns is None else end_ns, stimulus_ns))
            if end_ns is None:
                self._check_room(self.rows_held)
                return joined_batches(made)
            made.append(self._forgotten(end_ns, stimulus_ns))

    def _forgotten(self, end_ns: int, stimulus_ns: int) -> Batch | None:
        """Take out the rows of keys without a new row for long, before a time."""
        newest = np.full(len(self._keys), START_NS, dtype=np.int64)
        for side in self._sides:
            codes = side.stored_codes()
            newest[codes] = self._newest.values.take(codes)
        old = self._untouched.old(newest, end_ns)
        if not len(old):
            return None
        turns = [side.all_go(old) for side in self._sides]
        stimuli = np.array([stimulus_ns])
        results = self._results(turns, np.array([end_ns - 1]), stimuli)
        for side, changes in zip(self._sides, turns, strict=True):
            side.settle(changes)
        return results

    def _changed(self, until_ns: int, stimulus_ns: int) -> Batch | None:
        """Return what the rows change that are older than this.

        Args:
            until_ns: event time before which rows count.
            stimulus_ns: stimulus of the watermark.
        """
        came = [side.until(until_ns) for side in self._sides]
        here = [rows for rows in came if rows is not None]
        if not here:
            return None
        times = np.concatenate([rows.event_time_ns for rows in here])
        stimuli = np.concatenate([rows.stimulus_time_ns for rows in here])
        order = stable_order(times)
        times, stimuli = times.take(order), stimuli.take(order)
        in_order = np.arange(len(order))
        if not self._step.only_adds:
            codes = np.concatenate([rows.codes for rows in here if rows.codes is not None])
            in_order, stimuli = _moments(times, codes.take(order), stimuli)
            stimuli = np.maximum(stimuli, stimulus_ns)
        moments = np.empty(len(order), dtype=np.int64)
        moments[order] = in_order
        lefts = 0 if came[0] is None else len(came[0])
        own = [moments[:lefts], moments[lefts:]]
        turns = [
            side.turns(rows, moments_of, len(order))
            for side, rows, moments_of in zip(self._sides, came, own, strict=True)
        ]
        self._refuse_missing(came, turns, own)
        if self._step.keep_ns is not None:
            self._newest.resize(max(len(self._keys), len(self._newest)))
            for rows, changes in zip(came, turns, strict=True):
                if rows is not None and rows.codes is not None:
                    counted = np.delete(np.arange(len(rows)), changes.missing)
                    touched, times_ns = rows.codes.take(counted), rows.event_time_ns.take(counted)
                    np.maximum.at(self._newest.values, touched, times_ns)
        results = self._results(turns, times, stimuli)
        for side, changes in zip(self._sides, turns, strict=True):
            side.settle(changes)
        self._check_room(sum(len(side.rows) for side in self._sides))  # others of a read may go
        return results

    def _refuse_missing(
        self, came: Sequence[Batch | None], turns: Sequence[Turns], moments: Sequence[Int64Array]
    ) -> None:
        """Count rows that took out none.

        Raises:
            OperatorError: there is one, with on_missing="error".
        """
        missing = [
            (own.item(at), side, at)
            for side, (changes, own) in enumerate(zip(turns, moments, strict=True))
            for at in changes.missing.tolist()
        ]
        self.missing_rows += len(missing)
        if missing and self._step.on_missing == "error":
            _, side, at = min(missing)
            rows = came[side]
            assert rows is not None, "a row of it is taken out"
            raise OperatorError(
                f"step {self._step.name!r}: a row of its {'right' if side else 'left'} side is "
                f"taken out, and no equal one is there\n{sample_of(rows, at, at + 1)}\n"
                f"omit columns that differ, such as the time of the change{OR_LATER}"
                f"{self._untouched.or_gone}; or write on_missing='count' to count such rows"
            )

    def _check_room(self, rows: int) -> None:
        if rows > self._most_rows:
            raise OperatorError(
                f"step {self._step.name!r}: {rows:,} rows are kept, more than "
                f"{most_text(self._step, self._most_rows)}\n"
                "without within= both sides are tables of all their rows\n"
                f"give it within= or {self._untouched.way_out}, or allow more with "
                "limits=sw.Limits(most_kept_rows=…)"
            )
        if self._keys.is_worth_keeping(self.rows_held):
            keep_keys(self, np.unique(np.concatenate([side.all_codes() for side in self._sides])))

    # -- rows out -----------------------------------------------------------------------

    def _met(self, turns: Sequence[Turns], end: int) -> Iterator[Met]:
        """Yield pairs that come or go; without a partner they have one place."""
        how = self._step.how
        for side in self._sides:
            side.cover(len(self._keys))
        every, meeting = (
            [side.members(own, meeting=only) for side, own in zip(self._sides, turns, strict=True)]
            for only in (False, True)
        )
        if how not in ("semi", "anti"):
            yield meetings(meeting[0], meeting[1], end)
        for number in (0,) if how == "semi" else self._step.alone:
            rows = self._sides[1 - number].numbers
            other = emptiness(meeting[1 - number].changed, rows, end, is_empty=how != "semi")
            pair = (every[0], other) if number == 0 else (other, every[1])
            yield meetings(*pair, end)

    def _results(
        self, turns: Sequence[Turns], times: Int64Array, stimuli: Int64Array
    ) -> Batch | None:
        """Return what changes of both sides change.

        Args:
            turns: changes of the left and the right side.
            times: shape (moments,), event time of each moment.
            stimuli: shape (moments,), stimulus time of each.
        """
        met = list(self._met(turns, end := len(times)))
        births = np.concatenate([pairs.births for pairs in met])
        deaths = np.concatenate([pairs.deaths for pairs in met])
        come, go = (births != BEFORE).nonzero()[0], (deaths < end).nonzero()[0]
        if not len(come) and not len(go):
            return None
        of_pairs = np.concatenate([go, come])
        moments = np.concatenate([deaths.take(go), births.take(come)])
        is_new = np.arange(len(moments)) >= len(go)
        lefts, rights = (
            np.concatenate([pairs.places[side] for pairs in met]).take(of_pairs) for side in (0, 1)
        )
        order = np.lexsort((rights, lefts, is_new, moments))
        moments = moments.take(order)
        marks = np.where(is_new.take(order), 0, RETRACTED.bit).astype(np.uint8)
        columns, stimuli, marks = self._pairs(
            (lefts.take(order), rights.take(order)), stimuli.take(moments), marks
        )
        results = Batch(
            event_time_ns=times.take(moments),
            stimulus_time_ns=stimuli,
            columns=columns,
            marks=marks if marks.any() else None,
        )
        if self._step.where is None:
            return results
        results = results.keep(holds(self._step.where, results, step=self._step.name))
        return results if len(results) else None

    def _pairs(
        self, pairs: tuple[Int64Array, Int64Array], stimuli: Int64Array, marks: Marks
    ) -> tuple[Columns, Int64Array, Marks]:
        """Return columns of pairs, the latest stimulus of each, and all its marks.

        Args:
            pairs: places of left and right rows; NO_ROW where a side has none.
            stimuli: shape (pairs,), stimuli of their causes.
            marks: shape (pairs,), kinds of their changes.
        """
        columns: Columns = {}
        keys: list[list[Column]] = []
        for number, (side, places) in enumerate(zip(self._sides, pairs, strict=True)):
            is_there = (places != NO_ROW).nonzero()[0]
            names = self._step.names[number]
            rows = side.rows.take(places.take(is_there)) if len(is_there) else None
            if rows is not None:
                stimuli[is_there] = np.maximum(stimuli.take(is_there), rows.stimulus_time_ns)
                if rows.marks is not None:
                    marks[is_there] |= rows.marks & ~CHANGE_BITS
            row_of = np.full(len(places), 0 if rows is None else len(rows), dtype=np.int64)
            row_of[is_there] = np.arange(len(is_there))
            columns |= self._columns_of(names, rows, row_of)
            if 1 in self._step.alone:
                on = (self._step.left_on, self._step.right_on)[number]
                by_name = dict(zip(self._step.left_on, on, strict=True))
                leaving = self._step.schema.names
                wanted = {name: own for name, own in by_name.items() if name in leaving}
                keys.append(list(self._columns_of(wanted, rows, row_of).values()))
        if keys:
            self._fill_keys(columns, keys, pairs[0])
        return {name: columns[name] for name in self._step.schema.names}, stimuli, marks

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
        chosen = np.where(lefts != NO_ROW, np.arange(rows), np.arange(rows) + rows)
        names = [name for name in self._step.left_on if name in columns]
        for name, left, right in zip(names, *keys, strict=True):
            columns[name] = concat_columns([left, right]).take(chosen)


def _moments(
    times: Int64Array, codes: Int64Array, stimuli: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return each row's moment, that of the first of its key and time.

    Args:
        times: shape (rows,), ascending event times.
        codes: shape (rows,), codes of keys.
        stimuli: shape (rows,), stimulus times.

    Returns:
        The moments, and the latest stimulus of each, both of shape (rows,).
    """
    order = stable_order_of_pairs(times, codes)
    starts = starts_of_runs(codes.take(order), times.take(order))
    firsts = order.take(starts)
    moments = np.empty(len(order), dtype=np.int64)
    moments[order] = firsts.repeat(np.diff(starts, append=len(order)))
    latest = stimuli.copy()
    latest[firsts] = np.maximum.reduceat(stimuli.take(order), starts)
    return moments, latest
