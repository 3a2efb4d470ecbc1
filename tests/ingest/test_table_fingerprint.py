"""A table's fingerprint: of its values, however they lie in memory; without a loop over rows."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from slackwater.ingest.memory import table

ROWS = 40
SPARSE = [None if at % 7 == 0 else at for at in range(ROWS)]
TABLE = pa.table(
    {
        "t": pa.array(SPARSE, pa.timestamp("ns")),
        "b": pa.array([None if at is None else at % 3 == 0 for at in SPARSE]),
        "s": pa.array([None if at is None else "x" * (at % 5) for at in SPARSE]),
        "d": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        "l": pa.array([[1, 2]] * ROWS),
        "n": pa.nulls(ROWS),
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
    ],
)
def test_a_value_that_changes_does(column: str, values: list[object]) -> None:
    at = TABLE.schema.get_field_index(column)
    other = TABLE.set_column(at, column, pa.array(values, TABLE.schema.field(at).type))
    assert _mark(other) != _mark(TABLE)


def test_a_million_rows_take_no_second() -> None:
    many = table({"t": np.arange(1_000_000), "v": np.arange(1_000_000) / 3})
    began_s = time.process_time()
    many.fingerprint()
    assert time.process_time() - began_s < 1
