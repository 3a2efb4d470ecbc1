"""Literals beside decimals: one that the column's type does not have is refused, never cut."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError, TypeMismatch
from tests.support.tables import computed

TYPES = [pa.decimal32(7, 2), pa.decimal64(15, 3), pa.decimal128(15, 3), pa.decimal256(50, 3)]
FINER = [Decimal("0.0123456789"), Decimal("1E-42"), Decimal("0.09999999999999999999")]


def stream(kind: pa.DataType) -> sw.Stream:
    rows = pa.table({"t": [1, 2], "a": pa.array([Decimal(0), None], kind)})
    flow = sw.Dataflow("decimals")
    return flow.source("s", sw.table(rows), event_time="t", time_unit="s")


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("literal", FINER)
def test_a_finer_literal_fills_no_column_and_equals_no_value(
    kind: pa.DataType, literal: Decimal
) -> None:
    a = sw.col("a")
    fillings: list[Callable[[], sw.Expr]] = [
        lambda: a.fill_null(literal),
        lambda: sw.coalesce(a, literal),
        lambda: sw.where(a == 1, a, literal),
    ]
    for filled in fillings:
        with pytest.raises(TypeMismatch, match="both must be of one type"):
            stream(kind).with_columns(b=filled())
    source = stream(kind)
    source.with_columns(found=a.is_in([literal]), zero=a.is_in([0])).select("found", "zero").sink(
        "out", sw.collect_sink()
    )
    with sw.Simulation() as nodes:
        job = nodes.submit(source.flow)
        job.wait()
        rows = job.result("out").to_pylist()
    assert rows == [{"found": False, "zero": True}, {"found": None, "zero": None}]


@pytest.mark.parametrize("literal", [1.1, 0.5, Decimal("1.1"), 1, float("nan"), float("inf")])
def test_is_in_finds_the_decimals_that_equal_the_literal(literal: float | Decimal) -> None:
    x = pa.array([Decimal("1.10"), Decimal("0.50"), Decimal("1.00"), None], pa.decimal128(5, 2))
    alone, beside = sw.col("x").is_in([literal]), sw.col("x").is_in([Decimal(9), literal])
    expected = computed(sw.col("x") == literal, x=x)
    assert computed(alone, x=x) == computed(beside, x=x) == expected


SIDES = [
    (pa.decimal128(38, 2), Decimal("1.10"), pa.decimal128(10, 3), Decimal("1.105")),
    (pa.decimal128(38, 0), Decimal(10**38 - 1), pa.decimal128(38, 38), Decimal("0.5")),
    (pa.decimal128(38, 20), Decimal("7.00000000000000000001"), pa.int64(), 7),
    (pa.decimal128(38, 2), Decimal("1.10"), pa.decimal128(10, 3), Decimal("1.100")),
    (pa.decimal256(60, 3), Decimal("1.101"), pa.decimal128(10, 2), Decimal("1.10")),
]


@pytest.mark.parametrize(("kind", "value", "other_kind", "other"), SIDES, ids=str)
def test_decimals_of_many_digits_are_compared_exactly(
    kind: pa.DataType, value: Decimal, other_kind: pa.DataType, other: Decimal
) -> None:
    x, y = pa.array([value, None], kind), pa.array([other, other], other_kind)
    for right in (sw.col("y"), sw.lit(other)):
        assert computed(sw.col("x") > right, x=x, y=y) == [value > other, None]
        assert computed(sw.col("x") == right, x=x, y=y) == [value == other, None]
    assert computed(sw.col("x").between(sw.col("y"), 10**9), x=x, y=y)[0] == (
        other <= value <= 10**9
    )


def test_decimals_that_need_more_than_76_digits_are_not_compared() -> None:
    with pytest.raises(TypeMismatch, match="takes 85 digits"):
        stream(pa.decimal256(76, 3)).filter(sw.col("a") > Decimal("1E-12"))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (sw.col("x") + 1, Decimal("1002.10")),
        (sw.col("x") - sw.col("y"), Decimal("999.999")),
        (2 * sw.col("x"), Decimal("2002.20")),
        (sw.col("x") * sw.col("y"), Decimal("1102.21110")),
    ],
    ids=str,
)
def test_a_sum_of_decimals_is_computed_on(expression: sw.Expr, result: Decimal) -> None:
    x = pa.array([Decimal("1001.10"), None], pa.decimal128(38, 2))
    y = pa.array([Decimal("1.101"), Decimal(0)], pa.decimal128(10, 3))
    assert computed(expression, x=x, y=y) == [result, None]


def test_a_decimal_beyond_38_digits_is_refused_by_its_row() -> None:
    x = pa.array([Decimal(1), None, Decimal(10**38 - 1)], pa.decimal128(38, 0))
    with pytest.raises(OperatorError, match=r"(?s)9 \+ 1 has more than 38 digits.*=2000"):
        computed(sw.col("x") + 1, x=x)
