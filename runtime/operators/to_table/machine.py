"""A table stores the newest row of each key, and each new row changes it.

```
key a     5        7             deleted       rows that come
          +5       −5 +7         −7            rows that leave
```

A key that goes since no row came for long is deleted, too: by a row that the machine writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    START_NS,
    Batch,
    BoolArray,
    GateRead,
    Int64Array,
    concat_batches,
    joined_batches,
)
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.row_marks import CHANGE_BITS, RETRACTED, REVISED, are_retracted
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import OR_LATE, Missed
from slackwater.runtime.operators.ground.stored_rows import StoredRows
from slackwater.runtime.operators.ground.untouched import Untouched
from slackwater.runtime.operators.ground.user_code import sample_of
from slackwater.runtime.operators.to_table.step import ToTableStep


class ToTableMachine(LateOperator):
    """The machine of a `ToTableStep`.

    Args:
        step: the step with the keys.
        most_kept_rows: rows of more keys than this are an error.

    Attributes:
        missing_rows: deletions so far of keys that had no row.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_rows", of="_keys"),
        "_done_ns",
        "_untouched",
        "_missed",
        "missing_rows",
    )

    def __init__(self, step: ToTableStep, *, most_kept_rows: int) -> None:
        self._step, self._most_rows = step, most_kept_rows
        self._keys = KeyIndex(len(step.keys))
        self._rows = StoredRows()
        self._newest = np.empty(0, dtype=np.int64)  # by code: the place of its row; −1 for none
        self._done_ns = START_NS
        self._untouched = Untouched(step.keep_ns)
        self._missed = Missed(keeps=step.keeps_late)
        self.missing_rows = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        rows = self._missed.in_time(released, self._done_ns)
        made: list[Batch | None] = []
        for part, end_ns in self._untouched.parts(rows, released.reached_ns):
            if part is not None:
                made.append(self._changed(part))
            if end_ns is not None:
                made.append(self._forgotten(end_ns, released.progress.stimulus_ns))
        results = joined_batches(made)
        self._done_ns = max(self._done_ns, released.progress.promise_ns)
        if released.progress.is_end:
            self._rows.clear()
            keep_keys(self, np.empty(0, dtype=np.int64))
        return Result(results, released.progress.promise_ns, *self._missed.take())

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        missing = {"missing_rows": self.missing_rows} if self.missing_rows else {}
        return missing | self._untouched.counts()

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._rows)

    def derive(self) -> None:
        """Find the row of each key."""
        self._newest = np.full(len(self._keys), -1, dtype=np.int64)
        places = self._rows.places
        if len(places):
            self._newest[self._rows.codes(places)] = places

    def _changed(self, rows: Batch) -> Batch | None:
        """Return what rows change, and store the newest of each key."""
        count, marks = len(rows), rows.marks
        codes = self._keys.codes([rows.columns[name] for name in self._step.keys], count)
        self._make_room()
        order = stable_order(codes)
        sorted_codes = codes.take(order)
        is_first = np.ones(count, dtype=np.bool_)
        is_first[1:] = sorted_codes[1:] != sorted_codes[:-1]
        goes = np.zeros(count, dtype=np.bool_) if marks is None else are_retracted(marks)
        stored = self._newest.take(sorted_codes[is_first])
        known = self._rows.take(stored[stored >= 0]) if (stored >= 0).any() else None
        before = np.full(count, -1, dtype=np.int64)  # place in `rows` or, after them, in `known`
        before[order[1:]] = np.where(is_first[1:] | goes.take(order[:-1]), -1, order[:-1])
        firsts = order[is_first]
        before[firsts] = np.where(stored >= 0, count + (stored >= 0).cumsum() - 1, -1)
        is_last = np.ones(count, dtype=np.bool_)
        is_last[:-1] = is_first[1:]
        self._refuse_missing(rows, goes & (before < 0))
        self._store(rows, codes, order[is_last], goes, stored[stored >= 0])
        return _leaving(rows, known, before, goes)

    def _forgotten(self, end_ns: int, stimulus_ns: int) -> Batch | None:
        """Delete the rows of keys without a new row for long, before a time."""
        places = self._rows.places
        times_ns = self._rows.times_ns(places) if len(places) else places
        old = self._untouched.old(times_ns, end_ns)
        if not len(old):
            return None
        rows = self._rows.take(places.take(old))
        marks = np.zeros(len(rows), np.uint8) if rows.marks is None else rows.marks
        return self._changed(
            rows.with_(
                event_time_ns=np.full(len(rows), end_ns - 1),
                stimulus_time_ns=np.maximum(rows.stimulus_time_ns, stimulus_ns),
                marks=(marks & ~CHANGE_BITS) | np.uint8(RETRACTED.bit),
                codes=None,
            )
        )

    def _make_room(self) -> None:
        more = len(self._keys) - len(self._newest)
        if more > 0:
            room = max(more, len(self._newest))
            self._newest = np.concatenate([self._newest, np.full(room, -1, dtype=np.int64)])

    def _refuse_missing(self, rows: Batch, is_missing: BoolArray) -> None:
        if not is_missing.any():
            return
        self.missing_rows += int(np.count_nonzero(is_missing))
        if self._step.on_missing == "error":
            at = int(is_missing.argmax())
            raise OperatorError(
                f"step {self._step.name!r}: a row deletes that of its key, which has none\n"
                f"{sample_of(rows, at, at + 1)}\n"
                f"look for what inserted it{OR_LATE}{self._untouched.or_gone}; "
                "or write on_missing='count' to count such rows"
            )

    def _store(
        self, rows: Batch, codes: Int64Array, last: Int64Array, goes: BoolArray, gone: Int64Array
    ) -> None:
        """Store the last row of each key.

        Args:
            rows: rows of the read.
            codes: shape (rows,), codes of their keys.
            last: places of the last row of each key.
            goes: shape (rows,), whether each is a deletion.
            gone: places of stored rows that are replaced or deleted.
        """
        self._rows.drop(gone)
        self._newest[codes.take(last)] = -1
        new = last[~goes.take(last)]
        new.sort()
        places = np.arange(self._rows.end, self._rows.end + len(new))
        self._newest[codes.take(new)] = places
        self._rows.append(rows.take(new).with_(codes=codes.take(new), writers=None, arrivals=None))
        if len(self._rows) > self._most_rows:
            raise OperatorError(
                f"step {self._step.name!r}: {len(self._rows):,} keys have a row, more than "
                f"{most_text(self._step, self._most_rows)}\n"
                "the newest row of each key stays until the end of the input, or for keep=\n"
                "allow more with limits=sw.Limits(most_kept_rows=…), delete keys, or write "
                f"{self._untouched.way_out}"
            )
        if self._rows.tidy():
            self.derive()
        if self._keys.is_worth_keeping(len(self._rows)):
            keep_keys(self, np.flatnonzero(self._newest[: len(self._keys)] >= 0))


