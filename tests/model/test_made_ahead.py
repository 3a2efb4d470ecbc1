"""Record batches of a few rows are those that one at a time would have been."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model import Batch
from slackwater.runtime.model.schema import ArrowRows, column_to_arrow, number_dtype

_TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.timestamp("ns"), pa.timestamp("ns", tz="UTC")),
]
_OTHERS = [pa.bool_(), pa.string()]


def _batch(schema: pa.Schema, rows: int, rng: np.random.Generator) -> Batch:
    columns = {}
    for field in schema:
        if field.type == pa.string():
            texts = [None if n % 3 == 0 else f"t{n}" for n in range(rows)]
            columns[field.name] = pa.array(texts, pa.string())
            continue
        dtype = number_dtype(field.type)
        assert dtype is not None
        # Any bits: NaNs, infinities, and the ends of each type.
        raw = rng.integers(0, 256, (rows, dtype.itemsize), dtype=np.uint8)
        columns[field.name] = raw[:, 0] > 127 if dtype.kind == "b" else raw.view(dtype)[:, 0]
    times = np.arange(rows)
    return Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns)


def _bits(column: pa.Array) -> object:
    if column.type in _OTHERS:
        return column.to_pylist()
    return column.to_numpy().tobytes()


@given(
    st.lists(st.sampled_from(_TYPES + _OTHERS), min_size=1, max_size=5),
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.integers(0, 2**32),
)
def test_rows_keep_their_bits_and_types_however_many_come_at_a_time(
    types: list[pa.DataType], sizes: list[int], seed: int
) -> None:
    schema = pa.schema([(f"c{n}", kind) for n, kind in enumerate(types)])
    rng = np.random.default_rng(seed)
    made, kept = ArrowRows(schema), []
    for rows in sizes:
        batch = _batch(schema, rows, rng)
        kept.append((batch, made.of(batch)))
    for batch, got in kept:  # behind all: what was handed out is not written again
        arrays = [column_to_arrow(batch.columns[field.name], field.type) for field in schema]
        got.validate(full=True)
        assert got.schema == schema
        assert list(map(_bits, got.columns)) == list(map(_bits, arrays))


def test_a_column_of_another_type_is_converted_as_for_many_rows() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.float64())])
    made, time = ArrowRows(schema), np.zeros(1, np.int64)
    columns = {"a": np.array([7], np.int32), "b": np.array([2.5])}
    rows = made.of(Batch(event_time_ns=time, stimulus_time_ns=time, columns=columns))
    assert rows.to_pylist() == [{"a": 7, "b": 2.5}]
    assert rows.schema == schema


def test_a_row_is_a_copy_of_what_it_came_as() -> None:
    schema = pa.schema([("a", pa.int64())])
    own, time = np.array([7]), np.zeros(1, np.int64)
    rows = ArrowRows(schema).of(
        Batch(event_time_ns=time, stimulus_time_ns=time, columns={"a": own})
    )
    own[0] = 8
    assert rows.to_pylist() == [{"a": 7}]
