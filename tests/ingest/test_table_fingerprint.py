"""A table's fingerprint: of its values, however they lie in memory; without a loop over rows."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from slackwater.ingest.memory import table

ROWS = 40
SPARSE = [None if at % 7 == 0 else at for at in range(ROWS)]
MAP = pa.map_(pa.string(), pa.int64())
STRUCT = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string())])
TABLE = pa.table(
    {
        "t": pa.array(SPARSE, pa.timestamp("ns")),
        "b": pa.array([None if at is None else at % 3 == 0 for at in SPARSE]),
        "s": pa.array([None if at is None else "x" * (at % 5) for at in SPARSE]),
        "d": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        "l": pa.array([[1, 2]] * ROWS),
        "n": pa.nulls(ROWS),
        "m": pa.array([None, [("a", 1)], [], [("b", None), ("c", 2)]] * 10, MAP),
        "x": pa.array([{"a": [at], "b": None} if at else None for at in SPARSE], STRUCT),
        "f": pa.array([[at, None] if at else None for at in SPARSE], pa.list_(pa.int64(), 2)),
        "c": pa.array(SPARSE, pa.int64()).cast(pa.decimal128(25, 3)),
    }
)


def _mark(given: pa.Table, batch_rows: int = 65_536) -> str:
    return table(given, batch_rows=batch_rows).fingerprint()[1]


@pytest.mark.parametrize("batch_rows", [1, 3, 8])
def test_blocks_and_offsets_do_not_count(batch_rows: int) -> None:
    cut = pa.concat_tables([TABLE.slice(0, 13), TABLE.slice(13)])
    assert _mark(TABLE, batch_rows) == _mark(cut) == _mark(TABLE.take(list(range(ROWS))))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("t", [*SPARSE[:5], 6, *SPARSE[6:]]),
        ("t", [*SPARSE[:5], None, *SPARSE[6:]]),
        ("s", [*TABLE["s"].to_pylist()[:1], "xx", "x", *TABLE["s"].to_pylist()[3:]]),
        ("b", [*TABLE["b"].to_pylist()[:1], True, *TABLE["b"].to_pylist()[2:]]),
        ("l", [[1, 3], *TABLE["l"].to_pylist()[1:]]),
        ("l", [[1], [2, 1, 2], *TABLE["l"].to_pylist()[2:]]),
        ("m", [[], None, *TABLE["m"].to_pylist()[2:]]),
        ("x", [*TABLE["x"].to_pylist()[:3], {"a": [3], "b": ""}, *TABLE["x"].to_pylist()[4:]]),
        ("f", [*TABLE["f"].to_pylist()[:3], [None, 3], *TABLE["f"].to_pylist()[4:]]),
    ],
)
def test_a_value_that_changes_does(column: str, values: list[object]) -> None:
    at = TABLE.schema.get_field_index(column)
    other = TABLE.set_column(at, column, pa.array(values, TABLE.schema.field(at).type))
    assert _mark(other) != _mark(TABLE)


@pytest.mark.parametrize(
    "value",
    [
        pa.array([2**31 - 1], pa.int32()).view(pa.date32()),
        pa.array([2**50], pa.int64()).view(pa.timestamp("s")),
        pa.array([2**62], pa.int64()).view(pa.duration("s")),
        pa.array([10**18 + 1], pa.int64()).view(pa.timestamp("ns", "Europe/Berlin")),
    ],
)
def test_a_time_that_python_does_not_have_counts_in_a_list(value: pa.Array) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), value)
    near = pa.ListArray.from_arrays(lists.offsets, pa.array([5], value.type))
    structs = pa.StructArray.from_arrays([value], ["a"])
    marks = {_mark(pa.table({"x": one})) for one in (value, lists, structs, near)}
    assert len(marks) == 4


def test_a_million_rows_take_no_second() -> None:
    many = table({"t": np.arange(1_000_000), "v": np.arange(1_000_000) / 3})
    began_s = time.process_time()
    many.fingerprint()
    assert time.process_time() - began_s < 1
