"""`drift=` of an aggregate: each window as it is, and moved by the bound.

```
              t − b       t        t + b               t + w − b     t + w    t + w + b
low             ├────────────────────────────────────────┤
middle                    ├─────────────────────────────────────────────┤
high                               ├────────────────────────────────────────────────┤
```

An event is in the low window if its time + b is in the middle one, in the high one if its time − b
is. So an event of each bound b moves by its own bound. Three states for each cell stand beside each
other, one for each of the three; all close together, when the last of them does. With a bound of
zero the three are one and the same. Source: [thesis] §3.2.3.1, Fig. 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
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
)
from slackwater.runtime.model.nullable import Nullable, Numbers, nulled
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.accumulators import Accumulator, FoldAccumulator, Pairs
from slackwater.runtime.operators.aggregate.machine import AggregateMachine
from slackwater.runtime.operators.aggregate.schema import HIGHEST, LOWEST, MEAN, without_three
from slackwater.runtime.operators.aggregate.states import States
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.ground.contract import Result

_TURNS = (1, 0, -1)
"""An event's time moves by so many bounds for the low, the middle and the high window."""


def aggregate_machine(step: AggregateStep, *, most_kept_rows: int) -> AggregateMachine:
    """Return the machine of an `AggregateStep`, with or without `drift`."""
    machine = AggregateMachine if step.drift is None else ThreeWindows
    return machine(step, most_kept_rows=most_kept_rows)


class ThreeWindows(AggregateMachine):
    """The machine of an `AggregateStep` with `drift`.

    A result leaves for each key and window of which at least one of the three had events. A late
    row counts in those of the three that are open for it; it is dropped if none is open, and has
    missed a window if one is closed.

    Costs: three states for each cell, so three times the work and memory of `accumulators.py`;
    cells are looked up once for rows whose pane is the same whichever way they are moved.

    Attributes:
        bounds_cut: rows so far whose own bound was more than the most.
    """

    STATE = AggregateMachine.STATE + Fields("bounds_cut")

    def __init__(self, step: AggregateStep, *, most_kept_rows: int) -> None:
        assert step.drift is not None
        self._drift = step.drift
        super().__init__(step, most_kept_rows=most_kept_rows)
        self._plain = replace(step, drift=None, schema=without_three(step.schema, step.aggregates))
        self._three = [_Window(States(self._plain), self._own) for _ in _TURNS]
        self._states = self._three[1].states
        self._all = [*self._own, *chain.from_iterable(window.all for window in self._three)]
        # A row is held for the last window that it is in: the one that it is moved ahead to.
        self._held = self._three[0].rows
        self.bounds_cut = 0

    def work(self, released: GateRead, now_ns: int) -> Result:  # noqa: D102 - see Operator
        wait_ns, told = self._drift.most_ns, released.progress
        earlier = told._replace(promise_ns=_before(told.promise_ns, wait_ns))
        result = super().work(
            replace(
                released,
                watermark_ns=_before(released.watermark_ns, wait_ns),
                progress=earlier,
            ),
            now_ns,
        )
        result = result._replace(promise_ns=_after(result.promise_ns, wait_ns))
        if (rows := result.rows) is None:
            return result
        times = rows.event_time_ns + wait_ns
        return result._replace(rows=rows.with_(event_time_ns=times))

    def counts(self) -> dict[str, Any]:  # noqa: D102 - see Operator
        return {**super().counts(), **self._drift.counts(self.bounds_cut)}

    def _count(self, batch: Batch, late: list[Int64Array]) -> None:
        """Count rows in their cells, of each of the three windows."""
        bounds, cut = self._drift.bounds_ns(batch, step=self._step.name)
        self.bounds_cut += cut
        times = [batch.event_time_ns + turn * bounds for turn in _TURNS]
        panes = [self._windows.panes_of(one) for one in times]
        oldest = int(panes[-1].min())
        there = None
        if oldest < self._windows.first_whole_pane(self._last_kept):
            there = [one >= self._windows.first_open_pane(self._last_kept) for one in panes]
            self._miss(batch, times[-1], panes[-1], is_dropped=~there[0])
            if not there[0].any():
                return
        cells = self._cells_of(batch, panes, there)
        for number, window in enumerate(self._three):
            rows = batch if there is None else batch.keep(there[number])
            self._add(rows, cells[number], window.groups)
        self._rows_held += len(cells[0])
        if self._corrects and oldest < self._windows.first_whole_pane(self._last_closed):
            late += cells

    def _cells_of(
        self, batch: Batch, panes: Sequence[Int64Array], there: Sequence[BoolArray] | None
    ) -> list[Int64Array]:
        """Return the cells of rows in each of the three windows, if `there`.

        New cells get their numbers row by row, so that the cuts of reads cannot show.
        """
        codes = self._codes_of(batch)
        keys = max(1, len(self._keys))
        low, middle, high = panes
        if there is None and bool((low == high).all()):
            return [self._cells.of(middle, codes, keys=keys)] * 3
        each = np.stack(panes, axis=1)
        is_there = np.ones(each.shape, np.bool_) if there is None else np.stack(there, axis=1)
        cells = np.empty(each.shape, dtype=np.int64)
        cells[is_there] = self._cells.of(
            each[is_there], codes.repeat(3).reshape(each.shape)[is_there], keys=keys
        )
        return [cells[is_there[:, number], number] for number in range(3)]

    def _aggregated(self, pairs: Pairs, rows: Int64Array) -> Columns:
        """Return the aggregates of the three windows, their mean, the least and the greatest."""
        del rows  # rows of all three windows together
        counts = [window.rows.combined(pairs) for window in self._three]
        states = [window.states.combined(pairs) for window in self._three]
        columns: Columns = {}
        for name in self._step.aggregates:
            three = [
                self._states.finished(name, state, own)
                for own, state in zip(counts, states, strict=True)
            ]
            columns |= _told(name, three)
        return columns


