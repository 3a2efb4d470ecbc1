"""Accumulating machines: rows add to the states of cells, and results come of these states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    Columns,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.hashes import key_hashes
from slackwater.runtime.operators.aggregate.accumulators import (
    Accumulator,
    FoldAccumulator,
    MarkAccumulator,
    Pairs,
)
from slackwater.runtime.operators.aggregate.early_results import EveryTime
from slackwater.runtime.operators.aggregate.segments import Segment
from slackwater.runtime.operators.aggregate.states import Groups, States
from slackwater.runtime.operators.aggregate.window_step import WindowStep
from slackwater.runtime.operators.ground.contract import LateOperator
from slackwater.runtime.operators.ground.in_order import InOrder, in_order
from slackwater.runtime.operators.ground.keys import KeyIndex
from slackwater.runtime.operators.ground.late_rows import Missed
from slackwater.runtime.operators.ground.user_code import holds, row_of
from slackwater.runtime.shown_rows import row_shown

_OF_ROWS = {"first": (np.minimum, END_NS), "last": (np.maximum, START_NS)}
"""Fold of the event times of rows, and its identity."""


class KeyedCells(Protocol):
    """Cells, each of which belongs to a key."""

    def __len__(self) -> int: ...

    @property
    def codes(self) -> Int64Array:
        """The key's code of each cell."""
        ...


class Accumulating(LateOperator):
    """Base of machines of a `WindowStep`; a subclass gives rows their cells, and closes windows."""

    _cells: KeyedCells

    def __init__(self, step: WindowStep) -> None:
        self._step = step
        self._rows = FoldAccumulator(np.add, np.int64, 0, lambda _, cells: (cells, 1))
        self._stimuli = FoldAccumulator(
            np.maximum, np.int64, START_NS, lambda batch, cells: (cells, batch.stimulus_time_ns)
        )
        self._states = States(step)
        self._marks = MarkAccumulator()
        self._own: list[Accumulator] = [self._rows, self._stimuli, self._marks]
        self._times: FoldAccumulator | None = None
        if step.result_time in ("first", "last"):
            ufunc, fill = _OF_ROWS[step.result_time]
            self._times = FoldAccumulator(
                ufunc, np.int64, fill, lambda batch, cells: (cells, batch.event_time_ns)
            )
            self._own.append(self._times)
        self._waiting = InOrder()
        self._all = [*self._own, *self._states.all]
        self._groups = self._states.groups(self._own)
        self._keys = KeyIndex(len(step.keys))
        self._missed = Missed(keeps=step.keeps_late)
        self._rows_held = 0
        self._early = EveryTime(step.early_ns)
        self._passed_ns = START_NS  # the watermark, where results leave early

    def _codes_of(self, batch: Batch) -> Int64Array:
        return self._keys.codes([batch.columns[name] for name in self._step.keys], len(batch))

    def _add(self, rows: Batch, cells: Int64Array, groups: Groups) -> None:
        """Add rows to accumulators, or those for which the condition of a group is true."""
        size = len(self._cells)
        for condition, accumulators in groups:
            own_rows, own_cells = rows, cells
            if condition is not None:
                is_true = holds(condition, rows, step=self._step.name)
                own_rows, own_cells = rows.keep(is_true), cells[is_true]
            try:
                with np.errstate(all="ignore"):  # once: it takes as long as an accumulator
                    for accumulator in accumulators:
                        accumulator.add(own_rows, own_cells, size)
            except OperatorError as problem:
                row = "" if problem.place is None else f"\n{row_of(own_rows, problem.place)}"
                raise OperatorError(f"{self._who}{self._text(problem)}{row}") from problem

    def _by_key(self, rows: Batch) -> Batch:
        """Return last results of windows by event time, then by the hash of the key.

        Where cells begin again their numbers say nothing of the order of keys.
        """
        hashes = key_hashes([rows.columns[name] for name in self._step.keys], len(rows))
        return rows.take(np.lexsort((hashes, rows.event_time_ns)))

    def _count_by_time(self, batch: Batch, by: Segment) -> Iterator[Batch]:
        """Count rows in their cells; yield the results that leave by time meanwhile."""
        for begins_ns, part in self._early.parts(batch, self._passed_ns):
            yield from self._fired(begins_ns, by)
            self._early.note(self._counted(part), begins_ns)

    def _fired(self, until_ns: int, by: Segment) -> Iterator[Batch]:
        """Yield early results of open windows that leave by a time."""
        due_ns = self._early.due_ns()
        if due_ns is None or due_ns > until_ns:
            return
        rows = self._early_results(self._early.take(), due_ns, by)
        if rows is not None:
            yield rows.with_(event_time_ns=np.full(len(rows), due_ns - 1))

    @abstractmethod
    def _counted(self, batch: Batch) -> Int64Array:
        """Count rows in their cells; return these."""

    @abstractmethod
    def _early_results(self, cells: Int64Array, due_ns: int, by: Segment) -> Batch | None:
        """Return the results of the windows of some cells that are open at a time."""

    @property
    def _who(self) -> str:
        return f"step {self._step.name!r}: "

    def _text(self, problem: OperatorError) -> str:
        """Return the text of an error without the step, which some have."""
        return str(problem).removeprefix(self._who)

    def _times_of(self, pairs: Pairs, starts: Int64Array, ends: Int64Array) -> Int64Array:
        """Return the event times of results: the ends, the starts, or those of rows."""
        if self._times is not None:
            return self._times.combined(pairs)
        return ends if self._step.result_time is None else starts

    def _in_turn(self, results: Sequence[Batch], promise_ns: int) -> Batch | None:
        """Return the results that leave, in order: those older than the promise.

        Where their event time is that of their windows' ends, they are in order as they come.
        """
        if self._step.result_time is None:
            return concat_batches(results) if results else None
        for batch in results:
            self._waiting.add(batch)
        gone = self._waiting.until(promise_ns)
        return in_order(gone).with_(codes=None) if gone else None

    def _columns_of(
        self, pairs: Pairs, rows: Int64Array, codes: Int64Array, starts: Int64Array
    ) -> Columns:
        """Return the keys and aggregates of results.

        Args:
            pairs: cells of each result.
            rows: shape (results,), the number of rows of each.
            codes: shape (results,), codes of their keys.
            starts: shape (results,), the beginning of each window.

        Raises:
            OperatorError: an aggregate does not fit its type; names the window and the key.
        """
        try:
            columns = self._aggregated(pairs, rows)
        except OperatorError as problem:
            place = problem.place or 0
            keys = self._keys_of(codes[place : place + 1])
            raise OperatorError(
                f"{self._who}{self._text(problem)}\nwindow that starts at {starts[place]}"
                f"{f', of key {row_shown(keys, 0)}' if keys else ''}"
            ) from problem
        return columns | self._keys_of(codes)

    def _aggregated(self, pairs: Pairs, rows: Int64Array) -> Columns:
        """Return the aggregates of each result; `rows` has the number of rows of each."""
        states = self._states.combined(pairs)
        return {name: self._states.finished(name, states, rows) for name in self._step.aggregates}

    def _keys_of(self, codes: Int64Array) -> Columns:
        return dict(zip(self._step.keys, self._keys.columns(codes), strict=True))
