"""As-of join: each left row leaves once, with the nearest right row of its key.

```
backward   right   1a   4a        8a     left rows leave once the promise is past them: the right
           left       3a    5a           row of their own time may follow, up to then
           leave      3a 1a 5a 4a
```

Right rows are looked at in event-time order, so results do not depend on the cut into reads.
Null keys equal nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, Columns, GateRead, Int64Array
from slackwater.runtime.model.batch import concat_batches, concat_columns
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.row_marks import Marks
from slackwater.runtime.model.schema import nulls_of
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.in_order import InOrder, in_order
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from slackwater.runtime.operators.ground.late_rows import LateRows, Missed
from slackwater.runtime.operators.join.asof import AsofStep
from slackwater.runtime.operators.join.right_rows import RightRows, Sought

_LEFT, _RIGHT = 0, 1


class AsofMachine(LateOperator):
    """The machine of an `AsofStep`.

    A left row leaves once the promise (`keep="slack"`: the watermark) is past all right rows that
    may be nearest. Of right rows that are older than those left rows the newest of each key stays.
    A left row that comes after its time is dropped, and counted. A right row that comes late counts
    for left rows that have not left.

    Args:
        step: the keys, and which right row counts.
        most_kept_rows: beyond so many rows that wait for promises they leave by the watermark.

    Attributes:
        dropped_early: left rows so far that did not wait for all promises, being too many.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_left", of="_keys"),
        Field("_waiting", of="_keys"),
        Field("_right", of="_keys"),
        "_gone_ns",
        "_missed",
        "dropped_early",
    )

    def __init__(self, step: AsofStep, *, most_kept_rows: int) -> None:
        self._step, self._most_kept_rows = step, most_kept_rows
        (self._summary, _) = step.traits.summaries
        came = {leaves: name for name, leaves in step.right_names.items()}
        names = step.schema.names
        self._left_names = [name for name in names if name not in came]
        self._right_names = {name: came[name] for name in names if name in came}
        self._on = (step.left_on, step.right_on)
        self._keys = KeyIndex(len(step.left_on))
        self._left = InOrder()
        self._waiting = InOrder()  # right rows that others of the other side may still precede
        self._right = RightRows(
            tuple(self._right_names.values()), needs_newest=step.direction != "forward"
        )
        self._gone_ns = START_NS  # older left rows have left
        self._missed = Missed(keeps=step.keeps_late)
        self.dropped_early = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        for batches in (released.late, released.ports):
            left, right = (self._admitted(batch, side) for side, batch in enumerate(batches))
            if left is not None:
                self._left.add(left)
            if right is not None:
                self._waiting.add(right)
        progress = released.progress
        is_by_promise = self._step.keep == "promise"
        passed_ns = progress.promise_ns if is_by_promise else released.watermark_ns
        rows = self._advance(passed_ns, progress.stimulus_ns)
        if is_by_promise and len(self._left) + len(self._waiting) > self._most_kept_rows:
            early = self._advance(released.watermark_ns, progress.stimulus_ns)
            if early is not None:
                self.dropped_early += len(early)
                rows = early if rows is None else concat_batches([rows, early])
        return Result(
            rows,
            self._summary.promise_ns(progress.promise_ns),
            *self._missed.take(),
        )

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {"dropped_early": self.dropped_early}

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._left) + len(self._waiting) + len(self._right)

    def _admitted(self, batch: Batch | None, side: int) -> Batch | None:
        """Return the rows that may count, with codes; None if there are none."""
        if batch is None or not len(batch):
            return None
        gone_ns = self._gone_ns
        dropped_ns = gone_ns if side == _LEFT else self._oldest_ns(gone_ns)
        if batch.event_time_ns.item(0) < gone_ns:
            self._note_late(batch, side, dropped_ns)
            batch = batch.keep(batch.event_time_ns >= dropped_ns)
        nulls = any_null([batch.columns[name] for name in self._on[side]])
        if nulls is not None and side == _RIGHT:
            batch = batch.keep(~nulls)
        if not len(batch):
            return None
        codes = self._keys.codes([batch.columns[name] for name in self._on[side]], len(batch))
        names = self._left_names if side == _LEFT else list(self._right_names.values())
        columns = {name: batch.columns[name] for name in names}
        return Batch(
            event_time_ns=batch.event_time_ns,
            stimulus_time_ns=batch.stimulus_time_ns,
            columns=columns,
            marks=batch.marks,
            codes=codes,
        ).take(np.arange(len(batch)))  # a copy: what was released may change

    def _note_late(self, batch: Batch, side: int, dropped_ns: int) -> None:
        """Count rows that are older than left rows which have left."""
        times = batch.event_time_ns
        late = (times < self._gone_ns).nonzero()[0]
        is_dropped = times.take(late) < dropped_ns
        self._missed.dropped += int(np.count_nonzero(is_dropped))
        if self._step.keeps_late:
            late_by_ns = np.maximum(self._gone_ns - times.take(late), 1)
            self._missed.add([LateRows(side, batch.take(late), late_by_ns, is_dropped)])

    def _oldest_ns(self, gone_ns: int) -> int:
        """Return the time before which no right row counts any more."""
        step = self._step
        if step.direction == "forward" or gone_ns in (START_NS, END_NS):
            return gone_ns
        if step.tolerance_ns is None:
            return START_NS
        return max(gone_ns - step.tolerance_ns, START_NS)

    def _advance(self, passed_ns: int, stimulus_ns: int) -> Batch | None:
        """Return the left rows that leave; forget right rows that none needs then."""
        gone_ns = self._summary.promise_ns(passed_ns)
        if gone_ns <= self._gone_ns:
            return None
        right = self._waiting.until(passed_ns)
        if right:
            self._right.append(in_order(right), gone_ns=self._gone_ns)
        left = self._left.until(gone_ns)
        rows = self._results(in_order(left), stimulus_ns) if left else None
        self._gone_ns = gone_ns
        if gone_ns == END_NS:
            self._right.clear()
        elif self._right.forget(gone_ns, self._oldest_ns(gone_ns)):
            self._forget_keys()
        return rows

    def _results(self, left: Batch, stimulus_ns: int) -> Batch | None:
        places = self._nearest(left)
        if self._step.how == "inner":
            stays = (places >= 0).nonzero()[0]
            if not len(stays):
                return None
            left, places = left.take(stays), places.take(stays)
        is_paired = places >= 0
        paired = places.compress(is_paired)
        right = self._right.rows(list(self._right_names.values()), paired)
        # Row n of the right, or the row of nulls after the last of them.
        rows = np.where(is_paired, is_paired.cumsum() - 1, len(paired))
        columns: Columns = {}
        for field in self._step.schema:
            if (name := self._right_names.get(field.name)) is None:
                columns[field.name] = left.columns[field.name]
            elif len(paired):
                parts = [right.columns[name], nulls_of(field.type, 1)]
                columns[field.name] = concat_columns(parts).take(rows)
            else:
                columns[field.name] = nulls_of(field.type, len(left))
        stimuli = np.maximum(left.stimulus_time_ns, stimulus_ns)
        stimuli[is_paired] = np.maximum(stimuli[is_paired], right.stimulus_time_ns)
        return Batch(
            event_time_ns=left.event_time_ns,
            stimulus_time_ns=stimuli,
            columns=columns,
            marks=_marks(left.marks, right.marks, is_paired),
        )

    def _nearest(self, left: Batch) -> Int64Array:
        """Return the place of each left row's right one; −1 without any."""
        step, codes, times = self._step, left.codes, left.event_time_ns
        assert codes is not None, "rows wait with codes"
        sought = Sought(codes, times)
        if step.direction == "forward":
            return self._near(self._right.after(sought, strict=step.strict), times)
        before = self._near(self._right.before(sought, strict=step.strict), times)
        if step.direction == "backward":
            return before
        after = self._near(self._right.after(sought, strict=step.strict), times)
        back_ns, ahead_ns = self._apart_ns(before, times), self._apart_ns(after, times)
        return np.where((after >= 0) & ((before < 0) | (ahead_ns < back_ns)), after, before)

    def _near(self, places: Int64Array, times: Int64Array) -> Int64Array:
        """Return the places of those rows that are near enough; −1 for others."""
        if self._step.tolerance_ns is None:
            return places
        is_near = self._apart_ns(places, times) <= self._step.tolerance_ns
        return np.where(is_near & (places >= 0), places, -1)

    def _apart_ns(self, places: Int64Array, times: Int64Array) -> Int64Array:
        """Return how far right rows are from times; 0 without a row."""
        apart_ns = np.zeros(len(times), dtype=np.int64)
        has = places >= 0
        apart_ns[has] = np.abs(self._right.times(places.compress(has)) - times.compress(has))
        return apart_ns

    def _forget_keys(self) -> None:
        if self._keys.is_worth_keeping(self.rows_held):
            codes = [*self._left.codes(), *self._waiting.codes(), self._right.codes()]
            keep_keys(self, np.concatenate(codes))


def _marks(left: Marks | None, right: Marks | None, is_paired: np.ndarray) -> Marks | None:
    """Return the marks of both rows together; None if no row has one."""
    marks: Marks = np.zeros(len(is_paired), dtype=np.uint8) if left is None else left.copy()
    if right is not None:
        marks[is_paired] |= right
    return marks if marks.any() else None
