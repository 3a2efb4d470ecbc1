"""Casts change no value in silence."""

from __future__ import annotations

import datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.model.exact_casts import cast_exactly
from slackwater.runtime.model.schema import column_from_arrow

OF_WHOLE = pa.map_(pa.string(), pa.int64())
NOON = datetime.datetime(1970, 1, 1, 12)  # noqa: DTZ001 - no zone


@pytest.mark.parametrize(
    ("values", "to"),
    [
        (pa.array([2, 1]), pa.bool_()),
        (pa.array([0.5]), pa.bool_()),
        (pa.array([None, 1e40]), pa.float32()),
        (pa.array(["1", "1e400"]), pa.float64()),
        (pa.array([NOON], pa.timestamp("ms")), pa.date32()),
        (pa.array([1.9]), pa.int64()),
        (pa.array([300]), pa.int8()),
        (pa.array([500]), pa.decimal128(4, 2)),
        (pa.array([0.125]), pa.decimal128(5, 2)),
        (pa.array([[None, 0.125]]), pa.list_(pa.decimal128(5, 2))),
        (pa.array([[0.5], None, [0.125]])[2:], pa.list_(pa.decimal128(5, 2))),
        (pa.array([{"a": [1e40]}]), pa.struct([("a", pa.list_(pa.float32()))])),
        (pa.array([[("k", 2)]], OF_WHOLE), pa.map_(pa.string(), pa.bool_())),
    ],
    ids=str,
)
def test_a_value_that_would_change_is_refused(values: pa.Array, to: pa.DataType) -> None:
    with pytest.raises(pa.ArrowInvalid):
        cast_exactly(values, to)


@pytest.mark.parametrize(
    ("values", "to", "right"),
    [
        ([0, 1, None], pa.bool_(), [False, True, None]),
        ([1.5, float("inf"), None], pa.float32(), [1.5, float("inf"), None]),
        (["1.5", "-inf", None], pa.float64(), [1.5, float("-inf"), None]),
        ([Decimal("1.90"), None], pa.float64(), [1.9, None]),
        ([5, None], pa.decimal128(4, 2), [Decimal("5.00"), None]),
        ([NOON.replace(hour=0), None], pa.date32(), [NOON.date(), None]),
        ([1, 2], pa.int8(), [1, 2]),
        ([0.1, 2.5, None], pa.decimal128(5, 2), [Decimal("0.10"), Decimal("2.50"), None]),
        ([[0.5], None], pa.list_(pa.decimal128(5, 2)), [[Decimal("0.50")], None]),
    ],
    ids=str,
)
def test_a_value_that_fits_is_taken(values: list[Any], to: pa.DataType, right: list[Any]) -> None:
    assert cast_exactly(pa.array(values), to).to_pylist() == right


WIDE = Context(prec=400)
WRAPS = 3402823669209384635
"""Times 10**20, it is a number of 36 digits modulo 2**128."""


@st.composite
def decimal_types(draw: st.DrawFn) -> pa.DataType:
    of, most = draw(
        st.sampled_from(
            [(pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76)]
        )
    )
    precision = draw(st.integers(1, most))
    return of(precision, draw(st.integers(0, precision)))


def numbers(digits: int) -> st.SearchStrategy[Decimal]:
    """Return decimals of up to so many digits, some of which are at their end."""
    whole = st.integers(1, digits).flatmap(lambda size: st.integers(-(10**size), 10**size))
    return st.builds(
        lambda one, scale: Decimal(one).scaleb(-scale, WIDE), whole, st.integers(0, 40)
    )


def has(kind: pa.DataType, value: Decimal) -> bool:
    last = value.scaleb(kind.scale, WIDE)
    return last == last.to_integral_value() and abs(last) < 10**kind.precision


def cast_as_python_does(values: pa.Array, value: Decimal, to: pa.DataType) -> None:
    if has(to, value):
        assert cast_exactly(values, to).to_pylist() == [None, value]
    else:
        with pytest.raises(pa.ArrowInvalid):
            cast_exactly(values, to)


@given(numbers(37), decimal_types(), st.booleans())
@example(Decimal(WRAPS), pa.decimal128(38, 20), False)
def test_a_text_becomes_its_decimal_or_is_refused(
    value: Decimal, to: pa.DataType, is_plain: bool
) -> None:
    text = format(value, "f") if is_plain else str(value)
    if sum(map(str.isdigit, text.lstrip("-0."))) <= 38:  # Arrow's most in a text
        cast_as_python_does(pa.array([None, text]), value, to)


@given(st.integers(-(2**63), 2**63 - 1), decimal_types())
@example(WRAPS, pa.decimal128(38, 20))
def test_a_whole_number_becomes_its_decimal_or_is_refused(value: int, to: pa.DataType) -> None:
    cast_as_python_does(pa.array([None, value]), Decimal(value), to)


@given(st.data(), decimal_types(), decimal_types())
@example(None, pa.decimal128(19, 0), pa.decimal128(38, 20))
def test_a_decimal_becomes_its_equal_or_is_refused(
    data: st.DataObject | None, of: pa.DataType, to: pa.DataType
) -> None:
    most = 10**of.precision - 1
    last = WRAPS if data is None else data.draw(st.integers(-most, most))
    value = Decimal(last).scaleb(-of.scale, WIDE)
    cast_as_python_does(pa.array([None, value], of), value, to)


@pytest.mark.parametrize("scale", [-77, -126, -128])
def test_a_decimal_in_a_list_or_struct_that_does_not_fit_is_refused(scale: int) -> None:
    number = pa.py_buffer((12345).to_bytes(16, "little"))
    alone = pa.Array.from_buffers(pa.decimal128(5, scale), 1, [None, number])
    to = pa.decimal256(76, 0)
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), alone)
    structs = pa.StructArray.from_arrays([alone], ["a"])
    for values, kind in ((alone, to), (lists, pa.list_(to)), (structs, pa.struct({"a": to}))):
        with pytest.raises(pa.ArrowInvalid, match="do not fit"):
            cast_exactly(values, kind)


def test_the_first_row_that_does_not_fit_is_named() -> None:
    values = pa.array([1, 2, 300, 4, 500])
    with pytest.raises(SchemaError, match=r"first 300, in row 2 of these.*; cast it before"):
        column_from_arrow("x", values, pa.int8(), who="test")
