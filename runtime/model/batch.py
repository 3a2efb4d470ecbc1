"""The unit that travels: columns of some rows, with their event and stimulus times.

A batch is whatever is ready now: one row when idle, thousands under load. Numbers are
NumPy arrays, with a mask where some are null (`nullable.py`); text (and anything else NumPy holds
badly) stays in Arrow arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.nullable import NUMBERS, BoolArray, Nullable, numbers_of
from slackwater.runtime.model.row_marks import Marks, all_bits

Int64Array = npt.NDArray[np.int64]
Column: TypeAlias = npt.NDArray[Any] | Nullable | pa.Array
"""A column is a NumPy array of numbers, booleans or times, or `Nullable`; of text, Arrow's."""

Columns: TypeAlias = dict[str, Column]


PLACE_BITS = 48
"""Of a row's place in `Batch.arrivals` that number it in its source; above is the source."""


@dataclass(frozen=True, slots=True)
class RowField:
    """Field of rows beside their times and columns, if a step downstream reads it.

    Attributes:
        dtype: type of its values.
        width: values of a row.
        absent: value of a row whose batch lacks the field, beside others that have it; None if all
            batches of a channel have it, or none.
        most: returns the largest value that means something; None if any value does.
    """

    dtype: type[np.generic]
    width: int = 1
    absent: int | None = None
    most: Callable[[], int] | None = None

    def filled(self, rows: int) -> npt.NDArray[Any]:
        """Return the values of so many rows that lack the field."""
        assert self.absent is not None, "all batches of a channel have it, or none"
        return np.full(rows, self.absent, dtype=self.dtype)


ROW_FIELDS = {
    "writers": RowField(np.int64),
    "marks": RowField(np.uint8, absent=0, most=all_bits),
    "arrivals": RowField(np.int64, width=2),
    "codes": RowField(np.int64),
}
"""{name: field}, 8 at most. Another one is a line here, and who writes and reads it."""

RowFields: TypeAlias = dict[str, npt.NDArray[Any]]
"""{name of `ROW_FIELDS`: values, shape (rows,) or (rows, width)}, of those that a batch has."""

_NONE: RowFields = {}


