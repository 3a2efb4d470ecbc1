"""Steps at random whose answers DuckDB gives, by SQL over the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.expressions import predicate
from benchmarks.engine.random_flows.sql import (
    MS,
    Step,
    ask,
    column_names,
    divided_by,
    drawn_keys,
    has_ties,
    like,
    made_of,
    sql_table,
)
from benchmarks.engine.random_flows.twin import TIME, Twin, one_of

__all__ = ["SQL_STEPS"]


def newest_rows(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the newest or the oldest row of each key and window."""
    twin = one_of(rng, twins)
    keys = drawn_keys(rng, twin, least=1)
    if not keys or "window_start" in twin.stream.columns or has_ties(twin, keys):
        return None
    size_ms, slide_ms = one_of(rng, [(700, 700), (10_000, 10_000), (3_000, 2_000)])
    is_newest = bool(rng.random() < 0.5)
    choose = twin.stream.newest if is_newest else twin.stream.oldest
    options = divided_by(rng)
    stream = choose(keys, window=sw.sliding(f"{size_ms}ms", f"{slide_ms}ms"), **options)
    size, slide = size_ms * MS, slide_ms * MS
    chosen = ask(
        f"""
        SELECT _row, (_t // {slide} - back) * {slide} AS start
        FROM rows, range({-(-size // slide)}) AS r(back) WHERE _t < start + {size}
        QUALIFY row_number() OVER (PARTITION BY start, {column_names(keys)}
            ORDER BY _t {"DESC" if is_newest else ""}) = 1
        """,
        rows=sql_table(twin),
    )
    starts = np.array([start for _, start in chosen], np.int64)
    rows = twin.rows.loc[[row for row, _ in chosen]].reset_index(drop=True)
    bounds = {"window_start": starts, "window_end": starts + size, TIME: starts + size - 1}
    return made_of(twin, stream, rows.assign(**bounds), is_ordered=not options)


def silent_keys(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Make a row for each silence of a key."""
    twin = one_of(rng, twins)
    keys = drawn_keys(rng, twin, least=1)
    if not keys or "silent_since" in keys:
        return None
    after_ms = one_of(rng, [100, 2_000, 60_000])
    options = divided_by(rng)
    stream = twin.stream.silence(keys, after=f"{after_ms}ms", **options)
    answer = ask(
        f"""
        SELECT {column_names(keys)}, _t, _t + {after_ms * MS} FROM rows
        QUALIFY coalesce(
            lead(_t) OVER (PARTITION BY {column_names(keys)} ORDER BY _t) - _t > {after_ms * MS},
            true)
        """,
        rows=sql_table(twin),
    )
    rows = pd.DataFrame(answer, columns=[*keys, "silent_since", TIME], dtype=object)
    return made_of(twin, stream, rows, is_ordered=not options)


def once(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the first of rows with equal keys and close times."""
    twin = one_of(rng, twins)
    keys = drawn_keys(rng, twin, least=1)
    if not keys or has_ties(twin, keys):
        return None
    within_ms = one_of(rng, [1, 700, 10_000])
    options = divided_by(rng)
    stream = twin.stream.dedupe(keys, within=f"{within_ms}ms", **options)
    same = " AND ".join(f'r."{key}" IS NOT DISTINCT FROM kept."{key}"' for key in keys)
    chosen = ask(
        f"""
        WITH RECURSIVE firsts AS (
            SELECT {column_names(keys)}, min(_t) AS _t FROM rows GROUP BY {column_names(keys)}
        ), kept AS (
            FROM firsts
            UNION ALL
            SELECT {column_names(keys, of="kept")}, min(r._t) AS _t FROM kept, rows r
            WHERE {same} AND r._t > kept._t + {within_ms * MS}
            GROUP BY {column_names(keys, of="kept")}
        )
        SELECT r._row FROM rows r JOIN kept ON {same} AND r._t = kept._t
        """,
        rows=sql_table(twin),
    )
    firsts = like(twin, stream, [row for (row,) in chosen])
    return replace(firsts, is_ordered=not options)


def first_rows(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the first rows of a stream."""
    twin = one_of(rng, twins)
    if not twin.rows[TIME].is_unique:
        return None
    size = int(rng.integers(1, 60))
    chosen = ask(f"SELECT _row FROM rows ORDER BY _t LIMIT {size}", rows=sql_table(twin))
    return replace(like(twin, twin.stream.limit(size), [row for (row,) in chosen]), is_ordered=True)


def divided(rng: np.random.Generator, twins: list[Twin]) -> list[Twin]:
    """Split a stream by two conditions."""
    twin = one_of(rng, twins)
    conditions, tables = {}, sql_table(twin)
    for place in range(2):
        name = f"part-{len(twin.stream.flow.steps)}-{place}"
        conditions[name], known = predicate(rng, twin)
        tables = tables.append_column(f"_is{place}", pa.array(known))
    streams = twin.stream.split(conditions)
    answer = ask(
        "SELECT _row, CASE WHEN _is0 THEN 0 WHEN _is1 THEN 1 ELSE 2 END FROM rows", rows=tables
    )
    return [
        like(twin, stream, [row for row, of in answer if of == part])
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
    answer = ask(
        f"SELECT {names} FROM (FROM a UNION ALL BY NAME FROM b)",
        a=sql_table(left),
        b=sql_table(right),
    )
    rows = pd.DataFrame(answer, columns=[*stream.schema.names, TIME], dtype=object)
    made = made_of(left, stream, rows)
    return replace(made, rough=left.rough | right.rough)


SQL_STEPS: dict[str, Step] = {
    "newest": newest_rows,
    "silence": silent_keys,
    "dedupe": once,
    "limit": first_rows,
    "split": divided,
    "fill": filled,
}
