"""`map_elements` calls a user's function with each value that is there."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, OperatorError, TypeMismatch
from slackwater.runtime.plan.canonical import canonical_step

HOUR = datetime(2026, 1, 5, 8, tzinfo=UTC)
ROWS = pa.table(
    {
        "t": pa.array([HOUR, HOUR, HOUR], pa.timestamp("ms", "Europe/Berlin")),
        "n": pa.array([1, None, 3], pa.int32()),
        "word": ["a", "", None],
        "tags": [["x", "y"], None, []],
    }
)


def stream(flow: sw.Dataflow) -> sw.Stream:
    return flow.source("rows", sw.table(ROWS), event_time="t")


def computed(**columns: sw.Expr) -> dict[str, list[Any]]:
    flow = sw.Dataflow("mapped")
    stream(flow).with_columns(**columns).select(*columns).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job.result("out").to_pydict()


def test_each_value_goes_through_the_function_and_nulls_do_not() -> None:
    def doubled(value: int) -> float:
        return value * 2  # raises for None

    given = computed(
        twice=sw.col("n").map_elements(doubled, "float64") + 1,
        long=sw.col("tags").map_elements(len, "int8"),
        shout=sw.col("word").map_elements(str.upper, pa.large_string()),
        none=sw.col("n").map_elements(lambda n: None if n == 1 else n, "int32"),
    )
    assert given == {
        "twice": [3.0, None, 7.0],
        "long": [2, None, 0],
        "shout": ["A", "", None],
        "none": [None, None, 3],
    }


def test_times_are_given_as_nanoseconds_and_return_in_the_declared_unit() -> None:
    later = sw.col("t").map_elements(lambda t: t + 10**9, "timestamp[ms, tz=Europe/Berlin]")
    given = computed(later=later)["later"]
    assert [one.timestamp() - HOUR.timestamp() for one in given] == [1, 1, 1]


def test_a_filter_may_call_a_function() -> None:
    flow = sw.Dataflow("kept")
    odd = sw.col("n").map_elements(lambda n: n == 3, "bool")
    stream(flow).filter(odd).select("n").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("out").to_pydict() == {"n": [3]}


def test_a_function_that_raises_ends_the_job_with_its_traceback_and_row() -> None:
    def inverse(value: int) -> float:
        return 1 / (value - 3)

    with pytest.raises(OperatorError) as caught:
        computed(y=sw.col("n").map_elements(inverse, "float64"))
    words = str(caught.value)
    assert 'column \'y\', col("n").map_elements(inverse, "float64")' in words
    assert "raised ZeroDivisionError" in words
    assert "return 1 / (value - 3)" in words
    assert "'n': 3" in words


def test_a_result_of_another_type_names_the_row() -> None:
    with pytest.raises(OperatorError, match=r"returned values of str(.|\n)*'n': 3"):
        computed(y=sw.col("n").map_elements(lambda n: n if n == 1 else "three", "int64"))


def test_a_wrong_function_or_type_is_refused_at_the_line() -> None:
    with pytest.raises(TypeMismatch, match="takes a function of one value"):
        sw.col("n").map_elements(3, "int64")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="there is no type 'int'"):
        sw.col("n").map_elements(len, "int")


def test_only_with_columns_and_filter_take_a_function() -> None:
    flow = sw.Dataflow("refused")
    rows = stream(flow)
    odd = sw.col("n").map_elements(lambda n: n % 2 == 1, "bool")
    with pytest.raises(FlowError, match="only with_columns, select and filter can"):
        rows.join(rows, on="word", within="1s", where=odd)
    for time in ("event_time", "promise"):
        asked = {"event_time": "t", time: sw.col("t").map_elements(int, "timestamp")}
        with pytest.raises(FlowError, match="only with_columns, select and filter can"):
            sw.Dataflow("refused").source("rows", sw.table(ROWS), **asked)  # type: ignore[arg-type]


def test_a_function_counts_by_its_code_and_what_it_closes_over() -> None:
    def step(by: int) -> str:
        flow = sw.Dataflow("mapped")
        made = stream(flow).with_columns(y=sw.col("n").map_elements(lambda n: n * by, "int64"))
        return canonical_step(flow.steps[made.name])

    assert step(2) == step(2)
    assert step(2) != step(3)


class Times:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, number: int) -> int:
        return number * self.by


def product(by: int, number: int) -> int:
    return number * by


@pytest.mark.parametrize("make", [Times, lambda by: partial(product, by)])
def test_an_object_that_is_called_counts_alike_in_each_process(make: Any) -> None:
    def step(by: int) -> str:
        flow = sw.Dataflow("mapped")
        made = stream(flow).with_columns(y=sw.col("n").map_elements(make(by), "int64"))
        return canonical_step(flow.steps[made.name])

    assert step(2) == step(2)
    assert step(2) != step(3)
    assert " at 0x" not in step(2)


def test_it_travels() -> None:
    expression = sw.col("n").map_elements(lambda n: n * 2, "int64")
    assert str(cloudpickle.loads(cloudpickle.dumps(expression))) == str(expression)
