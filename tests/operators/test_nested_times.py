"""Times in lists, structs and maps: nanoseconds for a function of rows; far ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError


def times(kind: pa.DataType, *numbers: int) -> pa.Array:
    dtype = "int32" if kind.bit_width == 32 else "int64"
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.array(numbers, dtype))])


def lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), values)


def structs(values: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([values], ["a"])


FAR = {
    "list of times": lists(times(pa.timestamp("s"), 253_402_300_800, 5)),
    "struct of dates": structs(times(pa.date32(), 2**31 - 1, 5)),
    "struct of times": structs(times(pa.timestamp("s"), 2**50, 5)),
    "struct of durations": structs(times(pa.duration("s"), 2**62, 5)),
    "time alone": times(pa.timestamp("s"), 253_402_300_800, 5),
    "duration alone": times(pa.duration("s"), 2**62, 5),
}
WHOLE = {"t": "int64"}


class Seen:
    def on_rows(self, key: int, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"t": key} for _ in rows]


def by_rows(stream: Any, on_error: Any) -> Any:
    return stream.map_rows(lambda row: {"t": row["t"]}, WHOLE, name="work", on_error=on_error)


def by_objects(stream: Any, on_error: Any) -> Any:
    return stream.key_by("t").process(Seen, WHOLE, name="work", on_error=on_error)


def no_batch(columns: Any) -> Any:
    raise ValueError("no such batch")


def by_batches(stream: Any, on_error: Any) -> Any:
    return stream.map_batches(no_batch, WHOLE, name="work", on_error=on_error)


def run(column: pa.Array, make: Callable[[Any], Any]) -> dict[str, list[Any]]:
    flow = sw.Dataflow("nested")
    rows = sw.table(pa.table({"t": [1, 2], "x": column}))
    make(flow.source("in", rows, event_time="t", time_unit="s"))
    sinks = [step.name for step in flow.steps.values() if step.traits.kind == "sink"]
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return {name: job.result(name).to_pylist() for name in sinks}


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("work", [by_rows, by_objects])
def test_a_far_time_is_refused_by_its_step_and_row(far: str, work: Any) -> None:
    with pytest.raises(OperatorError, match=r"step 'work': col\('x'\) is (?s:.)*row with event_"):
        run(FAR[far], lambda stream: work(stream, "error").sink("out", sw.collect_sink()))


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("work", [by_rows, by_objects])
def test_a_row_with_a_far_time_is_skipped_alone(far: str, work: Any) -> None:
    found = run(FAR[far], lambda stream: work(stream, "skip").sink("out", sw.collect_sink()))
    assert found["out"] == [{"t": 2}]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("work", [by_rows, by_objects, by_batches])
def test_a_row_with_a_far_time_is_diverted_as_text(far: str, work: Any) -> None:
    def make(stream: Any) -> None:
        good = work(stream, "divert")
        good.sink("out", sw.collect_sink())
        good.diverted().sink("bad", sw.collect_sink())

    row = json.loads(run(FAR[far], make)["bad"][0]["row"])
    assert isinstance(row["x"], str)
    assert "-" in row["x"] or "s" in row["x"]


def test_diverted_times_are_nanoseconds_as_the_page_says() -> None:
    def make(stream: Any) -> None:
        good = stream.map_rows(no_batch, WHOLE, on_error="divert")
        good.sink("out", sw.collect_sink())
        good.diverted().sink("bad", sw.collect_sink())

    found = run(times(pa.timestamp("s"), 3, 4), make)
    assert [json.loads(one["row"])["x"] for one in found["bad"]] == [3_000_000_000, 4_000_000_000]


@pytest.mark.parametrize(
    ("column", "first"),
    [
        (lists(times(pa.timestamp("ns", "Europe/Berlin"), 10**18 + 1, 5)), [10**18 + 1]),
        (lists(times(pa.timestamp("us"), 7, 5)), [7_000]),
        (structs(times(pa.date32(), 1, 5)), {"a": 86_400 * 10**9}),
        (structs(lists(times(pa.duration("ms"), 2, 5))), {"a": [2_000_000]}),
        (lists(times(pa.time32("s"), 2, 5)), [2 * 10**9]),
    ],
)
def test_a_function_gets_nested_times_in_nanoseconds_and_may_return_them(
    column: pa.Array, first: Any
) -> None:
    SEEN.clear()

    def step(row: dict[str, Any]) -> dict[str, Any]:
        note(row["x"])
        return {"x": row["x"]}

    def make(stream: Any) -> None:
        stream.map_rows(step, {"x": column.type}).sink("same", sw.collect_sink())
        each = sw.col("x").map_elements(repr, "string")
        stream.select(x=each).sink("text", sw.collect_sink())
        stream.key_by("t").process(Kept, {"text": "string"}).sink("kept", sw.collect_sink())

    flow = sw.Dataflow("nested")
    make(
        flow.source(
            "in", sw.table(pa.table({"t": [1, 2], "x": column})), event_time="t", time_unit="s"
        )
    )
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("same")["x"].combine_chunks().equals(column)
        assert job.result("text")["x"][0].as_py() == repr(first)
        assert job.result("kept")["text"][0].as_py() == repr(first)
    assert SEEN[0] == first


SEEN: list[Any] = []
"""Values that a function was given: a run has a copy of it, and of what it holds."""


def note(value: Any) -> None:
    SEEN.append(value)


class Kept:
    def on_rows(self, _key: int, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"text": repr(row["x"])} for row in rows]


def test_what_lies_under_a_null_is_no_far_time() -> None:
    offsets = pa.array([0, 1, 2], pa.int32())
    values = times(pa.timestamp("s"), 2**50, 5)
    column = pa.ListArray.from_arrays(offsets, values, mask=pa.array([True, False]))
    found = run(column, lambda stream: by_rows(stream, "error").sink("out", sw.collect_sink()))
    assert found["out"] == [{"t": 1}, {"t": 2}]


@pytest.mark.parametrize("far", ["time alone", "duration alone"])
def test_the_advice_on_a_far_time_works_on_a_duration_too(far: str) -> None:
    with pytest.raises(OperatorError, match=r"\.filter\(~col\('x'\)\.try_cast\('timestamp\[ns\]'"):
        run(FAR[far], lambda stream: by_rows(stream, "error").sink("out", sw.collect_sink()))

    def make(stream: Any) -> None:
        near = stream.filter(~sw.col("x").try_cast("timestamp[ns]").is_null())
        by_rows(near, "error").sink("out", sw.collect_sink())

    assert run(FAR[far], make)["out"] == [{"t": 2}]
