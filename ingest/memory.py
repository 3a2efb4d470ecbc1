"""Define inputs of rows in memory: for tests, prompts and small data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slackwater.ingest.positions import check_name, digest_of, facts_of, row_positions
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.copies import copied_block
from slackwater.runtime.model.schema import is_nested
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import a_kind
from slackwater.runtime.sources.frames import ArrowArray, ArrowStream, plain_table
from slackwater.runtime.sources.spec import END_OF_INPUT, Block, EndOfInput, Replay

MOST_BATCH_ROWS = 2**31 - 1
"""Most rows that Arrow's readers take at a time."""


def check_batch_rows(rows: int) -> None:
    """Check the most rows of a block.

    Raises:
        SettingError: a block would have none, or more than Arrow reads.
    """
    if not 1 <= rows <= MOST_BATCH_ROWS:
        raise SettingError(f"batch_rows={rows} must be from 1 to {MOST_BATCH_ROWS:,}")


@checked_call
def table(
    data: Mapping[str, Any] | ArrowStream | ArrowArray, *, batch_rows: int = 65_536
) -> BlocksInput:
    """Return the rows of a table, a frame, or {column: values} as an input.

    The rows are copied: arrays that change later do not change the input.

    Args:
        data: an Arrow table, a frame of Polars, pandas or DuckDB, or any other object of Arrow's
            PyCapsule interface; or sequences, NumPy arrays or Arrow arrays by column. A reader of
            batches is read to its end.
        batch_rows: most rows that are read at a time.

    Raises:
        SchemaError: columns of different lengths, values without one type, or no table.
        SettingError: batch_rows < 1, or ≥ 2³¹.
    """
    check_batch_rows(batch_rows)
    rows = plain_table(data)
    return BlocksInput(tuple(rows.to_batches(max_chunksize=batch_rows)), rows.schema)


@checked_call
def blocks(parts: Iterable[pa.RecordBatch], *, schema: pa.Schema | None = None) -> BlocksInput:
    """Return copies of Arrow blocks as an input that hands them over uncut.

    Args:
        parts: the blocks, of one schema.
        schema: schema of the blocks; needed without blocks.

    Raises:
        SchemaError: no list of blocks, no blocks and no schema, or blocks whose schemas differ.
    """
    if isinstance(parts, pa.RecordBatch | pa.Table) or not isinstance(parts, Iterable):
        raise SchemaError(
            f"blocks: {a_kind(parts)} is not a list of blocks; write [batch], or table.to_batches()"
        )
    parts = list(parts)
    for position, part in enumerate(parts):
        if not isinstance(part, pa.RecordBatch):
            raise SchemaError(
                f"blocks: block {position} is {a_kind(part)}; it must be a pyarrow.RecordBatch, "
                "such as those of table.to_batches()"
            )
    if schema is None:
        if not parts:
            raise SchemaError("blocks: no block shows the columns; give them as schema=…")
        schema = parts[0].schema
    for position, part in enumerate(parts):
        if not part.schema.equals(schema):
            raise SchemaError(
                f"blocks: block {position} has the columns {part.schema.names} with types "
                f"{[str(kind) for kind in part.schema.types]}, unlike the first; cast it"
            )
    return BlocksInput(tuple(map(copied_block, parts)), schema)


@dataclass(frozen=True, eq=False)
class BlocksInput:
    """Blocks in memory. `table` and `blocks` make it."""

    is_history: ClassVar[bool] = True
    replay: ClassVar[Replay] = "exact"
    parts: tuple[pa.RecordBatch, ...]
    columns: pa.Schema

    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True

    def describe(self) -> str:
        """Return the number of rows."""
        rows = sum(map(len, self.parts))
        return f"table of {count_of(rows, 'row')}"

    def schema(self) -> pa.Schema:  # noqa: D102
        return self.columns

    def fingerprint(self) -> tuple[str, str]:
        """Return the input in words and as a digest of all its rows."""
        digest = hashlib.sha256(str(self.columns).encode())
        for position, field in enumerate(self.columns):
            streams = {name: hashlib.sha256() for name in _STREAMS}
            for part in self.parts:  # the digests ignore the ends of blocks
                for name, content in _said(part.column(position), field.type):
                    if content:
                        streams.setdefault(name, hashlib.sha256()).update(content)
            for name in (*_STREAMS, *sorted(streams.keys() - set(_STREAMS))):
                digest.update(streams[name].digest())
        return self.describe(), digest.hexdigest()

    def open(self, name: str = "", at: bytes | None = None) -> BlocksReader:
        """Start at the first block, or at a block's position.

        Raises:
            IngestError: the position is of other rows.
        """
        who = self.describe()
        check_name(name, who)
        first = 0
        if at is not None:
            first = int(facts_of(at, who=who, kind=_KIND, of=self._of, count=1)[0])
        return BlocksReader(self.parts, self._of, first)

    @cached_property
    def _of(self) -> str:
        """Digest of columns, number of rows, numbers in first and last rows.

        Text is not read: it may be damaged, which a source refuses by name.
        """
        names = [f.name for f in self.columns if pa.types.is_primitive(f.type)]
        ends = [part.slice(0, 1) for part in self.parts[:1]]
        ends += [part.slice(len(part) - 1) for part in self.parts[-1:] if len(part)]
        numbers = tuple(part.select(names) for part in ends) if names else ()
        _, digest = BlocksInput(numbers, pa.schema(map(self.columns.field, names))).fingerprint()
        return digest_of(f"{sum(map(len, self.parts))} {self.columns} {digest}")


