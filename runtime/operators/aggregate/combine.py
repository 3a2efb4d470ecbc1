"""Partial results beside the source: a row for each key and pane of a batch.

```
source ─▶ combine                              ─▶ gate, aggregate
          a 3, a 5, b 1 of one second ─▶ a n=2 sum=8, b n=1 sum=1
```

The aggregate adds partial results up in place of rows. It is done only where that cannot change a
bit: counts, and sums, least and greatest of whole numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slackwater.runtime.expressions.whole import ends_of
from slackwater.runtime.model import END_NS, START_NS, Batch, Column, GateRead, Progress
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.operators.aggregate.machine import AggregateMachine
from slackwater.runtime.operators.aggregate.step import CombineStep
from slackwater.runtime.operators.aggregate.window import Windows
from slackwater.runtime.operators.aggregate.written import tumbling
from slackwater.runtime.operators.ground.contract import PlainStateless

__all__ = ["CombineMachine"]

_FEW_ROWS = 256
"""A smaller batch is not combined: that would take longer than the rows at their gate."""
_LARGEST = 2**62


class CombineMachine(PlainStateless):
    """The machine of a `CombineStep`: it keeps nothing from one batch to the next."""

    def __init__(self, step: CombineStep) -> None:
        of = step.of
        self._pane_ns = Windows(of.window).pane_ns
        pane = tumbling(f"{self._pane_ns}ns")
        self._step = replace(of, window=pane, replicas=None, keeps_late=False)
        self._columns = step.schema.names
        sums = [a.column for a in of.aggregates.values() if a.kind == "sum" and a.column]
        self._sums = list(dict.fromkeys(sums))

    def apply(self, batch: Batch) -> Batch:  # noqa: D102 - see Stateless
        rows = len(batch.event_time_ns)
        if rows < _FEW_ROWS or not self._fits(batch, rows):
            return self._alone(batch, rows)
        machine = AggregateMachine(self._step, most_kept_rows=rows)
        progress = Progress(END_NS, START_NS, END_NS)
        result = machine.work(GateRead([batch], [None], END_NS, progress), 0).rows
        assert result is not None, "each row is in a window"
        return result.part(self._columns, result.fields)

    def _fits(self, batch: Batch, rows: int) -> bool:
        """Whether no partial sum of the batch leaves 64 bits."""
        for name in self._sums:
            column = batch.columns[name]
            values = column.values if isinstance(column, Nullable) else column
            least, most = ends_of(values)
            if max(abs(least), abs(most)) * rows >= _LARGEST:
                return False
        return True

    def _alone(self, batch: Batch, rows: int) -> Batch:
        """Return each row as a partial result of its own."""
        own = self._step
        columns = {name: batch.columns[name] for name in own.keys}
        for name, aggregate in own.aggregates.items():
            if aggregate.kind == "count":
                there = (
                    None if aggregate.column is None else valid_of(batch.columns[aggregate.column])
                )
                ones = np.ones(rows, dtype=np.int64)
                columns[name] = ones if there is None else there.astype(np.int64)
                continue
            assert aggregate.column is not None, "only a count needs no column"
            column = batch.columns[aggregate.column]
            columns[name] = _as_int64(column) if aggregate.kind == "sum" else column
        panes = batch.event_time_ns // self._pane_ns
        times = (panes + 1) * self._pane_ns - 1
        return batch.with_(event_time_ns=times, columns=columns, writers=None)


def _as_int64(column: Column) -> Column:
    if isinstance(column, Nullable):
        return Nullable(column.values.astype(np.int64, copy=False), column.valid)
    assert isinstance(column, np.ndarray), "whole numbers are arrays of NumPy"
    return column.astype(np.int64, copy=False)
