"""`explode`: a row for each element of a list."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import ColumnError, TypeMismatch
from tests.support.tables import result_of

LISTS = [[7, None, 9], [], None, [4]]


def table(kind: pa.DataType, lists: list[Any] = LISTS) -> pa.Table:
    times = pa.array(range(len(lists)), pa.timestamp("us"))
    return pa.table({"ts": times, "id": range(len(lists)), "l": pa.array(lists, kind)})


@pytest.mark.parametrize("kind", [pa.list_(pa.int16()), pa.large_list(pa.int16())])
@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_each_element_is_a_row_and_an_empty_list_is_one_with_null(
    kind: pa.DataType, batch_rows: int
) -> None:
    found = result_of(lambda stream: stream.explode("l"), table(kind), batch_rows=batch_rows)
    assert found.schema.field("l").type == pa.int16()
    assert found.select(["id", "l"]).to_pylist() == [
        {"id": 0, "l": 7},
        {"id": 0, "l": None},
        {"id": 0, "l": 9},
        {"id": 1, "l": None},
        {"id": 2, "l": None},
        {"id": 3, "l": 4},
    ]


def test_lists_of_text_and_of_structs_are_exploded() -> None:
    inner = pa.struct([("a", pa.string())])
    lists = [[{"a": "x"}, {"a": None}], [{"a": "y"}]]
    found = result_of(
        lambda stream: stream.explode("l").with_columns(a=sw.col("l")["a"]),
        table(pa.list_(inner), lists),
        batch_rows=10,
    )
    assert found["a"].to_pylist() == ["x", None, "y"]


def test_the_ledger_counts_further_rows_as_copied() -> None:
    flow = sw.Dataflow("explode")
    rows = flow.source("in", sw.table(table(pa.list_(pa.int64()))), event_time="ts")
    exploded = rows.explode("l").filter(~sw.col("l").is_null())
    exploded.aggregate(n=sw.count(), window=sw.tumbling("1s")).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        ledger = job.wait().ledger
        assert ledger.is_balanced
        assert job.result("out")["n"].to_pylist() == [3]
        assert ledger.entered == 4
        assert ledger.out == 3


def test_a_filter_before_and_after_finds_the_same() -> None:
    made = table(pa.list_(pa.int64()))
    before = result_of(lambda s: s.filter(sw.col("id") > 0).explode("l"), made, batch_rows=2)
    after = result_of(lambda s: s.explode("l").filter(sw.col("id") > 0), made, batch_rows=2)
    assert before == after


@pytest.mark.parametrize(
    ("column", "error", "text"),
    [("id", TypeMismatch, "takes a column of lists"), ("m", ColumnError, "'m'")],
)
def test_a_column_that_is_no_list_is_refused(column: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        result_of(lambda stream: stream.explode(column), table(pa.list_(pa.int64())), batch_rows=1)
