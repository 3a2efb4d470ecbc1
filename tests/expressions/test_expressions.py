"""What expressions compute: as NumPy and Arrow give it, of the type that was announced."""

from __future__ import annotations

import operator
import pickle
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import OperatorError, TypeMismatch
from slackwater.runtime.expressions import expressions
from slackwater.runtime.expressions.expressions import Expr, col, duration, event_time, lit, where
from slackwater.runtime.model import batch_of
from tests.support.rows import DAY_NS, NAN, SCHEMA, evaluated, rows, values


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("speed") < 8, [True, None, False]),
        (8 >= col("speed"), [True, None, False]),  # noqa: SIM300 - what a user may write
        (col("speed") != 4.0, [False, None, True]),
        (~(col("speed") == 4.0), [False, None, True]),
        (~(col("speed") < 5), [False, None, True]),
        (~(col("speed") != 4.0), [True, None, False]),
        (~~(col("speed") < 5), [True, None, False]),
        (~col("speed").between(5, 13), [True, None, False]),
        (~col("speed").is_in([4.0]), [False, None, True]),
        (~(col("speed") < 5) | (col("count") < 0), [False, True, True]),
        (~((col("speed") < 5) & (col("count") > 0)), [False, True, True]),
        (~(where(col("count") < 0, col("speed") < 5, col("speed") > 5)), [True, None, False]),
        (col("small") > 200, [False, False, False]),
        (col("single") == 0.1, [True, None, False]),
        (col("hash") == 2**64 - 1, [True, False, False]),
        (col("count") > col("hash"), [False, False, False]),
        (col("stopped") == True, [True, False, True]),  # noqa: E712 - what a user may write
        ((col("count") > 0) | ~col("stopped"), [True, True, False]),
        ((col("count") > 0) & lit(True), [True, False, False]),
        (col("count").between(-7, 0), [False, True, True]),
        (col("speed").between(4, 12.5), [True, None, True]),
    ],
    ids=str,
)
def test_comparisons_give_a_mask(expression: Expr, expected: list[bool]) -> None:
    assert values(expression) == expected


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
EDGES = [-129, -128, 126.5, 127.5, -128.5, 2**24 + 1, 2.0**31, 2**63, 2**64 - 1, 1e300, -1e300]


@given(
    compare=st.sampled_from(COMPARISONS),
    dtype=st.sampled_from(["i1", "u2", "i4", "i8", "u8", "f4", "f8"]),
    literal=st.sampled_from([*EDGES, NAN, float("inf"), -float("inf")])
    | st.integers(-300, 300)
    | st.floats(-300, 300),
)
def test_a_column_meets_a_literal_as_in_numpy_and_nan_is_the_greatest(
    compare: Any, dtype: str, literal: Any
) -> None:
    limits = np.iinfo(dtype) if dtype[0] in "iu" else np.finfo(dtype)
    held = np.array([limits.min, 0, 1, 5, 126, 127, limits.max], dtype)
    with np.errstate(over="ignore"):
        expected = compare(held, literal)
    if literal != literal:  # noqa: PLR0124 - NaN
        expected = np.full(len(held), compare(0, 1))
    expression = compare(col("x"), literal)
    for _ in range(2):  # worked out, then remembered
        np.testing.assert_array_equal(
            evaluated(expression, batch_of(range(len(held)), {"x": held})), expected, strict=True
        )


@pytest.mark.parametrize("compare", COMPARISONS)
def test_nan_equals_itself_and_is_greater_than_all_other_floats(compare: Any) -> None:
    floats = [-np.inf, -0.0, 0.0, 5.5, np.inf, NAN]
    ranks = [0, 1, 1, 2, 3, 4]
    pairs = [(a, b) for a in range(6) for b in range(6)]
    left, right = (np.array(floats).take(side) for side in zip(*pairs, strict=True))
    batch = batch_of(range(len(pairs)), {"x": left, "y": right})
    expected = [compare(ranks[a], ranks[b]) for a, b in pairs]
    assert evaluated(compare(col("x"), col("y")), batch).tolist() == expected
    for b, number in enumerate(floats):
        column = batch_of(range(6), {"x": np.array(floats)})
        expected = [compare(ranks[a], ranks[b]) for a in range(6)]
        assert evaluated(compare(col("x"), number), column).tolist() == expected


