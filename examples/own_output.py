"""An output of one's own: rows into a table of SQLite, all of them or none.

    python -m examples.own_output

docs/extending.md goes through it.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass

import pyarrow as pa

import slackwater as sw


@dataclass(frozen=True)
class SqliteTable(sw.connectors.Output):
    """A table, which is made anew by each job."""

    path: str
    name: str

    def describe(self) -> str:
        """Return what `explain` says of it."""
        return f"table {self.name} of {self.path}"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> SqliteSink:
        """Open the database where the sink runs, beside the job's other files."""
        return SqliteSink(os.path.join(context.folder, self.path), self.name, schema.names)


class SqliteSink(sw.connectors.Sink):
    """One transaction: who reads sees what was there before, until `commit`."""

    def __init__(self, path: str, table: str, columns: list[str]) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(f'DROP TABLE IF EXISTS "{table}"')
        quoted = ", ".join(f'"{column}"' for column in columns)
        self._connection.execute(f'CREATE TABLE "{table}" ({quoted})')
        marks = ", ".join("?" for _ in columns)
        self._insert = f'INSERT INTO "{table}" VALUES ({marks})'  # noqa: S608 - names are the flow's

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Insert rows. They have left the flow when this returns."""
        del first_ordinal  # a table that is made anew needs no numbers
        columns = [column.to_pylist() for column in rows.columns]
        self._connection.executemany(self._insert, zip(*columns, strict=True))

    def commit(self) -> None:
        """Let readers see them: the stream has ended, or the job was stopped."""
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def abort(self, error: str) -> None:
        """Let everything be as it was: something has failed."""
        print(f"the table stays as it was: {error.splitlines()[0]}")
        self._connection.close()  # which rolls back


def rows() -> pa.Table:
    """What two buses said of their speed, second by second."""
    return pa.table(
        {
            "ts": [0, 1, 1, 2, 3, 3],
            "bus": ["7", "12", "7", "12", "7", "12"],
            "speed": [8.0, 5.0, 0.0, 6.0, 2.0, 4.0],
        }
    )


def flow(path: str) -> sw.Dataflow:
    """Return the whole flow: slow buses, into the table `slow` of a database."""
    made = sw.Dataflow("slow-buses")
    buses = made.source("buses", sw.table(rows()), event_time="ts", time_unit="s")
    buses.filter(sw.col("speed") < 5).select("bus", "speed").sink("slow", SqliteTable(path, "slow"))
    return made


def table(path: str) -> list[tuple[str, float]]:
    """Return what is in the table."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT bus, speed FROM slow ORDER BY rowid").fetchall()
    finally:
        connection.close()


if __name__ == "__main__":
    job = sw.Simulation().submit(flow("buses.db"))
    job.wait()
    for row in table("buses.db"):
        print(row)