def _leaving(
    rows: Batch, known: Batch | None, before: Int64Array, goes: npt.NDArray[np.bool_]
) -> Batch | None:
    """Return changes in the order of rows: what was there, then what takes its place.

    Args:
        rows: rows of the read.
        known: rows that were stored; None if there are none.
        before: shape (rows,), place of what each replaces, in `rows` and then `known`; −1: nothing.
        goes: shape (rows,), whether each is a deletion.
    """
    count = len(rows)
    has_old, has_new = before >= 0, ~goes
    leaves = has_old.astype(np.int64) + has_new
    ends = leaves.cumsum()
    total = int(ends[-1])
    if not total:
        return None
    of_row = np.arange(count).repeat(leaves)
    source, bits = of_row.copy(), np.zeros(total, dtype=np.uint8)
    old = (ends - leaves)[has_old]
    source[old] = before[has_old]
    bits[old] = np.where(has_new[has_old], CHANGE_BITS, RETRACTED.bit)
    bits[(ends - 1)[has_old & has_new]] = REVISED.bit
    plain = rows.with_(writers=None, arrivals=None)
    every = plain if known is None else concat_batches([plain, known.with_(codes=None)])
    made = every.take(source)
    marks = bits if made.marks is None else (made.marks & ~CHANGE_BITS) | bits
    return made.with_(
        event_time_ns=rows.event_time_ns.take(of_row),
        stimulus_time_ns=np.maximum(made.stimulus_time_ns, rows.stimulus_time_ns.take(of_row)),
        marks=marks if marks.any() else None,
    )
