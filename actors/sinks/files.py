"""Results in files that are whole, however the run ends.

A file is written under a hidden name, `.<name>.incomplete`, and gets its own when it is complete.
So what a killed process was writing never passes for results: it stays under the hidden name. A
batch that cannot be written to the end (a full disk) is cut off again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from runtime.errors import SinkError

ROW_GROUP_ROWS = 65_536
PART_ROWS = 4_000_000
MAKE_ROOM = (
    "what is there is whole, and what did not fit is not in it. Make room or choose another path, "
    "and submit again"
)
CHOOSE_ANOTHER = "choose a path that can be written on the node where the sink runs"


class ParquetSink:
    """A directory of `part-00001.parquet`, …, or one file where the path ends in `.parquet`.

    Rows are gathered into groups of 65,536 and parts of 4 million; `close` completes the last.
    A process that is killed leaves complete parts only.
    """

    def __init__(self, name: str, path: str, schema: pa.Schema, *, overwrite: bool = False) -> None:
        self._name, self._path, self._schema = name, Path(path), schema
        self._is_file = self._path.suffix == ".parquet"
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._part_rows = self._part = 0
        self._writer: Any = None
        self._is_closed = False
        _prepare(name, self._path, overwrite=overwrite, is_file=self._is_file)

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows; a row group is written when there are enough."""
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows >= ROW_GROUP_ROWS:
            with self._telling():
                self._flush()
                if self._part_rows >= PART_ROWS and not self._is_file:
                    self._finish_part()

    def close(self) -> None:
        """Complete the last part; a flow with no results leaves one empty file with its schema."""
        if not self._is_closed:
            self._is_closed = True
            with self._telling():
                self._flush()
                self._finish_part()

    def _flush(self) -> None:
        if self._writer is None and (self._waiting or self._part == 0):
            self._part += 1
            self._writer = pq.ParquetWriter(_hidden(self._shown), self._schema, compression="zstd")
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, schema=self._schema)
            self._writer.write_table(table)
            self._part_rows += len(table)
            self._waiting, self._waiting_rows = [], 0

    def _finish_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer, self._part_rows = None, 0
            _hidden(self._shown).replace(self._shown)

    @property
    def _shown(self) -> Path:
        return self._path if self._is_file else self._path / f"part-{self._part:05d}.parquet"

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            with _telling(self._name, self._path):
                yield
        except SinkError:
            self._is_closed = True
            with suppress(OSError):  # half a part helps nobody, and takes room
                if self._writer is not None:
                    self._writer.close()
                _hidden(self._shown).unlink(missing_ok=True)
            raise


class JsonLinesSink:
    """One file, a JSON object per line; times as ISO 8601 to the nanosecond, NaN as null."""

    def __init__(self, name: str, path: str, *, overwrite: bool = False) -> None:
        self._name, self._path = name, Path(path)
        self._whole_bytes = 0
        _prepare(name, self._path, overwrite=overwrite, is_file=True)
        with _telling(name, self._path, way_out=CHOOSE_ANOTHER):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            self._file = os.open(_hidden(self._path), flags, 0o644)

    def write(self, rows: pa.RecordBatch) -> None:
        """Append the rows, all or none."""
        data = memoryview(_json_lines(rows).encode())
        written = 0
        with _telling(self._name, self._path):
            try:
                while written < len(data):
                    written += os.pwrite(self._file, data[written:], self._whole_bytes + written)
            except OSError:
                os.ftruncate(self._file, self._whole_bytes)
                raise
        self._whole_bytes += written

    def close(self) -> None:
        """Give the file its name."""
        if self._file >= 0:
            file, self._file = self._file, -1
            with _telling(self._name, self._path):
                os.close(file)
                _hidden(self._path).replace(self._path)


def _hidden(shown: Path) -> Path:
    return shown.with_name(f".{shown.name}.incomplete")


def _prepare(name: str, path: Path, *, overwrite: bool, is_file: bool) -> None:
    """Make the folder, and see that nobody's results are in the way."""
    with _telling(name, path, way_out=CHOOSE_ANOTHER):
        directory = path.parent if is_file else path
        directory.mkdir(parents=True, exist_ok=True)
        if is_file:
            taken = [path] if path.exists() else []
            # An empty one is of a run that never began: another sink of it could not be opened.
            if _hidden(path).exists() and _hidden(path).stat().st_size:
                taken.append(_hidden(path))
        else:
            taken = [*path.glob("*.parquet"), *path.glob(".*.incomplete")]
        if taken and not overwrite:
            raise SinkError(
                f"sink {name!r}: {taken[0]} is there already, of an earlier run or one that still "
                "writes, and two runs must not mix; choose another path, remove it, or pass "
                "overwrite=True"
            )
        for found in taken:
            found.unlink()


def _json_lines(rows: pa.RecordBatch) -> str:
    columns = [_plain(column) for column in rows.columns]
    records = pa.record_batch(columns, names=rows.schema.names).to_pylist()
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in records)


def _plain(column: pa.Array) -> pa.Array:
    """Return a column as JSON can say it."""
    if pa.types.is_timestamp(column.type):
        return pc.replace_substring(column.cast(pa.string()), " ", "T")
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_finite(column), column, None)
    return column


@contextmanager
def _telling(name: str, path: Path, *, way_out: str = MAKE_ROOM) -> Iterator[None]:
    """Turn the system's refusals into errors that say what to do."""
    try:
        yield
    except OSError as problem:
        free = "its folder cannot be looked at"
        with suppress(OSError):
            usage = shutil.disk_usage(path if path.exists() else path.parent)
            free = f"{usage.free / 2**20:.1f} MiB free there"
        reason = os.strerror(problem.errno) if problem.errno else str(problem)
        raise SinkError(
            f"sink {name!r} could not write {path}: {reason} ({free}); {way_out}"
        ) from problem
