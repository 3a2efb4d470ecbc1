"""Rows come from any library of Arrow's PyCapsule interface, and results go to any."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SchemaError
from tests.contract.test_types import rows as rows_of_types

TIMES = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
TABLE = pa.table({"ts": TIMES, "n": [1, None, 3], "t": ["a", None, "ü"]})


class Frame:
    """A frame of another library, which offers its rows to Arrow and nothing else."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


class Block:
    """A block of another library."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        pair: tuple[object, object] = self._rows.__arrow_c_array__(requested_schema)
        return pair


def result_of(data: Any, **options: Any) -> pa.Table:
    flow = sw.Dataflow("frames")
    rows = flow.source("rows", sw.table(data, **options), event_time="ts")
    rows.filter(sw.event_time() >= 0).sink("out", sw.collect_sink())
    with sw.Simulation(1) as nodes:
        return nodes.submit(flow).result("out")


MADE: dict[str, Callable[[pa.Table], Any]] = {
    "a frame": Frame,
    "a block": lambda table: Block(table.to_batches()[0]),
    "a table": lambda table: table,
    "a record batch": lambda table: table.to_batches()[0],
    "a reader": lambda table: table.to_reader(),
    "a DuckDB relation": duckdb.from_arrow,
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("batch_rows", [2, 100])
def test_an_object_of_arrows_interface_is_a_table(made: str, batch_rows: int) -> None:
    found = result_of(MADE[made](TABLE), batch_rows=batch_rows)
    assert found.column_names == TABLE.column_names
    assert found.cast(TABLE.schema).to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_each_type_comes_in_by_a_frame_and_leaves_as_it_came(nulls: float) -> None:
    table = rows_of_types(6, nulls=nulls)
    found = result_of(Frame(table), batch_rows=7)
    assert found.schema == table.schema
    assert found.to_pylist() == table.to_pylist()


def test_a_pandas_frame_is_read_by_its_columns_with_null_for_nan() -> None:
    frame = pandas.DataFrame({"ts": [1, 2], "x": [1.5, np.nan]}, index=[7, 8])
    assert result_of(frame).to_pylist() == [{"ts": 1, "x": 1.5}, {"ts": 2, "x": None}]


LESSER = {
    "decimal32": (pa.decimal32(5, 2), pa.decimal128(5, 2), [Decimal("1.50"), None]),
    "decimal64": (pa.decimal64(12, 2), pa.decimal128(12, 2), [Decimal("1.50"), None]),
    "float16": (pa.float16(), pa.float32(), [1.5, None]),
    "numbers": (pa.dictionary(pa.int8(), pa.int64()), pa.int64(), [7, None]),
    "words": (
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.string()),
        ["a", None],
    ),
}


@pytest.mark.parametrize("name", LESSER)
def test_a_lesser_form_of_a_type_leaves_as_the_usual_one_and_is_a_key(name: str) -> None:
    came_as, leaves_as, values = LESSER[name]
    data = pa.table({"ts": [1, 2], "x": pa.array(values, came_as)})
    assert result_of(data)["x"].type == leaves_as
    flow = sw.Dataflow("keys")
    source = flow.source("s", sw.table(data), event_time="ts", time_unit="s")
    source.aggregate(by="x", window=sw.tumbling("1m"), n=sw.count()).sink("o", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("o")["x"].to_pylist() == values


VIEWS = {
    "text": (pa.string_view(), pa.string(), ["a", None]),
    "bytes": (pa.binary_view(), pa.binary(), [b"a", None]),
    "list": (pa.large_list(pa.string_view()), pa.large_list(pa.string()), [["a"], None]),
    "lists": (pa.list_(pa.binary_view()), pa.list_(pa.binary()), [[b"a", None], None]),
    "pair": (pa.list_(pa.string_view(), 1), pa.list_(pa.string(), 1), [["a"], None]),
    "struct": (
        pa.struct({"t": pa.string_view()}),
        pa.struct({"t": pa.string()}),
        [{"t": "a"}, None],
    ),
    "map": (
        pa.map_(pa.string(), pa.binary_view()),
        pa.map_(pa.string(), pa.binary()),
        [[("k", b"a")], None],
    ),
}


def test_views_as_polars_has_them_are_plain_text_and_bytes() -> None:
    columns = {name: pa.array(values, kind) for name, (kind, _, values) in VIEWS.items()}
    words = pa.array(["a", "b"], pa.string_view())
    columns["named"] = pa.DictionaryArray.from_arrays(pa.array([1, None], pa.uint32()), words)
    table = pa.table({"ts": TIMES[:2], **columns})
    found = result_of(Frame(table))
    for name, (_, plain, values) in VIEWS.items():
        assert found.schema.field(name).type == plain
        assert found[name].to_pylist() == values, name
    assert found.schema.field("named").type == pa.dictionary(pa.int32(), pa.string())
    assert found["named"].to_pylist() == ["b", None]


class LazyFrame:
    """A query of another library that has not been run."""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (LazyFrame(), r"table: LazyFrame is not a table; .*\.collect\(\)"),
        ([1, 2], "table: list is not a table; pass {column: values}"),
        (None, "table: NoneType is not a table"),
        (pa.chunked_array([[1, 2]]), "rows of a ChunkedArray: .*; pass a frame with named columns"),
    ],
)
def test_what_is_no_table_is_refused_by_its_class(data: Any, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        sw.table(data)


class CArray(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "nulls", "offset", "buffers", "children")),
        *((name, ctypes.c_void_p) for name in ("at_buffers", "at_children", "dictionary")),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private", ctypes.c_void_p),
    )


class CStream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("get_last_error", "release", "private")),
    )


class OtherLibrary:
    """Counts rows and columns of a C stream, as a library without pyarrow reads it."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.columns = 0, set[int]()
        capsule = rows.__arrow_c_stream__()  # which releases the stream
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = (
            ctypes.c_void_p,
            [ctypes.py_object, ctypes.c_char_p],
        )
        stream = CStream.from_address(pointer_of(capsule, b"arrow_array_stream") or 0)
        while True:
            block = CArray()
            assert stream.get_next(ctypes.addressof(stream), ctypes.addressof(block)) == 0
            if not block.release:
                break
            self.rows += block.rows
            self.columns.add(block.children)
            block.release(ctypes.addressof(block))


def test_a_result_is_read_by_other_libraries() -> None:
    result = result_of(TABLE, batch_rows=2)
    other = OtherLibrary(result)
    assert (other.rows, other.columns) == (3, {3})
    with duckdb.connect() as database:
        database.register("result", result)
        assert database.sql("SELECT count(n), max(t) FROM result").fetchall() == [(2, "ü")]
    assert result.to_pandas()["n"].isna().tolist() == [False, True, False]
    assert pa.RecordBatchReader.from_stream(result).read_all() == result
