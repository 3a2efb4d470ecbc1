"""Some rows of an input, as a sample reads them: in blocks of different lengths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

import pyarrow as pa

from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput, Input, SourceReader
from slackwater.sample_times import SeenTimes
from slackwater.stretches import Rows

__all__ = ["BLOCKS", "SomeRows"]

BLOCKS = (50, 1, 200, 5, 1, 100, 20, 1, 400, 2, 10, 1)
"""Rows of the blocks that a sample is cut into by turns: what a slice costs, and what a row, is
seen from slices of different lengths. Those of one row bound the fixed part of a slice."""


@dataclass(frozen=True)
class SomeRows:
    """Some rows of an input, in blocks of different lengths."""

    input: Input
    rows: Rows
    seen: SeenTimes
    reads_inline = True  # and no history: its slices, too, are to be as long as those of the run

    def describe(self) -> str:
        """Return what it is of."""
        return f"{sum(until - begin for begin, until in self.rows)} rows of {self.input.describe()}"

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.input.schema()

    def open(self) -> SourceReader:
        """Open it from the start."""
        return _PartReader(self.input.open(), self.rows, self.seen)


class _PartReader:
    def __init__(self, reader: SourceReader, rows: Rows, seen: SeenTimes) -> None:
        self._reader, self._seen = reader, seen
        self._rows = deque(each for each in rows if each[1] > each[0])
        self._read = 0  # rows of the input that have gone by
        self._lengths = cycle(BLOCKS)
        self._blocks: Iterator[pa.RecordBatch] = iter(())

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        while (block := next(self._blocks, None)) is None:
            if not self._rows:
                return END_OF_INPUT
            found = self._reader.poll()
            if not isinstance(found, pa.RecordBatch):
                return found
            parts = list(self._wanted(found))
            for part in parts:
                self._seen.note(part)
            self._blocks = (block for part in parts for block in self._cut(part))
        return block

    def close(self) -> None:
        self._reader.close()

    def _wanted(self, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the parts of the next block that belong to the sample."""
        first, self._read = self._read, self._read + block.num_rows
        while self._rows and self._rows[0][0] < self._read:
            begin, until = self._rows[0]
            at = max(begin, first)
            yield block.slice(at - first, min(until, self._read) - at)
            if until > self._read:
                break
            self._rows.popleft()

    def _cut(self, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < block.num_rows:
            length = next(self._lengths)
            yield block.slice(at, length)
            at += length
