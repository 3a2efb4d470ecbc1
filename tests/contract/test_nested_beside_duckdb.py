"""Nested values, casts and mathematics mean what they mean in DuckDB."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine.values.drawn_types import drawn
from slackwater.runtime.errors import OperatorError, TypeMismatch
from tests.support.tables import result_of, unlike_duckdb

ROWS = 80
col = sw.col
STRUCT = pa.struct([("a", pa.int16()), ("day", pa.date32()), ("w", pa.list_(pa.string()))])
DAYS = [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]


def rows(seed: int, *, nulls: float) -> pa.Table:
    rng = np.random.default_rng(seed)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return drawn(rng, values, kind, rows=ROWS, nulls=nulls)

    times = [int(n) for n in rng.integers(-(10**15), 2 * 10**15, 30)]
    lists = [[3, None, -5], [], [7], [None], [1, 2, 3, 4], [2**40, 5]]
    structs = [{"a": 1, "day": DAYS[0], "w": ["x"]}, {"a": None, "day": DAYS[1], "w": None}]
    return pa.table(
        {
            "ts": pa.array(range(ROWS), pa.timestamp("us")),
            "l": column(lists, pa.list_(pa.int64())),
            "big": column(lists, pa.large_list(pa.int64())),
            "f": column([[1.5, math.nan], [0.25, -2.0], [None, 4.0]], pa.list_(pa.float64(), 2)),
            "w": column([["a", "b"], [None, "c"], []], pa.list_(pa.string())),
            "s": column(structs, STRUCT),
            "m": column([[("k", 1.5)], [], [("j", 2.0), ("k", -1.0)]], pa.map_("string", "double")),
            "t": column(times, pa.timestamp("us")),
            "z": column(times, pa.timestamp("us", "Europe/Berlin")),
            "day": column(DAYS, pa.date32()),
            "text": column(["2024-02-29 13:05:09.25", "nix", "1999-12-31", ""], pa.string()),
            "hour": column(["13:05:09.25", "25:00:00", "00:00:00"], pa.string()),
            "n": column([-3, 0, 1, 700], pa.int64()),
            "x": column([0.5, -1.75, 0.0, 9.0], pa.float64()),
            "d": column([Decimal("1.50"), Decimal("-2.99")], pa.decimal128(9, 2)),
        }
    )


FUNCTIONS: list[tuple[sw.Expr, str]] = [
    (col("l")[0], "l[1]"),
    (col("big")[-1], "big[-1]"),
    (col("f").list.get(1), "f[2]"),
    (col("l").list.first() + 1, "l[1] + 1"),
    (col("w").list.last(), "w[-1]"),
    (col("l").list.length(), "len(l)"),
    (col("w").list.slice(1), "w[2:]"),
    (col("big").list.slice(1, 2), "big[2:3]"),
    (col("l").list.sum(), "list_sum(l)"),
    (col("l").list.mean(), "list_avg(l)"),
    (col("big").list.min(), "list_min(big)"),
    (col("f").list.max(), "list_max(f)"),
    (col("f").list.min(), "list_min(f)"),
    (col("l").list.contains(3), "list_contains(l, 3)"),
    (col("w").list.contains("c"), "list_contains(w, 'c')"),
    (col("w").list.join("+"), "array_to_string(w, '+')"),
    (col("s")["a"], "s.a"),
    (col("s")["day"], "s.day"),
    (col("s")["day"].dt.month(), "month(s.day)"),
    (col("s")["w"][0], "s.w[1]"),
    (col("m")["k"] * 2, "m['k'] * 2"),
    (col("m").list.length(), "cardinality(m)::BIGINT"),
    (col("t").cast("date"), "t::DATE"),
    (col("z").cast("date"), "z::DATE"),
    (col("t").cast("time"), "t::TIME"),
    (col("z").cast("time"), "(z AT TIME ZONE 'Europe/Berlin')::TIME"),
    (col("t").cast("string"), "t::VARCHAR"),
    (col("day").cast("string"), "day::VARCHAR"),
    (col("day").cast("timestamp[us]"), "day::TIMESTAMP"),
    (col("t").cast("timestamp[s]"), "date_trunc('second', t)"),
    (col("text").try_cast("timestamp[us]"), "TRY_CAST(text AS TIMESTAMP)"),
    (col("hour").try_cast("time"), "TRY_CAST(hour AS TIME)"),
    (col("n").cast("timestamp[s]"), "make_timestamp(n * 1000000)"),
    (col("n").cast("string"), "n::VARCHAR"),
    (col("d").cast("string"), "d::VARCHAR"),
    (col("text").cast("binary"), "text::BLOB"),
    (col("x").exp(), "exp(x)"),
    (col("n").cast("float64").cbrt(), "cbrt(n)"),
    (sw.where(col("x") > 0, col("x").log(), 0.0), "CASE WHEN x > 0 THEN ln(x) ELSE 0 END"),
    (col("x").ceil(), "ceil(x)"),
    (col("n").sign(), "sign(n)::BIGINT"),
    (col("x").sin() + col("x").arctan(), "sin(x) + atan(x)"),
    (col("x").degrees(), "degrees(x)"),
    (col("f")[0].is_nan(), "isnan(f[1])"),
]


def result(make: Any, table: pa.Table, *, batch_rows: int = 13) -> pa.Table:
    return result_of(make, table, batch_rows=batch_rows).sort_by("ts")


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-14) or (math.isnan(ours) == math.isnan(theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_each_value_is_duckdbs_in_every_row(nulls: float, batch_rows: int) -> None:
    table = rows(1, nulls=nulls)
    columns = {f"r{number}": one for number, (one, _) in enumerate(FUNCTIONS)}
    found = result(lambda stream: stream.with_columns(columns), table, batch_rows=batch_rows)
    wrong = unlike_duckdb(table, found, FUNCTIONS, same)
    assert not wrong


NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1)  # noqa: DTZ001 - of columns without a zone
ELEMENTS = {
    "ts": pa.array([0], pa.timestamp("us")),
    "l": pa.array([[5, 0, 2**53 + 1]], pa.list_(pa.int64())),
    "b": pa.array([[5, None, -1]], pa.list_(pa.int8())),
    "u": pa.array([[2**64 - 1, 1]], pa.list_(pa.uint64())),
    "f": pa.array([[0.0, math.nan, 2.0**53]], pa.list_(pa.float64())),
    "d": pa.array([[Decimal("1.10")]], pa.list_(pa.decimal128(5, 2))),
    "day": pa.array([[DAYS[1], datetime.date(9999, 12, 31)]], pa.list_(pa.date32())),
    "t": pa.array([[NOON]], pa.list_(pa.timestamp("us"))),
}
"""Make a row that has a small list of each type that can be compared."""
CONTAINED: list[tuple[sw.Expr, str]] = [
    (col("l").list.contains(5.5), "list_contains(l, 5.5::DOUBLE)"),
    (col("l").list.contains(-0.5), "list_contains(l, -0.5::DOUBLE)"),
    (col("l").list.contains(Decimal("5.5")), "list_contains(l, 5.5)"),
    (col("l").list.contains(Decimal("5.0")), "list_contains(l, 5.0)"),
    (col("b").list.contains(300), "list_contains(b, 300)"),
    (col("b").list.contains(5), "list_contains(b, 5)"),
    (col("u").list.contains(-1), "list_contains(u, -1)"),
    (col("u").list.contains(2**64 - 1), "list_contains(u, 18446744073709551615)"),
    (col("f").list.contains(-0.0), "list_contains(f, -0.0::DOUBLE)"),
    (col("f").list.contains(math.nan), "list_contains(f, 'nan'::DOUBLE)"),
    (col("f").list.contains(2**53 + 1), "false"),
    (col("d").list.contains(Decimal("1.1")), "list_contains(d, 1.1)"),
    (col("d").list.contains(Decimal("1.105")), "list_contains(d, 1.105)"),
    (col("d").list.contains(1.1), "list_contains(d, 1.1::DOUBLE)"),
    (col("day").list.contains(DAYS[1]), "list_contains(day, DATE '2024-02-29')"),
    (col("day").list.contains(DAYS[0]), "list_contains(day, DATE '1969-12-31')"),
    (
        col("day").list.contains(datetime.date(9999, 12, 31)),
        "list_contains(day, DATE '9999-12-31')",
    ),
    (col("day").list.contains(NOON), "list_contains(day, TIMESTAMP '2024-02-29 12:00:00.000001')"),
    (col("t").list.contains(NOON), "list_contains(t, TIMESTAMP '2024-02-29 12:00:00.000001')"),
    (col("t").list.contains(DAYS[1]), "list_contains(t, TIMESTAMP '2024-02-29')"),
]


def test_an_element_equals_a_value_as_in_duckdb() -> None:
    table = pa.table(ELEMENTS)
    columns = {f"r{number}": one for number, (one, _) in enumerate(CONTAINED)}
    found = result(lambda stream: stream.with_columns(columns), table)
    assert not unlike_duckdb(table, found, CONTAINED, same)


@pytest.mark.parametrize(
    ("kind", "key", "other"),
    [
        (pa.date32(), DAYS[0], DAYS[1]),
        (pa.timestamp("us"), NOON, DAYS[1]),
        (pa.binary(), b"k", b"j"),
        (pa.decimal128(5, 2), Decimal("1.10"), Decimal("1.105")),
        (pa.decimal32(5, 2), Decimal("1.10"), Decimal("1.105")),
        (pa.float64(), 0.5, 1),
        (pa.int16(), 5, 5.5),
        (pa.bool_(), True, False),
    ],
    ids=str,
)
def test_a_maps_value_is_that_of_its_first_equal_key(
    kind: pa.DataType, key: Any, other: Any
) -> None:
    maps = pa.array([[(key, 1), (key, 2)], [], None, [(key, 3)]], pa.map_(kind, pa.int64()))
    table = pa.table({"ts": pa.array(range(4), pa.timestamp("us")), "m": maps})
    parts = {"own": col("m")[key], "other": col("m")[other]}
    found = result(lambda stream: stream.with_columns(parts), table)
    assert found["own"].to_pylist() == [1, None, None, 3]
    assert found["other"].to_pylist() == [None] * 4


@pytest.mark.parametrize(
    ("kind", "usual", "value"),
    [
        (pa.decimal32(5, 2), pa.decimal128(5, 2), Decimal("1.10")),
        (pa.decimal64(9, 2), pa.decimal128(9, 2), Decimal("1.10")),
        (pa.float16(), pa.float32(), 1.5),
    ],
    ids=str,
)
def test_lesser_numbers_inside_a_list_become_the_usual_ones(
    kind: pa.DataType, usual: pa.DataType, value: Any
) -> None:
    lists = pa.array([[value, None]], pa.list_(kind))
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "l": lists})
    found = result(lambda stream: stream.with_columns(r=col("l").list.contains(value)), table)
    assert found.schema.field("l").type.value_type == usual
    assert found.select(["l", "r"]).to_pylist() == [{"l": [value, None], "r": True}]


def test_a_part_keeps_the_type_that_it_has_inside() -> None:
    table = rows(2, nulls=0.2)
    made = {"day": col("s")["day"], "a": col("s")["a"], "element": col("big")[0]}
    found = result(lambda stream: stream.with_columns(made), table)
    assert [found.schema.field(name).type for name in made] == [pa.date32(), pa.int16(), pa.int64()]


def test_a_date_too_far_for_nanoseconds_passes_and_is_refused_where_it_is_computed_on() -> None:
    far = pa.array([{"a": 1, "day": datetime.date(9999, 1, 1), "w": None}], STRUCT)
    table = pa.table({"ts": pa.array([1], pa.timestamp("us")), "s": far})
    found = result(lambda stream: stream.with_columns(day=col("s")["day"]), table)
    assert found["day"].to_pylist() == [datetime.date(9999, 1, 1)]
    with pytest.raises(
        OperatorError, match=r'(?s)col\("s"\)\["day"\] is 9999-01-01.*event_time_ns'
    ):
        result(lambda stream: stream.with_columns(year=col("s")["day"].dt.year()), table)


def test_a_time_in_text_has_its_own_zone_or_utc() -> None:
    texts = ["2024-01-02", "2024-01-02T03:04:05", "2024-01-02 03:04:05+02:00", "nix"]
    table = pa.table({"ts": pa.array(range(4), pa.timestamp("us")), "s": texts})
    made = col("s").try_cast("timestamp[ms, tz=Europe/Berlin]")
    found = result(lambda stream: stream.with_columns(t=made), table)["t"]
    assert found.type == pa.timestamp("ms", "Europe/Berlin")
    assert [None if t is None else t.astimezone(datetime.UTC).hour for t in found.to_pylist()] == [
        0,
        3,
        1,
        None,
    ]


def test_a_hash_is_the_same_for_equal_values_of_two_widths_and_in_each_process() -> None:
    numbers = {"n": pa.array([1, None, -7]), "m": pa.array([1, None, -7], pa.int8())}
    table = pa.table({"ts": pa.array(range(3), pa.timestamp("us")), **numbers, "s": ["a", "b", ""]})
    made = {"hn": col("n").hash(), "hm": col("m").hash(), "hs": col("s").hash()}
    found = result(lambda stream: stream.with_columns(made), table)
    assert found["hn"].to_pylist() == found["hm"].to_pylist()
    assert found["hs"].type == pa.uint64()
    assert found["hn"].to_pylist()[0] == 10451216379200822465


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("n")["a"], r"takes a list, a struct or a map, not int64"),
        (col("s")["b"], "has no field 'b'; there are: a, day, w"),
        (col("s")[0], "takes the name of a field"),
        (col("l")["a"], "takes an element's place"),
        (col("m")[1], "has no such key: compares string with int64"),
        (col("w").list.sum(), "takes a list of numbers"),
        (col("l").list.join(","), "takes a list of text"),
        (col("l").list.contains("x"), "has no such element: compares int64 with string"),
        (col("l").list.contains(DAYS[0]), "has no such element: compares int64 with timestamp"),
        (col("l").list.contains(True), "has no such element: compares int64 with bool"),
        (col("n").list.length(), "takes a list, not int64"),
        (col("l").cast("string"), r"col\('a'\)\['b'\]"),
        (col("day").cast("time"), "a date has no time of day"),
        (col("x").cast("date"), "cannot cast double to date"),
        (col("n").is_nan(), "which has no NaN"),
        (col("l").hash(), "hash what is in it"),
    ],
)
def test_what_has_no_such_part_is_refused_when_the_step_is_made(
    expression: sw.Expr, text: str
) -> None:
    with pytest.raises(TypeMismatch, match=text):
        result(lambda stream: stream.with_columns(r=expression), rows(4, nulls=0.0))


@pytest.mark.parametrize("wrong", [1.5, True, None, b"x"])
def test_a_part_has_a_name_or_a_place(wrong: Any) -> None:
    with pytest.raises(TypeMismatch, match=r"takes the name of a field|takes an element's place"):
        result(lambda stream: stream.with_columns(r=col("l")[wrong]), rows(4, nulls=0.0))


def test_contains_takes_no_column() -> None:
    with pytest.raises(TypeMismatch, match="takes one value for all rows"):
        col("l").list.contains(col("n"))  # type: ignore[arg-type]


def test_an_expression_is_not_iterated() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        list(col("l"))  # type: ignore[call-overload]


def test_lists_of_infinities_have_sums_and_means_without_a_warning() -> None:
    lists = pa.array([[math.inf, -math.inf], [1e308, 1e308]])
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "l": lists})
    made = {"sum": col("l").list.sum(), "mean": col("l").list.mean()}
    found = result(lambda stream: stream.select(**made, ts="ts"), table)
    for name in made:
        first, second = found[name].to_pylist()
        assert math.isnan(first)
        assert second == math.inf


def test_a_sum_beyond_64_bits_is_refused_by_its_row() -> None:
    lists = pa.array([[1], [2**62, 2**62, 2**62]], pa.list_(pa.int64()))
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "l": lists})
    with pytest.raises(OperatorError, match=r"(?s)does not fit int64.*event_time_ns=2000"):
        result(lambda stream: stream.with_columns(r=col("l").list.sum()), table)