def test_one_comparison_serves_columns_of_several_types() -> None:
    expression = col("x") > 126.5
    for dtype in (np.int8, np.float64, np.int32, np.float32, np.int8):
        assert evaluated(
            expression, batch_of([1, 2], {"x": np.array([126, 127], dtype)})
        ).tolist() == [
            False,
            True,
        ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("line") == "20", [True, None, False]),
        ("20" == col("line"), [True, None, False]),  # noqa: SIM300 - what a user may write
        (col("line") != "20", [False, None, True]),
        (~(col("line") == "20"), [False, None, True]),
        (col("line") > "20", [False, None, True]),
        (col("line") == col("line"), [True, None, True]),
        (lit("a") < "b", [True, True, True]),
        (col("line").is_in(["26", "x"]), [False, None, True]),
        (col("line").is_in([]), [False, None, False]),
        (col("line").between("20", "25"), [True, None, False]),
        (col("line").is_null(), [False, True, False]),
        (col("line").fill_null("none"), ["20", "none", "26"]),
        (col("line").fill_null(col("count").cast("string")), ["20", "-7", "26"]),
        (where(col("count") > 0, col("line"), "late"), ["20", "late", "late"]),
        (where(col("count") > 0, "a", "b"), ["a", "b", "b"]),
    ],
    ids=str,
)
def test_text_is_compared_and_chosen_in_arrow_and_null_equals_nothing(
    expression: Expr, expected: list[Any]
) -> None:
    assert values(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("count") + 1, [8, -6, 1]),
        (10 - col("count"), [3, 17, 10]),
        (col("small") + col("small"), [254, -256, 10]),
        (col("small") * 1000, [127_000, -128_000, 5_000]),
        (-col("small"), [-127, 128, -5]),
        (abs(col("small")), [127, 128, 5]),
        (col("count") // 2, [3, -4, 0]),
        (col("count") % 3, [1, 2, 0]),
        (col("count") / 2, [3.5, -3.5, 0.0]),
        (col("count") ** 2, [49, 49, 0]),
        (2 ** col("small") > 1e38, [True, False, False]),
        (col("hash") % 2, [1, 0, 1]),
        (col("count") * 0.5, [3.5, -3.5, 0.0]),
        (np.float64(2) * col("count"), [14.0, -14.0, 0.0]),
        (col("speed").fill_null(0) * 3.6, [14.4, 0.0, 45.0]),
        (col("speed").fill_null(0).floor(), [4.0, 0.0, 12.0]),
        (col("small").floor(), [127, -128, 5]),
        ((col("count") / 2).round(), [4.0, -4.0, 0.0]),
        ((col("count") / 3).round(1), [2.3, -2.3, 0.0]),
        (col("hash").sqrt().floor() > 1, [True, True, False]),
        (lit(3) + lit(4), [7, 7, 7]),
        (lit(1) / 0, [np.inf] * 3),
        (event_time() // 10, [1, 2, 3]),
        (event_time() - duration("10ns"), [0, 10, 20]),
    ],
    ids=str,
)
def test_arithmetic_follows_numpy_with_integers_in_64_bits(
    expression: Expr, expected: list[Any]
) -> None:
    assert values(expression) == expected


def test_dividing_by_zero_gives_infinity_or_nan_for_floats() -> None:
    np.testing.assert_equal(values(col("count") / 0), [np.inf, -np.inf, NAN])
    assert values(col("speed") // 0) == [np.inf, None, np.inf]


def test_the_root_of_a_negative_number_is_nan() -> None:
    np.testing.assert_equal(values((-abs(col("count"))).sqrt()), [NAN, NAN, 0.0])


def test_float32_stays_single_beside_a_literal_and_becomes_double_beside_float64() -> None:
    assert (col("single") * 3.6 + 1).type_in(SCHEMA, step="s") == pa.float32()
    assert (col("single") * col("speed")).type_in(SCHEMA, step="s") == pa.float64()
    values(col("single") * 3.6 + 1)
    values(col("single") * col("speed"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("count").is_in([7, 0, 2**63]), [True, False, True]),
        (col("small").is_in([300, 5]), [False, False, True]),
        (col("small").is_in([5.0, 4.5, NAN, np.inf]), [False, False, True]),
        (col("hash").is_in([2**64 - 1, -1]), [True, False, False]),
        (col("single").is_in([0.1]), [True, None, False]),
        (col("stopped").is_in([True]), [True, False, True]),
        (col("seen").is_in([datetime(1970, 1, 2, tzinfo=UTC)]), [True, False, False]),
    ],
    ids=str,
)
def test_is_in_compares_in_the_type_of_the_column(expression: Expr, expected: list[bool]) -> None:
    assert values(expression) == expected


