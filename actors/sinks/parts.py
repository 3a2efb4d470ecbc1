"""Write one part: rows of a format, into a hidden file."""

from __future__ import annotations

import base64
import json
import os
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.actors.kernel.plain_files import private
from slackwater.actors.sinks.output_path import sync
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import is_nested
from slackwater.runtime.sinks.rolling import GROUP_ROWS

__all__ = ["JsonLinesPart", "ParquetPart", "PartFile"]


def _as_json(value: Any) -> str:
    """Return bytes, a decimal or a date, for which JSON has no type, as text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, Decimal) else str(value.isoformat())


# Shared: `json.dumps` makes one for each row.
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_as_json)


class PartFile(Protocol):
    """A part in the making. After an error only `discard` may be called."""

    def write(self, rows: pa.RecordBatch) -> int:
        """Write rows, all or none; return how many infinite values became null.

        Raises:
            OSError: no room for the rows.
        """
        ...

    def finish(self) -> int:
        """Complete and sync the file; return its bytes.

        Raises:
            OSError: no room for the file's end.
        """
        ...

    def discard(self) -> None:
        """Give the part up."""
        ...


class ParquetPart:
    """A parquet file with row groups of 65,536 rows, however the rows were batched."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._writer: Any = None

    def write(self, rows: pa.RecordBatch) -> int:
        """Keep the rows; write a row group when it is full."""
        self._waiting.append(rows)
        self._rows += len(rows)
        if self._rows < GROUP_ROWS:
            return 0
        table = pa.Table.from_batches(self._waiting, schema=self._schema)
        whole = len(table) - len(table) % GROUP_ROWS
        for start in range(0, whole, GROUP_ROWS):
            self._write_group(table.slice(start, GROUP_ROWS))
        self._waiting = table.slice(whole).to_batches()
        self._rows = len(table) - whole
        return 0

    def finish(self) -> int:
        """Write the last row group and the file's end."""
        if self._rows or self._writer is None:
            self._write_group(pa.Table.from_batches(self._waiting, schema=self._schema))
        self._waiting, self._rows = [], 0
        self._writer.close()
        sync(self._path)
        return self._path.stat().st_size

    def discard(self) -> None:
        """Remove the file: half a parquet file cannot be read."""
        self._waiting = []
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write_group(self, table: pa.Table) -> None:
        if self._writer is None:
            os.close(private(self._path, os.O_WRONLY | os.O_CREAT))  # Arrow: for all
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        # In one piece: the ends of pages must not show the ends of batches.
        if len(table):
            self._writer.write_table(table.combine_chunks(), row_group_size=GROUP_ROWS)


class JsonLinesPart:
    """A file of JSON lines; times are ISO 8601, NaN and ±inf null."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._bytes = 0

    def write(self, rows: pa.RecordBatch) -> int:
        """Append the rows, all or none."""
        data = memoryview(_json_lines(rows).encode())
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self._bytes + written)
        except OSError:
            os.ftruncate(self._file, self._bytes)
            raise
        self._bytes += written
        return sum(map(_infinite_values, rows.columns))

    def finish(self) -> int:
        """Sync the file."""
        os.fsync(self._file)
        self._close()
        return self._bytes

    def discard(self) -> None:
        """Keep the file hidden, with whole lines: its user may want to read them."""
        with suppress(OSError):
            self._close()
        if not self._bytes:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._file >= 0:
            number, self._file = self._file, -1
            os.close(number)


def _json_lines(rows: pa.RecordBatch) -> str:
    columns = [_plain(column) for column in rows.columns]
    records = pa.record_batch(columns, names=rows.schema.names).to_pylist()
    return "".join(f"{_ENCODER.encode(record)}\n" for record in records)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column in types that JSON has, lists and structs inside too."""
    kind = column.type
    if is_nested(kind):
        return _plain_nested(column)
    if pa.types.is_timestamp(kind):
        return arrow_functions().replace_substring(column.cast(pa.string()), " ", "T")
    if pa.types.is_floating(kind):
        of_arrow = arrow_functions()
        return of_arrow.if_else(of_arrow.is_finite(column), column, None)
    if pa.types.is_duration(kind):
        return column.cast(pa.duration("ns")).cast(pa.int64())
    if pa.types.is_time(kind):  # Python's have no nanoseconds
        return column.cast(pa.string())
    return column


def _plain_nested(column: pa.Array) -> pa.Array:
    kind, mask = column.type, column.is_null() if column.null_count else None
    if pa.types.is_struct(kind):
        fields = [_plain(field) for field in column.flatten()]
        return pa.StructArray.from_arrays(fields, names=[one.name for one in kind], mask=mask)
    if pa.types.is_fixed_size_list(kind):
        return _plain(column.cast(pa.list_(kind.value_type)))
    column = pa.concat_arrays([column])  # without the offset of a slice
    if pa.types.is_map(kind):
        parts = column.offsets, _plain(column.keys), _plain(column.items)
        return pa.MapArray.from_arrays(*parts, mask=mask)
    list_class = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    return list_class.from_arrays(column.offsets, _plain(column.values), mask=mask)


def _infinite_values(column: pa.Array) -> int:
    if pa.types.is_struct(column.type):
        return sum(map(_infinite_values, column.flatten()))
    if pa.types.is_map(column.type):
        column = pa.concat_arrays([column])  # as above
        return _infinite_values(column.keys) + _infinite_values(column.items)
    if is_nested(column.type):
        return _infinite_values(column.flatten())
    if not pa.types.is_floating(column.type):
        return 0
    return int(np.isinf(column.to_numpy(zero_copy_only=False)).sum())