_KIND = "table"


_STREAMS = ("valid", "length", "data")
"""Contents of a column without parts; those of a part have its place before."""


def _said(column: pa.Array, kind: pa.DataType, of: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield a column's contents by stream, independent of its memory layout.

    Arrow's bytes and no Python values: which values are null, the lengths of texts and lists, and
    the values. Python has no value for each time, and with pandas another one.
    """
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if isinstance(column, pa.ExtensionArray):
        column, kind = column.storage, kind.storage_type
    yield f"{of}valid", column.is_valid().to_numpy(zero_copy_only=False).tobytes()
    column = column.drop_null()
    if len(column) == 0:
        return
    if is_nested(kind):
        for place, part in enumerate(_parts(column)):
            yield from _said(part, part.type, f"{of}{place}.")
    else:
        yield from _said_flat(column, kind, of)


def _parts(column: pa.Array) -> list[pa.Array]:
    """Return a struct's fields; of lists and maps the lengths, and the values of all."""
    kind = column.type
    if pa.types.is_struct(kind):
        return list(column.flatten())
    if pa.types.is_map(kind):
        ends = column.offsets.to_numpy()
        first, rows = int(ends[0]), int(ends[-1] - ends[0])
        parts = [part.slice(first, rows) for part in (column.keys, column.items)]
        return [pa.array(np.diff(ends)), *parts]
    return [arrow_functions().list_value_length(column), column.flatten()]


def _said_flat(column: pa.Array, kind: pa.DataType, of: str) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of values without parts, none of them null."""
    is_text = kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    has_width = pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    if not (is_text or has_width or pa.types.is_primitive(kind)):  # no step reads it
        block = pa.record_batch([pa.concat_arrays([column])], ["column"])
        yield f"{of}data", block.serialize().to_pybytes()
        return
    if is_text:
        column = column.cast(pa.large_binary())
        yield f"{of}length", arrow_functions().binary_length(column).to_numpy().tobytes()
        _, ends, data = column.buffers()
        first, last = np.frombuffer(ends, np.int64)[[column.offset, column.offset + len(column)]]
    else:
        column = column.cast(pa.int8()) if pa.types.is_boolean(kind) else column
        width = column.type.bit_width // 8
        first, last = column.offset * width, (column.offset + len(column)) * width
        data = column.buffers()[1]
    yield f"{of}data", b"" if data is None else memoryview(data)[first:last].tobytes()


class BlocksReader:
    """Hands over one block a call.

    Args:
        parts: blocks that are read.
        of: digest of what they are.
        first: row to begin with.
    """

    def __init__(self, parts: Iterable[pa.RecordBatch], of: str, first: int) -> None:
        self._of = of
        self._blocks = self._from(parts, first)

    def poll(self) -> Block | EndOfInput:
        """Return the next block, or END_OF_INPUT."""
        return next(self._blocks, END_OF_INPUT)

    def close(self) -> None:
        """Drop the blocks. Idempotent."""
        self._blocks = iter(())

    def _from(self, parts: Iterable[pa.RecordBatch], first: int) -> Iterator[Block]:
        position, row = row_positions(_KIND, self._of), 0
        for part in parts:
            if row + len(part) > first or row >= first:
                skipped = max(first - row, 0)
                rows = part.slice(skipped) if skipped else part
                yield Block(rows, position(row + skipped))
            row += len(part)
