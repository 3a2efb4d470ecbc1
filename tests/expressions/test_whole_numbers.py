"""Whole numbers at their ends: exact, or refused by their row; never wrapped."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions import Expr, col, lit, where, whole
from slackwater.runtime.model import batch_of
from tests.support.rows import evaluated

LEAST, MOST = -(2**63), 2**63 - 1
EDGES = [2**24 + 1, 2**53, 2**53 + 1, MOST, 2**63, 2**64 - 1]
COMPARED = ["<", "<=", ">", ">=", "==", "!="]
near_edges = st.builds(
    lambda edge, off, sign: sign * (edge + off),
    st.sampled_from([0, *EDGES]),
    st.integers(-2, 2),
    st.sampled_from([1, -1]),
)
floats_near_edges = st.one_of(
    near_edges.map(float), st.sampled_from([0.5, -8.5, float("inf"), float("-inf"), float("nan")])
)


@pytest.mark.parametrize(
    ("expression", "column", "problem"),
    [
        (col("x") + 1, [5, MOST], "9223372036854775807 + 1 does not fit int64"),
        (col("x") - col("x").fill_null(0) - 2, [5, LEAST, 0], None),
        (-2 - col("x"), [5, MOST], "-2 - 9223372036854775807 does not fit"),
        (col("x") * 3, [5, 2**62], "4611686018427387904 * 3 does not fit"),
        (col("x") * col("x"), [5, 2**32], "4294967296 * 4294967296 does not fit"),
        (col("x") ** 3, [5, 2**21], "2097152 ** 3 does not fit"),
        (-col("x"), [5, LEAST], "the negative of -9223372036854775808 does not fit"),
        (abs(col("x")), [5, LEAST], "abs of -9223372036854775808 does not fit"),
        (col("x") // -1, [5, LEAST], "-9223372036854775808 // -1 does not fit"),
        (10 // col("x"), [5, 0], "10 // 0 is not a whole number"),
        (col("x") % 0, [5], "5 % 0 is not a whole number"),
        (col("x").round(-4), [5, MOST], "which does not fit int64"),
        (col("x").cast("int8"), [5, 300], ".cast('int8') of 300"),
        ((col("x") / 0).cast("int64"), [5], "of inf"),
    ],
    ids=str,
)
def test_a_whole_number_that_does_not_fit_is_refused_with_its_place(
    expression: Expr, column: list[int], problem: str | None
) -> None:
    batch = batch_of(range(len(column)), {"x": np.array(column, np.int64)})
    if problem is None:
        assert evaluated(expression, batch).tolist() == [-2] * len(column)
        return
    with pytest.raises(OperatorError, match=re.escape(problem)) as caught:
        evaluated(expression, batch)
    assert caught.value.place == len(column) - 1


@given(
    st.sampled_from(["+", "-", "*", "//", "%"]),
    *[st.lists(st.one_of(st.integers(LEAST, MOST), st.integers(-3, 3)), min_size=3, max_size=3)]
    * 2,
)
def test_whole_numbers_are_as_python_has_them_or_refused(
    op: str, left: list[int], right: list[int]
) -> None:
    columns = {"a": np.array(left, np.int64), "b": np.array(right, np.int64)}
    made = eval(f"col('a') {op} col('b')", {"col": col})  # noqa: S307 - our own text
    exact = [
        None if op in ("//", "%") and b == 0 else eval(f"a {op} b", {"a": a, "b": b})  # noqa: S307
        for a, b in zip(left, right, strict=True)
    ]
    batch = batch_of(range(3), columns)
    refused = [place for place, e in enumerate(exact) if e is None or not LEAST <= e <= MOST]
    if not refused:
        assert evaluated(made, batch).tolist() == exact
        return
    with pytest.raises(OperatorError) as caught:
        evaluated(made, batch)
    assert caught.value.place in refused


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (where(col("n") != 0, 10 // col("n"), -1), [5, -1, 3]),
        ((col("n") != 0) & (10 // col("n") > 4), [True, False, False]),
        ((col("n") == 0) | (10 // col("n") > 4), [True, True, False]),
        (~((col("n") == 0) | (10 // col("n") > 4)), [False, False, True]),
        (~((col("n") != 0) & (10 // col("n") > 4)), [False, True, True]),
        (where(col("n") == 0, "none", (10 % col("n")).cast("string")), ["0", "none", "1"]),
    ],
    ids=str,
)
def test_a_side_is_asked_only_of_the_rows_where_it_decides(
    expression: Expr, expected: list[Any]
) -> None:
    batch = batch_of(range(3), {"n": np.array([2, 0, 3])})
    assert evaluated(expression, batch).tolist() == expected
    with pytest.raises(OperatorError) as caught:
        evaluated(where(col("n") < 3, 10 // col("n"), -1), batch)
    assert caught.value.place == 1


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "int64"])
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_the_ends_of_every_type_meet_as_python_has_them_or_are_refused(op: str, dtype: str) -> None:
    ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
    left, right = [*ends, *ends], [*ends, *reversed(ends)]
    arrays = {"x": np.array(left, dtype), "y": np.array(right, dtype)}
    compute: Any = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[op]
    exact = [compute(int(a), int(b)) for a, b in zip(left, right, strict=True)]
    expression = {"+": col("x") + col("y"), "-": col("x") - col("y"), "*": col("x") * col("y")}[op]
    if all(LEAST <= value <= MOST for value in exact):
        assert evaluated(expression, batch_of(range(4), arrays)).tolist() == exact  # type: ignore[union-attr]
        return
    with pytest.raises(OperatorError, match="does not fit int64"):
        evaluated(expression, batch_of(range(4), arrays))


def test_numbers_of_32_bits_are_not_looked_through_since_nothing_of_theirs_can_wrap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look(values: Any) -> Any:
        raise AssertionError(values)

    monkeypatch.setattr(whole, "ends_of", look)
    batch = batch_of(range(3), {"short": np.arange(3, dtype=np.int32), "long": np.arange(3)})
    assert evaluated(col("short") * col("short"), batch).tolist() == [0, 1, 4]  # type: ignore[union-attr]
    assert evaluated(7 - col("short"), batch).tolist() == [7, 6, 5]  # type: ignore[union-attr]
    for long in (col("short") + 2**31, col("short") + col("long")):
        with pytest.raises(AssertionError):
            evaluated(long, batch)


@given(
    st.sampled_from(COMPARED),
    st.sampled_from(["int64", "uint64", "int32"]),
    st.sampled_from(["float64", "float32"]),
    near_edges,
    floats_near_edges,
    st.booleans(),
)
def test_whole_numbers_and_floats_are_compared_as_python_does_and_nan_is_the_greatest(
    op: str, whole_type: str, float_type: str, n: int, x: float, is_exchanged: bool
) -> None:
    limits = np.iinfo(whole_type)
    n = min(max(n, limits.min), limits.max)
    x = float(np.dtype(float_type).type(x))
    batch = batch_of([1], {"n": np.array([n], whole_type), "x": np.array([x], float_type)})
    left, right = ("x", "n") if is_exchanged else ("n", "x")
    ranks = {"n": (False, n), "x": (x != x, 0.0 if x != x else x)}  # noqa: PLR0124 - NaN
    exact = eval(f"{left} {op} {right}", ranks)  # noqa: S307 - our own text
    for first, second in ((col, col), (col, lit), (lit, col), (lit, lit)):
        sides = [
            of(name if of is col else {"n": n, "x": x}[name])
            for of, name in ((first, left), (second, right))
        ]
        made = eval(f"a {op} b", dict(zip("ab", sides, strict=True)))  # noqa: S307
        assert evaluated(made, batch).tolist() == [exact], str(made)
        assert evaluated(~made, batch).tolist() == [not exact], str(made)
    for same in (col("n").is_in([x]), col("x").is_in([n]), col("x").between(n, n)):
        assert evaluated(same, batch).tolist() == [n == x], str(same)


def test_ids_that_a_float_would_merge_differ_from_it() -> None:
    batch = batch_of([1, 2], {"id": np.array([2**53, 2**53 + 1])})
    for equal in (
        col("id") == float(2**53),
        col("id") == lit(float(2**53)),
        lit(float(2**53)) == col("id"),
        col("id") == col("id").fill_null(0) * 0 + float(2**53),
        col("id").is_in([float(2**53)]),
        ~(col("id") != float(2**53)),
    ):
        assert evaluated(equal, batch).tolist() == [True, False], str(equal)


@given(st.lists(st.integers(LEAST, MOST), max_size=9), st.integers(1, MOST), st.booleans())
def test_the_rest_by_a_fixed_number_is_that_of_python(
    values: list[int], divisor: int, has_no_sign: bool
) -> None:
    values = [value & MOST for value in values] if has_no_sign else values
    batch = batch_of([0] * len(values), {"x": np.array(values, dtype=np.int64)})
    made = evaluated(col("x") % divisor, batch)
    assert made.tolist() == [value % divisor for value in values]
