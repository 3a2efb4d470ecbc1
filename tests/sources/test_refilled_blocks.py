"""Inputs that fill one buffer again, and arrays that change later, give the rows as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.slot.read_ahead import ReadAhead
from slackwater.runtime.model.copies import copied_array, copied_block
from slackwater.runtime.sources.spec import END_OF_INPUT
from tests.support.own_inputs import Refilling
from tests.support.readers import next_rows

ROWS = 12
EXPECTED = [(n, float(n)) for n in range(ROWS)]


def rows_of(source: Any, **options: Any) -> list[tuple[int, float]]:
    flow = sw.Dataflow("refilled")
    rows = flow.source("s", source, event_time="t", time_unit="s", **options)
    rows.sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=1).submit(flow)
    job.wait()
    return [tuple(row.values()) for row in job.result("out").to_pylist()]


@pytest.mark.parametrize(
    "options",
    [{}, {"out_of_order": "sort", "disorder": "5s"}, {"speed": 60.0}, {"arrival": "t"}],
    ids=lambda options: next(iter(options), "plain"),
)
def test_an_input_that_refills_one_buffer_loses_no_row(options: dict[str, Any]) -> None:
    assert rows_of(Refilling(), **options) == EXPECTED


def test_a_thread_ahead_of_its_slot_keeps_what_each_poll_returned() -> None:
    reader = ReadAhead("s", Refilling(), lambda: None)
    reader._thread.join()
    read: list[Any] = []
    while (block := next_rows(reader)) is not END_OF_INPUT:
        assert isinstance(block, pa.RecordBatch)
        read += block.column("x").to_pylist()
    assert read == [x for _, x in EXPECTED]


T, X = np.arange(ROWS), np.arange(ROWS, dtype=float)


def refilling_stream(t: Any, x: Any) -> pa.RecordBatchReader:
    whole = pa.record_batch({"t": t.copy(), "x": x.copy()})

    def each() -> Iterator[pa.RecordBatch]:
        for row in whole.to_pylist():
            t[0], x[0] = row["t"], row["x"]
            yield pa.record_batch({"t": t[:1], "x": x[:1]})

    return pa.RecordBatchReader.from_batches(whole.schema, each())


@pytest.mark.parametrize(
    "make",
    [
        lambda t, x: {"t": t, "x": x},
        lambda t, x: {"t": pa.array(t), "x": pa.array(x)},
        lambda t, x: pa.table({"t": t, "x": x}),
        lambda t, x: pandas.DataFrame({"t": t, "x": x}, copy=False),
        refilling_stream,
    ],
    ids=["numpy", "arrow", "table", "pandas", "stream"],
)
def test_a_table_has_the_rows_of_the_line_that_made_it(
    make: Callable[[Any, Any], Any],
) -> None:
    t, x = T.copy(), X.copy()
    source = sw.table(make(t, x))
    t[:], x[:] = 0, 0
    assert rows_of(source) == EXPECTED


def test_blocks_are_copied_where_they_are_given() -> None:
    x = X.copy()
    source = sw.connectors.blocks([pa.record_batch({"t": T, "x": x})])
    x[:] = 0
    assert rows_of(source) == EXPECTED


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None, 3]),
        pa.array(["a" * 40, None, "b"], pa.string_view()),
        pa.array([["a" * 40], None, []], pa.list_(pa.string_view())),
        pa.array([b"a" * 40, None, b""], pa.binary_view()),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([{"a": [1]}, None, {"a": None}]),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([{"d": "a"}], pa.struct([("d", pa.dictionary(pa.int32(), pa.string()))])),
    ],
    ids=lambda values: str(values.type),
)
def test_a_copy_shares_no_memory_and_no_more_than_its_rows(values: pa.Array) -> None:
    part = values.slice(1) if len(values) > 1 else values
    copied = copied_array(part)
    assert copied.equals(part)
    assert copied.type == part.type
    assert not addresses(values) & addresses(copied)


def addresses(values: pa.Array) -> set[int]:
    found = {one.address for one in values.buffers() if one is not None and one.size}
    return found | (addresses(values.dictionary) if pa.types.is_dictionary(values.type) else set())


def test_text_outside_its_memory_is_left_for_its_reader() -> None:
    ends = pa.py_buffer(np.array([0, 2**30, 2], np.int32))
    damaged = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"ab")])
    whole = pa.RecordBatch.from_arrays([damaged], ["x"])
    for part in (whole, whole[:1], whole[1:]):
        block = copied_block(part)
        with pytest.raises(pa.ArrowInvalid):
            block.column(0).validate(full=True)
