"""An output that has each row once: it keeps its last ordinal in one transaction with its rows.

    python -m examples.exactly_once

The same output serves a flow without slack, whose rows are written at once, and a flow with slack,
whose rows are held until a checkpoint has them. docs/guarantees.md says why.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import slackwater as sw

SECOND = 1_000_000_000


@dataclass(frozen=True)
class ExactlyOnce(sw.connectors.Output):
    """A table of SQLite, beside which the table `progress` says how far it is."""

    path: str
    name: str
    traits = sw.connectors.SinkTraits(every_ns=SECOND, resumes=True)

    def describe(self) -> str:
        """Return what `explain` says of it."""
        return f"table {self.name} of {self.path}"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> ExactlyOnceSink:
        """Open the database where the sink runs, beside the job's other files."""
        path = os.path.join(context.folder, self.path)
        return ExactlyOnceSink(path, self.name, schema.names, context.run.mark)


class ExactlyOnceSink(sw.connectors.Sink):
    """Rows and progress of one table: both are committed, or neither is."""

    def __init__(self, path: str, table: str, columns: list[str], mark: str) -> None:
        self._table = table
        quoted = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join("?" for _ in columns)
        self._insert = f'INSERT INTO "{table}" VALUES ({values})'  # noqa: S608 - names are the flow's
        self._database = sqlite3.connect(path, isolation_level=None)
        for statement in (
            f'CREATE TABLE IF NOT EXISTS "{table}" ({quoted})',
            'CREATE TABLE IF NOT EXISTS progress ("table" PRIMARY KEY, mark, last INTEGER)',
        ):
            self._database.execute(statement)
        self._database.execute("INSERT OR IGNORE INTO progress VALUES (?, ?, -1)", [table, mark])
        select = 'SELECT mark, last FROM progress WHERE "table" = ?'
        known, self._committed = self._database.execute(select, [table]).fetchone()
        self._last = self._committed
        if known != mark:
            self._database.close()
            raise ValueError(
                f"table {table} of {path} and its row in progress are of another flow, input or "
                "job: drop both"
            )
        self._database.execute("BEGIN")

    def last_ordinal(self) -> int:
        """Return the ordinal of the last row in the table."""
        return int(self._committed)

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Insert rows; readers do not see them before `commit`."""
        columns = [column.to_pylist() for column in rows.columns]
        self._database.executemany(self._insert, zip(*columns, strict=True))
        self._last = first_ordinal + len(rows) - 1

    def commit(self) -> None:
        """Commit rows and progress. A writer of an attempt that was given up finds neither."""
        moved = self._database.execute(
            'UPDATE progress SET last = ? WHERE "table" = ? AND last = ?',
            [self._last, self._table, self._committed],
        )
        if moved.rowcount != 1:
            raise RuntimeError(f"another process has written to table {self._table}")
        self._database.execute("COMMIT")
        self._committed = self._last
        self._database.execute("BEGIN")

    def close(self) -> None:
        """Close the database, after a last `commit`."""
        self._database.close()

    def abort(self, error: str) -> None:
        """Close the database, which rolls back; a later attempt goes on after what is committed."""
        print(f"{self._committed + 1} rows stay: {error.splitlines()[0]}")
        self._database.close()


def _events() -> pa.Table:
    bus = ["7", "12"] * 10
    return pa.table({"ts": list(range(20)), "bus": bus, "speed": [float(n % 7) for n in range(20)]})


def at_once(output: sw.connectors.Output) -> sw.Dataflow:
    """Return a flow without slack: each run gives the same rows in the same order."""
    flow = sw.Dataflow("slow-buses")
    buses = flow.source("buses", sw.table(_events()), event_time="ts", time_unit="s", speed=1.0)
    slow = buses.filter(sw.col("speed") < 5).select("bus", "speed")
    slow.sink("slow", output)
    return flow


def held(output: sw.connectors.Output) -> sw.Dataflow:
    """Return a flow with slack: the clock decides its rows, so they wait for a checkpoint."""
    flow = sw.Dataflow("counted-buses", slack="2s")
    buses = flow.source("buses", sw.table(_events()), event_time="ts", time_unit="s", speed=1.0)
    counts = buses.aggregate(by="bus", window=sw.tumbling("5s"), n=sw.count(), name="windows")
    counts.select("bus", "n").sink("counts", output)
    return flow


def rows_of(path: str, table: str) -> list[tuple[object, ...]]:
    """Return the rows of a table."""
    database = sqlite3.connect(path)
    try:
        return database.execute(f'SELECT * FROM "{table}" ORDER BY rowid').fetchall()  # noqa: S608
    finally:
        database.close()


def main(say: Callable[[str], None] = print) -> None:
    """Let a run be killed and another go on; show what both flows guarantee."""
    with tempfile.TemporaryDirectory() as folder, sw.Simulation() as nodes:
        path = os.path.join(folder, "buses.db")
        slow, counts = ExactlyOnce(path, "slow"), ExactlyOnce(path, "counts")
        killed = sw.testing.SlotDies(slot="node-1", at_ns=10 * SECOND + SECOND // 2)
        try:
            nodes.submit(at_once(slow), faults=[killed]).wait()
        except sw.SlackwaterError:
            say(f"killed: {len(rows_of(path, 'slow'))} rows")
        nodes.submit(at_once(slow)).wait()
        say(f"again: {len(rows_of(path, 'slow'))} rows")
        for flow in (at_once(slow), held(counts)):
            lines = flow.explain(checkpoints=True).splitlines()
            say(next(line.strip() for line in lines if "(sink): " in line))


if __name__ == "__main__":
    main()
