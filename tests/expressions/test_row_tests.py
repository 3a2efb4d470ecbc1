"""A predicate asked row by row lets through what it lets through of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.expressions import Expr, col, event_time, lit
from slackwater.runtime.expressions.row_tests import row_tests
from slackwater.runtime.model import batch_of
from tests.support.examples import eight_times
from tests.support.rows import evaluated

NAN = float("nan")
DTYPES = ["int8", "uint8", "int32", "int64", "uint64", "float32", "float64"]
NUMBERS = [
    0,
    1,
    -1,
    127,
    300,
    2**31,
    2**53 + 1,
    2**62,
    0.5,
    -0.0,
    1e300,
    NAN,
    float("inf"),
]
OPS = ["<", "<=", ">", ">=", "==", "!="]


@st.composite
def columns(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Return a column with numbers at the edges of its type, and near those that are compared."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    near = st.sampled_from(NUMBERS) | st.integers(-(2**63), 2**64 - 1)
    drawn = draw(st.lists(near, min_size=1, max_size=6))
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            return np.array([float(one) for one in drawn]).astype(dtype)
        wide = [int(one) if math.isfinite(one) else 0 for one in drawn]
        bits = 8 * dtype.itemsize
        low = -(1 << (bits - 1)) if dtype.kind == "i" else 0
        return np.array([low + (one - low) % (1 << bits) for one in wide], dtype)


def compared(op: str, column: Expr, number: int | float) -> Expr:
    made: Expr = {
        "<": column < number,
        "<=": column <= number,
        ">": column > number,
        ">=": column >= number,
        "==": column == number,
        "!=": column != number,
    }[op]
    return made


tests = st.tuples(st.sampled_from("ab"), st.sampled_from(OPS), st.sampled_from(NUMBERS[:-2]))


@eight_times
@given(columns(), columns(), st.lists(tests, min_size=1, max_size=3))
def test_few_rows_pass_as_they_would_in_arrays(
    a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], asked: list[tuple[str, str, int | float]]
) -> None:
    rows = min(len(a), len(b))
    batch = batch_of(list(range(rows)), {"a": a[:rows], "b": b[:rows]})
    predicate: Expr | None = None
    for name, op, number in asked:
        one = compared(op, col(name), number)
        predicate = one if predicate is None else predicate & one
    assert predicate is not None
    found = row_tests(predicate)
    assert found is not None
    over = found.over(batch)
    if over is not None:
        mask = np.asarray(evaluated(predicate, batch))
        assert over.passing(1, rows) == [row for row in mask.nonzero()[0].tolist() if row >= 1]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_usual_predicates_have_such_a_form(dtype: str) -> None:
    batch = batch_of([1, 2, 3], {"n": np.array([1, 5, 9], dtype)})
    found = row_tests((col("n") > 1) & (col("n") <= 9))
    assert found is not None
    over = found.over(batch)
    assert over is not None
    assert over.passing(0, 3) == [1, 2]
    assert over.passing(2, 3) == [2]
    assert over.passing(0, 1) == []


@pytest.mark.parametrize(
    "predicate",
    [
        col("n") > NAN,
        (col("n") > 1) | (col("n") < 0),
        ~(col("n") > 1),
        col("n") > col("m"),
        col("name") == "20",
        col("is_late") == lit(True),
        event_time() > 3,
        col("n") + 1 > 3,
    ],
    ids=str,
)
def test_what_is_no_comparison_of_columns_with_numbers_has_none(predicate: Expr) -> None:
    assert row_tests(predicate) is None


def test_a_whole_number_that_a_float_rounds_is_not_equal_to_it() -> None:
    found = row_tests(col("n") == float(2**53))
    assert found is not None
    over = found.over(batch_of([1, 2], {"n": np.array([2**53 + 1, 2**53])}))
    assert over is not None
    assert over.passing(0, 2) == [1]
