"""The flow whose slots are killed: two live sources, a join, and rows in SQLite.

The sink keeps the ordinal of each row, and the time of each commit, in one transaction with the
rows. So what a reader sees after a fault tells whether a row was lost, or written twice.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.offline import pairs_within
from slackwater.connectors import Output, Sink, SinkTraits

RATE = 20_000
"""Events a second, of both sources together."""
KEYS = 1_000
WITHIN_NS = 20_000_000
KEYED = ("ts", "key")
COMMIT_NS = 20_000_000
PLACES = {"left": "node-1", "right": "node-1", "joined": "node-2", "out": "node-3"}
ROLES = {"source": "left", "join": "joined", "sink": "out"}
"""{role: a stage in its slot}."""

Rows = list[tuple[int, str]]
"""(ordinal, text) of each row, in order."""


def write_inputs(folder: Path, *, seconds: float, seed: int) -> None:
    """Write both inputs, `seconds` of events at the rate."""
    for name, own in (("left", seed), ("right", seed + 1)):
        rng = np.random.default_rng(own)
        rows = round(seconds * RATE / 2)
        times = pa.array(np.arange(rows) * (2_000_000_000 // RATE), pa.timestamp("ns"))
        data = {"ts": times, "key": rng.integers(0, KEYS, rows), "value": rng.random(rows)}
        pq.write_table(pa.table(data), folder / f"{name}.parquet")


def flow_of(
    folder: Path, sink: Output, *, speed: float | None = 1.0, **options: Any
) -> sw.Dataflow:
    """Return the flow on the inputs of a folder; `options` are of `Dataflow`."""
    flow = sw.Dataflow("recovery", **options)
    left, right = (
        flow.source(
            side,
            sw.parquet(folder / f"{side}.parquet"),
            event_time="ts",
            speed=speed,
        )
        for side in ("left", "right")
    )
    left.join(right, on="key", within="20ms", name="joined").sink("out", sink)
    return flow


def pairs_offline(folder: Path) -> int:
    """Return the number of pairs that the join must find, without any of the runtime's code."""
    left, right = (pq.read_table(folder / f"{side}.parquet") for side in ("left", "right"))
    left_ns, left_key, right_ns, right_key = (
        own[name].to_numpy().astype(np.int64) for own in (left, right) for name in KEYED
    )
    return len(pairs_within(left_ns, left_key, right_ns, right_key, WITHIN_NS)[0])


@dataclass(frozen=True)
class TableOutput(Output):
    """Rows in a table of SQLite, with their ordinals and the times of commits."""

    path: str
    traits = SinkTraits(resumes=True, every_ns=COMMIT_NS)

    def describe(self) -> str:
        """Return its kind, for people."""
        return f"table in {self.path}"

    def open(self, schema: pa.Schema, context: Any) -> TableSink:
        """Open the table."""
        del schema, context
        return TableSink(self.path)


class TableSink(Sink):
    """Writer of the table; see `TableOutput`."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS rows (ordinal INTEGER PRIMARY KEY, text)")
        self._db.execute("CREATE TABLE IF NOT EXISTS commits (at REAL)")
        self._db.execute("BEGIN")
        self._has_rows = False

    def last_ordinal(self) -> int:
        """Return the ordinal of the last row that is there."""
        (last,) = self._db.execute("SELECT ifnull(max(ordinal), -1) FROM rows").fetchone()
        return int(last)

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Write rows, in the transaction that is open."""
        columns = [column.to_pylist() for column in rows.columns]
        texts = map(repr, zip(*columns, strict=True))
        own = list(enumerate(texts, first_ordinal))
        self._db.executemany("INSERT INTO rows VALUES (?, ?)", own)
        self._has_rows = self._has_rows or bool(own)

    def commit(self) -> None:
        """Commit the rows since the last commit, with its time."""
        if self._has_rows:
            self._db.execute("INSERT INTO commits VALUES (?)", (time.time(),))
        self._db.execute("COMMIT")
        self._db.execute("BEGIN")
        self._has_rows = False

    def close(self) -> None:
        """Close the table."""
        self._db.close()

    def abort(self, error: str) -> None:
        """Close the table; rows since the last commit are not there."""
        del error
        self._db.close()


def rows_of(path: Path) -> Rows:
    """Return the rows of a table."""
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT ordinal, text FROM rows ORDER BY ordinal").fetchall()
    finally:
        db.close()


def number_of_rows(path: Path) -> int:
    """Return the number of rows of a table, without a look at them."""
    with closing(sqlite3.connect(path)) as db:
        (rows,) = db.execute("SELECT count(*) FROM rows").fetchone()
    return int(rows)


def commits_of(path: Path) -> list[float]:
    """Return the times of the commits with rows, ascending; empty without a table."""
    try:
        db = sqlite3.connect(path)
        try:
            return [at for (at,) in db.execute("SELECT at FROM commits ORDER BY at")]
        finally:
            db.close()
    except sqlite3.OperationalError:
        return []
