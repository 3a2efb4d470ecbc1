"""Write one part: rows of a format, into a hidden file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.actors.kernel.plain_files import private, sync
from slackwater.actors.sinks.appended_file import AppendedFile, check_size
from slackwater.actors.sinks.journal import Journal
from slackwater.runtime.model.json_text import infinite_values, rows_as_json
from slackwater.runtime.model.schema import column_to_arrow
from slackwater.runtime.sinks.rolling import GROUP_ROWS

__all__ = ["LinesPart", "LinesText", "ParquetPart", "PartFile"]


class PartFile(Protocol):
    """A part in the making. After an error only `discard` may be called."""

    def write(self, rows: pa.RecordBatch) -> int:
        """Write rows, all or none; return how many infinite values became null.

        Raises:
            OSError: no room for the rows.
        """
        ...

    def position(self) -> int:
        """Sync the rows so far; return the bytes at which the part is cut.

        Raises:
            OSError: the system could not.
        """
        ...

    def finish(self) -> int:
        """Complete and sync the file; return its bytes.

        Raises:
            OSError: no room for the file's end.
        """
        ...

    def discard(self) -> None:
        """Give the part up; what its position names stays."""
        ...


class LinesText(Protocol):
    """Text of rows: whole lines, after a header."""

    header: bytes
    """First line of a file; empty if it has none."""

    def lines(self, rows: pa.RecordBatch) -> bytes:
        """Return rows as whole lines."""
        ...

    def lost_infinite(self, rows: pa.RecordBatch) -> int:
        """Return how many infinite values of the rows are null in their lines."""
        ...


class ParquetPart:
    """A parquet file with row groups of 65,536 rows, however the rows were batched.

    Args:
        path: path of the file.
        schema: schema of the rows.
        journal: journal of its rows, which are written first; None if it has no position.
    """

    def __init__(self, path: Path, schema: pa.Schema, journal: Journal | None = None) -> None:
        self._path, self._schema, self._journal = path, schema, journal
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._file: Any = None
        self._writer: Any = None
        if journal is not None:
            for rows in journal.batches():
                self._add(rows)

    def write(self, rows: pa.RecordBatch) -> int:
        """Keep the rows; write a row group when it is full."""
        if self._journal is not None:
            self._journal.append(rows)
        return self._add(rows)

    def _add(self, rows: pa.RecordBatch) -> int:
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

    def position(self) -> int:
        """Sync the journal."""
        assert self._journal is not None, "half a parquet file cannot be opened again"
        return self._journal.sync()

    def finish(self) -> int:
        """Write the last row group and the file's end."""
        if self._rows or self._writer is None:
            self._write_group(pa.Table.from_batches(self._waiting, schema=self._schema))
        self._waiting, self._rows = [], 0
        self._writer.close()
        size = self._checked_size()
        self._file.close()
        sync(self._path)
        if self._journal is not None:
            self._journal.close()
        return size

    def discard(self) -> None:
        """Remove the file: half a parquet file cannot be read."""
        self._waiting = []
        if self._journal is not None:
            with suppress(OSError):
                self._journal.close()
        with suppress(OSError):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write_group(self, table: pa.Table) -> None:
        if self._writer is None:
            os.close(private(self._path, os.O_WRONLY | os.O_CREAT))  # Arrow: for all
            self._file = pa.OSFile(str(self._path), "wb")
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        self._checked_size()
        # In one piece: the ends of pages must not show the ends of batches.
        if len(table):
            group = _with_own_dictionaries(table.combine_chunks())
            self._writer.write_table(group, row_group_size=GROUP_ROWS)

    def _checked_size(self) -> int:
        size: int = self._file.tell()
        check_size(os.stat(self._path).st_size, size)
        return size


def _with_own_dictionaries(group: pa.Table) -> pa.Table:
    """Return rows whose dictionaries have their values alone, in their order.

    Those of the batches that they came in differ from run to run.
    """
    for place, field in enumerate(group.schema):
        if pa.types.is_dictionary(field.type):
            encoded = group.column(place).combine_chunks()
            column = column_to_arrow(encoded, field.type)
            group = group.set_column(place, field, column)
    return group


class LinesPart:
    """A file of lines, after a header that comes with the first rows.

    Args:
        path: path of the file.
        text: how rows are written.
        at: bytes of whole lines that are there, and stay; None if it begins afresh.
    """

    def __init__(self, path: Path, text: LinesText, at: int | None = None) -> None:
        self._text, self._file = text, AppendedFile(path, at)

    def write(self, rows: pa.RecordBatch) -> int:
        """Append the rows, all or none."""
        self._append(self._text.lines(rows))
        return self._text.lost_infinite(rows)

    def position(self) -> int:
        """Sync the file."""
        return self._file.sync()

    def finish(self) -> int:
        """Sync the file, which without rows has its header only."""
        if not self._file.bytes:
            self._append(b"")
        size = self._file.sync()
        self._file.close()
        return size

    def discard(self) -> None:
        """Keep the file hidden, with whole lines: its user may want to read them."""
        if not self._file.bytes:
            self._file.remove()
        with suppress(OSError):
            self._file.close()

    def _append(self, lines: bytes) -> None:
        self._file.append(b"" if self._file.bytes else self._text.header, lines)


class JsonText:
    """Rows as JSON objects, a line each; times are ISO 8601, NaN and ±inf null."""

    header = b""

    def lines(self, rows: pa.RecordBatch) -> bytes:
        return "".join(f"{row}\n" for row in rows_as_json(rows)).encode()

    def lost_infinite(self, rows: pa.RecordBatch) -> int:
        return sum(map(infinite_values, rows.columns))
