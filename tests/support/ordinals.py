"""An output that keeps its rows, and their ordinals, in one transaction of SQLite."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from slackwater.connectors import Output, Sink, SinkTraits


@dataclass(frozen=True)
class TableOutput(Output):
    """Rows in a table of SQLite, each with its ordinal, its text, and when it was written."""

    path: str
    traits = SinkTraits(resumes=True, every_ns=20_000_000)

    def describe(self) -> str:
        return f"table in {self.path}"

    def open(self, schema: pa.Schema, context: Any) -> TableSink:
        del schema, context
        return TableSink(self.path)


class TableSink(Sink):
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS rows (ordinal INTEGER PRIMARY KEY, text, at)")
        self._db.execute("BEGIN")

    def last_ordinal(self) -> int:
        (last,) = self._db.execute("SELECT ifnull(max(ordinal), -1) FROM rows").fetchone()
        return int(last)

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        now_s = time.time()
        texts = [repr(tuple(row.values())) for row in rows.to_pylist()]
        own = [(ordinal, text, now_s) for ordinal, text in enumerate(texts, first_ordinal)]
        self._db.executemany("INSERT INTO rows VALUES (?, ?, ?)", own)

    def commit(self) -> None:
        self._db.execute("COMMIT")
        self._db.execute("BEGIN")

    def close(self) -> None:
        self._db.close()

    def abort(self, error: str) -> None:
        del error
        self._db.close()


def rows_of(path: Path) -> list[tuple[int, str]]:
    """The ordinals and texts of a table, in order."""
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT ordinal, text FROM rows ORDER BY ordinal").fetchall()
    finally:
        db.close()


def count_of_rows(path: Path) -> int:
    """How many rows a table has; 0 if it is not there yet."""
    try:
        return len(rows_of(path))
    except sqlite3.OperationalError:
        return 0