class _Window:
    """The states of the cells of one of the three windows."""

    def __init__(self, states: States, others: Sequence[Accumulator]) -> None:
        self.rows = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self.states = states
        self.all: list[Accumulator] = [self.rows, *states.all]
        self.groups = states.groups([*others, self.rows])


def _before(passed_ns: int, wait_ns: int) -> int:
    return passed_ns if passed_ns in (START_NS, END_NS) else max(START_NS, passed_ns - wait_ns)


def _after(promise_ns: int, wait_ns: int) -> int:
    return promise_ns if promise_ns == START_NS else min(promise_ns + wait_ns, END_NS)


def _told(name: str, three: Sequence[Numbers]) -> Columns:
    """Return the four columns of an aggregate, shape (results,) each.

    Args:
        name: the name of the aggregate.
        three: the values of low, middle and high window; null if a window had none.
    """
    values = np.stack([one.values if isinstance(one, Nullable) else one for one in three])
    valid = np.stack(
        [
            one.valid if isinstance(one, Nullable) else np.ones(values.shape[1], np.bool_)
            for one in three
        ]
    )
    if values.dtype.kind == "f":  # NaN is the greatest
        lowest = np.fmin.reduce(np.where(valid, values, np.nan))
        highest = np.maximum.reduce(np.where(valid, values, -np.inf))
    else:
        limits = np.iinfo(values.dtype)
        lowest = np.where(valid, values, values.dtype.type(limits.max)).min(axis=0)
        highest = np.where(valid, values, values.dtype.type(limits.min)).max(axis=0)
    with np.errstate(all="ignore"):
        total = np.where(valid, values.astype(np.float64), 0).sum(axis=0)
        # The mean lies within the two, also where the sum of three equal numbers is not thrice one.
        mean = np.clip(
            total / valid.sum(axis=0), lowest.astype(np.float64), highest.astype(np.float64)
        )
    is_known = np.logical_or.reduce(valid)
    of_all = {MEAN: mean, LOWEST: lowest, HIGHEST: highest}
    columns: Columns = {name: nulled(values[1], valid[1])}
    return columns | {name + end: nulled(own, is_known) for end, own in of_all.items()}
