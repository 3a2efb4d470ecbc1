"""Sources at random: keys of all types, many rows at one time, some without rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.twin import one_of

BEGIN_MS = 1_700_000_000_000
MODES = ("in order", "in order", "paced", "sort", "late", "writer", "promise")
FLOATS = (0.0, -0.0, 1.5, float("nan"), 2.0)
WHOLE = ("int8", "int32", "int64", "uint16")
UNITS = ("s", "ms", "us", "ns")


def key_types(rng: np.random.Generator) -> dict[str, Any]:
    """Return the types of the key columns that have a choice."""
    return {
        "k": one_of(rng, WHOLE),
        "f": one_of(rng, ["float64", "float32"]),
        "z": pa.timestamp(one_of(rng, UNITS), one_of(rng, ["UTC", None])),
        "d": pa.decimal128(one_of(rng, [8, 30]), one_of(rng, [2, 4])),
    }


def draw_source(
    rng: np.random.Generator,
    flow: sw.Dataflow,
    types: dict[str, Any],
    *,
    most_rows: int,
    batch_rows: int,
    parts: int = 1,
) -> sw.Stream:
    """Add a source to a flow, or several that share its rows, and are merged.

    Args:
        rng: what is drawn from.
        flow: the flow.
        types: of the key columns.
        most_rows: most rows of the source.
        batch_rows: most rows of a batch that it gives.
        parts: number of sources that share the rows in turns.
    """
    name = f"in-{len(flow.steps) + 1}"
    size = 0 if rng.random() < 0.06 else int(rng.integers(1, most_rows))
    span_ms = int(one_of(rng, [size // 8 + 1, 400, 5_000]))
    begin_ms = BEGIN_MS + int(one_of(rng, [0, 0, span_ms // 2]))
    times_ms = begin_ms + np.sort(rng.integers(0, span_ms, size)) * int(one_of(rng, [1, 1, 50]))
    columns, options = _columns(rng, size, types), _in_mode(rng, size, times_ms)
    times_ms, own = options.pop("times_ms"), options.pop("columns")
    columns |= own
    columns["ts"] = pa.array(times_ms, pa.timestamp("ms"))
    table = pa.table(columns)
    sources = [
        flow.source(
            name + (f"-{part}" if part else ""),
            sw.table(table.take(np.arange(part, size, parts)), batch_rows=batch_rows),
            event_time="ts",
            **options,
        )
        for part in range(parts)
    ]
    stream = sources[0] if parts == 1 else flow.merge(*sources)
    return stream.select(*[column for column in stream.columns if column not in own])


def _in_mode(rng: np.random.Generator, size: int, times_ms: Any) -> dict[str, Any]:
    """Return the options of a source in one of the modes, with its `times_ms` and `columns`."""
    mode = one_of(rng, MODES)
    made: dict[str, Any] = {"columns": {}}
    if mode in ("sort", "late"):
        disorder_ms = int(rng.integers(1, 300))
        behind = rng.integers(0, int(disorder_ms * one_of(rng, [0.9, 1.5])) + 1, size)
        times_ms = times_ms - behind
        made |= {"out_of_order": mode, "disorder": f"{disorder_ms}ms"}
    elif mode in ("writer", "promise"):
        writers = rng.integers(0, 4, size)
        times_ms = times_ms + rng.integers(0, 200, 4)[writers]
        made["columns"]["w"] = writers
        made["writer"] = "w"
        if mode == "promise":
            least = np.minimum.accumulate(times_ms[::-1])[::-1] if size else times_ms
            made["columns"]["p"] = pa.array(least, pa.timestamp("ms"))
            made["promise"] = sw.col("p")
    elif mode == "paced":
        made["speed"] = float(one_of(rng, [10, 1_000, 100_000]))
    return {**made, "times_ms": times_ms}


def _columns(rng: np.random.Generator, size: int, types: dict[str, Any]) -> dict[str, Any]:
    nulls = [rng.random(size) < one_of(rng, [0.0, 0.1, 0.9]) for _ in range(6)]
    keys = int(one_of(rng, [1, 3, 40]))
    cents = [Decimal(int(one)).scaleb(-2) for one in rng.integers(-keys, keys, size)]
    text = [one_of(rng, ["a", "ü", ""]) + "·" * n for n in rng.integers(0, keys, size)]
    seconds = 1_700_000_000 + rng.integers(0, keys, size)
    at = pa.array(seconds, pa.int64()).view(pa.timestamp("s", types["z"].tz)).cast(types["z"])
    return {
        "k": pa.array(rng.integers(0, keys, size), types["k"], mask=nulls[0]),
        "j": pa.array(rng.integers(0, 5, size), pa.int64()),
        "f": pa.array(np.array(FLOATS)[rng.integers(0, len(FLOATS), size)], types["f"]),
        "g": pa.array(
            [None if no else one for one, no in zip(text, nulls[1], strict=True)], pa.string()
        ),
        "d": pa.array(
            [None if no else one for one, no in zip(cents, nulls[2], strict=True)], types["d"]
        ),
        "z": pa.array(
            [None if no else one for one, no in zip(at, nulls[3], strict=True)], types["z"]
        ),
        "b": pa.array(rng.random(size) < 0.5, mask=nulls[4]),
        "n": pa.array(rng.integers(-50, 50, size), pa.int64(), mask=nulls[5]),
        "v": rng.integers(0, 80, size) / 4,
        "id": np.arange(size),
    }
