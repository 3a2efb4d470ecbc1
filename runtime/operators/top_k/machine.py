"""The best rows of each key and window wait; they leave when the window closes.

```
top 2 of key a, windows of 10      rows      1:5  4:9  7:2  8:7 │ 12:1
                                   wait      5    5 9  5 9  9 7 │      when rows are too many
                                   leave                    9 7        when 10 has been reached
```

A row that two others of its key and pane excel can be in no result, so it is forgotten. A pane is
a part of event time whose rows have the same windows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Column,
    Columns,
    GateRead,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.ranges import starts_of_runs, unfold
from slackwater.runtime.model.stable_order import lexical_order, stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import places_in_runs
from slackwater.runtime.operators.ground.contract import LateOperator, Result
from slackwater.runtime.operators.ground.keep import most_text
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import LateRows, Missed
from slackwater.runtime.operators.top_k.step import WINDOW_COLUMNS, TopKStep

Keys = list[npt.NDArray[np.generic]]
"""Keys of `np.lexsort`: the last decides."""


class TopKMachine(LateOperator):
    """The machine of a `TopKStep`.

    Results leave by window end, then by the first of a key's results in the order of the stream,
    then by rank; without windows by event time.

    Args:
        step: the keys, the windows, and the order of rows.
        most_kept_rows: without windows, more rows than this that may leave are an error.
    """

    STATE = Fields(
        Field("_keys", by=OWNER),
        Field("_rows", of="_keys", each=True),
        "_last_closed",
        "_tidied",
        "_missed",
    )

    def __init__(self, step: TopKStep, *, most_kept_rows: int) -> None:
        self._step, self._window = step, step.window
        self._most_rows = most_kept_rows
        self._keys = KeyIndex(len(step.keys))
        self._rows: list[Batch] = []  # each with the codes of its keys
        self._last_closed = START_NS  # number of the last window that is closed
        self._tidied = 0  # rows that were left when they were last looked through
        self._missed = Missed(keeps=step.keeps_late)
        self._held = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        for batch in (*released.late, *released.ports):
            if batch is not None and len(batch):
                self._take(batch)
        results = self._close(released.watermark_ns, released.progress.stimulus_ns)
        if self._held > 2 * self._tidied + 1024:
            self._tidy()
        promise_ns = self._promise_ns(released.progress.promise_ns)
        return Result(results, promise_ns, *self._missed.take())

    def _promise_ns(self, frontier_ns: int) -> int:
        """Return the last moment in the earliest open window: no older result will leave."""
        window = self._window
        if window is None or frontier_ns in (START_NS, END_NS):
            return END_NS if frontier_ns == END_NS else START_NS
        return min(window.end_ns(window.first_after(frontier_ns)) - 1, END_NS)

    @property
    def rows_held(self) -> int:  # noqa: D102 - see Operator
        return self._held

    def derive(self) -> None:  # noqa: D102
        self._held = sum(map(len, self._rows))

    # -- rows in ------------------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
        """Keep the rows of a batch that may be in a result."""
        first, last = self._windows_of(batch)
        closed = self._last_closed
        if first.min() <= closed:
            missed, is_open = (first <= closed).nonzero()[0], last > closed
            self._miss(batch.take(missed), ~is_open.take(missed))
            batch = batch.keep(is_open)
            if not len(batch):
                return
        codes = self._keys.codes([batch.columns[name] for name in self._step.keys], len(batch))
        places = self._best_of(batch, codes)
        self._rows.append(batch.take(places).with_(codes=codes.take(places)))
        self._held += len(places)

    def _miss(self, rows: Batch, is_dropped: npt.NDArray[np.bool_]) -> None:
        self._missed.dropped += int(np.count_nonzero(is_dropped))
        if not self._missed.keeps:
            return
        window, closed = self._window, self._last_closed
        done_ns = END_NS if window is None or closed == END_NS else window.end_ns(closed)
        late_by_ns = done_ns - rows.event_time_ns
        self._missed.add([LateRows(0, rows, late_by_ns, is_dropped)])

    def _windows_of(self, rows: Batch) -> tuple[Int64Array, Int64Array]:
        """Return the first and the last window of each row, 0 without windows."""
        times = rows.event_time_ns
        if self._window is None:
            return np.zeros_like(times), np.zeros_like(times)
        return self._window.first_after(times), self._window.last_begun(times)

    # -- rows that wait -----------------------------------------------------------------

    def _best_of(self, rows: Batch, codes: Int64Array) -> Int64Array:
        """Return the places, ascending, of the rows that may be in a result."""
        if len(rows) <= self._step.most:
            return np.arange(len(rows))
        first, last = self._windows_of(rows)
        order, ranks = self._ranked(rows, codes, first + last)  # which grows from pane to pane
        places = order[ranks < self._step.most]
        places.sort()
        return places

    def _tidy(self) -> None:
        """Forget rows that can be in no result, and keys without rows.

        Raises:
            OperatorError: without windows, more rows are left than may be kept.
        """
        rows = concat_batches(self._rows)
        assert rows.codes is not None, "rows that wait have them"
        self._hold(rows.take(self._best_of(rows, rows.codes)))
        self._tidied = self._held
        if self._window is None and self._held > self._most_rows:
            raise OperatorError(
                f"step {self._step.name!r}: {self._held:,} rows are kept, more than "
                f"{most_text(self._step, self._most_rows)}\n"
                "without window= each key has its rows until the end of the input\n"
                "give it a window=, or allow more with limits=sw.Limits(most_kept_rows=…)"
            )
        if self._keys.is_worth_keeping(self._held):
            keep_keys(self, np.concatenate([rows.codes for rows in self._rows]))

    def _hold(self, rows: Batch) -> None:
        self._rows = [rows] if len(rows) else []
        self._held = len(rows)

    def _ranked(
        self, rows: Batch, codes: Int64Array, parts: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return places by part, key and rank, and ranks, from 0; shape (rows,) each.

        Args:
            rows: rows in the order of the stream.
            codes: shape (rows,), codes of their keys.
            parts: shape (rows,), numbers of their panes or windows.
        """
        order = lexical_order([*self._order_of(rows), codes, parts])
        codes, parts = codes.take(order), parts.take(order)
        return order, places_in_runs(starts_of_runs(codes, parts), len(order))

    def _order_of(self, rows: Batch) -> Keys:
        times = rows.event_time_ns
        keys: Keys = [times]
        if self._step.newest_first:
            keys = [-np.arange(len(rows)), ~times]
        if not (times[1:] < times[:-1]).any():  # so the order of places is that of times, too
            keys.pop()
        for name, ascending in reversed(self._step.columns):
            keys += _keys_of(rows.columns[name], ascending=ascending)
        return keys

    # -- rows out -----------------------------------------------------------------------

    def _close(self, watermark_ns: int, stimulus_ns: int) -> Batch | None:
        """Return the results of the windows that end up to a time."""
        after, last = self._last_closed, self._last_until(watermark_ns)
        if last <= after:
            return None
        self._last_closed = last
        if not self._rows:
            return None
        rows = concat_batches(self._rows)
        first, final = self._windows_of(rows)
        if first.min() > last:
            return None
        self._hold(rows.keep(final > last))
        self._tidied = min(self._tidied, self._held)
        ready = (first <= last).nonzero()[0]
        first = np.maximum(first.take(ready), after + 1)
        final = np.minimum(final.take(ready), last)
        entries, windows = unfold(first, final - first + 1)
        return self._results(rows.take(ready.take(entries)), windows, stimulus_ns)

    def _last_until(self, watermark_ns: int) -> int:
        if watermark_ns in (START_NS, END_NS):
            return watermark_ns
        return START_NS if self._window is None else self._window.first_after(watermark_ns) - 1

    def _results(self, rows: Batch, windows: Int64Array, stimulus_ns: int) -> Batch:
        """Return the results of windows; row `i` is in window `windows[i]`."""
        assert rows.codes is not None, "rows that wait have them"
        order, ranks = self._ranked(rows, rows.codes, windows)
        is_best = ranks < self._step.most
        order, ranks = order[is_best], ranks[is_best]
        if self._window is None:
            leaves = order.argsort()
            leaves = leaves.take(stable_order(rows.event_time_ns.take(order.take(leaves))))
        else:
            starts = (ranks == 0).nonzero()[0]
            firsts = np.minimum.reduceat(order, starts)
            firsts = firsts.repeat(np.diff(starts, append=len(ranks)))
            leaves = lexical_order([ranks, firsts, windows.take(order)])
        places, ranks = order.take(leaves), ranks.take(leaves)
        rows, windows = rows.take(places), windows.take(places)
        columns: Columns = dict(rows.columns)
        times = rows.event_time_ns
        if self._window is not None:
            ends = self._window.end_ns(windows)
            times = ends - 1
            shift_ns = self._window.shift_ns
            bounds = (self._window.start_ns(windows) - shift_ns, ends - shift_ns)
            columns |= dict(zip(WINDOW_COLUMNS, bounds, strict=True))
        if self._step.rank is not None:
            columns[self._step.rank] = ranks + 1
        return rows.with_(
            event_time_ns=times,
            stimulus_time_ns=np.maximum(rows.stimulus_time_ns, stimulus_ns),
            columns=columns,
            codes=None,
            writers=None,
            arrivals=None,
        )


def _keys_of(column: Column, *, ascending: bool) -> Keys:
    """Return keys that sort a column, nulls last and NaN before them; shape (rows,) each."""
    valid = valid_of(column)
    if isinstance(column, pa.Array):
        encoded = column.dictionary_encode()
        places = arrow_functions().sort_indices(encoded.dictionary).to_numpy()
        ranks = np.zeros(len(places) + 1, dtype=np.int64)
        ranks[places] = np.arange(len(places))
        values = ranks.take(encoded.indices.fill_null(len(places)).to_numpy())
    else:
        values = column.values if isinstance(column, Nullable) else column
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    if not ascending:
        values = -values if values.dtype.kind == "f" else ~values
    return [values] if valid is None else [values, ~valid]
