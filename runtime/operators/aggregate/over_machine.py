"""The machines of `over`: rows leave with aggregates of the rows before them.

```
last 3, of key a      rows     1:5   3:2   4:7 │ 9:1       leave once the promise is past them
                      sums     5     7     9   │ 1         4 − 3 < 3 ≤ 4: of 3:2 and 4:7
```

Rows that have left stay while a row to come may reach them. Without a limit no row stays: each key
has the state of its aggregates.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    BoolArray,
    Columns,
    GateRead,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.batch import concat_columns, joined_batches
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.ranges import starts_of_runs, unfold
from slackwater.runtime.model.row_marks import Marks
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import (
    FoldAccumulator,
    MarkAccumulator,
    Pairs,
)
from slackwater.runtime.operators.aggregate.over_step import OverStep, Reach
from slackwater.runtime.operators.aggregate.ranges import Ranges
from slackwater.runtime.operators.aggregate.running import (
    RowText,
    RunningStates,
    aggregates_of_ranges,
    columns_of,
    naming_rows,
)
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.aggregate.states import States
from slackwater.runtime.operators.ground.arrays import slices_of_weight
from slackwater.runtime.operators.ground.contract import LateOperator, Operator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.ground.user_code import holds, row_of

_ROWS_AT_ONCE = 1 << 20
"""Rows in reach that are looked at together."""


class _Made(NamedTuple):
    """Aggregates of results, their latest stimulus times, and their marks."""

    columns: Columns
    stimuli: Int64Array
    marks: Marks | None


def over_machine(step: OverStep, *, most_kept_rows: int) -> Operator:
    """Return the machine of an `OverStep`."""
    machine: type[AllBeforeMachine | LastTimeMachine | LastRowsMachine] = AllBeforeMachine
    if step.reach.last_ns is not None:
        machine = LastTimeMachine
    elif step.reach.rows is not None:
        machine = LastRowsMachine
    return machine(step, most_kept_rows=most_kept_rows)


class _Over(LateOperator):
    """Base of the machines of an `OverStep`."""

    def __init__(self, step: OverStep, *, most_kept_rows: int) -> None:
        self._step, self._most_rows = step, most_kept_rows
        (self._summary,) = step.traits.summaries
        self._keys = KeyIndex(len(step.keys))
        self._missed = Missed(keeps=step.keeps_late)
        self._done_ns = START_NS  # older rows are late

    def _codes_of(self, batch: Batch) -> Int64Array:
        return self._keys.codes([batch.columns[name] for name in self._step.keys], len(batch))

    @property
    def _size(self) -> int:
        """Number of keys; without key columns all rows have one."""
        return max(len(self._keys), 1)

    def _in_time(self, released: GateRead) -> Batch | None:
        """Return the rows that are in time; None if none is."""
        rows = self._missed.in_time(released, self._done_ns)
        self._done_ns = max(self._done_ns, released.watermark_ns)
        return rows

    def _refuse_more(self, held: int, of: str, way_out: str) -> None:
        if held > self._most_rows:
            raise OperatorError(
                f"step {self._step.name!r}: {held:,} {of} are kept, more than "
                f"{most_text(self._step, self._most_rows)}\n"
                f"{way_out}, or allow more with limits=sw.Limits(most_kept_rows=…)"
            )


class AllBeforeMachine(_Over):
    """The machine of an `OverStep` whose rows reach back to the first of their key.

    Args:
        step: the keys and aggregates.
        most_kept_rows: more keys and counted values than this are an error, as none is forgotten.
    """

    STATE = Fields(
        Field("_keys", by=OWNER), Field("_all", by="_keys", each=True), "_done_ns", "_missed"
    )

    def __init__(self, step: OverStep, *, most_kept_rows: int) -> None:
        super().__init__(step, most_kept_rows=most_kept_rows)
        self._states = RunningStates(step)
        self._rows = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._stimuli = FoldAccumulator(
            np.maximum, np.int64, START_NS, lambda batch, cells: (cells, batch.stimulus_time_ns)
        )
        self._marks = MarkAccumulator()
        self._all = [self._rows, self._stimuli, self._marks, *self._states.all]

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        rows = self._in_time(released)
        result = None if rows is None else self._results(rows)
        promise_ns = released.progress.promise_ns
        if promise_ns == END_NS:
            keep_keys(self, np.empty(0, dtype=np.int64))
        return Result(result, promise_ns, *self._missed.take())

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return len(self._keys) + self._states.values_held

    def _results(self, rows: Batch) -> Batch:
        runs = Runs.of(self._codes_of(rows))
        size = self._size
        self._refuse_more(size, "keys", "give over() last= or rows=")
        places = np.arange(len(rows))
        counts = self._rows.running(rows, places, runs, size)
        states = self._states.running(rows, runs, size)
        held = size + self._states.values_held
        self._refuse_more(held, "keys and values", "give over() last= or rows=")
        stimuli = self._stimuli.running(rows, places, runs, size)
        marks = self._marks.running(rows, runs, size)
        at = runs.at if self._step.reach.has_itself else runs.at - 1
        made = columns_of(self._states, states, counts, partial(runs.row_at, rows))
        columns = rows.columns | {name: column.take(at) for name, column in made.items()}
        return rows.with_(
            stimulus_time_ns=stimuli.take(runs.at),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=marks,
            codes=None,
            writers=None,
            arrivals=None,
        )


class _Reaching(_Over):
    """Base of the machines of an `OverStep` with a limit of time or rows.

    Args:
        step: the keys, the reach and the aggregates.
        most_kept_rows: more rows than this are an error.
    """

    def __init__(self, step: OverStep, *, most_kept_rows: int) -> None:
        super().__init__(step, most_kept_rows=most_kept_rows)
        self._reach = step.reach
        self._names = sorted({name for each in step.aggregates.values() for name in each.columns})
        self._held: list[Batch] = []  # rows that may be in reach; earlier ones longer

    @property
    def rows_held(self) -> int:
        return sum(map(len, self._held))

    def _slim(self, rows: Batch) -> Batch:
        """Return rows with what the aggregates read."""
        slim = rows.with_(columns={name: rows.columns[name] for name in self._names})
        return slim.with_(writers=None, arrivals=None)

    def _are_keys(self, codes: Int64Array) -> BoolArray:
        """Return which keys have these codes, shape (keys,)."""
        of_keys = np.zeros(self._size, dtype=np.bool_)
        of_keys[codes] = True
        return of_keys

    def _held_of(self, of_keys: BoolArray) -> list[Batch]:
        """Return the rows of some keys that are held."""
        parts = [_of_keys(rows, of_keys) for rows in self._held]
        return [rows for rows in parts if len(rows)]

    def _refuse_more_rows(self) -> None:
        self._refuse_more(self.rows_held, "rows", "make last= or rows= shorter")

    def _results(
        self, leaving: Batch, held: Batch, ranges: Ranges, of: Int64Array, stimulus_ns: int
    ) -> Batch:
        """Return rows with their aggregates.

        Args:
            leaving: rows that leave, in order.
            held: rows by key, then in the order of the stream.
            ranges: ranges of these, a result each.
            of: shape (results,), the place of each result's row among those that leave.
            stimulus_ns: stimulus time of what makes them leave.
        """
        made = self._aggregates(held, ranges, lambda result: row_of(leaving, of.item(result)))
        places = np.empty_like(of)
        places[of] = np.arange(len(of))
        columns = {name: column.take(places) for name, column in made.columns.items()}
        stimuli = np.maximum(made.stimuli.take(places), stimulus_ns)
        marks = None if made.marks is None else made.marks.take(places)
        columns |= leaving.columns
        if leaving.marks is not None:
            marks = leaving.marks if marks is None else marks | leaving.marks
        return leaving.with_(
            stimulus_time_ns=np.maximum(stimuli, leaving.stimulus_time_ns),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=marks,
            codes=None,
            writers=None,
            arrivals=None,
        )

    def _aggregates(self, held: Batch, ranges: Ranges, row_text: RowText) -> _Made:
        """Return the aggregates of results: each has a range of the rows that are held."""
        step = self._step
        columns = aggregates_of_ranges(step, held, ranges, row_text)
        rest = {name: each for name, each in step.aggregates.items() if name not in columns}
        if rest:
            columns |= self._unfolded(States(replace(step, aggregates=rest)), held, ranges)
        marks = None if held.marks is None else ranges.reduced(np.bitwise_or, held.marks, 0)
        return _Made(columns, ranges.reduced(np.maximum, held.stimulus_time_ns, START_NS), marks)

    def _unfolded(self, states: States, held: Batch, ranges: Ranges) -> Columns:
        """Return aggregates that look at a copy of all rows of each range."""
        blocks: list[Columns] = []
        for block in slices_of_weight(ranges.counts + 1, _ROWS_AT_ONCE):
            results, places = unfold(ranges.starts[block], ranges.counts[block])
            blocks.append(self._block(states, held.take(places), results, block.stop - block.start))
            states = states.fresh()
        return {name: concat_columns([block[name] for block in blocks]) for name in blocks[0]}

    def _block(self, states: States, rows: Batch, results: Int64Array, size: int) -> Columns:
        """Return the aggregates of so many results; `results` has that of each row."""
        for condition, accumulators in states.groups([]):
            own, cells = rows, results
            if condition is not None:
                is_true = holds(condition, rows, step=self._step.name)
                own, cells = rows.keep(is_true), results[is_true]
            with np.errstate(all="ignore"), naming_rows(own, step=self._step.name):
                for accumulator in accumulators:
                    accumulator.add(own, cells, size)
        every = np.arange(size)
        of_results = states.combined(Pairs(every, every, size, are_single=True))
        return columns_of(states, of_results, np.bincount(results, minlength=size))


class LastTimeMachine(_Reaching):
    """The machine of an `OverStep` with a limit of time.

    Rows are held in the order of the stream.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_waiting", of="_keys", each=True),
        Field("_held", of="_keys", each=True),
        "_tidied",
        "_done_ns",
        "_gone_ns",
        "_missed",
    )

    def __init__(self, step: OverStep, *, most_kept_rows: int) -> None:
        super().__init__(step, most_kept_rows=most_kept_rows)
        assert step.reach.last_ns is not None, "time limits it"
        self._last_ns = step.reach.last_ns
        self._waiting: list[Batch] = []  # rows that have not left, in order
        self._tidied = 0  # rows that stayed when they were last looked through
        self._gone_ns = START_NS  # older rows have left

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        rows = self._in_time(released)
        if rows is not None:
            self._take(rows.with_(codes=self._codes_of(rows)))
        leaving = self._leaving(released.watermark_ns)
        result = None
        if leaving is not None:
            result = self._left(leaving, released.progress.stimulus_ns)
        self._forget()
        promise_ns = self._summary.promise_ns(released.progress.promise_ns)
        return Result(result, promise_ns, *self._missed.take())

    def _take(self, rows: Batch) -> None:
        self._waiting.append(rows)
        held = self._held
        held.append(_copied(self._slim(rows)))
        while len(held) > 1 and len(held[-2]) < 2 * len(held[-1]):
            held[-2:] = [concat_batches(held[-2:])]

    def _leaving(self, watermark_ns: int) -> Batch | None:
        """Take out the rows that leave; None if none does."""
        if not self._waiting:
            return None
        rows = concat_batches(self._waiting)
        until = len(rows)
        if watermark_ns != END_NS:
            self._gone_ns = max(self._gone_ns, watermark_ns - self._reach.delay_ns)
            until = int(rows.event_time_ns.searchsorted(self._gone_ns))
        self._waiting = [_copied(rows.slice(until, len(rows)))] if until < len(rows) else []
        return rows.slice(0, until) if until else None

    def _left(self, leaving: Batch, stimulus_ns: int) -> Batch:
        """Return rows that leave with their aggregates."""
        assert leaving.codes is not None, "rows wait with codes"
        of_keys = self._are_keys(leaving.codes)
        held = concat_batches(self._held_of(of_keys))
        assert held.codes is not None, "they are held with codes"
        order = stable_order(held.codes)
        held = held.take(order)
        waiting = [rows.codes for rows in self._waiting if rows.codes is not None]
        first = len(order) - len(leaving) - sum(int(of_keys.take(own).sum()) for own in waiting)
        own = ((order >= first) & (order < first + len(leaving))).nonzero()[0]
        ranges = _ranges_of_time(held, own, order, self._last_ns, self._reach)
        return self._results(leaving, held, ranges, order.take(own) - first, stimulus_ns)

    def _forget(self) -> None:
        """Forget rows that no row to come can reach."""
        held = self.rows_held
        is_end = self._done_ns == END_NS
        if not is_end and held <= 2 * self._tidied + 1024:
            return
        rows = joined_batches(self._held)
        self._held = []
        if rows is not None and not is_end:
            oldest_ns = max(self._gone_ns - self._last_ns, START_NS)
            first = int(rows.event_time_ns.searchsorted(oldest_ns))
            self._held = [rows.slice(first, len(rows))] if first < len(rows) else []
        self._tidied = self.rows_held
        self._refuse_more_rows()
        if is_end or self._keys.is_worth_keeping(self._tidied):
            codes = [rows.codes for rows in (*self._held, *self._waiting)]
            known = [own for own in codes if own is not None]
            keep_keys(self, np.concatenate([*known, np.empty(0, dtype=np.int64)]))


