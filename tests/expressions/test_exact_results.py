"""Casts and means are exact: the nearest float, a decimal or time that fits, or refused."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.decimals import floats_of
from slackwater.runtime.model.exact_casts import cast_of_decimals
from slackwater.runtime.operators.aggregate.whole_sum import Halves, mean_of
from tests.support.tables import computed

KINDS = [
    pa.decimal128(7, 2),
    pa.decimal128(19, 4),
    pa.decimal128(38, 30),
    pa.decimal128(9, -3),
    pa.decimal256(60, 5),
]


@st.composite
def decimals(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(KINDS))
    most = 10**kind.precision - 1
    whole = draw(st.lists(st.none() | st.integers(-most, most) | st.integers(-999, 999)))
    values = [
        None
        if one is None
        else Decimal((int(one < 0), Decimal(one).as_tuple().digits, -kind.scale))
        for one in whole
    ]
    return pa.array(values, kind)


@given(decimals(), st.integers(0, 3))
def test_a_float_of_a_decimal_is_the_nearest(values: pa.Array, start: int) -> None:
    part = values.slice(start)
    expected = [0.0 if one is None else float(one) for one in part.to_pylist()]
    assert floats_of(part).tolist() == expected


@given(
    st.lists(st.tuples(st.integers(-(2**62), 2**62), st.integers(1, 10**6)), min_size=1),
    st.integers(0, 30),
)
def test_a_mean_of_decimals_is_the_nearest_float(sums: list[tuple[int, int]], scale: int) -> None:
    whole = np.array([one for one, _ in sums])
    halves = Halves(whole >> 32, whole & 0xFFFFFFFF)
    counts = np.array([count for _, count in sums])
    expected = [float(Fraction(one, count) / Fraction(10) ** scale) for one, count in sums]
    assert mean_of(halves, counts, scale=scale).tolist() == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
def test_a_whole_number_becomes_a_decimal_where_it_fits(kind: pa.DataType) -> None:
    values = pa.array([0, 5, 123, None], kind)
    right = [Decimal("0.00"), Decimal("5.00"), None, None]
    assert computed(sw.col("i").try_cast("decimal128(4, 2)"), i=values) == right
    with pytest.raises(OperatorError, match=r"cast\('decimal128\(4, 2\)'\) of 123"):
        computed(sw.col("i").cast("decimal128(4, 2)"), i=values)


WRAPS = 3402823669209384635
"""Times 10**20, it is a number of 36 digits modulo 2**128."""


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.decimal128(19, 0)], ids=str)
def test_what_no_decimal_holds_is_null_as_in_duckdb_or_refused(kind: pa.DataType) -> None:
    values = pa.array([5, WRAPS, 10**18, None]).cast(kind)
    with duckdb.connect() as database:
        database.register("rows", pa.table({"i": values}))
        asked = database.execute("SELECT try_cast(i AS DECIMAL(38, 20)) FROM rows").fetchall()
    to = "decimal128(38, 20)"
    assert computed(sw.col("i").try_cast(to), i=values) == [row[0] for row in asked]
    with pytest.raises(OperatorError, match=f"cast.* of .*{WRAPS}.*:"):
        computed(sw.col("i").cast(to), i=values)


@given(st.lists(st.none() | st.integers(-(10**18), 10**18) | st.integers(-99, 99)))
@pytest.mark.parametrize("scale", [0, 6, 7, 18, 30])
def test_a_decimal_as_text_has_the_digits_that_duckdb_writes(
    scale: int, last_digits: list[int | None]
) -> None:
    values = pa.array(
        [None if one is None else Decimal(one).scaleb(-scale) for one in last_digits],
        pa.decimal128(38, scale),
    )
    with duckdb.connect() as database:
        database.register("rows", pa.table({"i": values}))
        asked = database.execute("SELECT CAST(i AS VARCHAR) FROM rows").fetchall()
    assert cast_of_decimals(values, pa.string()).to_pylist() == [row[0] for row in asked]


def test_a_duration_beyond_nanoseconds_is_told_in_its_unit() -> None:
    waits = pa.array([2**40], pa.duration("s"))
    with pytest.raises(OperatorError, match=rf"or a duration of {2**40} s, .* \(292 years\)"):
        computed(sw.col("i") + 1, i=waits)


def test_a_number_that_no_decimal_holds_is_in_no_column() -> None:
    wrapped = WRAPS * 10**20 % 2**128
    values = pa.array([Decimal(wrapped).scaleb(-20, Context(prec=40))], pa.decimal128(38, 20))
    assert computed(sw.col("i").is_in([WRAPS]), i=values) == [False]


def test_true_is_the_decimal_one() -> None:
    assert computed(sw.col("i").cast("decimal128(3, 1)"), i=pa.array([True, False])) == [1, 0]


DAY_S = 86_400


@pytest.mark.parametrize(
    ("value", "kind", "to"),
    [
        (2**32, pa.int64(), "date32[day]"),
        (1_704_067_200_000, pa.int64(), "date"),
        (2**63, pa.uint64(), "timestamp[ns]"),
        (DAY_S, pa.int64(), "time32[s]"),
        (-1, pa.int64(), "time64[ns]"),
    ],
)
def test_a_whole_number_outside_a_time_is_refused(value: int, kind: pa.DataType, to: str) -> None:
    values = pa.array([value, 1], kind)
    assert computed(sw.col("i").try_cast(to).is_null(), i=values) == [True, False]
    with pytest.raises(OperatorError, match=f"of {value}"):
        computed(sw.col("i").cast(to), i=values)


WHOLE = {"+7": 7, "-7": -7, "007": 7, "0x1F": 31, "0xFF": 255, "+0": 0}
"""{text: the whole number that it is, in DuckDB too}"""
NOT_WHOLE = ["++7", "+-7", "+", "+0x1F", "-0x1F", "0x", "", "0xFFFFFFFFFFFFFFFF", "9" * 20]


def test_a_text_is_a_whole_number_as_in_duckdb() -> None:
    texts = [*WHOLE, *NOT_WHOLE, None]
    found = computed(sw.col("s").try_cast("int64"), s=pa.array(texts))
    assert found == [*WHOLE.values(), *[None] * (len(NOT_WHOLE) + 1)]
    assert found == [
        one
        for (one,) in duckdb.sql(
            "SELECT TRY_CAST(s AS BIGINT) FROM (SELECT unnest($texts) AS s)",
            params={"texts": texts},
        ).fetchall()
    ]


@pytest.mark.parametrize(("kind", "number"), [("int8", None), ("uint8", 255), ("int16", 255)])
def test_a_hexadecimal_number_beyond_its_type_is_none(kind: str, number: int | None) -> None:
    assert computed(sw.col("s").try_cast(kind), s=pa.array(["0xFF"])) == [number]
