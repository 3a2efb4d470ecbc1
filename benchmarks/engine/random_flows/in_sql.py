"""Steps at random whose answers DuckDB gives, by SQL over the same rows.

A table of SQL has the columns of a stream, times as whole nanoseconds, and three more:

```
_row   the place of a row in its frame      _t   its event time      _is   a condition drawn for it
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.answers import typed
from benchmarks.engine.random_flows.expressions import predicate
from benchmarks.engine.random_flows.twin import TIME, Twin, kind_of, one_of, some_of
from slackwater.runtime.model import LATEST_NS
from slackwater.runtime.operators.aggregate.written import Aggregate

__all__ = ["SQL_STEPS"]

Step = Callable[[np.random.Generator, list[Twin]], "Twin | list[Twin] | None"]
MS = 10**6
KEYS = ("whole", "text", "bool", "decimal")


def newest_rows(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the newest or the oldest row of each key and window."""
    twin = one_of(rng, twins)
    keys = _keys(rng, twin, least=1)
    if not keys or "window_start" in twin.stream.columns or _has_ties(twin, keys):
        return None
    size_ms, slide_ms = one_of(rng, [(700, 700), (10_000, 10_000), (3_000, 2_000)])
    is_newest = bool(rng.random() < 0.5)
    choose = twin.stream.newest if is_newest else twin.stream.oldest
    options = _divided(rng)
    stream = choose(keys, window=sw.sliding(f"{size_ms}ms", f"{slide_ms}ms"), **options)
    size, slide = size_ms * MS, slide_ms * MS
    chosen = _ask(
        f"""
        SELECT _row, (_t // {slide} - back) * {slide} AS start
        FROM rows, range({-(-size // slide)}) AS r(back) WHERE _t < start + {size}
        QUALIFY row_number() OVER (PARTITION BY start, {_names(keys)}
            ORDER BY _t {"DESC" if is_newest else ""}) = 1
        """,
        rows=_table(twin),
    )
    starts = np.array([start for _, start in chosen], np.int64)
    rows = twin.rows.loc[[row for row, _ in chosen]].reset_index(drop=True)
    bounds = {"window_start": starts, "window_end": starts + size, TIME: starts + size - 1}
    return _made(twin, stream, rows.assign(**bounds), is_ordered=not options)


