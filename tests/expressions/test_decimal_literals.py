"""Literals beside decimals: one that the column's type does not have is refused, never cut."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import TypeMismatch

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


def test_a_decimal_with_a_negative_scale_is_refused_where_it_is_added() -> None:
    with pytest.raises(TypeMismatch, match="no decimal that holds each result"):
        stream(pa.decimal128(5, -2)).with_columns(b=sw.col("a") + 1)
