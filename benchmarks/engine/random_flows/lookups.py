"""Lookups at random in a table, and in one that is read again; DuckDB gives their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.sql import MS, ask, column_names, drawn_keys, made_of, sql_table
from benchmarks.engine.random_flows.twin import MOST_COLUMNS, TIME, Twin, one_of
from slackwater.ingest.reread import RereadInput
from slackwater.runtime.model import EARLIEST_NS
from slackwater.runtime.sources.spec import Block, Input

__all__ = ["looked_up", "looked_up_again"]


def looked_up(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Give rows the columns of a table's row of their key, or those of a table's one row."""
    twin = one_of(rng, twins)
    if len(twin.stream.columns) + 3 > MOST_COLUMNS:
        return None
    keys = drawn_keys(rng, twin, least=0)[:1]
    table = _drawn_table(rng, twin, keys)
    how: Any = one_of(rng, ["left", "left", "inner"]) if keys else "left"
    given = sw.table(table) if rng.random() < 0.3 else table
    suffix = f"_{len(twin.stream.flow.steps)}"
    if keys:
        stream = twin.stream.lookup(given, left_on=keys, right_on=["id"], how=how, suffix=suffix)
        on = f'r."{keys[0]}" = looked."id"'
    else:
        stream, on = twin.stream.cross(given, suffix=suffix), "true"
    made = _beside(twin, stream, table, how, on, suffix)
    made = replace(made, is_ordered=twin.is_ordered)
    return made if not twin.is_table else replace(made, changes="split")


def looked_up_again(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Give rows the columns of a table that is read at several times, or once for all events."""
    twin = one_of(rng, twins)
    keys = drawn_keys(rng, twin, least=1)[:1]
    if not keys or len(twin.stream.columns) + 3 > MOST_COLUMNS:
        return None
    how: Any = one_of(rng, ["left", "left", "inner"])
    every_ms = int(one_of(rng, [100, 2_000, 60_000, 3_600_000]))
    every_ns = every_ms * MS
    suffix = f"_{len(twin.stream.flow.steps)}"
    if rng.random() < 0.2:
        table = _drawn_table(rng, twin, keys)
        given: Any = sw.reread(sw.table(table), every=f"{every_ms}ms").simulated()
        bounds: list[tuple[int, int | None]] = [(EARLIEST_NS, None)]
        versions = [table]
    else:
        versions = [_drawn_table(rng, twin, keys) for _ in range(int(rng.integers(1, 5)))]
        begin_ns = int(one_of(rng, twin.rows[TIME].tolist() or [0])) // every_ns * every_ns
        given = Readings(versions, begin_ns, every_ns)
        bounds = [
            (begin_ns + at * every_ns if at else EARLIEST_NS, begin_ns + (at + 1) * every_ns)
            for at in range(len(versions))
        ]
    readings = [
        table.append_column("_from", pa.array([from_ns] * len(table), pa.int64())).append_column(
            "_until", pa.array([until_ns] * len(table), pa.int64())
        )
        for table, (from_ns, until_ns) in zip(versions, bounds, strict=True)
    ]
    stream = twin.stream.lookup(given, left_on=keys, right_on=["id"], how=how, suffix=suffix)
    on = f'r."{keys[0]}" = looked."id" AND r._t >= _from AND (_until IS NULL OR r._t < _until)'
    return _beside(twin, stream, pa.concat_tables(readings), how, on, suffix)


@dataclass(frozen=True)
class Readings:
    """A table of `sw.reread` that was read at known times, and is read no more.

    Attributes:
        versions: rows of each reading.
        begin_ns: time of the first reading.
        every_ns: time between two readings.
    """

    versions: list[pa.Table]
    begin_ns: int
    every_ns: int

    def with_keys(self, keys: tuple[str, ...], *, step: str) -> Input:
        """Return the blocks of the readings, each made by a reader that goes on after the last."""
        blocks: list[pa.RecordBatch] = []
        at: bytes | None = None
        for place, rows in enumerate(self.versions):
            clock_ns = _standing(self.begin_ns + place * self.every_ns)
            table = RereadInput(sw.table(rows), self.every_ns, keys, step, clock_ns)
            reader = table.open("", at)
            while isinstance(polled := reader.poll(), Block):
                blocks.append(polled.rows)
                at = polled.at
        return sw.connectors.blocks(blocks)


def _standing(now_ns: int) -> Callable[[], int]:
    return lambda: now_ns


def _drawn_table(rng: np.random.Generator, twin: Twin, keys: list[str]) -> pa.Table:
    """Return a table with some keys of a stream in a column `id`; without keys it has one row."""
    place = len(twin.stream.flow.steps)
    known = {_plain(value) for key in keys for value in twin.rows[key].tolist()}
    some = sorted(known - {None}, key=str)
    rows = (
        [some[int(at)] for at in rng.permutation(len(some))[: len(some) // 2 + 1]] if keys else []
    )
    rows += [None] if keys and rng.random() < 0.3 else []
    size = len(rows) if keys else 1
    prices = rng.integers(-20, 20, size) / 4
    columns: dict[str, Any] = {
        f"price{place}": pa.array(prices, pa.float64(), mask=rng.random(size) < 0.2),
        f"label{place}": pa.array(
            [one_of(rng, ["a", "b", "ü", None]) for _ in range(size)], pa.string()
        ),
    }
    if "n" not in keys and "n" in twin.stream.columns:  # leaves under another name
        columns["n"] = pa.array(rng.integers(-5, 5, size), pa.int16())
    types = [twin.schema.field(key).type for key in keys]
    keyed = {"id": pa.array(rows, types[0])} if keys else {}
    return pa.table({**keyed, **columns})


def _beside(twin: Twin, stream: sw.Stream, table: pa.Table, how: str, on: str, suffix: str) -> Twin:
    """Return the twin of a stream whose rows have columns of a table.

    Args:
        twin: twin of the stream before it.
        stream: stream whose twin is made.
        table: rows that are looked up, perhaps with times from which on and until which they count.
        how: option of this name of the lookup.
        on: condition in SQL on a row `r` and a row `looked` of the table.
        suffix: suffix of the table's columns whose name the stream has too.
    """
    columns = [name for name in table.column_names if name not in ("id", "_from", "_until")]
    answer = ask(
        f"SELECT r._row, {column_names(columns, of='looked')} FROM rows r"
        f" {how} JOIN looked ON {on} ORDER BY r._row",
        rows=sql_table(twin),
        looked=table,
    )
    own = {
        (name + suffix if name in twin.stream.columns else name): pd.Series(
            [row[at] for row in answer], dtype=object
        )
        for at, name in enumerate(columns, start=1)
    }
    chosen = twin.rows.loc[[row for row, *_ in answer]].reset_index(drop=True)
    return made_of(twin, stream, chosen.assign(**own))


def _plain(value: Any) -> Any:
    return None if pd.isna(value) else value
