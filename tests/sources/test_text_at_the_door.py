"""Text of any input is UTF-8 and within its memory, or its column and row are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError, SchemaError, SlackwaterError
from slackwater.runtime.sources.spec import Input


def text(data: bytes, ends: list[int]) -> pa.Array:
    buffers = [None, pa.py_buffer(np.array(ends, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, buffers)


# As bytes and offsets: pytest prints what a test is given, and damaged text must not be printed.
NO_UTF8 = b"acaf\xe9", [0, 1, 5]
OUTSIDE = b"abc", [0, 2**30, 2]
BACK = b"abc", [0, 3, 1]


def times(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.timestamp("ns"))


def run(given: Input, *columns: str, **options: Any) -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("s", given, event_time="t", time_unit="s", **options)
    rows.select("t", *columns).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        nodes.submit(flow).wait()


@pytest.mark.parametrize("damaged", [NO_UTF8, OUTSIDE, BACK], ids=["bytes", "outside", "back"])
@pytest.mark.parametrize("is_encoded", [False, True], ids=["plain", "categories"])
def test_damaged_text_is_refused_by_source_column_and_row(
    damaged: tuple[bytes, list[int]], is_encoded: bool
) -> None:
    bad = text(*damaged)
    if is_encoded:
        bad = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), bad)
    block = pa.record_batch({"t": pa.array([1, 2]), "name": bad})
    with pytest.raises(SchemaError, match=r"source 's', input rows 0 to 1: column 'name' is"):
        run(sw.connectors.blocks([block]), "name")
    run(sw.connectors.blocks([block]))  # no step reads it


@pytest.mark.parametrize("damaged", [NO_UTF8, OUTSIDE, BACK], ids=["bytes", "outside", "back"])
@pytest.mark.parametrize("options", [{}, {"on_bad": "skip"}], ids=["live", "bad times"])
def test_damaged_text_of_a_live_input_is_refused(
    damaged: tuple[bytes, list[int]], options: dict[str, Any]
) -> None:
    class Live:
        def describe(self) -> str:
            return "live"

        def schema(self) -> pa.Schema:
            return pa.schema(
                [("t", pa.timestamp("ns")), ("x", pa.float64()), ("name", pa.string())]
            )

        def open(self) -> Any:
            last = None if options else 4
            first = pa.record_batch({"t": times([1, 2]), "x": [1.0, None], "name": ["a", "b"]})
            second = {"t": times([3, last]), "x": [1.0, None], "name": text(*damaged)}
            return sw.connectors.blocks([first, pa.record_batch(second)]).open()

    with pytest.raises(SchemaError, match="source 's', input rows 2 to 3: column 'name' is"):
        run(Live(), "name", **options)
    run(Live(), "x", **options)


def test_damaged_text_of_a_file_is_refused_with_the_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1], "name": ["a"]}), tmp_path / "part-2.parquet")
    pq.write_table(pa.table({"t": [2, 3], "name": text(*NO_UTF8)}), tmp_path / "part-10.parquet")
    with pytest.raises(SchemaError, match=r"column 'name' is not UTF-8 .*part-10\.parquet"):
        run(sw.parquet(tmp_path), "name")


def test_damaged_text_that_a_function_returns_is_refused() -> None:
    flow = sw.Dataflow("f")
    rows = flow.source("s", sw.table({"t": [1, 2]}), event_time="t", time_unit="s")
    made = rows.map_batches(lambda _: {"name": text(*NO_UTF8)}, schema={"name": "string"})
    made.sink("out", sw.collect_sink())
    with (
        pytest.raises(OperatorError, match=r"column 'name' .*is not UTF-8"),
        sw.Simulation() as nodes,
    ):
        nodes.submit(flow).wait()


def test_text_that_has_no_utf8_is_refused_in_an_expression() -> None:
    with pytest.raises(SlackwaterError, match="UTF-8"):
        _ = sw.col("name") == "\ud800"