class Batch:
    """Rows as columns. Treat it as frozen: every change makes a new one.

    Args:
        event_time_ns: attribute of this name, as are `stimulus_time_ns` and `columns`.
        fields: fields of `ROW_FIELDS`; None if the rows lack it.

    Attributes:
        event_time_ns: shape (rows,), int64; when each row happened.
        stimulus_time_ns: shape (rows,), int64; when the last source event of each row's
            lineage reached us. Source: [mace] Def. 2.
        columns: {name: column of shape (rows,)}.
        fields: {name: values} of the fields that the rows have.
    """

    __slots__ = ("columns", "event_time_ns", "fields", "stimulus_time_ns")

    def __init__(
        self,
        *,
        event_time_ns: Int64Array,
        stimulus_time_ns: Int64Array,
        columns: Columns,
        **fields: npt.NDArray[Any] | None,
    ) -> None:
        self.event_time_ns = event_time_ns
        self.stimulus_time_ns = stimulus_time_ns
        self.columns = columns
        self.fields = _present(fields) if fields else _NONE

    @classmethod
    def like(cls, rows: Batch, columns: Columns) -> Batch:
        """Return the same rows with other columns."""
        return rows.with_(columns=columns)

    def with_(
        self,
        *,
        event_time_ns: Int64Array | None = None,
        stimulus_time_ns: Int64Array | None = None,
        columns: Columns | None = None,
        **fields: npt.NDArray[Any] | None,
    ) -> Batch:
        """Return the same rows with other times, columns or fields.

        A field of None is gone.
        """
        return Batch._of(
            self.event_time_ns if event_time_ns is None else event_time_ns,
            self.stimulus_time_ns if stimulus_time_ns is None else stimulus_time_ns,
            self.columns if columns is None else columns,
            _present({**self.fields, **fields}) if fields else self.fields,
        )

    def part(self, columns: Iterable[str], fields: Container[str]) -> Batch:
        """Return the same rows with some columns and fields only."""
        own = self.fields
        if own:
            own = {name: values for name, values in own.items() if name in fields}
        chosen = {name: self.columns[name] for name in columns}
        return Batch._of(self.event_time_ns, self.stimulus_time_ns, chosen, own)

    @classmethod
    def _of(
        cls, times_ns: Int64Array, stimuli_ns: Int64Array, columns: Columns, fields: RowFields
    ) -> Batch:
        batch = cls.__new__(cls)
        batch.event_time_ns, batch.stimulus_time_ns = times_ns, stimuli_ns
        batch.columns, batch.fields = columns, fields
        return batch

    @property
    def writers(self) -> Int64Array | None:
        """Writer of each row; None if the channel is the writer.

        Only sources with a `writer` column set it.
        """
        return self.fields.get("writers")

    @property
    def marks(self) -> Marks | None:
        """Marks of each row (runtime/model/row_marks.py); None if no row has one."""
        return self.fields.get("marks")

    @property
    def arrivals(self) -> Int64Array | None:
        """Arrival of each row at its source, and its place; None if unused.

        Shape (rows, 2): when it arrived, or was released by a source that put it in order; and
        its place among all rows of all sources (the number of the source << PLACE_BITS, and how
        many of its rows left before).
        """
        return self.fields.get("arrivals")

    @property
    def codes(self) -> Int64Array | None:
        """Code of each row's key, where an operator holds rows by key; else None."""
        return self.fields.get("codes")

    def __len__(self) -> int:
        return len(self.event_time_ns)

    def __repr__(self) -> str:
        return f"Batch({len(self)} rows, columns={list(self.columns)})"

    @property
    def nbytes(self) -> int:
        """Bytes held by the rows (not by what they are views of)."""
        size = self.event_time_ns.nbytes + self.stimulus_time_ns.nbytes
        size += sum(values.nbytes for values in self.fields.values())
        return size + sum(column.nbytes for column in self.columns.values())

    def take(self, rows: npt.NDArray[Any]) -> Batch:
        """Return the rows at these positions; `rows` is an integer array of any length."""
        fields = self.fields
        if fields:
            fields = {name: values.take(rows, axis=0) for name, values in fields.items()}
        return Batch._of(
            self.event_time_ns.take(rows),
            self.stimulus_time_ns.take(rows),
            {name: column.take(rows) for name, column in self.columns.items()},
            fields,
        )

    def keep(self, mask: BoolArray) -> Batch:
        """Return the rows where `mask`, shape (rows,), is true."""
        return self.take(mask.nonzero()[0])

    def slice(self, start: int, stop: int) -> Batch:
        """Return rows [start, stop) without copying."""
        if start == 0 and stop >= len(self.event_time_ns):
            return self
        fields = self.fields
        if fields:
            fields = {name: values[start:stop] for name, values in fields.items()}
        return Batch._of(
            self.event_time_ns[start:stop],
            self.stimulus_time_ns[start:stop],
            {name: column[start:stop] for name, column in self.columns.items()},
            fields,
        )


def _present(fields: Mapping[str, npt.NDArray[Any] | None]) -> RowFields:
    """Return the fields that are not None.

    Raises:
        TypeError: there is no field of that name.
    """
    if unknown := fields.keys() - ROW_FIELDS.keys():
        raise TypeError(f"rows have no field {min(unknown)!r}, but {', '.join(ROW_FIELDS)}")
    return {name: values for name, values in fields.items() if values is not None}


def concat_fields(parts: Sequence[tuple[RowFields, int]]) -> RowFields:
    """Return the fields of one part after the other; a part is fields and rows."""
    names = {name for fields, _ in parts for name in fields}
    return {
        name: np.concatenate(
            [
                field.filled(rows) if (own := fields.get(name)) is None else own
                for fields, rows in parts
            ]
        )
        for name, field in ROW_FIELDS.items()
        if name in names
    }


def concat_batches(batches: Sequence[Batch]) -> Batch:
    """Return the rows of one or more batches of the same columns."""
    if len(batches) == 1:
        return batches[0]
    return Batch._of(
        np.concatenate([batch.event_time_ns for batch in batches]),
        np.concatenate([batch.stimulus_time_ns for batch in batches]),
        {
            name: concat_columns([batch.columns[name] for batch in batches])
            for name in batches[0].columns
        },
        concat_fields([(batch.fields, len(batch)) for batch in batches]),
    )


def joined_batches(batches: Iterable[Batch | None]) -> Batch | None:
    """Return the rows of batches of the same columns; None if there are none."""
    some = [batch for batch in batches if batch is not None and len(batch)]
    return concat_batches(some) if some else None


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
    return Batch(event_time_ns=times, stimulus_time_ns=stimuli, columns=made)
