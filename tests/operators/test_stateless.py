"""Steps without state: what they return, and what they say of a user's mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.runtime.errors import FlowError, OperatorError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import READY_ONLY, Batch, Columns, batch_of
from slackwater.runtime.operators.each_row.columns import SelectStep, WithColumnsStep
from slackwater.runtime.operators.each_row.filter import FilterStep
from slackwater.runtime.operators.each_row.functions import MapBatchesStep, MapRowsStep
from slackwater.runtime.operators.merge.merge import MergeStep
from slackwater.runtime.registry.operators import make_operator, make_stateless
from tests.support.rows import bound

TIMES = pa.timestamp("ns")


def buses() -> Batch:
    return batch_of(
        [1, 2, 3, 4],
        {"speed": np.array([4.0, 9.0, 7.5, 30.0]), "line": ["20", "26", "20", "4"]},
        [11, 12, 13, 14],
    )


def named(name: str, **columns: pa.DataType) -> dict[str, Any]:
    return {"name": name, "inputs": ("buses",), "schema": pa.schema(columns)}


def mapped(function: Callable[[Columns], Any], **columns: pa.DataType) -> Batch:
    step = MapBatchesStep(**named("grid", **columns), function=function)
    return make_stateless(step).apply(buses())


def mapped_rows(function: Callable[[dict[str, Any]], Any], **columns: pa.DataType) -> Batch:
    step = MapRowsStep(**named("grid", **columns), function=function)
    return make_stateless(step).apply(buses())


def test_filter_keeps_the_rows_where_the_predicate_is_true_in_order() -> None:
    slow = FilterStep(**named("slow"), predicate=bound(col("speed") < 8, pa.float64()))
    kept = make_stateless(slow).apply(buses())
    assert kept.event_time_ns.tolist() == [1, 3]
    assert kept.stimulus_time_ns.tolist() == [11, 13]
    assert kept.columns["line"].to_pylist() == ["20", "20"]


def test_filter_that_no_row_passes_gives_no_rows_of_the_same_columns() -> None:
    fast = make_stateless(
        FilterStep(**named("fast"), predicate=bound(col("speed") > 99, pa.float64()))
    )
    for batch in (buses(), buses().slice(1, 3), buses().slice(0, 0)):
        none = fast.apply(batch)
        assert len(none) == 0
        assert len(none.stimulus_time_ns) == 0
        assert none.columns["speed"].dtype == np.float64
        assert none.columns["line"].type == pa.string()


def test_filter_that_all_rows_pass_hands_the_batch_on() -> None:
    slow = make_stateless(
        FilterStep(**named("slow"), predicate=bound(col("speed") < 99, pa.float64()))
    )
    batch = buses()
    assert slow.apply(batch) is batch


def test_assign_computes_each_column_from_the_row_as_it_came_in() -> None:
    step = WithColumnsStep(
        **named("convert", speed=pa.float64(), before=pa.float32()),
        columns={"speed": bound(col("speed") * 2, pa.float64()), "before": col("speed")},
    )
    columns = make_stateless(step).apply(buses()).columns
    assert columns["speed"].tolist() == [8.0, 18.0, 15.0, 60.0]
    assert columns["before"].tolist() == [4.0, 9.0, 7.5, 30.0]
    assert columns["before"].dtype == np.float32
    assert columns["line"].to_pylist() == ["20", "26", "20", "4"]


def test_select_keeps_columns_under_their_new_names() -> None:
    step = SelectStep(**named("pick", route=pa.string()), columns={"route": col("line")})
    assert list(make_stateless(step).apply(buses()).columns) == ["route"]


def test_expression_that_cannot_be_computed_names_step_expression_and_rows() -> None:
    step = WithColumnsStep(
        **named("convert", n=pa.int64()),
        columns={"n": bound(col("line").cast("int64"), pa.string())},
    )
    batch = Batch.like(buses(), {"line": pa.array(["20", "N°", "4", "5"])})
    with pytest.raises(
        OperatorError,
        match=r"step 'convert': column 'n'.*cast(.|\n)*event_time_ns=2:\n  {'line': 'N°'}$",
    ):
        make_stateless(step).apply(batch)


def test_map_batches_returns_its_columns_in_the_types_of_the_schema() -> None:
    def convert(columns: Columns) -> dict[str, Any]:
        return {
            "whole": columns["speed"] * 2,
            "line": [f"bus {line}" for line in columns["line"].to_pylist()],
            "at": np.array([1, 2, 3, 4], "datetime64[us]"),
            "half": pa.array([1, None, 3, 4]),
        }

    found = mapped(convert, line=pa.string(), whole=pa.int32(), at=TIMES, half=pa.float64())
    assert list(found.columns) == ["line", "whole", "at", "half"]
    assert found.columns["whole"].dtype == np.int32
    assert found.columns["whole"].tolist() == [8, 18, 15, 60]
    assert found.columns["line"].to_pylist()[0] == "bus 20"
    assert found.columns["at"].tolist() == [1_000, 2_000, 3_000, 4_000]
    assert found.columns["half"].tolist() == [1.0, None, 3.0, 4.0]
    assert found.event_time_ns.tolist() == [1, 2, 3, 4]


def test_function_that_raises_is_named_with_its_traceback_and_a_sample() -> None:
    def broken(columns: Columns) -> Columns:
        return {"x": columns["velocity"]}

    with pytest.raises(OperatorError) as caught:
        mapped(broken, x=pa.float64())
    message = str(caught.value)
    assert "step 'grid'" in message
    assert "KeyError: 'velocity'" in message
    assert 'return {"x": columns["velocity"]}' in message
    assert "user_code.py" not in message, "our own frames are no help"
    assert "first 3 of its 4 rows" in message
    assert "{'speed': 4.0, 'line': '20'}" in message
    assert isinstance(caught.value.__cause__, KeyError)


def test_map_batches_gets_nan_or_arrow_for_nulls_and_may_return_them_in_many_ways() -> None:
    def convert(columns: Columns) -> dict[str, Any]:
        assert isinstance(columns["n"], pa.Array)
        assert not columns["x"].flags.writeable
        return {
            "n": columns["n"],
            "half": columns["x"] / [2, 1, 0, 0],
            "none": [None, 1, None, 2],
            "at": np.array([1, "NaT", 3, "NaT"], "datetime64[us]"),
            "masked": np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0]),
            "words": np.ma.array(["a", "b", "c", "d"], mask=[0, 1, 0, 0]),
        }

    given = batch_of([0] * 4, {"n": [1, None, 3, 4], "x": [1.0, None, 1.0, 0.0]}).columns
    kinds = {"n": pa.int64(), "half": pa.float64(), "none": pa.int8(), "at": TIMES}
    made = named("grid", **kinds, masked=pa.int16(), words=pa.string())
    step = MapBatchesStep(**made, function=convert)
    with np.errstate(all="ignore"):
        found = make_stateless(step).apply(Batch.like(buses(), given)).columns
    assert found["n"].tolist() == [1, None, 3, 4]
    np.testing.assert_equal(found["half"].tolist(), [0.5, None, np.inf, np.nan])
    assert found["none"].tolist() == [None, 1, None, 2]
    assert found["at"].tolist() == [1_000, None, 3_000, None]
    assert found["masked"].tolist() == [1, None, 3, 4]
    assert found["words"].tolist() == ["a", None, "c", "d"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.ma.array([1.5, 2, 3, 4], mask=[0, 1, 0, 0]), "some values would change"),
        (np.ma.array([[1], [2], [3], [4]], mask=False), "n"),
        (np.ma.array(["1.5", "2", "3", "4"], mask=[0, 1, 0, 0]), "tried to convert to int64"),
        (np.ma.array([1e30, None, 3, 4], dtype=object), "n"),
    ],
)
def test_a_masked_array_that_does_not_fit_is_refused_with_its_row(
    values: Any, problem: str
) -> None:
    with pytest.raises(OperatorError, match=r"step 'grid': column 'n' should be int64") as caught:
        mapped(lambda _: {"n": values}, n=pa.int64())
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (None, "returned None; it must return a dict of columns: x, y"),
        ({"x": np.ones(4)}, "lacks y"),
        ({"x": np.ones(4), "y": np.ones(4), "z": np.ones(4)}, "has besides z"),
        ({"x": np.ones(3), "y": np.ones(4)}, "3 values in column 'x' for 4 rows"),
        ({"x": 1.0, "y": np.ones(4)}, "returned 1.0 as column 'x'"),
        ({"x": np.ones(4), "y": np.array(["a"] * 4)}, "'y' should be int64"),
        ({"x": np.ones(4), "y": np.array([1, 2, 3, 0.5])}, "some values would change"),
        ({"x": np.ones(4), "y": np.array([1, 2, 3, np.nan])}, "some values would change"),
        ({"x": np.ones(4), "y": [1, 2, 3, float("nan")]}, "nan is not a whole number"),
        ({"x": np.ones((4, 2)), "y": np.ones(4)}, "one value a row"),
        ({"x": np.ones(4), "y": np.array([2**63] * 4, np.uint64)}, "some values would change"),
        ({"x": np.ones(4, bool), "y": np.array([0] * 4, "M8[s]")}, "times are not numbers"),
        ({"x": np.ones(4), "y": np.zeros((4, 2), "M8[s]")}, "one value a row"),
    ],
)
def test_what_a_function_returns_is_checked_against_its_schema(returned: Any, says: str) -> None:
    with pytest.raises(OperatorError, match=r"step 'grid'") as caught:
        mapped(lambda _: returned, x=pa.float64(), y=pa.int64())
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array(["9999-12-31"] * 4, "datetime64[us]"), TIMES),  # would be 1816
        (np.array([1, 2, 3, 2**53 + 1]), pa.float64()),
        (np.array([1, 2, 3, 2**24 + 1]), pa.float32()),
    ],
)
def test_an_array_of_which_a_value_would_change_is_refused_as_a_row_is(
    values: np.ndarray[Any, Any], kind: pa.DataType
) -> None:
    with pytest.raises(OperatorError, match=r"column 'y' should be (.|\n)*row with event_time_ns="):
        mapped(lambda _: {"y": values}, y=kind)


def test_numbers_do_not_turn_into_text_or_truth_by_themselves() -> None:
    with pytest.raises(OperatorError, match="turn the numbers into text"):
        mapped(lambda columns: {"x": columns["speed"]}, x=pa.string())
    with pytest.raises(OperatorError, match="values != 0"):
        mapped(lambda columns: {"x": columns["speed"]}, x=pa.bool_())


def test_function_cannot_change_the_arrays_it_is_given() -> None:
    def careless(columns: Columns) -> Columns:
        columns["speed"] *= 2
        return columns

    with pytest.raises(OperatorError, match="read-only"):
        mapped(careless, speed=pa.float64(), line=pa.string())


@pytest.mark.parametrize("by", [mapped, mapped_rows])
def test_a_function_that_calls_exit_is_an_error_with_its_step_and_its_line(by: Any) -> None:
    def leave(_: Any) -> None:
        sys.exit(3)

    with pytest.raises(
        OperatorError,
        match=r"step 'grid': its function raised SystemExit\(3\); (.|\n)*in leave\n *sys.exit"
        r"(.|\n)*'line': '20'",
    ):
        by(leave, line=pa.string())


def test_map_rows_returns_what_the_function_makes_and_none_drops_the_row() -> None:
    def slow_only(row: dict[str, Any]) -> dict[str, Any] | None:
        if row["speed"] > 8:
            return None
        return {"line": row["line"] + "!", "n": 7, "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}

    found = mapped_rows(slow_only, line=pa.string(), n=pa.float64(), at=pa.timestamp("ns", "UTC"))
    assert found.event_time_ns.tolist() == [1, 3]
    assert found.stimulus_time_ns.tolist() == [11, 13]
    assert found.columns["line"].to_pylist() == ["20!", "20!"]
    assert found.columns["n"].tolist() == [7.0, 7.0]
    assert found.columns["at"].tolist() == [10**9, 10**9]


def test_map_rows_that_drops_all_rows_keeps_the_columns_and_their_types() -> None:
    found = mapped_rows(lambda _: None, line=pa.string(), n=pa.int8())
    assert len(found) == 0
    assert found.columns["n"].dtype == np.int8
    assert found.columns["line"].type == pa.string()


def test_map_rows_that_raises_shows_the_row() -> None:
    with pytest.raises(
        OperatorError, match=r"ZeroDivisionError(.|\n)*first 1 of its 1 rows(.|\n)*26"
    ):
        mapped_rows(lambda row: {"x": 1 / (row["speed"] - 9.0)}, x=pa.float64())


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (3, "returned an int"),
        ({"y": 1}, "lacks x and has besides y"),
        ({"x": "fast"}, "'x' should be float64"),
        ({"x": True, "line": "20"}, "has besides line"),
    ],
)
def test_what_a_row_function_returns_is_checked(returned: Any, says: str) -> None:
    with pytest.raises(OperatorError, match=r"step 'grid'") as caught:
        mapped_rows(lambda _: returned, x=pa.float64())
    assert says in str(caught.value)


def test_steps_of_another_kind_are_refused() -> None:
    merge = MergeStep(**named("both"), release=READY_ONLY)
    keep = SelectStep(**named("keep"), columns={})
    with pytest.raises(FlowError, match=r"'keep' \(SelectStep\) keeps no state"):
        make_operator(keep)
    with pytest.raises(FlowError, match=r"'both' \(MergeStep\) does not look at each row alone"):
        make_stateless(merge)


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        (pa.int64(), 1.9, "1.9 is not a whole number; round it first"),
        (pa.int64(), np.float32(1.5), "1.5 is not a whole number"),
        (pa.int8(), 300, "too large"),
        (pa.timestamp("ns"), 1.5, "1.5 is not a whole number"),
        (pa.float32(), 1e40, "too large for float32"),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused_with_its_row(
    kind: pa.DataType, value: Any, problem: str
) -> None:
    def function(row: dict[str, Any]) -> dict[str, Any]:
        return {"n": value if row["line"] == "N" else 2.0}

    step = MapRowsStep(**named("convert", n=kind), function=function)
    batch = Batch.like(buses(), {"line": pa.array(["20", "4", "N", "5"])})
    with pytest.raises(
        OperatorError, match=f"step 'convert': column 'n'(.|\n)*{problem}"
    ) as caught:
        make_stateless(step).apply(batch)
    assert str(caught.value).endswith("event_time_ns=3:\n  {'line': 'N'}")