class LastRowsMachine(_Reaching):
    """The machine of an `OverStep` with a limit of rows.

    They are held in parts, each by key, then in order.

    ```
    rows=2    held  a₁ a₂ b₁ b₂ c₁ c₂ │ a₃ c₃     a read  c₄ d₁, of which c₄ reaches c₃
              held  a₁ a₂ b₁ b₂ c₁ c₂ │ a₃ c₃ c₄ d₁        the parts are not one yet
              held  a₂ a₃ b₁ b₂ c₃ c₄ d₁                  once they are
    ```
    """

    STATE = Fields(
        Field("_keys", by=OWNER), Field("_held", of="_keys", each=True), "_done_ns", "_missed"
    )

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        rows = self._in_time(released)
        result = None
        if rows is not None:
            result = self._left(rows.with_(codes=self._codes_of(rows)), released)
        promise_ns = released.progress.promise_ns
        if self._done_ns == END_NS:
            self._held = []
            keep_keys(self, np.empty(0, dtype=np.int64))
        return Result(result, promise_ns, *self._missed.take())

    def _left(self, leaving: Batch, released: GateRead) -> Batch:
        """Return rows with their aggregates, and hold them."""
        assert leaving.codes is not None, "rows come with codes"
        order = stable_order(leaving.codes)
        by_key = self._slim(leaving).take(order)
        held = concat_batches([*self._held_of(self._are_keys(leaving.codes)), by_key])
        assert held.codes is not None, "they are held with codes"
        place = stable_order(held.codes)  # a merge: each part is by key
        held = held.take(place)
        own = (place >= len(held) - len(leaving)).nonzero()[0]
        ranges = _ranges_of_rows(held, own, self._reach)
        result = self._results(leaving, held, ranges, order, released.progress.stimulus_ns)
        self._hold(by_key)
        return result

    def _hold(self, rows: Batch) -> None:
        """Hold rows by key, in one part with parts that are not twice as long."""
        first, size = len(self._held), len(rows)
        while first and len(self._held[first - 1]) < 2 * size:
            first -= 1
            size += len(self._held[first])
        self._merge(first, rows)
        if self.rows_held > self._most_rows:
            self._merge(0)
            self._refuse_more_rows()

    def _merge(self, first: int, *more: Batch) -> None:
        """Hold the parts from one on, and more rows, as one part."""
        assert self._reach.rows is not None, "a number of rows limits it"
        rows = concat_batches([*self._held[first:], *more])
        self._held[first:] = [_newest(rows, self._reach.rows)]


