"""Windowed aggregates: rows accumulate in cells (key × pane), windows leave as they close.

```
pane       0    1    2    3        watermark reaches the end of pane 2: windows that end there
key a      ██   ██   ██   █        leave, combined from their panes; panes that are in no open
key b           █    ██            window any more are let go
```

Null keys (NaN, null text) are one key. NaN among the values makes the result NaN, as in NumPy;
`count` counts rows. Whole numbers are summed in 64 bits and wrap around.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from runtime.flow.steps import Aggregate, AggregateStep
from runtime.model import START_NS, Batch, Columns, Int64Array, concat_batches
from runtime.operators.accumulators import Accumulator, Folded, Kept, Pairs, quantile
from runtime.operators.arrays import slices_of_weight, unfold
from runtime.operators.cells import Cells
from runtime.operators.contract import Released
from runtime.operators.keys import KeyIndex
from runtime.operators.window import Windows

_PAIRS_AT_ONCE = 1 << 20
"""Windows that close together are worked off in blocks of about so many cells (or values)."""


class AggregateMachine:
    """The machine of an `AggregateStep`.

    A row counts in those of its windows that are still open when it comes; if there are none,
    it is counted in `late_dropped`. Rows leave by window end, then by first appearance of the
    key in the window. The stimulus time of a result is the latest of its rows and of what moved
    the watermark past the window's end. Source: [mace] Def. 2.
    """

    def __init__(self, step: AggregateStep) -> None:
        self._step = step
        self._windows = Windows(step.window)
        self._rows = Folded(np.add, np.int64, 0, lambda _: 1)
        self._stimuli = Folded(np.maximum, np.int64, START_NS, lambda batch: batch.stimulus_time_ns)
        self._accumulators: dict[_Need, Accumulator] = {  # {what is needed: who has it}
            need: need.accumulator()
            for name, aggregate in step.aggregates.items()
            for need in _needs_of(step, name, aggregate)
        }
        self._all: list[Accumulator] = [self._rows, self._stimuli, *self._accumulators.values()]
        self._start()

    def _start(self) -> None:
        self._keys = KeyIndex(len(self._step.keys))
        self._cells = Cells()
        self._last_closed = START_NS  # of the windows, by their k
        self._rows_held = 0
        self._late_dropped = 0

    def process(self, released: Released) -> Batch | None:
        """Take rows, late ones first; return the results of the windows that close."""
        for batch in (*released.late, *released.ports):
            if batch is not None and len(batch):
                self._count(batch)
        return self._close(
            self._windows.last_closed(released.watermark_ns), released.watermark_stimulus_ns
        )

    def promise_ns(self, frontier_ns: int) -> int:
        """Return the end of the earliest window still open there: nothing older will leave."""
        return self._windows.next_end_ns(frontier_ns)

    @property
    def rows_held(self) -> int:
        """Rows in panes of open windows."""
        return self._rows_held

    @property
    def late_dropped(self) -> int:
        """Rows so far all of whose windows had closed before they came."""
        return self._late_dropped

    def _count(self, batch: Batch) -> None:
        panes = self._windows.panes_of(batch.event_time_ns)
        first_open = self._windows.first_open_pane(self._last_closed)
        if int(panes.min()) < first_open:
            in_time = np.flatnonzero(panes >= first_open)
            self._late_dropped += len(batch) - len(in_time)
            if not len(in_time):
                return
            batch, panes = batch.take(in_time), panes.take(in_time)
        keys = [batch.columns[name] for name in self._step.keys]
        codes = self._keys.codes(keys, len(batch))
        cells = self._cells.of(panes, codes, keys=max(1, len(self._keys)))
        for accumulator in self._all:
            accumulator.add(batch, cells, len(self._cells))
        self._rows_held += len(batch)

    def _close(self, last: int, stimulus_time_ns: int) -> Batch | None:
        if last <= self._last_closed:
            return None
        after, self._last_closed = self._last_closed, last
        if not self._rows_held:
            return None
        panes = self._cells.panes
        windows = self._windows.over_any(np.unique(panes), after=after, until=last)
        results = []
        if len(windows):
            # Which of the windows that close each cell is in: places in `windows`.
            first, final = self._windows.covering(panes, after=after, until=last)
            first_at = windows.searchsorted(first)
            last_at = windows.searchsorted(final, "right")
            weights = np.zeros(len(windows) + 1, dtype=np.int64)
            inside = np.flatnonzero(last_at > first_at)
            load = self._rows.state if self._keeps_values else np.ones(len(panes), dtype=np.int64)
            np.add.at(weights, first_at[inside], load[inside])
            np.subtract.at(weights, last_at[inside], load[inside])
            for block in slices_of_weight(weights.cumsum()[:-1], _PAIRS_AT_ONCE):
                starts = np.maximum(first_at, block.start)
                counts = np.maximum(np.minimum(last_at, block.stop) - starts, 0)
                cells, places = unfold(starts, counts)
                results.append(self._results(windows, cells, places, stimulus_time_ns))
        self._forget(panes)
        return concat_batches(results) if results else None

    @property
    def _keeps_values(self) -> bool:
        return any(need.kind == "values" for need in self._accumulators)

    def _results(
        self, windows: Int64Array, cells: Int64Array, places: Int64Array, stimulus_time_ns: int
    ) -> Batch:
        """Return the rows of some windows; cell `cells[i]` is in window `windows[places[i]]`."""
        order = places.argsort(kind="stable")  # by window, in it by first appearance
        cells, places = cells.take(order), places.take(order)
        if self._windows.are_disjoint:
            first = np.arange(len(cells))
            pairs = Pairs(cells, first, len(first))
        else:
            first, pairs = self._grouped(cells, places)
        states: dict[_Need, Any] = {
            need: accumulator.combined(pairs) for need, accumulator in self._accumulators.items()
        }
        rows = self._rows.combined(pairs)
        starts, ends = self._windows.bounds_ns(windows.take(places.take(first)))
        keys = self._keys.columns(self._cells.codes.take(cells.take(first)))
        columns: Columns = dict(zip(self._step.keys, keys, strict=True))
        columns |= {"window_start": starts, "window_end": ends}
        for name, aggregate in self._step.aggregates.items():
            columns[name] = self._finished(name, aggregate, rows, states)
        columns = {name: columns[name] for name in self._step.schema.names}
        stimuli = np.maximum(self._stimuli.combined(pairs), stimulus_time_ns)
        return Batch(ends, stimuli, columns)

    def _grouped(self, cells: Int64Array, places: Int64Array) -> tuple[Int64Array, Pairs]:
        """Return the first entry of each (window, key), and the entries of each in pane order."""
        both = places * max(1, len(self._keys)) + self._cells.codes.take(cells)
        _, first, groups = np.unique(both, return_index=True, return_inverse=True)
        by_appearance = first.argsort()
        rank = np.empty_like(by_appearance)  # {group in order of keys: in order of appearance}
        rank[by_appearance] = np.arange(len(rank))
        by_pane = self._cells.panes.take(cells).argsort(kind="stable")
        pairs = Pairs(cells.take(by_pane), rank.take(groups).take(by_pane), len(first))
        return first.take(by_appearance), pairs

    def _finished(
        self, name: str, aggregate: Aggregate, rows: Int64Array, states: dict[_Need, Any]
    ) -> npt.NDArray[Any]:
        found: Any = rows
        for need in _needs_of(self._step, name, aggregate):
            found = states[need]
        if aggregate.kind == "mean":
            found = found / rows
        elif aggregate.kind == "quantile":
            assert aggregate.level is not None
            found = quantile(found, aggregate.level)
        values: npt.NDArray[Any] = found
        return values.astype(_dtype_of(self._step.schema.field(name).type), copy=False)

    def _forget(self, panes: Int64Array) -> None:
        """Let go of panes that are in no open window; tidy up once most cells are of those."""
        stays = panes >= self._windows.first_open_pane(self._last_closed)
        self._rows_held = int(self._rows.state[stays].sum())
        kept = np.flatnonzero(stays)
        if len(panes) <= 2 * len(kept) + 1024 and len(kept):
            return
        moved = np.full(len(panes), -1, dtype=np.int64)
        moved[kept] = np.arange(len(kept))
        for accumulator in self._all:
            accumulator.keep(kept, moved)
        codes = self._cells.codes[kept]
        if self._keys.is_worth_keeping(len(panes)):
            codes = self._keys.keep(np.unique(codes)).take(codes)
        self._cells.keep(kept, codes)

    def snapshot(self) -> dict[str, Any]:
        """Return all state."""
        return {
            "keys": self._keys.snapshot(),
            "panes": self._cells.panes.copy(),
            "codes": self._cells.codes.copy(),
            "accumulators": [accumulator.snapshot() for accumulator in self._all],
            "last_closed": self._last_closed,
            "rows_held": self._rows_held,
            "late_dropped": self._late_dropped,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot of a machine of the same step."""
        self._start()
        self._keys.restore(state["keys"])
        self._cells.restore(state["panes"], state["codes"])
        for accumulator, own in zip(self._all, state["accumulators"], strict=True):
            accumulator.restore(own)
        self._last_closed = state["last_closed"]
        self._rows_held = state["rows_held"]
        self._late_dropped = state["late_dropped"]


