"""Decimals of all scales: what comes in is carried with its value, and computed exactly."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import OperatorError, TypeMismatch
from slackwater.runtime.expressions.decimals import arithmetic
from slackwater.runtime.model.decimal_types import usual_decimal
from tests.support.tables import computed, result_of

amount = sw.col("x")
HUNDREDS = [pa.decimal32(5, -2), pa.decimal64(5, -2), pa.decimal128(5, -2), pa.decimal256(5, -2)]
NUMBERS = [Decimal("7E+2"), None, Decimal("-1.23E+4")]
EXACT = Context(prec=400)
PYTHON = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}


@pytest.mark.parametrize("kind", HUNDREDS, ids=str)
@pytest.mark.parametrize(
    ("made", "right"),
    [
        (amount + amount, [Decimal(1400), None, Decimal(-24600)]),
        (amount * Decimal("0.5"), [Decimal(350), None, Decimal(-6150)]),
        (-amount - 1, [Decimal(-701), None, Decimal(12299)]),
        (amount == 700, [True, None, False]),
        (amount > Decimal("699.9"), [True, None, False]),
        (amount < 1.5, [False, None, True]),
        (amount.is_in([Decimal(700)]), [True, None, False]),
        (amount.fill_null(1), [Decimal(700), Decimal(1), Decimal(-12300)]),
        (amount.cast("int64"), [700, None, -12300]),
        (amount.cast("string"), ["700", None, "-12300"]),
        (amount.cast("decimal128(5, -2)"), [Decimal(700), None, Decimal(-12300)]),
        (amount.hash() == amount.cast("decimal128(9, 2)").hash(), [True] * 3),
        (sw.where(amount > 0, amount, 0), [Decimal(700), Decimal(0), Decimal(0)]),
    ],
    ids=str,
)
def test_decimals_of_hundreds_are_computed_as_numbers(
    kind: pa.DataType, made: sw.Expr, right: list[Any]
) -> None:
    assert computed(made, x=pa.array(NUMBERS, kind)) == right


@pytest.mark.parametrize("kind", HUNDREDS, ids=str)
def test_hundreds_are_keys_and_aggregate_to_their_values(kind: pa.DataType) -> None:
    table = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("s")), "x": pa.array(NUMBERS, kind)})

    def windows(stream: sw.Stream) -> sw.Stream:
        return stream.aggregate(
            window=sw.tumbling("10s"), s=sw.sum("x"), a=sw.min("x"), b=sw.max("x"), m=sw.mean("x")
        )

    (row,) = result_of(windows, table, batch_rows=2).select(["s", "a", "b", "m"]).to_pylist()
    least, most = Decimal(-12300), Decimal(700)
    assert row == {"s": least + most, "a": least, "b": most, "m": float(least + most) / 2}

    def pairs(left: sw.Stream, right: sw.Stream) -> sw.Stream:
        return left.join(right, on="x", within="9s").select("x")

    plain = table.set_column(1, "x", table["x"].cast(usual_decimal(kind)))
    found = result_of(pairs, table, plain, batch_rows=3)["x"].to_pylist()
    assert found == [most, least]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_hundreds_are_written_and_read_by_their_type(form: str, tmp_path: Path) -> None:
    kind = pa.decimal128(5, -2)
    table = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("s")), "x": pa.array(NUMBERS, kind)})
    flow = sw.Dataflow("written")
    source = flow.source("s", sw.table(table), event_time="ts")
    source.sink("out", getattr(sw, f"{form}_sink")(tmp_path / "out"))
    with sw.Simulation() as nodes:
        nodes.submit(flow).wait()
    read = getattr(sw, form)(tmp_path / "out", types={"x": kind})
    flow = sw.Dataflow("read")
    flow.source("s", read, event_time="ts").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("out")["x"].to_pylist() == [700, None, -12300]


def test_a_file_without_a_negative_scale_reads_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": [1], "x": pa.array([Decimal(700)])}), path)
    flow = sw.Dataflow("read")
    lists = sw.parquet(path, types={"x": "decimal128(1, -2)"})
    flow.source("s", lists, event_time="ts", time_unit="s").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("out")["x"].to_pylist() == [700]


@pytest.mark.parametrize("digits", [2, 38, 76])
def test_decimals_below_one_are_cut_to_zero(digits: int) -> None:
    kind = (pa.decimal256 if digits > 38 else pa.decimal128)(digits, digits)
    x = pa.array([Decimal("0.5"), None, Decimal("-0.9")], kind)
    for cast in (amount.cast("int64"), amount.try_cast("int64"), amount.try_cast("uint8")):
        assert computed(cast, x=x) == [0, None, 0]


def test_decimals_about_powers_of_two_are_cut_exactly() -> None:
    for scale in (0, 3, 14, 18):
        last = Decimal(1).scaleb(-scale)
        whole = [sign * 2**bits for bits in (0, 30, 33, 53, 62) for sign in (1, -1)]
        values = [None, *(EXACT.add(one, step) for one in whole for step in (-last, 0, last))]
        for precision in (19 + scale, 38, 60):
            kind = (pa.decimal256 if precision > 38 else pa.decimal128)(precision, scale)
            found = computed(amount.cast("int64"), x=pa.array(values, kind))
            assert found == [None if one is None else int(one) for one in values]
    most = pa.array([Decimal(2**64 - 1), Decimal(2**64)], pa.decimal128(38, 18))
    assert computed(amount.try_cast("uint64"), x=most) == [2**64 - 1, None]
    assert computed(amount.cast("decimal128(38, 0)"), x=most) == [2**64 - 1, 2**64]
    assert computed(amount.cast("decimal128(38, 2)"), x=most) == [2**64 - 1, 2**64]


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.Array:
    is_wide = draw(st.booleans())
    precision = draw(st.integers(1, 76 if is_wide else 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    whole = st.integers(-most, most) | st.integers(-9, 9) | st.sampled_from([most, -most])
    values = draw(st.lists(st.none() | whole, min_size=rows, max_size=rows))
    decimals = [None if one is None else EXACT.scaleb(Decimal(one), -scale) for one in values]
    return pa.array(decimals, (pa.decimal256 if is_wide else pa.decimal128)(precision, scale))


@given(st.data(), st.sampled_from("+-*"))
def test_arithmetic_of_all_decimals_is_exact_or_names_its_row(data: st.DataObject, op: str) -> None:
    left, right = data.draw(columns(3)), data.draw(columns(3))
    exact = [
        None if one is None or other is None else PYTHON[op](one, other)
        for one, other in zip(left.to_pylist(), right.to_pylist(), strict=True)
    ]
    try:
        kind = arithmetic(op, left[:0], right[:0]).type
    except pa.ArrowInvalid:
        assert op == "*"
        assert left.type.scale + right.type.scale > 76
        return
    most = 10 ** (kind.precision - kind.scale)
    beyond = [one is not None and abs(one) >= most for one in exact]
    if any(beyond):
        with pytest.raises(OperatorError) as problem:
            arithmetic(op, left, right)
        assert problem.value.place == beyond.index(True)
        return
    made = arithmetic(op, left, right)
    assert made.type == kind == usual_decimal(kind)
    assert made.to_pylist() == exact


@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_a_missing_operand_refuses_no_row(op: str) -> None:
    wide = pa.array([Decimal(10**44), None], pa.decimal256(76, 31))
    missing = pa.array([None, Decimal(10)], pa.decimal256(76, 40))
    assert arithmetic(op, wide, missing).to_pylist() == [None, None]


def test_a_whole_number_is_not_filled_with_a_decimal() -> None:
    for filled in (sw.coalesce(sw.lit(3), sw.lit(Decimal("1.5"))), sw.lit(3).fill_null(amount)):
        with pytest.raises(TypeMismatch, match=r"both must be of one type; write \.cast"):
            computed(filled, x=pa.array([Decimal("2.5")], pa.decimal128(10, 2)))


def test_a_product_is_refused_by_its_row_alone() -> None:
    kind = pa.decimal128(38, 18)
    prices = pa.array([Decimal("1.5"), Decimal(1000), None], kind)
    assert computed(amount * amount, x=prices) == [Decimal("2.25"), Decimal(10**6), None]
    wide = pa.array([Decimal(10**57)], pa.decimal256(60, 2))
    with pytest.raises(OperatorError, match="more than 76 digits"):
        computed(amount * amount, x=wide)
