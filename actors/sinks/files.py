"""Results in files that are whole at every moment.

Parquet: each part is written under a hidden name and renamed when it is complete. JSON lines:
a batch is one write; a write that stops half-way (a full disk) is cut off again.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from runtime.errors import SinkError

ROW_GROUP_ROWS = 65_536
PART_ROWS = 4_000_000


class ParquetSink:
    """A directory of `part-00001.parquet`, …, or one file where the path ends in `.parquet`.

    Rows are gathered into groups of 65,536 and parts of 4 million; `close` completes the last.
    A process that is killed leaves complete parts only.
    """

    def __init__(self, name: str, path: str, schema: pa.Schema, *, overwrite: bool = False) -> None:
        self._name, self._schema = name, schema
        target = Path(path)
        self._is_file = target.suffix == ".parquet"
        self._directory = target.parent if self._is_file else target
        self._file = target
        self._guarded(lambda: _prepare(name, target, overwrite=overwrite, is_file=self._is_file))
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._part_rows = self._part = 0
        self._writer: Any = None
        self._is_closed = False

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows; a row group is written when there are enough."""
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows >= ROW_GROUP_ROWS:
            self._guarded(self._flush)
            if self._part_rows >= PART_ROWS and not self._is_file:
                self._guarded(self._finish_part)

    def close(self) -> None:
        """Complete the last part; a flow with no results leaves one empty file with its schema."""
        if self._is_closed:
            return
        self._is_closed = True
        self._guarded(self._flush)
        self._guarded(self._finish_part)

    def _flush(self) -> None:
        if self._writer is None and (self._waiting or self._part == 0):
            self._part += 1
            self._writer = pq.ParquetWriter(self._hidden(), self._schema, compression="zstd")
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, schema=self._schema)
            self._writer.write_table(table)
            self._part_rows += len(table)
            self._waiting, self._waiting_rows = [], 0

    def _finish_part(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        self._part_rows = 0
        shown = self._file if self._is_file else self._directory / f"part-{self._part:05d}.parquet"
        self._hidden().replace(shown)

    def _hidden(self) -> Path:
        return self._directory / f".{self._file.stem}-part-{self._part:05d}.incomplete"

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as problem:
            self._is_closed = True
            raise _sink_error(self._name, self._file, problem) from problem


class JsonLinesSink:
    """One file, a JSON object per line; times as ISO 8601 with nanoseconds cut to micro."""

    def __init__(self, name: str, path: str, *, overwrite: bool = False) -> None:
        self._name, self._path = name, Path(path)
        self._file = -1
        try:
            _prepare(name, self._path, overwrite=overwrite, is_file=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as problem:
            raise _sink_error(name, self._path, problem) from problem
        self._whole_bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Append the rows, all or none."""
        lines = [json.dumps(row, default=_plain, ensure_ascii=False) for row in rows.to_pylist()]
        data = memoryview(("\n".join(lines) + "\n").encode())
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as problem:
            os.ftruncate(self._file, self._whole_bytes)
            raise _sink_error(self._name, self._path, problem) from problem
        self._whole_bytes += written

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _prepare(name: str, path: Path, *, overwrite: bool, is_file: bool) -> None:
    directory = path.parent if is_file else path
    directory.mkdir(parents=True, exist_ok=True)
    taken = path.exists() if is_file else any(directory.glob("*.parquet"))
    if not taken:
        return
    if not overwrite:
        raise SinkError(
            f"sink {name!r}: {path} already holds results, and mixing two runs would double "
            "them; choose another path, remove it, or pass overwrite=True"
        )
    if is_file:
        path.unlink()
        return
    for part in directory.glob("*.parquet"):
        part.unlink()


def _plain(value: object) -> object:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    raise SinkError(f"a value of type {type(value).__name__} has no JSON form; select plain types")


def _sink_error(name: str, path: Path, problem: OSError) -> SinkError:
    free = ""
    try:
        usage = shutil.disk_usage(path if path.exists() else path.parent)
        free = f" ({usage.free / 2**20:.0f} MiB free there)"
    except OSError:
        free = " (its folder cannot be looked at)"
    return SinkError(
        f"sink {name!r} could not write {path}: {problem.strerror or problem}{free}; what was "
        "written before is whole. Make room or choose another path, and submit again"
    )