def _of_keys(rows: Batch, of_keys: BoolArray) -> Batch:
    assert rows.codes is not None, "rows are held with codes"
    mask = of_keys.take(rows.codes)
    return rows if mask.all() else rows.keep(mask)


def _copied(rows: Batch) -> Batch:
    """Return a copy: what a gate released may change."""
    return rows.take(np.arange(len(rows)))


def _ranges_of_rows(held: Batch, own: Int64Array, reach: Reach) -> Ranges:
    """Return the range of the last rows up to each leaving row.

    Args:
        held: rows by key, then in the order of the stream.
        own: shape (leaving rows,), their places among these, ascending.
        reach: number of rows that are in reach.
    """
    assert held.codes is not None, "rows are held with codes"
    assert reach.rows is not None, "a number of rows limits it"
    starts = starts_of_runs(held.codes)
    of_keys = starts.repeat(np.diff(starts, append=len(held))).take(own)
    stops = own + reach.has_itself
    return Ranges(np.maximum(of_keys, stops - reach.rows), stops)


def _ranges_of_time(
    held: Batch, own: Int64Array, order: Int64Array, last_ns: int, reach: Reach
) -> Ranges:
    """Return the range of the rows in reach of each leaving row, by time.

    Args:
        held: rows by key, then in the order of the stream.
        own: shape (leaving rows,), their places among these, ascending.
        order: shape (held rows,), the place of each in the order of the stream.
        last_ns: how far back rows are in reach.
        reach: how far ahead they are, and which ends.
    """
    codes = held.codes
    assert codes is not None, "rows are held with codes"
    times = np.empty_like(held.event_time_ns)
    times[order] = held.event_time_ns
    is_new = np.ones(len(times), dtype=np.bool_)
    is_new[1:] = times[1:] != times[:-1]
    ranks, distinct = is_new.cumsum() - 1, times[is_new]
    span = len(distinct) + 1
    keys = codes * span + ranks.take(order)
    has_start, has_end = reach.closed in ("start", "both"), reach.closed in ("end", "both")
    starts = distinct.searchsorted(distinct - last_ns, "left" if has_start else "right")
    stops = distinct.searchsorted(distinct + reach.ahead_ns, "right" if has_end else "left")
    rank, of_keys = ranks.take(order.take(own)), codes.take(own) * span
    return Ranges(
        keys.searchsorted(of_keys + starts.take(rank)),
        keys.searchsorted(of_keys + stops.take(rank)),
    )


def _newest(rows: Batch, most: int) -> Batch:
    """Return the last `most` rows of each key, by key."""
    assert rows.codes is not None, "rows are held with codes"
    order = stable_order(rows.codes)
    starts = starts_of_runs(rows.codes.take(order))
    counts = np.diff(starts, append=len(order))
    after = (starts + counts).repeat(counts) - np.arange(len(order))  # rows from it on, of its key
    return rows.take(order[after <= most])
