"""The machine of intervals: rows extend them, and they leave when they are over.

```
early="10s"   gap 15   rows   1     8           27             29 (late: 18)
              changes         insert [1, 23]    insert [27, 42]     delete [27, 42], update [1, 42]
```

Early results are shown until others take their place: each is kept beside its first cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    BoolArray,
    GateRead,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.divided import keep, keep_keys
from slackwater.runtime.model.row_marks import RETRACTED, REVISED, marked
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulating import Accumulating
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.early_results import rounds
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import IntervalRule, Left
from slackwater.runtime.operators.aggregate.interval_words import (
    MOST_ROWS,
    Everything,
    Intervals,
    OpenedBy,
    Rows,
    Session,
)
from slackwater.runtime.operators.aggregate.openings import Openings
from slackwater.runtime.operators.aggregate.row_counts import RowCounts
from slackwater.runtime.operators.aggregate.segments import ByWatermark, Segment
from slackwater.runtime.operators.aggregate.sessions import Sessions
from slackwater.runtime.operators.aggregate.window_step import IntervalStep
from slackwater.runtime.operators.ground.arrays import ChangingArray, slices_of_weight
from slackwater.runtime.operators.ground.contract import Result
from slackwater.runtime.operators.ground.in_order import in_order
from slackwater.runtime.operators.ground.late_rows import LateRows

_ENTRIES_AT_ONCE = 1 << 20
"""Intervals that leave together are computed in blocks of about so many cells (or values)."""


def rule_of(window: Intervals, step: str) -> IntervalRule:
    """Return the rule of windows that are intervals, of a step of this name."""
    match window:
        case Rows():
            return RowCounts(window)
        case Everything():
            return RowCounts(Rows(MOST_ROWS, MOST_ROWS))  # which are never full
        case OpenedBy():
            return Openings(window, step)
    assert isinstance(window, Session), "windows are of one of four kinds"
    return Sessions(window, step)


class IntervalMachine(Accumulating):
    """The machine of an `IntervalStep`.

    A rule says which intervals a row counts in. A row that comes too late for all is dropped. One
    that has missed an interval of its key, and counts in another, is late, too: of each key the end
    of its last interval that has left tells. The stimulus time of a
    result is the latest of its rows and of what moved the watermark past the interval.
    Source: [mace] Def. 2.

    Args:
        step: the aggregates and their windows.
        most_kept_rows: not used: an interval has a few numbers, and values only of quantiles.
    """

    _step: IntervalStep

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_cells", of="_keys"),
        Field("_all", by="_cells", each=True),
        "_missed",
        "_over_ns",
        "_rule",
        Field("_waiting", of="_keys"),
        "_promised_ns",
        Field("_early", by="_cells"),
        "_passed_ns",
        Field("_shown", of="_cells"),
        Field("_ended", by="_keys"),
    )

    def __init__(self, step: IntervalStep, *, most_kept_rows: int) -> None:
        del most_kept_rows
        super().__init__(step)
        self._rule = rule_of(step.window, step.name)
        self._cells: IntervalCells = IntervalCells()
        self._closer = ByWatermark()
        self._promised_ns = START_NS  # where results have times of rows
        self._over_ns = START_NS  # intervals that no row holds so long have left
        self._shown: Batch | None = None  # early results, with a cell of each as its code
        # By key: the first time after its last interval that has left, if late rows are asked for.
        self._ended = ChangingArray(np.int64, fill=START_NS)
        self._notes_ends = step.keeps_late and self._rule.past_end_ns is not None

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take rows, late ones first; return the results of the intervals that are over.

        Those that leave early are among them, by event time.
        """
        results: list[Batch] = []
        for segment in self._closer.segments(released, now_ns):
            for batch in segment.batches:
                if batch is not None and len(batch):
                    results += self._count(batch, segment)
            if self._step.leaves_early:
                results += self._fired(segment.until_ns, segment)
            self._over_ns = max(self._over_ns, self._rule.over_ns(segment.until_ns))
            left = self._rule.over(self._cells, self._rows.state, segment.until_ns)
            if left is not None:
                results += self._last_results(left, segment)
                self._forget(left.gone)
            if self._step.leaves_early:
                self._passed_ns = max(self._passed_ns, segment.until_ns)
            if left is not None or self._step.discards:
                self._tidy(segment.final_ns)
        promise_ns = self._promise_ns(released.progress.promise_ns)
        if self._step.leaves_early and results:
            results = [in_order(results)]  # intervals are over between
        return Result(self._in_turn(results, promise_ns), promise_ns, *self._missed.take())

    def _promise_ns(self, promise_ns: int) -> int:
        """Return the promise; if results have times of rows, that of an open interval."""
        if self._step.result_time is None:
            return promise_ns
        firsts_ns = self._cells.firsts.take(self._cells.open_cells())
        promise_ns = min(promise_ns, int(firsts_ns.min(initial=END_NS)))
        self._promised_ns = max(self._promised_ns, promise_ns)
        return self._promised_ns

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return self._rows_held

    def _count(self, batch: Batch, by: Segment) -> Iterator[Batch]:
        """Count rows in their cells; yield the results that leave early meanwhile."""
        if not self._step.leaves_early:
            self._counted(batch)
            return
        count = self._count_by_time if self._step.early_ns else self._count_by_rows
        last = self._rule.over_after(self._cells, self._codes_of(batch), self._rows.state)
        starts = [0, *(last + 1).tolist()]
        for start, stop in pairwise([*starts, len(batch)]):
            if start:  # the row before has filled a window
                left = self._rule.over(self._cells, self._rows.state, START_NS)
                if left is not None:  # else it came after the end, and was late
                    yield from self._last_results(left, by)
                    self._forget(left.gone)
            if start < stop:
                yield from count(batch.slice(start, stop), by)

    def _counted(self, batch: Batch) -> Int64Array:
        batch, cells, until = self._in_cells(batch)
        self._extend(batch, cells, until)
        return cells

    def _in_cells(self, batch: Batch) -> tuple[Batch, Int64Array, Int64Array]:
        """Return the rows that count, their cells, and the times until which they hold these.

        A row is there for each of its cells. Cells are made where needed; no row is in them yet.
        """
        codes, held = self._codes_of(batch), self._rows.state
        rows, cells, until, late, opens_none = self._rule.take(
            self._cells, batch, codes, held, over_ns=self._over_ns
        )
        until = batch.event_time_ns if until is None else until
        if late is not None or (self._notes_ends and batch.event_time_ns.item(0) < self._over_ns):
            self._miss(batch, codes, until, late, opens_none)
        if rows is not None:
            batch, until = batch.take(rows), until.take(rows)
        return batch, cells, until

    def _miss(
        self,
        batch: Batch,
        codes: Int64Array,
        until: Int64Array,
        late: BoolArray | None,
        opens_none: BoolArray | None,
    ) -> None:
        """Count rows that are too late for all intervals, and keep rows that missed one.

        Args:
            batch: rows, ascending by event time.
            codes: shape (rows,), codes of their keys.
            until: shape (rows,), time until which each holds its interval open.
            late: rows that count nowhere; see `InCells`.
            opens_none: rows that open no interval of their own; see `InCells`.
        """
        is_dropped = np.zeros(len(batch), dtype=np.bool_) if late is None else late
        self._missed.dropped += int(np.count_nonzero(is_dropped))
        if not self._missed.keeps:
            return
        times_ns = batch.event_time_ns
        done_ns = self._over_ns - (until - times_ns)
        misses = is_dropped
        if self._notes_ends:
            self._ended.resize(max(len(self._keys), len(self._ended)))
            ended_ns = self._ended.values.take(codes)
            if opens_none is not None:
                ended_ns[opens_none] = np.maximum(ended_ns[opens_none], self._over_ns)
            misses = is_dropped | (times_ns < ended_ns)
            ends_ns = ended_ns - (self._rule.past_end_ns or 0)
            done_ns = np.where(is_dropped, done_ns, ends_ns)
        places = misses.nonzero()[0]
        if not len(places):
            return
        late_by_ns = np.maximum(done_ns - times_ns, 1).take(places)
        self._missed.add([LateRows(0, batch.take(places), late_by_ns, is_dropped.take(places))])

    def _extend(self, batch: Batch, cells: Int64Array, until: Int64Array) -> None:
        """Add rows to their cells."""
        if len(batch):
            self._cells.extend(cells, batch.event_time_ns, until)
            self._add(batch, cells, self._groups)
            self._rows_held += len(batch)

    def _last_results(self, left: Left, by: Segment) -> Iterator[Batch]:
        """Yield the results of intervals that are over."""
        if self._notes_ends:
            self._note_ends(left)
        own = self._with_rows(left)
        if own is None:
            return
        made, _ = self._replacing(own, by, shows=False)
        if self._step.discards:
            made = self._by_key(made)
        if self._step.leaves_early:  # a late row may fill a window of rows
            made = made.with_(event_time_ns=np.maximum(made.event_time_ns, self._passed_ns))
        yield made

    def _note_ends(self, left: Left) -> None:
        """Note the ends of intervals that leave, by key."""
        assert self._rule.past_end_ns is not None, "its ends are noted"
        self._ended.resize(max(len(self._keys), len(self._ended)))
        codes = self._cells.codes.take(left.pairs.firsts)
        self._ended.change(np.maximum, codes, left.end_ns + self._rule.past_end_ns)

    # -- early results --------------------------------------------------------------------

    def _early_results(self, cells: Int64Array, due_ns: int, by: Segment) -> Batch | None:
        left = self._still_open(cells, due_ns)
        if left is None:
            return None
        rows, _ = self._replacing(left, by, shows=True)
        if self._step.discards:
            self._begin_again(left.pairs.cells)
        return rows

    def _count_by_rows(self, batch: Batch, by: Segment) -> Iterator[Batch]:
        """Count rows in their cells; yield the results that leave with some of them."""
        batch, cells, until = self._in_cells(batch)
        rest, made, places = np.arange(len(cells)), list[Batch](), list[Int64Array]()
        while len(rest):
            now, every = cells.take(rest), self._step.early_rows
            for at, leaves in rounds(now, self._rows.state, every, self._cells.codes.take(now)):
                own, done = rest.take(at), rest.take(at[leaves])
                self._extend(batch.take(own), cells.take(own), until.take(own))
                left = self._still_open(cells.take(done), START_NS)
                if left is None:
                    continue
                rows, results = self._replacing(left, by, shows=True)
                # In a round one result of a key leaves, with the last of its rows.
                keys = self._cells.codes.take(cells.take(done))
                by_key = keys.argsort()
                of_result = self._cells.codes.take(left.pairs.firsts)
                done = done.take(by_key).take(keys.take(by_key).searchsorted(of_result))
                places.append(done.take(results))
                times = np.maximum(batch.event_time_ns, self._passed_ns).take(places[-1])
                made.append(rows.with_(event_time_ns=times))
                if self._step.discards:
                    cells = self._begin_again(left.pairs.cells).take(cells)
                    break
            rest = np.setdiff1d(rest, own) if self._step.discards else rest[:0]
        if made:
            yield concat_batches(made).take(np.concatenate(places).argsort(kind="stable"))

    def _still_open(self, cells: Int64Array, at_ns: int) -> Left | None:
        """Return the intervals of some cells that are open at a time; None if none."""
        left = self._rule.still_open(self._cells, self._rows.state, cells, at_ns)
        return left if left is None else self._with_rows(left)

    def _with_rows(self, left: Left) -> Left | None:
        """Return the intervals that have rows since they left; None if none has."""
        if not self._step.discards:
            return left
        pairs = left.pairs
        has = self._rows.state.take(pairs.cells) > 0
        cells, results = pairs.cells[has], pairs.results[has]
        some = np.unique(results)
        if not len(some):
            return None
        own = Pairs(cells, some.searchsorted(results), len(some), len(some) == len(cells))
        return left._replace(
            pairs=own,
            start_ns=left.start_ns.take(some),
            end_ns=left.end_ns.take(some),
            event_time_ns=left.event_time_ns.take(some),
        )

    def _begin_again(self, cells: Int64Array) -> Int64Array:
        """Begin cells again without their rows; return the new number of each cell."""
        self._rows_held -= int(self._rows.state.take(cells).sum())
        again = self._cells.begin_again(cells)
        self._rows.cover(len(self._cells))
        moved = np.arange(len(self._cells))
        moved[cells] = again
        return moved

    def _replacing(self, left: Left, by: Segment, *, shows: bool) -> tuple[Batch, Int64Array]:
        """Return results of intervals after what they replace, and the result of each row.

        Args:
            left: intervals that leave now.
            by: the segment that makes them leave.
            shows: whether they are shown from now on: others will replace them.
        """
        made = concat_batches([*self._results(left, by)])
        results = np.arange(len(made))
        if not self._step.leaves_again:
            return made, results
        stay = list[Batch]()
        rows = made
        if (shown := self._shown) is not None:
            assert shown.codes is not None, "results are shown with a cell of each"
            place = np.full(len(self._cells), -1)
            place[shown.codes] = np.arange(len(shown))
            old = place.take(left.pairs.cells)
            of, old = left.pairs.results[old >= 0], old[old >= 0]
            stay = [shown.take(np.setdiff1d(np.arange(len(shown)), old))]
            gone = shown.take(old)
            starts_ns = np.asarray(gone.columns["window_start"])
            is_update = self._step.window.starts_differ & (starts_ns == left.start_ns.take(of))
            marks = marked(RETRACTED, np.ones(len(gone), np.bool_), gone.marks)
            gone = gone.with_(
                event_time_ns=made.event_time_ns.take(of),
                stimulus_time_ns=made.stimulus_time_ns.take(of),
                marks=marked(REVISED, is_update, marks),
                codes=None,
            )
            is_new_half = np.isin(results, of[is_update])
            rows = concat_batches(
                [gone, made.with_(marks=marked(REVISED, is_new_half, made.marks))]
            )
            turns = np.append(is_update, np.full(len(made), 2))  # the halves of an update are last
            results = np.append(of, results)
            order = np.lexsort((turns, results))
            rows, results = rows.take(order), results.take(order)
        if shows:
            stay.append(made.with_(codes=left.pairs.firsts))
        self._shown = concat_batches(stay) if sum(map(len, stay)) else None
        return rows, results

    # -- results --------------------------------------------------------------------------

    def _results(self, left: Left, by: Segment) -> Iterator[Batch]:
        """Yield the results of intervals, in blocks."""
        cells, results = left.pairs.cells, left.pairs.results
        load = (
            self._rows.state.take(cells)
            if self._states.keep_rows
            else np.ones(len(cells), np.int64)
        )
        weights = np.bincount(results, weights=load, minlength=left.pairs.size).astype(np.int64)
        for block in slices_of_weight(weights, _ENTRIES_AT_ONCE):
            entries = slice(*results.searchsorted([block.start, block.stop]).tolist())
            size = block.stop - block.start
            pairs = Pairs(
                cells[entries],
                results[entries] - block.start,
                size,
                are_single=len(cells[entries]) == size,
            )
            yield self._block(pairs, left, block, by)

    def _block(self, pairs: Pairs, left: Left, block: slice, by: Segment) -> Batch:
        starts = left.start_ns[block]
        leave_ns = left.event_time_ns[block]
        codes = self._cells.codes.take(pairs.firsts)
        columns = self._columns_of(pairs, self._rows.combined(pairs), codes, starts)
        columns |= {"window_start": starts, "window_end": left.end_ns[block]}
        return Batch(
            event_time_ns=self._times_of(pairs, starts, leave_ns),
            stimulus_time_ns=np.maximum(self._stimuli.combined(pairs), by.stimuli_ns(leave_ns)),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=self._marks.combined(pairs),
            codes=None if self._step.result_time is None else codes,
        )

    def _forget(self, cells: Int64Array) -> None:
        """Forget cells that have left."""
        self._rows_held -= int(self._rows.state.take(cells).sum())
        self._cells.leave(cells)

    def _tidy(self, final_ns: int) -> None:
        """Give up the room of cells that have left, once they are many.

        Args:
            final_ns: no older row will come, so ends before it are not asked for.
        """
        if len(self._cells) <= 4 * self._cells.open + 1024 and self._cells.open:
            return
        keep(self, "_cells", self._cells.open_cells())
        codes, ended = self._cells.codes, (self._ended.values > final_ns).nonzero()[0]
        if self._keys.is_worth_keeping(len(codes) + len(ended)):
            keep_keys(self, np.concatenate([codes, ended, *self._waiting.codes()]))

    def derive(self) -> None:  # noqa: D102
        self._rows_held = int(self._rows.state.take(self._cells.open_cells()).sum())
