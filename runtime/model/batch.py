"""The unit that travels: columns of some rows, with their event and stimulus times.

A batch is whatever is ready now: one row when idle, thousands under load. Numbers are
NumPy arrays, with a mask where some are null (`nullable.py`); text (and anything else NumPy holds
badly) stays in Arrow arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.nullable import NUMBERS, BoolArray, Nullable, numbers_of
from slackwater.runtime.model.row_marks import Marks, concat_marks

Int64Array = npt.NDArray[np.int64]
Column: TypeAlias = npt.NDArray[Any] | Nullable | pa.Array
"""A column is a NumPy array of numbers, booleans or times, or `Nullable`; of text, Arrow's."""

Columns: TypeAlias = dict[str, Column]


PLACE_BITS = 48
"""Of a row's place in `Batch.arrivals` that number it in its source; above is the source."""


class Batch:
    """Rows as columns. Treat it as frozen: every change makes a new one.

    Attributes:
        event_time_ns: shape (rows,), int64; when each row happened.
        stimulus_time_ns: shape (rows,), int64; when the last source event of each row's
            lineage reached us. Source: [mace] Def. 2.
        columns: {name: column of shape (rows,)}.
        writers: shape (rows,), int64, the writer of each row; None where the channel is
            the writer. Only sources with a `writer` column set it.
        marks: shape (rows,), uint8, the marks of each row (runtime/model/row_marks.py); None
            where no row has one.
        arrivals: shape (rows, 2), int64: when each arrived at its source, or was released by a
            source that put it in order; and its place among all rows of all sources (the number
            of the source << PLACE_BITS, and how many of its rows left before). None where
            arrivals are not used.
    """

    __slots__ = ("arrivals", "columns", "event_time_ns", "marks", "stimulus_time_ns", "writers")

    def __init__(
        self,
        event_time_ns: Int64Array,
        stimulus_time_ns: Int64Array,
        columns: Columns,
        writers: Int64Array | None = None,
        marks: Marks | None = None,
        arrivals: Int64Array | None = None,
    ) -> None:
        self.event_time_ns = event_time_ns
        self.stimulus_time_ns = stimulus_time_ns
        self.columns = columns
        self.writers = writers
        self.marks = marks
        self.arrivals = arrivals

    def __len__(self) -> int:
        return len(self.event_time_ns)

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows, columns={list(self.columns)})"

    @property
    def nbytes(self) -> int:
        """Bytes held by the rows (not by what they are views of)."""
        size = self.event_time_ns.nbytes + self.stimulus_time_ns.nbytes
        if self.writers is not None:
            size += self.writers.nbytes
        if self.marks is not None:
            size += self.marks.nbytes
        if self.arrivals is not None:
            size += self.arrivals.nbytes
        return size + sum(column.nbytes for column in self.columns.values())

    def take(self, rows: npt.NDArray[Any]) -> Batch:
        """Return the rows at these positions; `rows` is an integer array of any length."""
        writers, marks, arrivals = self.writers, self.marks, self.arrivals
        return Batch(
            self.event_time_ns.take(rows),
            self.stimulus_time_ns.take(rows),
            {name: column.take(rows) for name, column in self.columns.items()},
            None if writers is None else writers.take(rows),
            None if marks is None else marks.take(rows),
            None if arrivals is None else arrivals.take(rows, axis=0),
        )

    def keep(self, mask: BoolArray) -> Batch:
        """Return the rows where `mask`, shape (rows,), is true."""
        return self.take(mask.nonzero()[0])

    def slice(self, start: int, stop: int) -> Batch:
        """Return rows [start, stop) without copying."""
        if start == 0 and stop >= len(self.event_time_ns):
            return self
        writers, marks, arrivals = self.writers, self.marks, self.arrivals
        return Batch(
            self.event_time_ns[start:stop],
            self.stimulus_time_ns[start:stop],
            {name: column[start:stop] for name, column in self.columns.items()},
            None if writers is None else writers[start:stop],
            None if marks is None else marks[start:stop],
            None if arrivals is None else arrivals[start:stop],
        )

    def with_columns(self, columns: Columns) -> Batch:
        """Return the same rows with these columns instead."""
        times = self.event_time_ns, self.stimulus_time_ns
        return Batch(*times, columns, self.writers, self.marks, self.arrivals)


def concat_batches(batches: Sequence[Batch]) -> Batch:
    """Return the rows of one or more batches of the same columns."""
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    writers = None
    if first.writers is not None:
        writers = np.concatenate([batch.writers for batch in batches])
    marks = arrivals = None
    for batch in batches:
        if batch.marks is not None:
            marks = concat_marks((one.marks, len(one)) for one in batches)
            break
    if first.arrivals is not None:
        arrivals = np.concatenate([batch.arrivals for batch in batches])
    return Batch(
        np.concatenate([batch.event_time_ns for batch in batches]),
        np.concatenate([batch.stimulus_time_ns for batch in batches]),
        {
            name: concat_columns([batch.columns[name] for batch in batches])
            for name in first.columns
        },
        writers,
        marks,
        arrivals,
    )


def concat_columns(columns: Sequence[Column]) -> Column:
    """Return one column after the other; all of one kind, at least one."""
    if isinstance(columns[0], NUMBERS):
        return numbers_of(columns)
    merged = pa.chunked_array(list(columns)).combine_chunks()
    return merged if isinstance(merged, pa.Array) else pa.concat_arrays(merged.chunks)


def batch_of(
    event_time_ns: Sequence[int] | Int64Array,
    columns: Mapping[str, Any] | None = None,
    stimulus_time_ns: Sequence[int] | Int64Array | int = 0,
) -> Batch:
    """Return a batch from plain sequences: for tests, and for people at a prompt."""
    times = np.asarray(event_time_ns, dtype=np.int64)
    if isinstance(stimulus_time_ns, int):
        stimuli = np.full(len(times), stimulus_time_ns, dtype=np.int64)
    else:
        stimuli = np.asarray(stimulus_time_ns, dtype=np.int64)
    made: Columns = {}
    for name, values in (columns or {}).items():
        if isinstance(values, pa.Array | Nullable):
            made[name] = values
        elif any(isinstance(value, str) for value in values):
            made[name] = pa.array(values)
        elif any(value is None for value in values):
            valid = np.array([value is not None for value in values])
            filled = [0 if value is None else value for value in values]
            made[name] = Nullable(np.array(filled), valid)
        else:
            made[name] = np.asarray(values)
    return Batch(times, stimuli, made)
