"""The machine of an aggregate without windows, whose results change.

```
rows      a 5   b 1   a 2         every 10   rows   1:a 5   4:a 2 │ 12:a 1
changes   a 5   b 1   old a 5                changes              │ 9:a 7     19:old a 7, a 8
                      a 7
```

An update is two rows of one event time: the old one, then the new one. A key without rows leaves
as a deletion, and begins again with its next row.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Columns,
    GateRead,
    Int64Array,
    concat_batches,
    joined_batches,
)
from slackwater.runtime.model.divided import distinct, keep_keys
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.model.ranges import starts_of_runs
from slackwater.runtime.model.row_marks import CHANGE_BITS, RETRACTED, REVISED
from slackwater.runtime.model.schema import nulls_of
from slackwater.runtime.model.stable_order import stable_order_of_pairs
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import (
    FoldAccumulator,
    MarkAccumulator,
    Pairs,
    signs_of,
)
from slackwater.runtime.operators.aggregate.running import RunningStates, columns_of
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.aggregate.totals_step import TotalsStep
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import OR_LATER, Missed
from slackwater.runtime.operators.ground.untouched import Untouched
from slackwater.runtime.operators.ground.user_code import row_of


class TotalsMachine(LateOperator):
    """The machine of a `TotalsStep`.

    Args:
        step: the keys and aggregates.
        most_kept_rows: more keys and counted values than this are an error.

    Attributes:
        missing_rows: rows so far that took one out which was never there.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_all", by="_keys", each=True),
        Field("_waiting", of="_keys", each=True),
        "_done_ns",
        "_tidied",
        "_untouched",
        "_missed",
        "missing_rows",
    )

    def __init__(self, step: TotalsStep, *, most_kept_rows: int) -> None:
        self._step, self._most_rows = step, most_kept_rows
        (self._summary,) = step.traits.summaries
        self._keys = KeyIndex(len(step.keys))
        self._states = RunningStates(step, retracts=step.retracts)
        self._rows = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._stimuli = FoldAccumulator(np.maximum, np.int64, START_NS, lambda _, cells: (cells, 0))
        self._marks = MarkAccumulator()
        self._newest = FoldAccumulator(np.maximum, np.int64, START_NS, lambda _, cells: (cells, 0))
        self._all = [self._rows, self._stimuli, self._newest, self._marks, *self._states.all]
        self._waiting: list[Batch] = []  # rows of parts of time that are not over
        self._done_ns = START_NS  # older rows are late
        self._tidied = 0  # keys that stayed when they were last looked through
        self._untouched = Untouched(step.keep_ns)
        self._missed = Missed(keeps=step.keeps_late)
        self.missing_rows = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        # A change that comes late counts all the same: without it totals would stay wrong.
        rows = self._missed.in_time(released, self._done_ns, takes_late=self._step.retracts)
        self._done_ns = max(self._done_ns, released.watermark_ns)
        made: list[Batch | None] = []
        stimulus_ns = released.progress.stimulus_ns
        over = rows if self._step.every_ns is None else self._over(rows, self._step.every_ns)
        for part, end_ns in self._untouched.parts(over, released.reached_ns):
            if part is not None:
                is_coded = self._step.every_ns is not None and self._step.keep_ns is None
                coded = part if is_coded else self._coded(part)
                made.append(self._changes(coded, stimulus_ns))
            if end_ns is not None:
                made.append(self._forgotten(end_ns, stimulus_ns))
        changes = joined_batches(made)
        self._forget()
        promise_ns = self._summary.promise_ns(released.progress.promise_ns)
        return Result(changes, promise_ns, *self._missed.take())

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        missing = {"missing_rows": self.missing_rows} if self._step.retracts else {}
        return missing | self._untouched.counts()

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        held = len(self._keys) if self._step.keys else int(self._rows.state.any())
        return held + self._states.values_held + sum(map(len, self._waiting))

    def _coded(self, rows: Batch) -> Batch:
        """Return rows with the codes of their keys."""
        codes = self._keys.codes([rows.columns[name] for name in self._step.keys], len(rows))
        return rows.with_(codes=codes, writers=None, arrivals=None)

    def _over(self, rows: Batch | None, every_ns: int) -> Batch | None:
        """Return the rows of the parts of time that are over; the others wait."""
        if rows is not None:
            self._waiting.append(self._coded(rows.take(np.arange(len(rows)))))
        if not self._waiting:
            return None
        until_ns = self._done_ns
        if until_ns not in (START_NS, END_NS):
            until_ns = until_ns // every_ns * every_ns
        if self._waiting[0].event_time_ns.item(0) >= until_ns:
            return None
        waiting = concat_batches(self._waiting)
        over = int(waiting.event_time_ns.searchsorted(until_ns))
        self._waiting = [waiting.slice(over, len(waiting))] if over < len(waiting) else []
        return waiting.slice(0, over)

    # -- changes ------------------------------------------------------------------------

    def _changes(self, rows: Batch, stimulus_ns: int) -> Batch | None:
        """Return the changes that rows make, with codes; None if they make none."""
        is_last = None
        if signs_of(rows) is not None:
            rows, is_last = self._without_missing(rows)
            if not len(rows):
                return None
        assert rows.codes is not None, "they were given above"
        runs, size = Runs.of(rows.codes, is_last), max(len(self._keys), 1)
        if self._step.retracts:  # sums of a key without rows may be near 0 only
            self._rows.cover(size)
            is_new = self._rows.state.take(runs.cells) == 0
            runs = runs._replace(fresh=is_new if runs.fresh is None else is_new | runs.fresh)
        if self._step.keep_ns is not None:
            self._newest.fold(rows.codes, rows.event_time_ns, size)
        every = np.arange(len(rows))
        counts = self._rows.running(rows, every, runs, size)
        states = self._states.running(rows, runs, size)
        made = columns_of(self._states, states, counts, partial(runs.row_at, rows))
        stimuli = self._stimuli.run(every, rows.stimulus_time_ns, runs, size)
        others = None if rows.marks is None else rows.marks & ~CHANGE_BITS
        others = others if others is not None and others.any() else None
        marks = self._marks.running(rows.with_(marks=others), runs, size)
        before, after, times = runs.at - 1, runs.at, rows.event_time_ns
        if self._step.every_ns is not None:
            firsts, lasts = _ends_of_parts(rows, self._step.every_ns)
            before, after = before.take(firsts), after.take(lasts)
            times = (times.take(lasts) // self._step.every_ns + 1) * self._step.every_ns - 1
            stimuli = np.maximum(stimuli, stimulus_ns)
            rows, marks = rows.take(lasts), None if marks is None else marks.take(lasts)
        entries, results, kinds = _halves(counts, before, after)
        if not len(entries):
            return None
        columns: Columns = {name: rows.columns[name].take(results) for name in self._step.keys} | {
            name: column.take(entries) for name, column in made.items()
        }
        if marks is not None:
            kinds |= marks.take(results)
        return Batch(
            event_time_ns=times.take(results),
            stimulus_time_ns=stimuli.take(after.take(results)),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=kinds if kinds.any() else None,
        )

    def _without_missing(self, rows: Batch) -> tuple[Batch, Any]:
        """Return rows that count, and whether a key has no row after each.

        The first row of each key that takes out one that is not there goes, until none is left:
        what was never there changes nothing for the rows after it.

        Raises:
            OperatorError: such a row, with on_missing="error".
        """
        size = max(len(self._keys), 1)
        while len(rows):
            assert rows.codes is not None, "rows come with codes"
            signs = signs_of(rows)
            values = np.ones(len(rows), np.int64) if signs is None else signs
            runs = Runs.of(rows.codes)
            counts = self._rows.tried(values, runs, size).take(runs.at)
            missing = np.union1d((counts < 0).nonzero()[0], self._states.unknown(rows, rows.codes))
            if not len(missing):
                return rows, counts == 0
            if self._step.on_missing == "error":
                row = row_of(rows, int(missing[0]))
                raise OperatorError(
                    f"step {self._step.name!r}: a row is taken back that was never there, or has "
                    f"been taken back before\n{row}\nlook for what inserted it{OR_LATER}"
                    f"{self._untouched.or_gone}; or write on_missing='count'; such rows then "
                    "change nothing"
                )
            _, first = np.unique(rows.codes.take(missing), return_index=True)
            stays = np.ones(len(rows), dtype=np.bool_)
            stays[missing.take(first)] = False
            self.missing_rows += len(first)
            rows = rows.keep(stays)
        return rows, None

    # -- state --------------------------------------------------------------------------

    def _forgotten(self, end_ns: int, stimulus_ns: int) -> Batch | None:
        """Delete the results of keys without a row for long, before a time."""
        for state in (self._rows, self._newest):
            state.cover(max(len(self._keys), 1))
        is_there = self._rows.state > 0
        old = self._untouched.old(np.where(is_there, self._newest.state, START_NS), end_ns)
        if not len(old):
            return None
        is_there[old] = False
        deleted = self._deleted(old, end_ns, stimulus_ns)
        waiting, self._waiting = self._waiting, []
        keep_keys(self, np.flatnonzero(is_there))
        self._waiting = list(map(self._coded, waiting))
        return deleted

    def _deleted(self, codes: Int64Array, end_ns: int, stimulus_ns: int) -> Batch:
        """Return deletions of the results of keys, by the hash of the key."""
        keys = self._keys.columns(codes)
        codes = codes.take(key_hashes(keys, len(codes)).argsort(kind="stable"))
        keys, number = self._keys.columns(codes), len(codes)
        none = np.empty(0, dtype=np.int64)
        assert self._step.of_input is not None, "keys do not stay"
        no_rows = Batch(
            event_time_ns=none,
            stimulus_time_ns=none,
            columns={field.name: nulls_of(field.type, 0) for field in self._step.of_input},
        )
        runs = Runs(codes, np.arange(number), none, number)
        states = self._states.running(no_rows, runs, max(len(self._keys), 1))
        made = columns_of(self._states, states, self._rows.state.take(codes))
        columns: Columns = dict(zip(self._step.keys, keys, strict=True)) | made
        marks = self._marks.combined(Pairs(codes, np.arange(number), number))
        kinds = np.full(number, RETRACTED.bit, dtype=np.uint8)
        return Batch(
            event_time_ns=np.full(number, end_ns - 1),
            stimulus_time_ns=np.maximum(self._stimuli.state.take(codes), stimulus_ns),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=kinds if marks is None else kinds | marks,
        )

    def _forget(self) -> None:
        """Forget keys without rows, once there are many; at the end all."""
        if self._done_ns == END_NS:
            self._waiting = []
            keep_keys(self, np.empty(0, dtype=np.int64))
            return
        if len(self._keys) > 2 * self._tidied + 1024 or self.rows_held > self._most_rows:
            self._tidy()
        if self.rows_held > self._most_rows:
            # Windows take no changes, and the one key of all rows never goes.
            ways = [] if self._step.retracts else ["give it a window="]
            ways += [f"write {self._untouched.way_out}"] if self._step.keys else []
            raise OperatorError(
                f"step {self._step.name!r}: {self.rows_held:,} keys and values are kept, more than "
                f"{most_text(self._step, self._most_rows)}\nwithout window= each key stays to the "
                "end of the input, or for keep=\n"
                f"{', '.join([*ways, 'allow more with limits=sw.Limits(most_kept_rows=…)'])}"
            )

    def _tidy(self) -> None:
        known = [rows.codes for rows in self._waiting if rows.codes is not None]
        alive = self._rows.state.nonzero()[0]
        codes = distinct(np.concatenate([alive, *known]))
        if self._step.keys and len(codes) < len(self._keys):
            keep_keys(self, codes)
        self._states.tidy()
        self._tidied = len(self._keys)


def _ends_of_parts(rows: Batch, every_ns: int) -> tuple[Int64Array, Int64Array]:
    """Return the first and last row of each key and part of time."""
    assert rows.codes is not None, "rows come with codes"
    parts = rows.event_time_ns // every_ns
    order = stable_order_of_pairs(parts, rows.codes)
    codes, parts = rows.codes.take(order), parts.take(order)
    starts = starts_of_runs(codes, parts)
    firsts = order.take(starts)
    lasts = order.take(np.append(starts[1:], len(order)) - 1)
    leave = firsts.argsort()
    return firsts.take(leave), lasts.take(leave)


def _halves(
    counts: Int64Array, before: Int64Array, after: Int64Array
) -> tuple[Int64Array, Int64Array, np.ndarray]:
    """Return the rows of changes: the entry of each, its change, and its marks.

    Args:
        counts: shape (entries,), the number of rows of the key after each.
        before: shape (changes,), the entry before each change.
        after: shape (changes,), the entry after it.
    """
    was, is_there = counts.take(before) > 0, counts.take(after) > 0
    leaves = np.stack([was, is_there], axis=1).ravel()
    marks = np.stack([was * RETRACTED.bit, is_there * 0], axis=1).astype(np.uint8)
    marks[was & is_there] |= REVISED.bit
    places = leaves.nonzero()[0]
    entries = np.stack([before, after], axis=1).ravel().take(places)
    return entries, places >> 1, marks.ravel().take(places)
