"""Functions over text and times, and choices, mean what they mean in DuckDB."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine.values.drawn_types import drawn
from slackwater.runtime.errors import OperatorError, SettingError, TypeMismatch
from tests.support.tables import result_of, unlike_duckdb

ROWS = 90
WORDS = ["Straße 12", "  ÉTÉ ", "", "a.b.c", "x-42-y", "Ünï", "12", "2026"]
STAMPS = ["29.03.2026 01:15", "01.12.1999 23:59", "29.02.2024 00:00"]
NEW_YEAR_NS = 1_767_222_000 * 10**9
col = sw.col


def rows(seed: int, *, nulls: float) -> pa.Table:
    rng = np.random.default_rng(seed)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return drawn(rng, values, kind, rows=ROWS, nulls=nulls)

    times = [int(n) for n in rng.integers(0, 2 * 10**18, 40)] + [NEW_YEAR_NS, 0]
    return pa.table(
        {
            "ts": pa.array(range(ROWS), pa.timestamp("us")),
            "s": column(WORDS, pa.string()),
            "long": column(WORDS, pa.large_string()),
            "stamp": column(STAMPS, pa.string()),
            "t": column([one // 1000 for one in times], pa.timestamp("us")),
            "z": column([one // 1000 for one in times], pa.timestamp("us", "Europe/Berlin")),
            "day": column([datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)], pa.date32()),
            "hour": column([datetime.time(1, 2, 3), datetime.time(23, 59, 59)], pa.time32("s")),
            "n": column([-1, 0, 3], pa.int64()),
            "m": column([2, 5], pa.int32()),
        }
    )


FUNCTIONS: list[tuple[sw.Expr, str]] = [
    (col("s").str.lower(), "lower(s)"),
    (col("long").str.upper(), "upper(long)"),
    (col("s").str.strip(), "trim(s)"),
    (col("s").str.strip("12"), "trim(s, '12')"),
    (col("s").str.length(), "length(s)"),
    (col("s").str.slice(2, 3), "substring(s, 3, 3)"),
    (col("s").str.slice(1), "substring(s, 2)"),
    (col("s").str.contains("[0-9]+"), "regexp_matches(s, '[0-9]+')"),
    (col("s").str.contains(".", literal=True), "contains(s, '.')"),
    (col("s").str.starts_with("x"), "starts_with(s, 'x')"),
    (col("s").str.ends_with("c"), "ends_with(s, 'c')"),
    (col("s").str.replace("[a-c]", "_"), "regexp_replace(s, '[a-c]', '_', 'g')"),
    (col("s").str.replace(".", "/", literal=True), "replace(s, '.', '/')"),
    (col("s").str.replace(r"(\d+)", r"<\1>"), r"regexp_replace(s, '(\d+)', '<\1>', 'g')"),
    (col("s").str.split("."), "string_split(s, '.')"),
    (col("s").str.lower().str.contains("é"), "contains(lower(s), 'é')"),
    (col("s").str.length() > col("n"), "length(s) > n"),
    (col("s") + "-x", "s || '-x'"),
    ("<" + col("s"), "'<' || s"),
    (col("s") + col("s").str.upper(), "s || upper(s)"),
    (sw.lit("a") + sw.lit("b"), "'a' || 'b'"),
    (col("s").try_cast("int64"), "TRY_CAST(s AS BIGINT)"),
    (col("s").try_cast("float64"), "TRY_CAST(s AS DOUBLE)"),
    (sw.coalesce(col("n"), col("m"), 7), "coalesce(n, m, 7)"),
    (
        sw.when(col("n") > 0).then("more").when(col("n") == 0).then("none").otherwise("less"),
        "CASE WHEN n > 0 THEN 'more' WHEN n = 0 THEN 'none' ELSE 'less' END",
    ),
    (
        col("stamp").str.to_time("%d.%m.%Y %H:%M"),
        "strptime(stamp, '%d.%m.%Y %H:%M')",
    ),
    (
        col("stamp").str.to_time("%d.%m.%Y %H:%M", zone="Europe/Berlin"),
        "strptime(stamp, '%d.%m.%Y %H:%M') AT TIME ZONE 'Europe/Berlin'",
    ),
    *[
        (getattr(col(name).dt, ours)(), f"{theirs}({name})")
        for name in ("t", "z", "day")
        for ours, theirs in [
            ("year", "year"),
            ("month", "month"),
            ("day", "day"),
            ("weekday", "isodow"),
            ("day_of_year", "dayofyear"),
        ]
    ],
    *[
        (getattr(col(name).dt, part)(), f"{part}({name})")
        for name in ("t", "z", "hour")
        for part in ("hour", "minute", "second")
    ],
    *[
        (col(name).dt.truncate(every), f"date_trunc('{unit}', {name})")
        for name in ("t", "z")
        for every, unit in [
            ("1h", "hour"),
            ("1d", "day"),
            ("1w", "week"),
            ("1mo", "month"),
            ("1q", "quarter"),
            ("1y", "year"),
        ]
    ],
    (col("t").dt.truncate("15m"), "time_bucket(INTERVAL 15 MINUTES, t)"),
    (col("t").dt.format("%d.%m.%Y %H:%M"), "strftime(t, '%d.%m.%Y %H:%M')"),
    (col("z").dt.format("%Y-%m-%d"), "strftime(z, '%Y-%m-%d')"),
    (col("t").dt.format("%H:%M:%S"), "strftime(t, '%H:%M:%S')"),
    (col("t").dt.format("%S.%f%% %f"), "strftime(t, '%S.%f%% %f')"),
    (col("z").dt.format("%f"), "strftime(z, '%f')"),
]


def result(make: Any, table: pa.Table) -> pa.Table:
    return result_of(make, table, batch_rows=13).sort_by("ts")


def plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        value = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return round(value.timestamp() * 1e6)
    return value


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_each_function_has_duckdbs_value_in_every_row(nulls: float) -> None:
    table = rows(1, nulls=nulls)
    columns = {f"r{number}": one for number, (one, _) in enumerate(FUNCTIONS)}
    found = result(lambda stream: stream.with_columns(columns), table)
    wrong = unlike_duckdb(
        table, found, FUNCTIONS, lambda ours, theirs: bool(plain(ours) == plain(theirs))
    )
    assert not wrong


def test_groups_of_a_pattern_are_extracted_and_null_without_a_match() -> None:
    table = rows(2, nulls=0.2)
    made = {
        "one": col("s").str.extract(r"x-(\d+)-(.)"),
        "two": col("s").str.extract(r"x-(?:\d+)-(?P<last>.)", 1),
        "three": col("s").str.extract(r"([x])[-(]+(\d+)", 2),
    }
    found = result(lambda stream: stream.with_columns(made), table)
    for row in found.to_pylist():
        is_found = row["s"] is not None and row["s"].startswith("x-")
        assert row["one"] == ("42" if is_found else None)
        assert row["two"] == ("y" if is_found else None)
        assert row["three"] == ("42" if is_found else None)


def test_renamed_columns_keep_their_places() -> None:
    table = rows(3, nulls=0.0).select(["ts", "n", "m"])
    found = result(lambda stream: stream.rename({"n": "number", "m": "n"}), table)
    assert found.column_names == ["ts", "number", "n"]
    assert found["number"].to_pylist() == table["n"].to_pylist()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: col("s").str.contains("["), "is not a regular expression"),
        (lambda: col("s").str.extract("abc"), "put what is wanted in parentheses"),
        (lambda: col("s").str.slice("1"), "whole number"),
        (lambda: col("s").str.to_time("dd.mm.yyyy"), "codes of strftime"),
        (lambda: col("s").str.to_time("%d.%m.%Q"), "'Q' is a bad directive"),
        (lambda: col("n").round("a"), "must be a whole number"),
        (lambda: col("s").str.to_time("%d.%m.%Y", zone="Mars/Base"), "is not a time zone"),
        (lambda: col("t").dt.truncate("1 hour"), "such as '15m'"),
    ],
)
def test_a_wrong_argument_is_refused_where_it_is_written(make: Any, text: str) -> None:
    with pytest.raises((TypeMismatch, SettingError), match=text):
        make()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("n").str.lower(), "takes text, not int64"),
        (col("s").dt.year(), "takes a timestamp or a date, not string"),
        (col("hour").dt.year(), "takes a timestamp or a date"),
    ],
)
def test_a_function_of_another_type_is_refused_when_the_step_is_made(
    expression: sw.Expr, text: str
) -> None:
    with pytest.raises(TypeMismatch, match=text):
        result(lambda stream: stream.with_columns(r=expression), rows(4, nulls=0.0))


@pytest.mark.parametrize(
    ("text", "zone"), [("30.02.2026 01:00", None), ("29.03.2026 02:30", "Europe/Berlin")]
)
def test_a_text_that_is_no_time_is_refused_by_its_row(text: str, zone: str | None) -> None:
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "s": ["01.01.2026 00:00", text]})
    made = col("s").str.to_time("%d.%m.%Y %H:%M", zone=zone)
    with pytest.raises(OperatorError, match=f"(?s){text}.*event_time_ns=2000"):
        result(lambda stream: stream.with_columns(r=made), table)
