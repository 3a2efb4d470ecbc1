"""Streams by conditions, streams with columns of their own as one, and whole rows once."""

from __future__ import annotations

from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, TypeMismatch

ROWS = {"t": [1, 2, 3, 4], "x": [5, None, 1, 9], "at": ["a", "b", None, "d"]}


def source(flow: sw.Dataflow, name: str = "rows") -> sw.Stream:
    return flow.source(name, sw.table(ROWS), event_time="t", time_unit="s")


def ran(flow: sw.Dataflow, *sinks: str) -> list[list[dict[str, Any]]]:
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().ledger.is_balanced
        return [job.result(name).to_pylist() for name in sinks]


def test_each_row_goes_to_the_first_stream_whose_condition_is_true() -> None:
    flow = sw.Dataflow("split")
    parts = source(flow).split({"great": sw.col("x") > 4, "known": ~sw.col("at").is_null()})
    for name, part in zip(("a", "b", "rest"), parts, strict=True):
        part.sink(f"{name}-out", sw.collect_sink())
    assert [part.name for part in parts] == ["great", "known", "rest-1"]
    rows = ran(flow, "a-out", "b-out", "rest-out")
    assert [[row["t"] for row in part] for part in rows] == [[1, 4], [2], [3]]


def test_one_condition_makes_two_streams_and_a_null_goes_to_the_other() -> None:
    flow = sw.Dataflow("split")
    great, others = source(flow).split(sw.col("x") > 4)
    great.sink("great", sw.collect_sink())
    others.sink("others", sw.collect_sink())
    rows = ran(flow, "great", "others")
    assert [[row["t"] for row in part] for part in rows] == [[1, 4], [2, 3]]


@pytest.mark.parametrize(
    ("by", "kind", "says"),
    [
        ({}, FlowError, "has no condition; write one"),
        (sw.col("x") + 1, TypeMismatch, "must be true or false"),
        ({"a": "x > 4"}, TypeMismatch, "write it in Python"),
    ],
)
def test_what_is_no_condition_is_refused(by: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as problem:
        source(sw.Dataflow("split")).split(by)
    assert says in str(problem.value)


def test_columns_that_a_stream_lacks_are_null_in_its_rows() -> None:
    flow = sw.Dataflow("union")
    left = source(flow, "left").select("t", "x")
    right = source(flow, "right").select("at", "t", y=sw.col("x") * 0.5)
    left.merge(right, fill=True).sink("out", sw.collect_sink())
    (rows,) = ran(flow, "out")
    assert rows[:3] == [
        {"t": 1, "x": 5, "at": None, "y": None},
        {"t": 1, "x": None, "at": "a", "y": 2.5},
        {"t": 2, "x": None, "at": None, "y": None},
    ]
    assert len(rows) == 8


def test_streams_with_the_same_columns_are_merged_as_without_fill() -> None:
    flow = sw.Dataflow("union")
    rows = source(flow)
    flow.merge(rows, rows.select("at", "x", "t"), fill=True).sink("out", sw.collect_sink())
    assert "with_columns" not in flow.explain()
    (made,) = ran(flow, "out")
    assert list(made[0]) == ["t", "x", "at"]


@pytest.mark.parametrize(
    ("other", "fill", "says"),
    [
        (lambda s: s.drop("x"), False, "'x' is int64 in 'rows' and missing in 'drop-1'"),
        (lambda s: s.drop("x"), False, "fill=True makes missing columns null"),
        (lambda s: s.select("t", x="at"), True, "'x' is int64 in 'rows' and string in 'select-1'"),
        (
            lambda s: s.select(x=sw.col("x").cast("int32")),
            True,
            "make them alike before, .with_columns(x=…), or .drop it",
        ),
    ],
)
def test_columns_that_do_not_meet_are_refused_with_a_way_out(
    other: Any, fill: bool, says: str
) -> None:
    rows = source(sw.Dataflow("union"))
    with pytest.raises(TypeMismatch) as problem:
        rows.merge(other(rows), fill=fill)
    assert says in str(problem.value)


def test_without_columns_whole_rows_leave_once() -> None:
    flow = sw.Dataflow("once")
    rows = source(flow)
    rows.merge(rows).dedupe(within="1s").sink("out", sw.collect_sink())
    (made,) = ran(flow, "out")
    assert [row["t"] for row in made] == [1, 2, 3, 4]