def test_nulls_are_found_and_filled() -> None:
    assert values(col("speed").is_null()) == [False, True, False]
    assert values(col("count").is_null()) == [False, False, False]
    assert values(col("speed").fill_null(-1)) == [4.0, -1.0, 12.5]
    assert values(col("speed").fill_null(col("count"))) == [4.0, -7.0, 12.5]
    assert values(col("count").fill_null(3)) == [7, -7, 0]
    assert values(col("single").fill_null(0)) == [pytest.approx(0.1), 0.0, -2.5]
    assert values(col("single").fill_null(col("speed"))) == [pytest.approx(0.1), None, -2.5]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (where(col("count") > 0, 1, 2), [1, 2, 2]),
        (where(col("count") > 0, 1, 2.5), [1.0, 2.5, 2.5]),
        (where(col("stopped"), col("small"), 0), [127, 0, 5]),
        (where(col("stopped"), col("hash"), 0), [2**64 - 1, 0, 3]),
        (where(col("stopped"), col("single"), 0), [pytest.approx(0.1), 0.0, -2.5]),
        (where(col("count") < 5, col("speed"), 1), [1.0, None, 12.5]),
        (where(col("speed") < 5, "slow", "else"), ["slow", "else", "else"]),
        (where(col("stopped"), True, False), [True, False, True]),
        (where(lit(True), col("count"), 0), [7, -7, 0]),
        (where(lit(True), 1, 2), [1, 1, 1]),
        (where(col("stopped"), col("seen"), datetime(1970, 1, 1)), [DAY_NS, 0, 0]),  # noqa: DTZ001 - UTC is our rule
    ],
    ids=str,
)
def test_where_chooses_row_by_row(expression: Expr, expected: list[Any]) -> None:
    assert values(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("speed").fill_null(-1.9).cast("int64"), [4, -1, 12]),
        (col("count").cast("int8"), [7, -7, 0]),
        (col("count").cast("float32"), [7.0, -7.0, 0.0]),
        (col("stopped").cast("int64"), [1, 0, 1]),
        (col("count").cast("string"), ["7", "-7", "0"]),
        (col("speed").cast("string"), ["4", None, "12.5"]),
        (col("stopped").cast("string"), ["true", "false", "true"]),
        (col("line").fill_null("0").cast("int64"), [20, 0, 26]),
        (col("seen").cast("int64"), [DAY_NS, 2 * DAY_NS, 0]),
        (event_time().cast("timestamp"), [10, 20, 30]),
        (lit("1970-01-02T00:00:00").cast("timestamp"), [DAY_NS] * 3),
        (lit("true").cast("bool"), [True] * 3),
    ],
    ids=str,
)
def test_cast_converts_values(expression: Expr, expected: list[Any]) -> None:
    assert values(expression) == expected


def test_a_null_stays_null_in_every_cast() -> None:
    assert values(col("line").cast("float64")) == [20.0, None, 26.0]
    assert values(col("line").cast("int64")) == [20, None, 26]
    assert values(col("speed").cast("int64")) == [4, None, 12]
    assert values((col("speed") < 5).cast("int8")) == [1, None, 0]


@pytest.mark.parametrize(
    "expression",
    [
        (lit(0.0) / 0).cast("int64"),  # NaN
        (col("speed").fill_null(0) * 1e30).cast("int64"),
        lit(2.0**63).cast("int64"),
        (col("count") * 100).cast("int8"),
        col("hash").cast("int64"),
        lit("abc").cast("float64"),
    ],
    ids=str,
)
def test_a_cast_that_would_lose_a_value_raises_instead(expression: Expr) -> None:
    expression.type_in(SCHEMA, step="test")
    with pytest.raises(OperatorError, match=r"\.cast\('.*'\) of .*filter out"):
        evaluated(expression, rows())


