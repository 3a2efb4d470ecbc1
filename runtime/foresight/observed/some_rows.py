"""Input of a sample: some rows of an input, in blocks of different lengths.

The event times of these rows are noted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
import pyarrow as pa

from slackwater.runtime.foresight.observed.stretches import Rows
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.copies import copied_block
from slackwater.runtime.model.schema import UNIT_NS, inside_schema, is_time
from slackwater.runtime.sources.around import InputAround
from slackwater.runtime.sources.computed_time import ComputedTime, computed_time_of
from slackwater.runtime.sources.partition_set import partitions_of
from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    BadRows,
    Block,
    EndOfInput,
    Input,
    InputTraits,
    SourceReader,
    SourceSpec,
    opened_at,
    traits_of,
)

__all__ = ["BLOCKS", "LargestPartition", "SeenTimes", "SomeRows", "single_order"]

BLOCKS = (50, 1, 200, 5, 1, 100, 20, 1, 400, 2, 10, 1)
"""Lengths of the blocks of a sample, in turn: slices of different lengths show the cost of a slice
and of a row. Blocks of one row bound the fixed part of a slice."""


@dataclass(frozen=True)
class SomeRows(InputAround):
    """Input that has some rows of another, in blocks of different lengths."""

    source: str
    inner: Input
    rows: Rows
    seen: SeenTimes
    partitions = None

    @property
    def traits(self) -> InputTraits:
        """Traits of rows that are all there, read in slices of the run."""
        diverts = traits_of(self.inner).diverts
        return InputTraits(blocks_stay=True, reads_inline=True, diverts=diverts)

    def describe(self) -> str:
        """Return the number of rows, and the input that they are of."""
        return f"{sum(until - begin for begin, until in self.rows)} rows of {self.inner.describe()}"

    def open(self) -> SourceReader:
        """Return a reader from the start."""
        copies = not traits_of(self.inner).blocks_stay
        return _PartReader(
            opened_at(single_order(self.source, self.inner), "", None),
            self.rows,
            self.seen,
            copies=copies,
        )


class LargestPartition(InputAround):
    """Input with one partition of another, the largest by what that says, or the first.

    Rows of several partitions are in no order in which their rates could be applied. So a sample is
    of one, and stands for all.

    Args:
        source: name of the source.
        inner: input that has several partitions.
    """

    partitions = None

    def __init__(self, source: str, inner: Input) -> None:
        self.inner = inner
        known = partitions_of(source, inner)
        self._name = max(known, key=lambda partition: partition.rows or 0).name

    @property
    def traits(self) -> InputTraits:
        """Traits of the whole input, without those of its other partitions."""
        return replace(super().traits, has_partitions=False, grows=False, most_open=None)

    def open(self, name: str = "", at: bytes | None = None) -> SourceReader:
        """Open the partition."""
        del name
        return opened_at(self.inner, self._name, at)


def single_order(source: str, given: Input) -> Input:
    """Return an input, or one partition of it if it has several."""
    return LargestPartition(source, given) if traits_of(given).has_partitions else given


class _PartReader:
    def __init__(self, reader: SourceReader, rows: Rows, seen: SeenTimes, *, copies: bool) -> None:
        self._copies = copies
        self._reader, self._seen = reader, seen
        self._rows = deque(each for each in rows if each[1] > each[0])
        self._read = 0  # rows of the input so far
        self._lengths = cycle(BLOCKS)
        self._blocks: Iterator[pa.RecordBatch] = iter(())

    def poll(self) -> pa.RecordBatch | BadRows | EndOfInput | None:
        while (block := next(self._blocks, None)) is None:
            if not self._rows:
                return END_OF_INPUT
            read = self._reader.poll()
            read = read.rows if isinstance(read, Block) else read
            if not isinstance(read, pa.RecordBatch):
                return read
            if self._copies:
                read = copied_block(read)
            parts = list(self._wanted(read))
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


class SeenTimes:
    """Event times of one source's sample.

    Args:
        source: settings of the source.
    """

    def __init__(self, source: SourceSpec) -> None:
        self._name = source.time_column
        self._computed: ComputedTime | None = None
        if source.computes_time:  # else its files would be opened for nothing
            schema = inside_schema(source.input.schema())
            self._computed = computed_time_of("", source, schema, refuses=False)
        self._unit_ns = UNIT_NS[source.time_unit or "ns"]
        self._columns: list[pa.Array] = []

    def note(self, block: pa.RecordBatch) -> None:
        """Keep the event times of a block."""
        if self._computed is not None:
            block = self._computed.added(block, row=0)
        self._columns.append(block.column(self._name))

    def seconds(self) -> FloatArray:
        """Return the event times, shape (rows,); the run has checked them."""
        return np.concatenate([np.zeros(0), *(self._seconds(each) for each in self._columns)])

    def _seconds(self, column: pa.Array) -> FloatArray:
        unit_ns = self._unit_ns
        if is_time(column.type):
            column, unit_ns = column.cast(pa.timestamp("ns")), 1
        times = column.cast(pa.int64()).drop_null().to_numpy(zero_copy_only=False)
        return np.asarray(times * (unit_ns / NS_PER_SECOND))
