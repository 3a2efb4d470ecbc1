"""The machine of intervals: rows extend them, and they leave when they are over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slackwater.runtime.model import END_NS, START_NS, Batch, GateRead, Int64Array
from slackwater.runtime.model.divided import keep, keep_keys
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulating import Accumulating
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells
from slackwater.runtime.operators.aggregate.interval_rule import IntervalRule, Left
from slackwater.runtime.operators.aggregate.interval_words import (
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
from slackwater.runtime.operators.ground.arrays import slices_of_weight
from slackwater.runtime.operators.ground.contract import Result

_ENTRIES_AT_ONCE = 1 << 20
"""Intervals that leave together are computed in blocks of about so many cells (or values)."""


def rule_of(window: Intervals, step: str) -> IntervalRule:
    """Return the rule of windows that are intervals, of a step of this name."""
    match window:
        case Rows():
            return RowCounts(window)
        case OpenedBy():
            return Openings(window, step)
    assert isinstance(window, Session | Everything), "windows are of one of four kinds"
    return Sessions(window, step)


class IntervalMachine(Accumulating):
    """The machine of an `IntervalStep`.

    A rule says which intervals a row counts in; a late row counts in none. The stimulus time of a
    result is the latest of its rows and of what moved the watermark past the interval.
    Source: [mace] Def. 2.

    Args:
        step: the aggregates and their windows.
        most_kept_rows: not used: an interval has a few numbers, and values only of quantiles.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_cells", of="_keys"),
        Field("_all", by="_cells", each=True),
        "_missed",
        "_over_ns",
        "_rule",
        Field("_waiting", of="_keys"),
        "_promised_ns",
    )

    def __init__(self, step: IntervalStep, *, most_kept_rows: int) -> None:
        del most_kept_rows
        super().__init__(step)
        self._rule = rule_of(step.window, step.name)
        self._cells: IntervalCells = IntervalCells()
        self._closer = ByWatermark()
        self._promised_ns = START_NS  # where results have times of rows
        self._over_ns = START_NS  # intervals that no row holds so long have left

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take rows, late ones first; return the results of the intervals that are over."""
        results: list[Batch] = []
        for segment in self._closer.segments(released, now_ns):
            for batch in segment.batches:
                if batch is not None and len(batch):
                    self._count(batch)
            self._over_ns = max(self._over_ns, self._rule.over_ns(segment.until_ns))
            left = self._rule.over(self._cells, self._rows.state, segment.until_ns)
            if left is not None:
                results += self._results(left, segment)
                self._forget(left.gone)
        promise_ns = self._promise_ns(released.progress.promise_ns)
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

    def _count(self, batch: Batch) -> None:
        """Count rows in their cells."""
        codes, held = self._codes_of(batch), self._rows.state
        rows, cells, until, late = self._rule.take(
            self._cells, batch, codes, held, over_ns=self._over_ns
        )
        until = batch.event_time_ns if until is None else until
        if late is not None:
            done_ns = self._over_ns - (until - batch.event_time_ns)[late]
            self._missed.drop(batch.keep(late), done_ns)
        if rows is not None:
            batch, until = batch.take(rows), until.take(rows)
        if len(batch):
            self._cells.extend(cells, batch.event_time_ns, until)
            self._add(batch, cells, self._groups)
            self._rows_held += len(batch)

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
        cells: Int64Array = pairs.cells.take(pairs.results.searchsorted(np.arange(pairs.size)))
        codes = self._cells.codes.take(cells)
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
        """Forget cells that have left; tidy up now and then."""
        self._rows_held -= int(self._rows.state.take(cells).sum())
        self._cells.leave(cells)
        if len(self._cells) <= 4 * self._cells.open + 1024 and self._cells.open:
            return
        keep(self, "_cells", self._cells.open_cells())
        codes = self._cells.codes
        if self._keys.is_worth_keeping(len(codes)):
            keep_keys(self, np.unique(np.concatenate([codes, *self._waiting.codes()])))

    def derive(self) -> None:  # noqa: D102
        self._rows_held = int(self._rows.state.take(self._cells.open_cells()).sum())
