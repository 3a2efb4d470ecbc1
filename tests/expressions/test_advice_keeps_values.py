"""Advice in errors, followed to the letter, loses no value and leads out."""

from __future__ import annotations

import bz2
import datetime
import gzip
import itertools
import lzma
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError, OperatorError, TypeMismatch
from slackwater.runtime.expressions.casts import cast
from slackwater.runtime.expressions.comparable import computed_type
from slackwater.runtime.expressions.function import Call, Operand
from slackwater.runtime.expressions.holding import holding_type
from slackwater.runtime.expressions.table import FUNCTIONS
from slackwater.runtime.model.schema import column_of_arrow
from tests.support.readers import rows_of
from tests.support.tables import computed, result_of

NEAR = [-(10**9), -1, 0, 1_700_000_001]
TIMES = ["date32", "timestamp[s]", "timestamp[ms]", "timestamp[ns]", "timestamp[us, tz=UTC]"]
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
LAST = {f"decimal128({p}, {s})": p for p, s in ((2, 2), (5, 1), (15, 3), (38, 0), (38, 18))}


def values_of_type(name: str) -> pa.Array:  # noqa: PLR0911 - one for each kind
    """Return values at the ends of a type."""
    if name in WHOLE:
        ends = np.iinfo(name)
        return pa.array([ends.min, 0, 1, ends.max], name)
    if name.startswith("decimal"):
        kind = pa.decimal128(*map(int, name[11:-1].split(",")))
        digits = (9,) * LAST[name]
        return pa.array([Decimal((sign, digits, -kind.scale)) for sign in (0, 1)], kind)
    if name.startswith("float"):
        return pa.array([0.1, -1e30, 1 / 3, float("inf")], name)
    if name == "date32":
        return pa.array([-10_000, 0, 20_000], pa.int32()).view(pa.date32())
    if name.startswith("time["):
        unit = name[5:-1]
        bits = pa.int32() if unit in ("s", "ms") else pa.int64()
        kind = (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)
        return pa.array([0, 86_399], bits).view(kind)
    if name.startswith(("timestamp", "duration")):
        unit, *zone = name[:-1].split("[")[1].split(", tz=")
        kind = pa.timestamp(unit, *zone) if name.startswith("t") else pa.duration(unit)
        return pa.array(NEAR, pa.int64()).view(kind)
    of_others = {"string": ["", "é", "1.50"], "binary": [b"\xff", b""], "bool": [True, False]}
    return pa.array(of_others[name], name)


NAMES = [
    *WHOLE,
    *LAST,
    *TIMES,
    *("float32", "float64", "string", "binary", "bool"),
    *("duration[s]", "duration[us]", "time[s]", "time[us]"),
]


def cast_to(column: Any, of: pa.DataType, to: pa.DataType) -> Any:
    gives = FUNCTIONS["cast"].type_of([Operand(computed_type(of), own=of)], str(to))
    return cast(Call((Operand(of),), str(to), gives))(column)


@pytest.mark.parametrize("one", NAMES)
def test_the_advised_type_holds_both_sides_of_each_pair(one: str) -> None:
    for other in NAMES:
        arrays = [values_of_type(one), values_of_type(other)]
        held = holding_type(*[Operand(array.type) for array in arrays])
        assert held == holding_type(*[Operand(array.type) for array in reversed(arrays)])
        for array in arrays if held is not None else ():
            column = column_of_arrow(array)
            there = cast_to(column, array.type, held)
            if held == pa.string() and array.type == pa.string():
                assert there.to_pylist() == array.to_pylist()
                continue
            back = cast_to(there, held, array.type)
            assert back.tolist() == column.tolist(), f"{array.type} as {held}, beside {other}"


def test_no_advice_is_given_where_no_type_holds_both() -> None:
    kinds = [pa.int64(), pa.float64(), pa.decimal128(38, 18), pa.bool_(), pa.timestamp("s")]
    kinds += [pa.decimal128(38, 38), pa.decimal256(76, 0), pa.list_(pa.int64())]
    pairs = [pair for pair in itertools.combinations(kinds, 2) if holding_type(*map(Operand, pair))]
    assert pairs == [
        (pa.int64(), pa.decimal128(38, 18)),
        (pa.int64(), pa.decimal128(38, 38)),
        (pa.int64(), pa.decimal256(76, 0)),
        (pa.decimal128(38, 18), pa.decimal128(38, 38)),
    ]


