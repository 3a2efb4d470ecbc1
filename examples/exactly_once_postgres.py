"""An output that has each row once in a table of PostgreSQL, as `exactly_once.py` in SQLite.

    python -m examples.exactly_once_postgres postgresql://me@/buses

Needs `adbc-driver-postgresql`, which takes Arrow batches as they are. docs/guarantees.md says why
the rows are there once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import slackwater as sw
from examples.exactly_once import SECOND, at_once, held


@dataclass(frozen=True)
class PostgresTable(sw.connectors.Output):
    """A table of PostgreSQL, beside which the table `progress` says how far it is."""

    uri: str = field(repr=False)  # it may have a password
    name: str
    traits = sw.connectors.SinkTraits(every_ns=SECOND, resumes=True)

    def describe(self) -> str:
        """Return what `explain` says of it."""
        return f"table {self.name} of PostgreSQL"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> PostgresSink:
        """Connect where the sink runs; make the table if it is missing."""
        return PostgresSink(self.uri, self.name, schema, context.run.mark)


class PostgresSink(sw.connectors.Sink):
    """Rows and progress of one table: both are committed, or neither is."""

    def __init__(self, uri: str, table: str, schema: pa.Schema, mark: str) -> None:
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - where the sink runs

        self._table = table
        self._connection = dbapi.connect(uri)
        self._cursor = self._connection.cursor()
        self._cursor.adbc_ingest(table, schema.empty_table(), mode="create_append")
        self._ask(
            "CREATE TABLE IF NOT EXISTS progress (name text PRIMARY KEY, mark text, last int8)"
        )
        self._ask("INSERT INTO progress VALUES ($1, $2, -1) ON CONFLICT DO NOTHING", table, mark)
        select = "SELECT mark, last FROM progress WHERE name = $1"
        ((known, self._committed),) = self._ask(select, table)
        self._connection.commit()
        self._last = self._committed
        if known != mark:
            self.close()
            raise ValueError(
                f"table {table} and its row in progress are of another flow or job: drop both"
            )

    def last_ordinal(self) -> int:
        """Return the ordinal of the last row in the table."""
        return int(self._committed)

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        """Copy rows; readers do not see them before `commit`."""
        self._cursor.adbc_ingest(self._table, rows, mode="append")
        self._last = first_ordinal + len(rows) - 1

    def commit(self) -> None:
        """Commit rows and progress. A writer of an attempt that was given up finds neither."""
        update = "UPDATE progress SET last = $1 WHERE name = $2 AND last = $3 RETURNING last"
        moved = self._ask(update, self._last, self._table, self._committed)
        if not moved:
            raise RuntimeError(f"another process has written to table {self._table}")
        self._connection.commit()
        self._committed = self._last

    def close(self) -> None:
        """Close the connection, which rolls back rows since the last `commit`."""
        self._cursor.close()
        self._connection.close()

    def abort(self, error: str) -> None:
        """Close the connection; a later attempt goes on after what is committed."""
        del error
        self.close()

    def _ask(self, statement: str, *given: Any) -> list[Any]:
        self._cursor.execute(statement, given or None)
        return self._cursor.fetchall() if self._cursor.description else []


def rows_of(uri: str, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table, in any order."""
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - the package is optional

    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the caller's table
        return list(cursor.fetchall())


def main(uri: str) -> None:
    """Run both flows of the example in SQLite into a database of PostgreSQL."""
    with sw.Simulation() as nodes:
        nodes.submit(at_once(PostgresTable(uri, "slow"))).wait()
        nodes.submit(held(PostgresTable(uri, "counts"))).wait()
    for table in ("slow", "counts"):
        print(f"{table}: {len(rows_of(uri, table))} rows")


if __name__ == "__main__":
    main(sys.argv[1])
