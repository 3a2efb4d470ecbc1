"""A null literal is a null of its type, or of the operand beside it, as in SQL."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.inside import alike
from tests.support.tables import computed

x, p = sw.col("x"), sw.col("p")
KINDS: list[tuple[pa.DataType, Any]] = [
    (pa.int8(), 5),
    (pa.uint64(), 2**63),
    (pa.float32(), 1.5),
    (pa.float64(), float("inf")),
    (pa.bool_(), True),
    (pa.string(), "a"),
    (pa.large_string(), "a"),
    (pa.dictionary(pa.int32(), pa.string()), "a"),
    (pa.binary(), b"a"),
    (pa.decimal128(5, 2), Decimal("1.50")),
    (pa.decimal256(50, 2), Decimal("1.50")),
    (pa.timestamp("ms"), datetime.datetime(2024, 1, 1)),  # noqa: DTZ001 - without a zone
    (pa.timestamp("ns", "UTC"), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)),
    (pa.time32("s"), datetime.time(1)),
    (pa.list_(pa.int64()), [1, None]),
    (pa.struct([("a", pa.int64())]), {"a": 1}),
]


@pytest.mark.parametrize(("kind", "value"), KINDS, ids=str)
def test_a_choice_takes_a_null_on_either_side(kind: pa.DataType, value: Any) -> None:
    columns = {"x": pa.array([value, None, value], kind), "p": pa.array([True, True, False])}
    for made, right in [
        (sw.where(p, x, None), [value, None, None]),
        (sw.where(p, None, x), [None, None, value]),
        (sw.when(p).then(x).otherwise(None), [value, None, None]),
        (sw.when(p).then(None).otherwise(x), [None, None, value]),
        (sw.when(~p).then(None).when(p).then(x).otherwise(None), [value, None, None]),
        (sw.when(p).then(sw.lit(None)).otherwise(x), [None, None, value]),
        (sw.where(p, x, pickle.loads(pickle.dumps(sw.lit(None)))), [value, None, None]),  # noqa: S301 - ours
        (x.fill_null(None), [value, None, value]),
        (sw.coalesce(None, x, None), [value, None, value]),
    ]:
        assert computed(made, **columns) == right, made


@pytest.mark.parametrize(
    "name",
    [
        "int8",
        "uint64",
        "float32",
        "bool",
        "string",
        "binary",
        "date",
        "time",
        "timestamp",
        "duration[ms]",
        "decimal128(5,2)",
        "timestamp[s,tz=UTC]",
    ],
)
def test_a_null_of_a_type_is_a_column_of_it(name: str) -> None:
    rows = pa.array([1, 2])
    assert computed(sw.lit(None, name), x=rows) == [None, None]
    assert computed(sw.lit(None, name).is_null(), x=rows) == [True, True]
    assert computed(sw.lit(None).cast(name), x=rows) == [None, None]
    assert computed(sw.lit(None, name).cast("string"), x=rows) == [None, None]


MADE: list[tuple[sw.Expr, str]] = [
    (x == sw.lit(None), "x = NULL"),
    (sw.lit(None) < x, "NULL < x"),
    (x != sw.lit(None, "float64"), "x <> NULL"),
    (x + sw.lit(None, "int64"), "x + NULL"),
    (-sw.lit(None, "int64"), "-NULL::bigint"),
    (p & sw.lit(None), "p AND NULL"),
    (p | sw.lit(None, "bool"), "p OR NULL"),
    (~sw.lit(None, "bool"), "NOT NULL::boolean"),
    (x.is_in([1, None]), "x IN (1, NULL)"),
    (~x.is_in([1, None]), "x NOT IN (1, NULL)"),
    (x.is_in([None]), "x IN (NULL)"),
    (x.between(0, sw.lit(None)), "x BETWEEN 0 AND NULL"),
    (x.between(5, sw.lit(None)), "x BETWEEN 5 AND NULL"),
    (sw.where(sw.lit(None, "bool"), 1, 2), "CASE WHEN NULL THEN 1 ELSE 2 END"),
    (sw.when(x > 1).then(None).otherwise(7), "CASE WHEN x > 1 THEN NULL ELSE 7 END"),
    (sw.when(p).then("a").otherwise(None), "CASE WHEN p THEN 'a' END"),
    (sw.coalesce(sw.lit(None), x, 3), "coalesce(NULL, x, 3)"),
    (sw.lit(None).fill_null(3), "coalesce(NULL, 3)"),
    (sw.lit(5, "int8"), "5::tinyint"),
]


@pytest.mark.parametrize(("made", "sql"), MADE, ids=str)
def test_a_null_literal_is_computed_as_in_sql(made: sw.Expr, sql: str) -> None:
    columns = {"x": [1, 2, None, 9], "p": [True, False, None, True]}
    table = pa.table(columns)
    with duckdb.connect() as database:
        database.register("rows", table)
        theirs = [one for (one,) in database.execute(f"SELECT {sql} FROM rows").fetchall()]  # noqa: S608
    assert computed(made, **{name: pa.array(one) for name, one in columns.items()}) == theirs


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sw.lit(None), r"sw\.lit\(None, 'int64'\)"),
        (lambda: sw.where(p, None, None), r"sw\.lit\(None, 'int64'\)"),
        (lambda: sw.lit(None).is_null(), r"sw\.lit\(None, 'int64'\)"),
        (lambda: sw.where(p, x, sw.lit(None, "string")), "int64 and string"),
        (lambda: sw.lit(None, "int"), "'int32' or 'int64'"),
        (lambda: sw.where(p, x, sw.when(p).then(x)), r"write .*\.otherwise\(None\) for a null"),  # type: ignore[arg-type]
        (lambda: x == None, r"write \.is_null\(\)"),  # noqa: E711 - what users write
        (lambda: x + None, r"sw\.lit\(None, 'int64'\)"),
        (lambda: sw.when(None).then(1).otherwise(x), r"sw\.lit\(None, 'int64'\)"),
    ],
)
def test_a_null_without_a_type_says_what_to_write(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeMismatch, match=says):
        computed(make(), x=pa.array([1]), p=pa.array([True]))


def test_nulls_are_alike_by_type_and_are_shown_as_written() -> None:
    assert alike(sw.lit(None, "int64"), sw.lit(None, "int64"))
    assert not alike(sw.lit(None, "int64"), sw.lit(None, "int32"))
    assert str(sw.where(p, x, None)) == 'where(col("p"), col("x"), None)'
    assert str(sw.lit(None, "int64")) == 'lit(None, "int64")'