def silent_keys(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Make a row for each silence of a key."""
    twin = one_of(rng, twins)
    keys = _keys(rng, twin, least=1)
    if not keys or "silent_since" in keys:
        return None
    after_ms = one_of(rng, [100, 2_000, 60_000])
    options = _divided(rng)
    stream = twin.stream.silence(keys, after=f"{after_ms}ms", **options)
    answer = _ask(
        f"""
        SELECT {_names(keys)}, _t, _t + {after_ms * MS} FROM rows
        QUALIFY coalesce(
            lead(_t) OVER (PARTITION BY {_names(keys)} ORDER BY _t) - _t > {after_ms * MS}, true)
        """,
        rows=_table(twin),
    )
    rows = pd.DataFrame(answer, columns=[*keys, "silent_since", TIME], dtype=object)
    return _made(twin, stream, rows, is_ordered=not options)


def once(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the first of rows with equal keys and close times."""
    twin = one_of(rng, twins)
    keys = _keys(rng, twin, least=1)
    if not keys or _has_ties(twin, keys):
        return None
    within_ms = one_of(rng, [1, 700, 10_000])
    options = _divided(rng)
    stream = twin.stream.dedupe(keys, within=f"{within_ms}ms", **options)
    same = " AND ".join(f'r."{key}" IS NOT DISTINCT FROM kept."{key}"' for key in keys)
    chosen = _ask(
        f"""
        WITH RECURSIVE firsts AS (
            SELECT {_names(keys)}, min(_t) AS _t FROM rows GROUP BY {_names(keys)}
        ), kept AS (
            FROM firsts
            UNION ALL
            SELECT {_names(keys, of="kept")}, min(r._t) AS _t FROM kept, rows r
            WHERE {same} AND r._t > kept._t + {within_ms * MS} GROUP BY {_names(keys, of="kept")}
        )
        SELECT r._row FROM rows r JOIN kept ON {same} AND r._t = kept._t
        """,
        rows=_table(twin),
    )
    firsts = _like(twin, stream, [row for (row,) in chosen])
    return replace(firsts, is_ordered=not options)


def first_rows(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the first rows of a stream."""
    twin = one_of(rng, twins)
    if not twin.rows[TIME].is_unique:
        return None
    size = int(rng.integers(1, 60))
    chosen = _ask(f"SELECT _row FROM rows ORDER BY _t LIMIT {size}", rows=_table(twin))
    return replace(
        _like(twin, twin.stream.limit(size), [row for (row,) in chosen]), is_ordered=True
    )


def divided(rng: np.random.Generator, twins: list[Twin]) -> list[Twin]:
    """Split a stream by two conditions."""
    twin = one_of(rng, twins)
    conditions, tables = {}, _table(twin)
    for place in range(2):
        name = f"part-{len(twin.stream.flow.steps)}-{place}"
        conditions[name], known = predicate(rng, twin)
        tables = tables.append_column(f"_is{place}", pa.array(known))
    streams = twin.stream.split(conditions)
    answer = _ask(
        "SELECT _row, CASE WHEN _is0 THEN 0 WHEN _is1 THEN 1 ELSE 2 END FROM rows", rows=tables
    )
    return [
        _like(twin, stream, [row for row, of in answer if of == part])
        for part, stream in enumerate(streams)
    ]


def filled(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Put streams with unlike columns together."""
    left, right = one_of(rng, twins), one_of(rng, twins)
    common = set(left.schema.names) & set(right.schema.names)
    if left.schema.equals(right.schema) or any(
        left.schema.field(name).type != right.schema.field(name).type for name in common
    ):
        return None
    stream = left.stream.merge(right.stream, fill=True)
    names = ", ".join(f'"{name}"' for name in [*stream.schema.names, "_t"])
    answer = _ask(
        f"SELECT {names} FROM (FROM a UNION ALL BY NAME FROM b)", a=_table(left), b=_table(right)
    )
    rows = pd.DataFrame(answer, columns=[*stream.schema.names, TIME], dtype=object)
    made = _made(left, stream, rows)
    return replace(made, rough=left.rough | right.rough)


def in_intervals(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Aggregate in windows of rows, and in windows that a row opens."""
    twin = one_of(rng, twins)
    keys = [name for name in _keys(rng, twin, least=0) if not name.startswith("window")]
    if not twin.rows[TIME].is_unique:
        return None
    by = "".join(f'"{key}", ' for key in keys)
    table = _table(twin)
    if rng.random() < 0.5:
        size = int(rng.integers(1, 6))
        every = int(rng.integers(1, size + 1))
        window: Any = sw.rows(size, every=every)
        cells = f"""
            WITH numbered AS (
                SELECT *, row_number() OVER (PARTITION BY {by} true ORDER BY _t) - 1
                    AS _n FROM rows
            ), cells AS (
                SELECT *, _n // {every} - back AS _cell FROM numbered,
                    range({-(-size // every)}) AS r(back)
                WHERE _cell >= 0 AND _n < _cell * {every} + {size}
            )
        """
        bounds = f"""min(_t), max(_t),
            CASE WHEN count(*) = {size} THEN max(_t) ELSE {LATEST_NS} END"""
    else:
        condition, known = predicate(rng, twin)
        length_ms = one_of(rng, [250, 2_000, 30_000])
        window = sw.opened_by(condition, f"{length_ms}ms")
        table = table.append_column("_is", pa.array(known))
        same = "".join(f' AND r."{key}" IS NOT DISTINCT FROM o."{key}"' for key in keys)
        cells = f"""
            WITH cells AS (
                SELECT r.*, o._t AS _cell FROM rows o JOIN rows r
                ON r._t >= o._t AND r._t < o._t + {length_ms * MS} {same} WHERE o._is
            )
        """
        end = f"_cell + {length_ms * MS}"
        bounds = f"_cell, {end}, {end} - 1"
    aggregates, columns = {}, []
    for place in range(int(rng.integers(1, 4))):
        name = f"i{len(twin.stream.flow.steps)}{place}"
        aggregates[name], sql = _aggregate(rng, twin)
        columns.append(sql)
    options = _divided(rng) if keys else {}
    stream = twin.stream.aggregate(aggregates, by=keys, window=window, **options)
    answer = _ask(
        f"{cells} SELECT {by} {bounds}, {', '.join(columns)} FROM cells GROUP BY {by} _cell",
        rows=table,
    )
    names = [*keys, "window_start", "window_end", TIME, *aggregates]
    rows = pd.DataFrame(answer, columns=names, dtype=object)
    return _made(twin, stream, rows, is_ordered=not options)


def _aggregate(rng: np.random.Generator, twin: Twin) -> tuple[Aggregate, str]:
    """Return an aggregate, and its SQL."""
    wholes = [
        name
        for name in twin.columns("whole")
        if (twin.rows[name].dropna().astype("float64").abs() < 2**40).all()
    ]
    flat = twin.columns("whole", "text", "bool", "decimal")
    kind = one_of(rng, ["count", "sum", "max", "distinct", "first", "last"])
    if kind in ("sum", "max") and wholes:
        name = one_of(rng, wholes)
        function = sw.sum if kind == "sum" else sw.max
        return function(name), f'{kind}("{name}")::BIGINT'
    if kind in ("distinct", "first", "last") and flat:
        name = one_of(rng, flat)
        if kind == "distinct":
            return sw.count_distinct(name), f'count(DISTINCT "{name}")'
        function = sw.first if kind == "first" else sw.last
        there = f'FILTER (WHERE "{name}" IS NOT NULL)'
        return function(name), f'{kind}("{name}" ORDER BY _t) {there}'
    return sw.count(), "count(*)"


def _keys(rng: np.random.Generator, twin: Twin, *, least: int) -> list[str]:
    usable = [name for name in twin.columns(*KEYS) if name not in twin.rough]
    return some_of(rng, usable, least=least)[:2] if usable else []


def _has_ties(twin: Twin, keys: list[str]) -> bool:
    """Return whether rows of a key have one time: then which comes first is not known here."""
    return bool(twin.rows.duplicated([*keys, TIME]).any())


def _divided(rng: np.random.Generator) -> dict[str, Any]:
    return {"replicas": int(rng.integers(2, 4))} if rng.random() < 0.25 else {}


def _names(keys: list[str], *, of: str = "") -> str:
    return ", ".join(f'{of}."{key}"' if of else f'"{key}"' for key in keys)


def _table(twin: Twin) -> pa.Table:
    """Return the rows of a stream for SQL."""
    columns = {}
    for field in twin.schema:
        values, kind = twin.rows[field.name].tolist(), kind_of(field.type)
        if kind == "float":
            columns[field.name] = pa.array(values, field.type, from_pandas=True)
            continue
        known = [None if _is_null(value) else value for value in values]
        columns[field.name] = pa.array(known, pa.int64() if kind == "time" else field.type)
    times = pa.array(twin.rows[TIME].tolist(), pa.int64())
    return pa.table({**columns, "_t": times, "_row": np.arange(len(times))})


def _is_null(value: Any) -> bool:
    return not isinstance(value, list) and bool(pd.isna(value))


def _ask(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows that DuckDB makes of these tables."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(sql).fetchall()


def _like(twin: Twin, stream: sw.Stream, chosen: list[int]) -> Twin:
    rows = twin.rows.loc[sorted(chosen)].reset_index(drop=True)
    return replace(twin, stream=stream, schema=stream.schema, rows=rows)


def _made(twin: Twin, stream: sw.Stream, rows: pd.DataFrame, *, is_ordered: bool = True) -> Twin:
    """Return the twin of a stream, with rows of the columns that it has."""
    rows = typed(rows[[*stream.schema.names, TIME]], stream.schema)
    rough = twin.rough & set(stream.columns)
    return Twin(stream, stream.schema, rows, is_ordered=is_ordered, rough=frozenset(rough))


SQL_STEPS: dict[str, Step] = {
    "newest": newest_rows,
    "silence": silent_keys,
    "dedupe": once,
    "limit": first_rows,
    "split": divided,
    "fill": filled,
    "intervals": in_intervals,
}
