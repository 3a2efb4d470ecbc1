"""A column of each type, drawn at random from a few values, with nulls."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["BERLIN", "NESTED", "PLAIN", "TYPES", "at", "day", "drawn", "drawn_rows"]

BERLIN = "Europe/Berlin"


def at(hour: int, micro: int = 0) -> datetime.datetime:
    """Return a time of the night in which Berlin's clock goes forward."""
    return datetime.datetime(2026, 3, 29, hour, 30, 0, micro, tzinfo=datetime.UTC)


def day(number: int) -> datetime.date:
    """Return a day beyond what nanoseconds hold."""
    return datetime.date(9998, 1, number)


PLAIN: dict[str, tuple[pa.DataType, list[Any]]] = {
    "u8": (pa.uint8(), [0, 7, 255]),
    "i16": (pa.int16(), [-300, 0, 300]),
    "u64": (pa.uint64(), [0, 5, 2**64 - 1]),
    "f32": (pa.float32(), [-0.5, 1.25, 3.0]),
    "f64": (pa.float64(), [-0.5, 1.25, 3.0]),
    "bool": (pa.bool_(), [True, False]),
    "decimal": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.01"), Decimal("7.00")]),
    "wide": (pa.decimal128(38, 10), [Decimal("1.5"), Decimal(10) ** 20]),
    "widest": (pa.decimal256(60, 5), [Decimal("1.5"), Decimal(10) ** 50]),
    "date32": (pa.date32(), [day(1), day(2), day(3)]),
    "date64": (pa.date64(), [day(1), day(2), day(3)]),
    "time32": (pa.time32("s"), [datetime.time(1), datetime.time(2)]),
    "time64": (pa.time64("us"), [datetime.time(1, 2, 3, 4), datetime.time(2)]),
    "s": (pa.timestamp("s"), list(map(at, (1, 2, 3)))),
    "ms": (pa.timestamp("ms", BERLIN), [at(1, 1_000), at(2)]),
    "us": (pa.timestamp("us", BERLIN), [at(1, 1), at(2)]),
    "far": (pa.timestamp("us", "UTC"), [datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)]),
    "ns": (pa.timestamp("ns", "UTC"), [at(1), at(2)]),
    "lasting": (pa.duration("ms"), [datetime.timedelta(seconds=1), datetime.timedelta(0)]),
    "bytes": (pa.binary(), [b"", b"a", b"\xff\x00"]),
    "large": (pa.large_binary(), [b"", b"a"]),
    "fixed": (pa.binary(2), [b"ab", b"cd"]),
    "text": (pa.string(), ["", "a", "ü"]),
    "long": (pa.large_string(), ["", "a", "ü"]),
    "named": (pa.dictionary(pa.int32(), pa.string()), ["x", "y"]),
}
"""{name of a column: its type, its values}, of types that are keys."""
NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "list": (pa.list_(pa.int32()), [[], [1, None], [2, 3]]),
    "listed": (pa.large_list(pa.string()), [[], ["a"]]),
    "pair": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [3.0, 4.0]]),
    "struct": (
        pa.struct([("a", pa.int8()), ("b", pa.list_(pa.timestamp("us", BERLIN)))]),
        [{"a": 1, "b": [at(1)]}, {"a": None, "b": None}],
    ),
    "map": (pa.map_(pa.string(), pa.decimal128(5, 1)), [[], [("k", Decimal("1.5"))]]),
}
"""The same, of types that are no keys."""
_FLOATS = [-0.5, 0.0, -0.0, 1.25, math.nan, math.inf]
EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, 0, 127]),
    "i32": (pa.int32(), [-(2**31), 0, 7]),
    "i64": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "u16": (pa.uint16(), [0, 65_535]),
    "u32": (pa.uint32(), [0, 2**32 - 1]),
    "f32": (pa.float32(), _FLOATS),
    "f64": (pa.float64(), _FLOATS),
    "date32": (pa.date32(), [day(1), datetime.date(1969, 12, 31)]),
    "text": (pa.string(), ["", "a", "ü", 'quo"te, and\nline']),
}
"""More types, and values at their edges."""
TYPES = {**PLAIN, **EDGES, **NESTED}
del TYPES["widest"]  # DuckDB has no decimals of more than 38 digits


def drawn(
    rng: np.random.Generator, values: list[Any], kind: pa.DataType, *, rows: int, nulls: float
) -> pa.Array:
    """Return rows of these values, of which a share is null."""
    chosen = [values[n] for n in rng.integers(0, len(values), rows)]
    return pa.array([None if rng.random() < nulls else one for one in chosen], kind)


def drawn_rows(rng: np.random.Generator, name: str, *, rows: int, nulls: float) -> pa.Table:
    """Return rows with a time `ts`, a number `k`, and a column `x` of a type, partly null."""
    kind, values = TYPES[name]
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * 1_000, pa.timestamp("us")),
            "k": pa.array(rng.integers(0, 3, rows)),
            "x": drawn(rng, values, kind, rows=rows, nulls=nulls),
        }
    )
