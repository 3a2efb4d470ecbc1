"""Windowed aggregates: rows accumulate in cells (key × pane), windows leave as they close.

```
pane       0    1    2    3        watermark reaches the end of pane 2: windows that end there
key a      ██   ██   ██   █        leave, combined from their panes; panes that are in no open
key b           █    ██            window are forgotten
```

With late="correct" panes stay until their windows are *final*: the frontier has passed them too,
so no row can come for them. A late row before that makes the results of its windows leave again.

Null keys (null text) are one key. Aggregates skip nulls among the values: a
result is null if it has no values; `count()` counts rows, `count("x")` those where x is not null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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
from slackwater.runtime.model.divided import keep, keep_keys
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.model.nullable import nulled
from slackwater.runtime.model.ranges import starts_of_runs, unfold
from slackwater.runtime.model.row_marks import REVISED, Marks, marked
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulating import Accumulating
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.cells import Cells
from slackwater.runtime.operators.aggregate.closing import closer_of
from slackwater.runtime.operators.aggregate.early_results import rounds
from slackwater.runtime.operators.aggregate.empty_windows import EmptyWindows
from slackwater.runtime.operators.aggregate.schema import CHANCE, REVISION
from slackwater.runtime.operators.aggregate.segments import NOTHING, Closer, Segment
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.window import Windows, weights_of
from slackwater.runtime.operators.ground.arrays import slices_of_weight
from slackwater.runtime.operators.ground.contract import Result
from slackwater.runtime.operators.ground.in_order import in_order
from slackwater.runtime.operators.ground.late_rows import LateRows

Changed = tuple[Int64Array, Int64Array]
"""The results that changed, ascending (`_pairs_of`), and by how many rows each."""
_PAIRS_AT_ONCE = 1 << 20
"""Windows that close together are computed in blocks of about so many cells (or values)."""
_NO_CELLS = np.empty(0, dtype=np.int64)
_SPARE_CELLS = 8_192
"""Cells of final windows that stay until all are tidied up at once, beside four for each open one.
To forget 1,000 keys' cells, and to enter these keys again, took a sixth of an aggregate's time."""


class AggregateMachine(Accumulating):
    """The machine of an `AggregateStep`.

    A row counts in those of its windows that are still open (late="correct": not yet final) when
    it comes; if none is open, it is counted in `late_dropped`. Results leave by window end, then by
    first appearance of the key in the window. The stimulus time of a result is the latest of its
    rows and of what moved the watermark past the window's end. Source: [mace] Def. 2.

    Args:
        step: the aggregates and their windows.
        most_kept_rows: beyond so many rows held for corrections the oldest windows become final.
        closer: closes the windows; None: as the step says.

    Attributes:
        dropped_early: rows so far that were too many, and dropped before the frontier passed.
        late_used: rows so far that missed a window of theirs, and counted in another, or later.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_cells", of="_keys"),
        Field("_all", by="_cells", each=True),
        "_last_closed",
        "_last_kept",
        Field("_revisions", by="_keys"),
        "_missed",
        "dropped_early",
        "late_used",
        Field("_closer", of="_keys"),
        Field("_empty", by="_keys"),
        Field("_waiting", of="_keys"),
        Field("_early", by="_cells"),
        "_passed_ns",
    )

    def __init__(
        self,
        step: AggregateStep,
        *,
        most_kept_rows: int,
        closer: Closer | None = None,
    ) -> None:
        super().__init__(step)
        self._step: AggregateStep = step
        self._most_kept_rows = most_kept_rows
        self._corrects = step.late == "correct"
        self._uses_clock = step.traits.uses_clock
        self._windows = Windows(step.window)
        self._held = self._rows  # by cell: the rows that it holds
        self._closer = closer or closer_of(step, self._keys)
        self._cells: Cells = Cells()
        self._last_closed = START_NS  # the k of the last closed window
        self._last_kept = START_NS  # the last window whose panes are gone, or may go
        self._revisions = Revisions()
        self._empty = EmptyWindows(step.window, step.empty_ns)
        self.dropped_early = self.late_used = 0

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Take rows, late ones first; return the results of the windows that close.

        With late="correct" they follow the results of closed windows that late rows have changed.
        """
        results: list[Batch] = []
        closer, missed = self._closer, self._missed
        for segment in closer.segments(released, now_ns):
            self._take(segment, results)
        if self._step.discards:
            self._tidy_keys()
        promise_ns = self._promise_ns(released.progress.promise_ns)
        if self._step.leaves_early and results:
            results = [in_order(results)]  # windows close between
        return Result(
            self._in_turn(results, promise_ns),
            promise_ns,
            *missed.take(),
            waited_ns=closer.waited_ns,
            due_ns=closer.due_ns() if self._uses_clock else None,
        )

    def _promise_ns(self, frontier_ns: int) -> int:
        sure_ns = self._closer.sure_ns(frontier_ns)
        if self._step.leaves_early:
            return sure_ns
        return self._windows.promise_ns(sure_ns, is_start=self._step.result_time is not None)

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        closing = self._closer.counts()
        in_time = {} if closing is None else {"closing": closing, "late_used": self.late_used}
        return {"dropped_early": self.dropped_early, **in_time}

    def _take(self, segment: Segment, left: list[Batch]) -> None:
        late: list[Int64Array] = []  # cells of late rows
        for batch in segment.batches:
            if batch is not None and len(batch):
                if self._step.leaves_early:
                    left += self._count_early(batch, segment)
                else:
                    self._count(batch, late)
        if self._step.leaves_early:
            left += self._fired(segment.until_ns, segment)
            self._passed_ns = max(self._passed_ns, segment.until_ns)
        if late and (corrected := self._corrected(late)) is not None:
            left.append(corrected)
        until_ns = segment.until_ns
        closed = self._close(self._windows.last_closed(until_ns), segment)
        if closed is not None:
            left.append(self._by_key(closed) if self._step.discards else closed)
        final_ns = min(segment.final_ns, until_ns) if self._corrects else until_ns
        self._forget(self._windows.last_closed(final_ns))
        if self._corrects and self._rows_held > self._most_kept_rows:
            self._drop_early()

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return self._rows_held + self._closer.rows_held

    def _count_early(self, batch: Batch, by: Segment) -> Iterator[Batch]:
        """Count rows in their cells; yield the results that leave early meanwhile."""
        if self._step.early_ns:
            yield from self._count_by_time(batch, by)
        elif (fired := self._count(batch, [])) is not None:
            yield fired

    def _counted(self, batch: Batch) -> Int64Array:
        cells: list[Int64Array] = []
        self._count(batch, cells)
        return cells[0] if cells else _NO_CELLS

    def _early_results(self, cells: Int64Array, due_ns: int, by: Segment) -> Batch | None:
        after = max(self._windows.last_closed(due_ns), self._last_closed)
        rows = self._again(cells, after=after, until=END_NS, by=by)
        if self._step.discards:
            first, last = self._windows.covering(
                self._cells.panes.take(cells), after=after, until=END_NS
            )
            self._discard(cells[first <= last])
        return rows

    def _discard(self, cells: Int64Array) -> None:
        """Forget cells whose rows have left; the next rows of their windows begin new ones."""
        if len(cells):
            keep(self, "_cells", np.setdiff1d(np.arange(len(self._cells)), cells))

    def _fired_by_rows(self, batch: Batch, panes: Int64Array, codes: Int64Array) -> Batch | None:
        """Add rows; return the results that leave with them, in their order."""
        fired, places = list[Batch](), list[Int64Array]()
        for rows, cells, leaves in self._rounds(panes, codes):
            self._add(batch.take(rows), cells, self._groups)
            own, done = cells[leaves], rows[leaves]
            if len(done):
                pairs = Pairs(own, np.arange(len(own)), len(own), are_single=True)
                left = self._made(self._cells.panes.take(own), own, pairs, NOTHING, None)
                times = np.maximum(batch.event_time_ns.take(done), self._passed_ns)
                fired.append(left.with_(event_time_ns=times))
                places.append(done)
        if not fired:
            return None
        return concat_batches(fired).take(np.concatenate(places).argsort())

    def _rounds(
        self, panes: Int64Array, codes: Int64Array
    ) -> Iterator[tuple[Int64Array, Int64Array, BoolArray]]:
        """Yield rows in rounds: their places, their cells, and whether a result leaves with each.

        Args:
            panes: shape (rows,), the pane of each row.
            codes: shape (rows,), the code of its key.
        """
        rest, keys = np.arange(len(panes)), max(1, len(self._keys))
        while len(rest):
            cells = self._cells.of(panes.take(rest), codes.take(rest), keys=keys)
            for places, leaves in rounds(cells, self._rows.state, self._step.early_rows):
                own = cells.take(places)
                yield rest.take(places), own, leaves
                if self._step.discards:
                    break
            if not self._step.discards:
                return
            self._discard(own[leaves])
            rest = np.delete(rest, places)

    def _count(self, batch: Batch, late: list[Int64Array]) -> Batch | None:
        """Count rows in their cells; add cells to `late` if closed windows change.

        Return the results that leave early, if they do by the number of rows. If they do by time,
        `late` has all cells that change.
        """
        panes = self._windows.panes_of(batch.event_time_ns)
        oldest = panes.item(panes.argmin())  # half the time of min()
        if oldest < self._windows.first_whole_pane(self._last_kept):
            is_open = panes >= self._windows.first_open_pane(self._last_kept)
            in_time = np.flatnonzero(is_open)
            self._miss(batch, batch.event_time_ns, panes, is_dropped=~is_open)
            if not len(in_time):
                return None
            if len(in_time) < len(batch):
                batch, panes = batch.take(in_time), panes.take(in_time)
        if oldest < (whole := self._windows.first_whole_pane(self._last_closed)):
            self.late_used += int(np.count_nonzero(panes < whole))
        codes = self._codes_of(batch)
        if self._step.early_rows:
            self._rows_held += len(batch)
            fired = self._fired_by_rows(batch, panes, codes)
            if self._step.discards:
                self.derive()  # some of these rows are not held any more
            return fired
        cells = self._cells.of(panes, codes, keys=max(1, len(self._keys)))
        self._rows_held += len(batch)
        self._add(batch, cells, self._groups)
        if self._step.early_ns or (self._corrects and oldest < whole):
            late.append(cells)
        return None

    def _miss(
        self, batch: Batch, times: Int64Array, panes: Int64Array, *, is_dropped: BoolArray
    ) -> None:
        """Count rows of which some missed a window, by their panes.

        A row is late by the distance from its time to the end of the last window that is done.

        Args:
            batch: the rows that came.
            times: shape (rows,), their times in the window that they may have missed.
            panes: shape (rows,), their panes there.
            is_dropped: shape (rows,), whether no window of theirs is open.
        """
        self._missed.dropped += int(np.count_nonzero(is_dropped))
        if not self._step.keeps_late:
            return
        windows, last = self._windows, self._last_kept
        missed = np.flatnonzero(panes < windows.first_whole_pane(last))
        end_ns = END_NS if last == END_NS else windows.end_ns(last)
        late_by_ns = end_ns - times.take(missed)
        found_ns = START_NS
        if self._step.close is not None and last != END_NS:
            # By arrivals a row is late as it comes, which no cut of the rows into reads changes:
            # the last moment in the first window that is open.
            found_ns = min(windows.end_ns(last + 1), END_NS) - 1
        rows = batch.take(missed)
        self._missed.add([LateRows(0, rows, late_by_ns, is_dropped.take(missed), found_ns)])

    def _close(self, last: int, by: Segment) -> Batch | None:
        """Return the results of the windows up to `last` that have not left yet."""
        if last <= self._last_closed:
            return None
        after, self._last_closed = self._last_closed, last
        closed = self._with_rows(after, last, by) if self._rows_held else None
        if not self._step.empty_ns:
            return closed
        empty = self._without_rows(after, last, by)
        if closed is None or empty is None:
            return empty if closed is None else closed
        both = concat_batches([closed, empty])
        return both.take(both.event_time_ns.argsort(kind="stable"))

    def _with_rows(self, after: int, last: int, by: Segment) -> Batch | None:
        """Return the results of the windows in (after, last] that have rows."""
        of_panes = self._cells.of_panes
        panes = of_panes.between(
            self._windows.first_open_pane(after), self._windows.first_whole_pane(last)
        )
        windows = self._windows.over_any(np.array(panes, np.int64), after=after, until=last)
        return self._left(windows, of_panes.cells(panes), after=after, until=last, by=by)

    def _without_rows(self, after: int, last: int, by: Segment) -> Batch | None:
        """Return the results of known keys in the windows of (after, last] without their rows.

        By window, then by the hash of the key.
        """
        of_panes = self._cells.of_panes
        panes = of_panes.between(
            self._windows.first_open_pane(after), self._windows.first_whole_pane(last)
        )
        cells = of_panes.cells(panes)
        firsts, lasts = self._windows.covering(
            self._cells.panes.take(cells), after=START_NS, until=END_NS
        )
        windows, codes = self._empty.close(
            self._cells.codes.take(cells),
            firsts,
            lasts,
            after=after,
            until=last,
            keys=max(1, len(self._keys)),
        )
        if not len(windows):
            return None
        hashes = key_hashes([*self._keys_of(codes).values()], len(codes))
        order = np.lexsort((hashes, windows))
        windows, codes = windows.take(order), codes.take(order)
        starts, ends = self._windows.bounds_ns(windows)
        nothing = Pairs(_NO_CELLS, _NO_CELLS, len(windows))
        columns = self._columns_of(nothing, np.zeros(len(windows), np.int64), codes, starts)
        return self._batch(nothing, columns, codes, (starts, ends), by.stimuli_ns(ends))

    def _batch(
        self,
        pairs: Pairs,
        columns: Columns,
        codes: Int64Array,
        bounds: tuple[Int64Array, Int64Array],
        stimuli: Int64Array | int,
        marks: Marks | None = None,
    ) -> Batch:
        """Return results of windows, with their bounds."""
        starts, ends = bounds
        shift_ns = self._step.window.shift_ns
        columns |= {"window_start": starts - shift_ns, "window_end": ends - shift_ns}
        # The last moment in the window, so that windows over windows count it where it belongs.
        return Batch(
            event_time_ns=self._times_of(pairs, starts, ends - 1),
            stimulus_time_ns=np.broadcast_to(stimuli, len(ends)),
            columns={name: columns[name] for name in self._step.schema.names},
            marks=marks,
            codes=None if self._step.result_time is None else codes,
        )

    def _corrected(self, late: list[Int64Array]) -> Batch | None:
        """Return the results of closed windows that late rows have changed."""
        of_rows = np.concatenate(late)
        return self._again(of_rows, after=self._last_kept, until=self._last_closed, by=NOTHING)

    def _again(self, of_rows: Int64Array, *, after: int, until: int, by: Segment) -> Batch | None:
        """Return the results of the windows in (after, until] that rows of cells have changed.

        Args:
            of_rows: shape (rows,), the cell of each row, or each cell once.
            after: the last window before them.
            until: the last window of them.
            by: the segment that makes them leave.
        """
        panes, codes = self._cells.panes.take(of_rows), self._cells.codes.take(of_rows)
        first, last = self._windows.covering(panes, after=after, until=until)
        rows, windows = unfold(first, np.maximum(last - first + 1, 0))
        if not len(windows):
            return None
        windows, places = np.unique(windows, return_inverse=True)
        keys = max(1, len(self._keys))
        changed, new_rows = np.unique(places * keys + codes.take(rows), return_counts=True)
        cells = self._cells.beside(of_rows, *self._windows.panes_of_windows(first, last))
        only = (changed, new_rows)
        return self._left(windows, cells, after=after, until=until, by=by, only=only)

    def _left(
        self,
        windows: Int64Array,
        within: Int64Array,
        *,
        after: int,
        until: int,
        by: Segment,
        only: Changed | None = None,
    ) -> Batch | None:
        """Return the results of those windows that are in (after, until]; `only` some of them.

        All their cells are among `within`, ascending.
        """
        if not len(windows):
            return None
        # The windows of each cell: places in `windows`.
        panes = self._cells.panes.take(within)
        is_plain = self._windows.are_disjoint and only is None and not self._states.keep_rows
        if is_plain and len(within) <= _PAIRS_AT_ONCE:
            return self._results(windows, within, windows.searchsorted(panes), by, None)
        first, final = self._windows.covering(panes, after=after, until=until)
        first_at = windows.searchsorted(first)
        last_at = windows.searchsorted(final, "right")
        load = np.ones(len(panes), dtype=np.int64)
        if self._states.keep_rows:
            load = self._rows.state.take(within)
        weights = weights_of(first_at, last_at, load, windows=len(windows))
        results = []
        for block in slices_of_weight(weights, _PAIRS_AT_ONCE):
            starts = np.maximum(first_at, block.start)
            counts = np.maximum(np.minimum(last_at, block.stop) - starts, 0)
            entries, places = unfold(starts, counts)
            cells = within.take(entries)
            if only is not None:
                wanted = np.flatnonzero(np.isin(self._pairs_of(cells, places), only[0]))
                cells, places = cells.take(wanted), places.take(wanted)
            results.append(self._results(windows, cells, places, by, only))
        return concat_batches(results) if results else None

    def _pairs_of(self, cells: Int64Array, places: Int64Array) -> Int64Array:
        return np.add(places * max(1, len(self._keys)), self._cells.codes.take(cells))

    def _results(
        self,
        windows: Int64Array,
        cells: Int64Array,
        places: Int64Array,
        by: Segment,
        changed: Changed | None,
    ) -> Batch:
        """Return the rows of some windows; cell `cells[i]` is in window `windows[places[i]]`."""
        if np.count_nonzero(places[1:] < places[:-1]):
            order = stable_order(places)  # by window, in it by first appearance
            cells, places = cells.take(order), places.take(order)
        if self._windows.are_disjoint:
            pairs = Pairs(cells, np.arange(len(cells)), len(cells), are_single=True)
        else:
            first, pairs = self._grouped(cells, places)
            cells, places = cells.take(first), places.take(first)
        return self._made(windows.take(places), cells, pairs, by, changed, places)

    def _made(
        self,
        windows: Int64Array,
        cells: Int64Array,
        pairs: Pairs,
        by: Segment,
        changed: Changed | None,
        places: Int64Array | None = None,
    ) -> Batch:
        """Return results: of each its window, any cell, and in `pairs` all cells."""
        starts, ends = self._windows.bounds_ns(windows)
        rows, marks = self._rows.combined(pairs), self._marks.combined(pairs)
        codes = self._cells.codes.take(cells)
        columns = self._columns_of(pairs, rows, codes, starts)
        if self._step.close is not None:
            chances = self._closer.chances(ends)
            columns[CHANCE] = nulled(chances, ~np.isnan(chances))
        if self._step.leaves_again:
            is_first = np.ones(len(ends), dtype=np.bool_)
            columns[REVISION] = self._revisions.next(windows, codes, is_first=is_first)
            marks = marked(REVISED, np.asarray(columns[REVISION]) > 0, marks)
        elif self._corrects:
            columns[REVISION] = np.zeros(len(ends), dtype=np.int64)
            if changed is not None:
                assert places is not None, "only results of cells alone have none"
                pairs_left, (known, new_rows) = self._pairs_of(cells, places), changed
                columns[REVISION] = self._revisions.next(
                    windows,
                    codes,
                    is_first=rows == new_rows.take(known.searchsorted(pairs_left)),
                )
                marks = marked(REVISED, np.asarray(columns[REVISION]) > 0, marks)
        stimuli = np.maximum(self._stimuli.combined(pairs), by.stimuli_ns(ends))
        return self._batch(pairs, columns, codes, (starts, ends), stimuli, marks)

    def _grouped(self, cells: Int64Array, places: Int64Array) -> tuple[Int64Array, Pairs]:
        """Return the first entry of each (window, key), and all its entries in pane order."""
        both = self._pairs_of(cells, places)
        order = stable_order(both)
        starts = starts_of_runs(both.take(order))
        first = order.take(starts)
        by_appearance = stable_order(first)
        rank = np.empty_like(by_appearance)  # {group in order of keys: in order of appearance}
        rank[by_appearance] = np.arange(len(rank))
        groups = np.empty_like(order)
        groups[order] = rank.repeat(np.diff(starts, append=len(order)))
        by_pane = stable_order(self._cells.panes.take(cells))
        pairs = Pairs(cells.take(by_pane), groups.take(by_pane), len(first))
        return first.take(by_appearance), pairs

    def _forget(self, last: int) -> None:
        """Forget panes that are in no window after `last`; tidy up now and then."""
        if last <= self._last_kept:
            return
        self._last_kept = last
        self._revisions.forget(last)
        of_panes, first = self._cells.of_panes, self._windows.first_open_pane(last)
        self._rows_held -= int(self._held.state.take(of_panes.drop_before(first)).sum())
        panes = self._cells.panes
        if not len(panes) or (len(panes) <= 4 * len(of_panes) + _SPARE_CELLS and len(of_panes)):
            return
        keep(self, "_cells", np.flatnonzero(panes >= first))
        self._tidy_keys()

    def _tidy_keys(self) -> None:
        """Forget keys that are in no cell, and wait for nothing, once they are many."""
        codes = np.concatenate(
            [
                self._cells.codes,
                self._empty.codes(),
                *self._waiting.codes(),
                *self._closer.codes(),
            ]
        )
        if self._keys.is_worth_keeping(len(codes)):
            keep_keys(self, codes)

    def _drop_early(self) -> None:
        """Make the oldest closed windows final until few enough rows are held.

        A little fewer, so that it happens now and then, not for each read.
        """
        if self._last_closed <= self._last_kept:
            return
        most = self._most_kept_rows - self._most_kept_rows // 16
        stays = self._cells.first_within(self._held.state, most)
        before = self._rows_held
        self._forget(min(self._windows.last_without(stays), self._last_closed))
        self.dropped_early += before - self._rows_held

    def derive(self) -> None:  # noqa: D102
        of_panes = self._cells.of_panes
        of_panes.drop_before(self._windows.first_open_pane(self._last_kept))
        held = of_panes.cells(of_panes.between(START_NS, END_NS))
        self._rows_held = int(self._held.state.take(held).sum())


class Revisions:
    """Revisions counts how often the result of a window and key has left again.

    Only corrected and early results are counted, until their window is final:
    {window: {code: revision}}.
    """

    STATE = Fields(Field("_known", by=OWNER, each=True))

    def __init__(self) -> None:
        self._known: dict[int, dict[int, int]] = {}

    def next(self, windows: Int64Array, codes: Int64Array, *, is_first: BoolArray) -> Int64Array:
        """Count results that leave again, and return the revision of each.

        Args:
            windows: shape (results,), each by its k.
            codes: shape (results,), of the keys.
            is_first: shape (results,): no result has left yet, unless it was counted.
        """
        known, revisions = self._known, []
        for window, code, first in zip(
            windows.tolist(), codes.tolist(), is_first.tolist(), strict=True
        ):
            of_window = known.setdefault(window, {})
            before = of_window.get(code, -1 if first else 0)
            of_window[code] = before + 1
            revisions.append(before + 1)
        return np.array(revisions, dtype=np.int64)

    def forget(self, last_final: int) -> None:
        """Forget windows that are final."""
        for window in [window for window in self._known if window <= last_final]:
            del self._known[window]