class _Need(NamedTuple):
    """A state that one or more aggregates are made of."""

    kind: str  # sum, min, max, values
    column: str
    dtype: str

    def accumulator(self) -> Accumulator:
        column, dtype = self.column, np.dtype(self.dtype)

        def values(batch: Batch) -> Any:
            return batch.columns[column]

        if self.kind == "values":
            return Kept(values)
        if self.kind == "sum":
            return Folded(np.add, dtype, 0, values)
        limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
        if self.kind == "min":
            return Folded(np.minimum, dtype, np.inf if limits is None else limits.max, values)
        return Folded(np.maximum, dtype, -np.inf if limits is None else limits.min, values)


def _needs_of(step: AggregateStep, name: str, aggregate: Aggregate) -> tuple[_Need, ...]:
    """Return the state that an aggregate needs; none for the count, which is always there."""
    leaves_as = step.schema.field(name).type
    if aggregate.kind == "count":
        return ()
    assert aggregate.column is not None
    if aggregate.kind == "quantile":
        return (_Need("values", aggregate.column, "float64"),)
    if aggregate.kind == "mean" or pa.types.is_floating(leaves_as):
        dtype = "float64"
    else:
        dtype = "uint64" if leaves_as == pa.uint64() else "int64"
    return (_Need("sum" if aggregate.kind == "mean" else aggregate.kind, aggregate.column, dtype),)


def _dtype_of(leaves_as: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_timestamp(leaves_as):
        return np.dtype(np.int64)
    dtype: np.dtype[Any] = np.dtype(leaves_as.to_pandas_dtype())
    return dtype
