"""Sources at random: in order, sorted, late, with writers, promises, a pace; and what is late."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.twin import TIME, Twin, one_of, pandas_type

BEGIN_MS = 1_700_000_000_000
MS = 1_000_000
TYPES: dict[str, list[Any]] = {
    "k": ["int8", "int32", "int64", "uint16"],
    "x": ["float64", "float32"],
    "z": ["UTC", "Europe/Berlin", None],
}
CENTS = pa.decimal128(8, 2)
MODES = ["in order", "in order", "paced", "sort", "late", "writer", "promise"]


def draw_types(rng: np.random.Generator) -> dict[str, Any]:
    """Return a type for the columns that have a choice: sources of one flow may share them."""
    return {name: one_of(rng, kinds) for name, kinds in TYPES.items()}


def draw_source(
    rng: np.random.Generator, flow: sw.Dataflow, types: dict[str, Any], *, most_rows: int
) -> tuple[Twin, int]:
    """Add a source to a flow; return it with the rows that enter, and how many are late."""
    name = f"in-{len(flow.steps) + 1}"
    size = 0 if rng.random() < 0.03 else int(rng.integers(1, most_rows))
    times_ms = BEGIN_MS + rng.integers(0, one_of(rng, [5, 300, 2_000]), size).cumsum()
    mode = one_of(rng, MODES)
    options: dict[str, Any] = {}
    late = np.zeros(size, dtype=bool)
    if mode in ("sort", "late"):
        disorder_ms = int(rng.integers(1, 3_000))
        behind = rng.integers(0, int(disorder_ms * one_of(rng, [0.9, 1.5])) + 1, size)
        times_ms = times_ms - behind
        options = {"out_of_order": mode, "disorder": f"{disorder_ms}ms"}
        late = _is_late(times_ms, disorder_ms)
    columns: dict[str, Any] = _columns(rng, size, types)
    if mode in ("writer", "promise"):
        columns["w"] = rng.integers(0, 4, size)
        times_ms = _by_writer(rng, times_ms, columns["w"])
        options = {"writer": "w"}
        if mode == "promise":
            least = np.minimum.accumulate(times_ms[::-1])[::-1] if size else times_ms
            columns["p"] = pa.array(least, pa.timestamp("ms"))
            options["promise"] = sw.col("p")
    if mode == "paced":
        options = {"speed": float(one_of(rng, [10, 1_000, 100_000]))}
    if rng.random() < 0.5:
        columns["ts"] = pa.array(times_ms, pa.timestamp("ms"))
    else:
        columns["ts"] = pa.array(times_ms, pa.int64())
        options["time_unit"] = "ms"
    if rng.random() < 0.3:
        options["max_rows"] = int(rng.integers(1, 50))
    table = pa.table(columns)
    stream = flow.source(name, sw.table(table), event_time="ts", **options)
    rows = _frame(table, stream.schema)
    rows[TIME] = times_ms.astype(np.int64) * MS
    rows = rows[~late].reset_index(drop=True)
    is_ordered = mode in ("in order", "paced", "sort")
    return Twin(stream, stream.schema, rows, is_ordered), int(late.sum())


def _columns(rng: np.random.Generator, size: int, types: dict[str, Any]) -> dict[str, Any]:
    quarters = rng.integers(-80, 80, size) / 4
    nulls = [rng.random(size) < one_of(rng, [0.0, 0.0, 0.2, 0.95]) for _ in range(6)]
    cents = [Decimal(int(one)).scaleb(-2) for one in rng.integers(-300, 300, size)]
    at_ms = BEGIN_MS + rng.integers(0, 50, size) * 700
    text = [one_of(rng, ["a", "b", "ü", "", None]) for _ in range(size)]
    return {
        "k": pa.array(rng.integers(0, 5, size), types["k"], mask=nulls[0]),
        "g": pa.array(text, pa.string()),
        "n": pa.array(rng.integers(-50, 50, size), pa.int64(), mask=nulls[1]),
        "x": pa.array(quarters, types["x"], mask=nulls[2]),
        "b": pa.array(rng.random(size) < 0.5, mask=nulls[3]),
        "d": pa.array(
            [None if no else one for one, no in zip(cents, nulls[4], strict=True)], CENTS
        ),
        "z": pa.array(at_ms, pa.int64(), mask=nulls[5]).view(pa.timestamp("ms", types["z"])),
    }


def _is_late(times_ms: np.ndarray, disorder_ms: int) -> np.ndarray:
    newest, late = None, []
    for time_ms in times_ms.tolist():
        late.append(newest is not None and time_ms < newest - disorder_ms)
        newest = time_ms if newest is None else max(newest, time_ms)
    return np.array(late, dtype=bool)


def _by_writer(rng: np.random.Generator, times_ms: np.ndarray, writers: np.ndarray) -> np.ndarray:
    """Return the times so that each writer's own are in order, and the writers out of step."""
    shifted = times_ms + rng.integers(0, 5_000, 4)[writers]
    return np.asarray(shifted)


def _frame(table: pa.Table, schema: pa.Schema) -> pd.DataFrame:
    """Return a table as pandas has it; times in nanoseconds."""
    made = {}
    for field in schema:
        column = table[field.name]
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.timestamp("ns", field.type.tz)).cast(pa.int64())
        made[field.name] = pd.Series(column.to_pylist(), dtype=pandas_type(field.type))
    return pd.DataFrame(made)