def test_times_are_compared_with_datetimes_and_with_each_other() -> None:
    berlin = timezone(timedelta(hours=1))
    assert values(col("seen") >= datetime(1970, 1, 2, tzinfo=UTC)) == [True, True, False]
    assert values(col("seen") >= datetime(1970, 1, 2, 1, tzinfo=berlin)) == [True, True, False]
    assert values(col("planned") < datetime(1970, 1, 2)) == [True, False, True]  # noqa: DTZ001 - UTC is our rule
    assert values(col("seen") == np.datetime64("1970-01-02")) == [True, False, False]
    assert values(col("seen") > col("planned")) == [True, True, False]


def test_time_arithmetic_gives_nanoseconds_and_times() -> None:
    assert values(col("seen") - col("planned")) == [DAY_NS, DAY_NS, 0]
    assert (col("seen") - col("planned")).type_in(SCHEMA, step="s") == pa.int64()
    assert values(col("planned") + duration("1h")) == [n * 3600 * 10**9 for n in (1, 25, 1)]
    assert values(col("seen") - timedelta(microseconds=1))[2] == -1_000
    later = 1 + col("seen")
    assert later.type_in(SCHEMA, step="s") == pa.timestamp("ns", tz="UTC")
    assert values(col("seen") - col("planned") > duration("30s")) == [True, True, False]


def test_an_expression_pickles_and_gives_the_same() -> None:
    made = where(
        (col("line").is_in(["20"]) | (col("speed").round(1) > 3)) & (event_time() > 0),
        col("count").cast("float64") / 0,
        col("speed").fill_null(0) + duration("1s"),
    )
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert str(again) == str(made)
    assert again.columns() == made.columns() == {"line", "speed", "count"}
    np.testing.assert_equal(evaluated(again, rows()).tolist(), evaluated(made, rows()).tolist())


def test_an_empty_batch_gives_an_empty_column() -> None:
    empty = rows().slice(0, 0)
    for made in (
        col("speed") < 8,
        col("line") == "a",
        lit("a"),
        lit(3),
        where(lit(True), "a", "b"),
    ):
        assert len(evaluated(made, empty)) == 0
    assert len(evaluated(col("line").cast("int64"), empty)) == 0


def test_a_column_is_handed_over_as_it_is() -> None:
    batch = rows()
    assert evaluated(col("speed"), batch) is batch.columns["speed"]
    assert evaluated(event_time(), batch) is batch.event_time_ns


NUMBERS = st.sampled_from(["speed", "single", "count", "small", "hash", "seen", "stopped"])
LEAVES = st.one_of(NUMBERS.map(col), st.sampled_from([0, 3, -2, 1.5, True]).map(lit))
BINARY = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<", "==", "&", "|"])


def _combined(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def binary(left: Expr, op: str, right: Any) -> Expr:
        right = lit(right) if op in "&|" and isinstance(right, bool) else right
        return eval(f"left {op} right", {"left": left, "right": right})  # type: ignore[no-any-return]  # noqa: S307 - our own text

    other = st.one_of(parts, st.sampled_from([0, 2, -1, 0.5, False]))
    return st.one_of(
        st.builds(binary, parts, BINARY, other),
        st.builds(where, parts, parts, other),
        st.builds(lambda part, value: part.fill_null(value), parts, other),
        parts.map(lambda part: part.round()),
        parts.map(lambda part: -part),
        parts.map(abs),
    )


@given(st.recursive(LEAVES, _combined, max_leaves=6))
def test_whatever_passes_the_type_check_evaluates_to_that_type_without_a_warning(
    expression: Expr,
) -> None:
    try:
        expression.type_in(SCHEMA, step="test")
    except TypeMismatch:
        return
    with suppress(OperatorError):  # a whole number that does not fit
        values(expression)
    rebuilt = eval(str(expression), vars(expressions))  # noqa: S307 - our own text
    assert str(rebuilt) == str(expression)