def key_of(kind: pa.DataType) -> Any:
    """Return one key, equal in each type of a family."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        at = datetime.datetime(2024, 1, 1)  # noqa: DTZ001 - without a zone it is UTC
        return at.date() if pa.types.is_date(kind) else at
    if pa.types.is_time(kind):
        return datetime.time(1)
    if pa.types.is_duration(kind):
        return datetime.timedelta(seconds=1)
    return "1" if pa.types.is_string(kind) else Decimal(1) if pa.types.is_decimal(kind) else 1


@pytest.mark.parametrize(
    ("left", "right", "advised"),
    [
        (pa.timestamp("s"), pa.timestamp("ms"), r"timestamp\[ms\]"),
        (pa.timestamp("ms", "UTC"), pa.timestamp("s"), r"timestamp\[ms, tz=UTC\]"),
        (pa.date32(), pa.timestamp("us"), r"timestamp\[us\]"),
        (pa.time32("s"), pa.time64("ns"), r"time64\[ns\]"),
        (pa.duration("s"), pa.duration("ns"), r"duration\[ns\]"),
        (pa.float32(), pa.float64(), "double"),
        (pa.int32(), pa.float32(), "double"),
        (pa.int64(), pa.string(), "string"),
        (pa.uint64(), pa.decimal128(5, 2), r"decimal128\(22, 2\)"),
    ],
    ids=str,
)
def test_keys_of_two_types_are_advised_the_finer_and_then_join(
    left: pa.DataType, right: pa.DataType, advised: str
) -> None:
    tables = [
        pa.table({"ts": pa.array([1], pa.timestamp("s")), "k": pa.array([key_of(kind)], kind)})
        for kind in (left, right)
    ]

    def joined(a: sw.Stream, b: sw.Stream) -> sw.Stream:
        return a.join(b, on="k", within="1s")

    with pytest.raises(TypeMismatch, match=rf"write \.cast\('{advised}'\) on both"):
        result_of(joined, *tables, batch_rows=9)
    kind = advised.replace("\\", "")

    def as_advised(a: sw.Stream, b: sw.Stream) -> sw.Stream:
        same = [one.with_columns(k=sw.col("k").cast(kind)) for one in (a, b)]
        return same[0].join(same[1], on="k", within="1s")

    assert len(result_of(as_advised, *tables, batch_rows=9)) == 1


@pytest.mark.parametrize("year", [1, 1600, 2263, 9999])
def test_the_way_out_of_a_time_too_far_away_drops_its_row(year: int) -> None:
    days = [datetime.date(year, 1, 1), datetime.date(2024, 5, 6), None]
    x = pa.array(days, pa.date32())
    with pytest.raises(OperatorError) as problem:
        computed(sw.col("x").dt.year(), x=x)
    advice = str(problem.value).split(".filter(", 1)[1].split("), or make", 1)[0]
    kept = eval(advice, {"col": sw.col, "datetime": datetime})  # noqa: S307 - ours
    table = pa.table({"ts": pa.array(range(3), pa.timestamp("s")), "x": x})
    found = result_of(
        lambda rows: rows.filter(kept).select(y=sw.col("x").dt.year()), table, batch_rows=3
    )
    assert found["y"].to_pylist() == [2024]
    as_null = sw.col("x").try_cast("timestamp[ns]").dt.year()
    assert computed(as_null, x=x) == [None, 2024, None]


PACKED = {
    "gzip": gzip.compress(b"t\n1\n"),
    "xz": lzma.compress(b"t\n1\n"),
    "bzip2": bz2.compress(b"t\n1\n"),
}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("kind", [*PACKED, "workbook"])
def test_a_packed_file_is_named_so_and_no_encoding_is_advised(
    kind: str, form: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{form}"
    if kind == "workbook":
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("xl/workbook.xml", "é")
    else:
        path.write_bytes(PACKED[kind])
    for options in ({}, {"encoding": "latin1"}, {"on_bad": "skip"}):
        with pytest.raises(IngestError, match=f"the file is .*{kind}.*; .*unpack it") as problem:
            rows_of(getattr(sw, form)(path, **options))
        assert "latin1" not in str(problem.value)


def test_nan_is_filled_by_where_as_the_answer_says() -> None:
    x = sw.col("x")
    with pytest.raises(AttributeError, match=r"sw\.where\(sw\.col\('x'\)\.is_nan\(\), 0\.0, "):
        x.fill_nan(0)  # type: ignore[attr-defined]
    filled = sw.where(x.is_nan(), 0, x)
    assert computed(filled, x=pa.array([1.5, float("nan"), None])) == [1.5, 0.0, None]


def test_advice_neither_shrinks_a_bound_nor_refuses_large_numbers() -> None:
    times = pa.array([1], pa.timestamp("s"))
    table = pa.table({"ts": times, "k": ["a"], "d": [1.9], "id": [1.5]})

    def bounded(a: sw.Stream, b: sw.Stream) -> sw.Stream:
        return a.join(b, on="k", within="9s", drift="d")

    with pytest.raises(TypeMismatch, match=r"\.ceil\(\)\.cast\('int64'\)"):
        result_of(bounded, table, table, batch_rows=1)
    with pytest.raises(TypeMismatch, match=r"cast\('decimal128\(20, 0\)'\)"):
        computed(-sw.col("x"), x=pa.array([2**63], pa.uint64()))
    negative = -sw.col("x").cast("decimal128(20, 0)")
    assert computed(negative, x=pa.array([2**63], pa.uint64())) == [-(2**63)]
