"""Tables drawn at random, and flows over tables in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

import slackwater as sw


def result_of(make: Callable[..., sw.Stream], *tables: pa.Table, batch_rows: int) -> pa.Table:
    """Run a flow over tables, whose event time is `ts`; return the rows of its sink."""
    flow = sw.Dataflow("tables")
    streams = [
        flow.source(f"in{number}", sw.table(one, batch_rows=batch_rows), event_time="ts")
        for number, one in enumerate(tables)
    ]
    make(*streams).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().ledger.is_balanced
        return job.result("out")


def computed(expression: sw.Expr, **columns: pa.Array) -> list[Any]:
    """Return the values of an expression over rows of these columns, in the simulator."""
    (rows,) = {len(column) for column in columns.values()}
    table = pa.table({"ts": pa.array(range(rows), pa.timestamp("s")), **columns})
    made = result_of(lambda stream: stream.select(x=expression), table, batch_rows=rows)
    return list(made["x"].to_pylist())


def unlike_duckdb(
    table: pa.Table,
    found: pa.Table,
    functions: Sequence[tuple[sw.Expr, str]],
    same: Callable[[Any, Any], bool],
) -> dict[str, tuple[Any, Any]]:
    """Return {function: first pair (ours, DuckDB's) that differs}.

    Args:
        table: rows with a time `ts`.
        found: columns `r0`, `r1`, … of the functions over them, by `ts`.
        functions: (expression, its SQL over a table `rows`) of each.
        same: whether two values are the same.
    """
    wrong = {}
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'Europe/Berlin'")
        database.register("rows", table)
        for number, (one, sql) in enumerate(functions):
            theirs = database.execute(f"SELECT {sql} FROM rows ORDER BY ts").fetchall()  # noqa: S608
            ours = found[f"r{number}"].to_pylist()
            pairs = [(mine, row[0]) for mine, row in zip(ours, theirs, strict=True)]
            different = [pair for pair in pairs if not same(*pair)]
            if different:
                wrong[f"{one}, {sql}"] = different[0]
    return wrong
