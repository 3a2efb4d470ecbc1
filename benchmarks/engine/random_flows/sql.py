"""Rows of a stream as tables of DuckDB, which is asked for answers in SQL.

A table has the columns of a stream, times as whole nanoseconds, and three or more others:

```
_row   the place of a row in its frame      _d    1, or −1 of a row that is taken out
_t     its event time                       _is   whether a condition drawn for it is true
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.answers import typed
from benchmarks.engine.random_flows.twin import DIFF, TIME, Twin, kind_of, some_of

Step = Callable[[np.random.Generator, list[Twin]], "Twin | list[Twin] | None"]
MS = 10**6
KEYS = ("whole", "text", "bool", "decimal")
"""Kinds of columns that may be keys."""


def drawn_keys(rng: np.random.Generator, twin: Twin, *, least: int) -> list[str]:
    """Return two columns at most that can be keys; an empty list if there is none."""
    usable = [name for name in twin.columns(*KEYS) if name not in twin.rough]
    return some_of(rng, usable, least=least)[:2] if usable else []


def has_ties(twin: Twin, keys: list[str]) -> bool:
    """Return whether rows of a key have one time: then which comes first is not known here."""
    return bool(twin.rows.duplicated([*keys, TIME]).any())


def divided_by(rng: np.random.Generator) -> dict[str, Any]:
    """Return options of a step with keys, at times with several replicas."""
    return {"replicas": int(rng.integers(2, 4))} if rng.random() < 0.25 else {}


def column_names(names: Sequence[str], *, of: str = "") -> str:
    """Return columns as a list of SQL."""
    return ", ".join(f'{of}."{name}"' if of else f'"{name}"' for name in names)


def same_keys(keys: Sequence[str], left: str, right: str) -> str:
    """Return the condition that rows of two tables have one key; null is a key."""
    same = [f'{left}."{key}" IS NOT DISTINCT FROM {right}."{key}"' for key in keys]
    return " AND ".join(same) or "true"


def partition_by(keys: Sequence[str]) -> str:
    """Return the clause that divides rows by keys, or not at all."""
    return f"PARTITION BY {column_names(keys) or 'true'}"


def sql_table(twin: Twin) -> pa.Table:
    """Return the rows of a stream for SQL."""
    columns = {}
    for field in twin.schema:
        values, kind = twin.rows[field.name].tolist(), kind_of(field.type)
        if kind == "float":
            columns[field.name] = pa.array(values, field.type, from_pandas=True)
            continue
        known = [None if _is_null(value) else value for value in values]
        columns[field.name] = pa.array(known, pa.int64() if kind == "time" else field.type)
    size = len(twin.rows)
    diffs = twin.rows[DIFF].tolist() if twin.is_table else [1] * size
    own = {
        "_t": pa.array(twin.rows[TIME].tolist(), pa.int64()),
        "_row": np.arange(size),
        "_d": pa.array(diffs, pa.int64()),
    }
    return pa.table({**columns, **own})


def _is_null(value: Any) -> bool:
    return not isinstance(value, list) and bool(pd.isna(value))


def ask(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows that DuckDB makes of these tables."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(sql).fetchall()


def like(twin: Twin, stream: sw.Stream, chosen: list[int]) -> Twin:
    """Return the twin of a stream with some rows of another."""
    rows = twin.rows.loc[sorted(chosen)].reset_index(drop=True)
    return replace(twin, stream=stream, schema=stream.schema, rows=rows)


def made_of(
    twin: Twin,
    stream: sw.Stream,
    rows: pd.DataFrame,
    *,
    is_ordered: bool = True,
    rough: frozenset[str] = frozenset(),
) -> Twin:
    """Return the twin of a stream, with rows of the columns that it has.

    Args:
        twin: twin of the stream before it.
        stream: stream whose twin is made.
        rows: rows with its columns, and TIME; DIFF if they change.
        is_ordered: whether they leave by event time.
        rough: columns that are rough beside those of the input.
    """
    own = typed(rows[[*stream.schema.names, TIME]], stream.schema)
    if DIFF in rows:
        own[DIFF] = pd.Series(rows[DIFF].tolist(), dtype="int64")
    rough = (twin.rough | rough) & set(stream.columns)
    return Twin(stream, stream.schema, own, is_ordered=is_ordered, rough=frozenset(rough))
