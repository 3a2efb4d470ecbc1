"""Rows that come again and again, at a rate that changes: an input for as long as one wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import slackwater as sw

BLOCK = 4_096


@dataclass(frozen=True)
class Endless:
    """An input of rows that are repeated; `time` is when each is due, in ns from the start.

    Attributes:
        rows: with a column `time`, which is put anew.
        rates: (seconds, events a second), one after the other.
    """

    rows: pa.Table
    rates: Sequence[tuple[float, float]]

    def describe(self) -> str:
        """Return how many rows there are."""
        return f"{self.count:,} rows, {self.rows.num_rows:,} of them again and again"

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.rows.schema

    def open(self) -> _Reader:
        """Return a reader."""
        return _Reader(self)

    @property
    def count(self) -> int:
        """All rows there are."""
        return sum(round(seconds * rate) for seconds, rate in self.rates)

    def due_ns(self, first: int, behind: int) -> np.ndarray:
        """Return when rows are due, shape (behind - first,)."""
        found, begin, start_s = [], 0, 0.0
        for seconds, rate in self.rates:
            end = begin + round(seconds * rate)
            own = np.arange(max(first, begin), min(behind, end))
            found.append(np.round((start_s + (own - begin) / rate) * 1e9).astype(np.int64))
            begin, start_s = end, start_s + seconds
        return np.concatenate(found)


class _Reader:
    def __init__(self, of: Endless) -> None:
        self._of, self._next = of, 0
        self._rows = of.rows.combine_chunks().to_batches()[0]

    def poll(self) -> pa.RecordBatch | sw.connectors.EndOfInput | None:
        """Return the next rows."""
        first, had = self._next, len(self._rows)
        if first >= self._of.count:
            return sw.connectors.END_OF_INPUT
        place = first % had
        count = min(BLOCK, had - place, self._of.count - first)
        self._next = first + count
        block = self._rows.slice(place, count)
        times = pa.array(self._of.due_ns(first, first + count))
        return block.set_column(block.schema.get_field_index("time"), "time", times)

    def close(self) -> None:
        """Nothing is open."""
