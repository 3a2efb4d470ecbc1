"""A column leaves each operator with the type and the values with which it came."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine.values.drawn_types import BERLIN, NESTED, PLAIN, at, drawn
from slackwater.actors.wire.frames import FrameCodec
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model.batch import batch_of
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.schema import (
    ArrowRows,
    column_from_arrow,
    column_to_arrow,
    inside_schema,
)
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.ground.keys import KeyIndex
from tests.support.tables import result_of
from tests.support.told import message_of

ROWS = 60
col = sw.col


TYPES = {**PLAIN, **NESTED}


def rows(seed: int, *, nulls: float) -> pa.Table:
    """Return rows with a column of each type, of which a share is null."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {
        "ts": pa.array(range(ROWS), pa.timestamp("us")),
        "k": pa.array(rng.integers(0, 3, ROWS)),
    }
    for name, (kind, values) in TYPES.items():
        columns[name] = drawn(rng, values, kind, rows=ROWS, nulls=nulls)
    return pa.table(columns)


result = partial(result_of, batch_rows=7)


def same(found: pa.Table, expected: pa.Table) -> None:
    """Check types and values, column by column."""
    for name in expected.column_names:
        assert found.schema.field(name).type == expected.schema.field(name).type, name
        assert found[name].to_pylist() == expected[name].to_pylist(), name


def in_order(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.argsort(table["ts"].cast(pa.int64()).to_numpy(), kind="stable")))


EACH_ROW: dict[str, Callable[[sw.Stream], sw.Stream]] = {
    "filter": lambda one: one.filter(col("k") >= 0),
    "few rows": lambda one: one.filter((col("k") >= 0) | col("u8").is_null()),
    "select": lambda one: one.select(*one.columns),
    "with_columns": lambda one: one.with_columns({name: col(name) for name in TYPES}),
    "dedupe": lambda one: one.dedupe("ts", within="1s"),
    "merge": lambda one: one.merge(one.filter(col("k") < 0)),
    "merge with nulls": lambda one: one.merge(one.filter(col("k") < 0).select("k"), fill=True),
    "newest": lambda one: one.newest(["k", "ts"]),
    "limit": lambda one: one.limit(10**6),
}


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("step", EACH_ROW)
def test_each_type_leaves_a_step_as_it_came(step: str, nulls: float) -> None:
    table = rows(1, nulls=nulls)
    same(in_order(result(EACH_ROW[step], table)), table)


@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_each_type_leaves_a_join_on_both_sides_as_it_came(nulls: float) -> None:
    left, right = rows(2, nulls=nulls), rows(3, nulls=nulls)
    right = right.rename_columns(["ts", "k", *(f"r_{name}" for name in TYPES)])
    found = result(lambda one, other: one.join(other, on="ts", within="1ms"), left, right)
    same(in_order(found), left)
    same(in_order(found), right.select([f"r_{name}" for name in TYPES]))


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("name", PLAIN)
def test_each_plain_type_is_a_key_of_windows_joins_and_dedupes(name: str, nulls: float) -> None:
    table = rows(4, nulls=nulls).select(["ts", "k", name])
    windows = result(
        lambda one: one.aggregate(n=sw.count(), window=sw.tumbling("1s"), by=name, replicas=2),
        table,
    )
    counted = table.group_by(name).aggregate([([], "count_all")])
    assert windows.schema.field(name).type == table.schema.field(name).type
    ours = zip(windows[name].to_pylist(), windows["n"].to_pylist(), strict=True)
    theirs = zip(counted[name].to_pylist(), counted["count_all"].to_pylist(), strict=True)
    assert sorted(ours, key=str) == sorted(theirs, key=str)
    once = result(lambda one: one.dedupe(name, within="1s"), table)
    assert len(once) == len(counted)
    pairs = result(lambda one, other: one.join(other, on=name, within="1s"), table, table)
    squares = [
        n * n
        for value, n in zip(
            counted[name].to_pylist(), counted["count_all"].to_pylist(), strict=True
        )
        if value is not None
    ]
    assert len(pairs) == sum(squares)


@pytest.mark.parametrize("name", NESTED)
def test_a_nested_column_is_refused_where_it_is_computed_on(name: str) -> None:
    table = rows(5, nulls=0.3).select(["ts", "k", name])
    for make in (
        lambda one: one.filter(col(name) == col(name)),
        lambda one: one.aggregate(n=sw.max(name), window=sw.tumbling("1s")),
        lambda one: one.dedupe(name, within="1s"),
    ):
        with pytest.raises(SlackwaterError, match=name):
            result(make, table)
    found = result(lambda one: one.filter(~col(name).is_null()), table)
    assert None not in found[name].to_pylist()


WORDS = pa.DictionaryArray.from_arrays([0, 1, None], ["a", "b"])
DICTIONARIES = {
    "struct": pa.StructArray.from_arrays([WORDS], ["q"]),
    "list": pa.ListArray.from_arrays([0, 1, 2, 3], WORDS),
    "map": pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["x", "y", "z"]), WORDS),
    "structs": pa.ListArray.from_arrays([0, 1, 2, 3], pa.StructArray.from_arrays([WORDS], ["q"])),
}


@pytest.mark.parametrize("name", DICTIONARIES)
def test_dictionaries_within_a_column_pass_the_wire_as_their_values(name: str) -> None:
    came = DICTIONARIES[name]
    (kind,) = inside_schema(pa.schema([("x", came.type)])).types
    assert "dictionary" not in str(kind)
    batch = batch_of(range(3), {"x": column_from_arrow("x", came, kind, who="test")})
    schema = pa.schema([("x", kind)])
    sender, receiver = (FrameCodec(schema, columns=["x"]) for _ in range(2))
    back = receiver.decode(sender.encode(message_of(batch, 0, 0), sent_at_ns=0))[0].batch
    assert back is not None
    assert column_to_arrow(back.columns["x"], kind).to_pylist() == came.to_pylist()


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_each_type_passes_the_wire_and_a_snapshot(nulls: float) -> None:
    table = rows(6, nulls=nulls)
    schema = inside_schema(table.schema)
    (block,) = table.to_batches()
    columns = {
        field.name: column_from_arrow(field.name, block[field.name], field.type, who="test")
        for field in schema
    }
    names = list(TYPES)
    sender, receiver = (FrameCodec(schema, columns=names) for _ in range(2))
    for start, stop in ((0, ROWS), (0, 0), (3, 4), (5, 40)):
        batch = batch_of(range(ROWS), columns).slice(start, stop)
        frame = sender.encode(message_of(batch, 0, 0), sent_at_ns=0)
        received = receiver.decode(frame)[0].batch
        for one in (received, from_plain(to_plain(batch))):
            assert one is not None
            made = ArrowRows(pa.schema([schema.field(name) for name in names])).of(one)
            same(pa.Table.from_batches([made]), table.slice(start, stop - start).select(names))


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize("name", PLAIN)
def test_keys_of_each_type_are_the_same_after_a_snapshot(name: str, nulls: float) -> None:
    table = rows(9, nulls=nulls).select([name])
    (kind,) = inside_schema(table.schema).types
    (block,) = table.to_batches()
    column = column_from_arrow(name, block[name], kind, who="test")
    index, fresh = KeyIndex(1), KeyIndex(1)
    codes = index.codes([column], ROWS)
    restore(fresh, from_plain(to_plain(save(index))))
    assert fresh.codes([column], ROWS).tolist() == codes.tolist()
    (keys,) = fresh.columns(codes)
    assert column_to_arrow(keys, kind).to_pylist() == table[name].to_pylist()


COMPARED: list[tuple[str, sw.Expr, str]] = [
    ("us", col("us") > at(1, 1), "us > '2026-03-29 01:30:00.000001Z'::TIMESTAMPTZ"),
    ("ms and us", col("ms") == col("us"), "ms = us"),
    ("ms and us", col("ms") < col("us"), "ms < us"),
    ("s", col("s") >= at(2), "s >= '2026-03-29 02:30:00'"),
    ("us", col("us").is_null(), "us IS NULL"),
    ("time", col("time64") > datetime.time(1, 30), "time64 > '01:30:00'::TIME"),
    ("times", col("time32") == col("time64"), "time32 = time64"),
    ("decimal", col("decimal") > 0, '"decimal" > 0'),
    ("decimal", col("decimal") == Decimal("0.01"), '"decimal" = 0.01'),
    ("decimal", col("decimal") < 0.005, '"decimal"::DOUBLE < 0.005'),
    ("decimals", col("decimal") < col("wide"), '"decimal" < wide'),
    ("decimal", col("decimal").between(0, 5), '"decimal" BETWEEN 0 AND 5'),
    ("decimal", col("decimal").is_in([7, Decimal("0.01")]), '"decimal" IN (7, 0.01)'),
    ("decimal", col("decimal") + col("decimal"), '"decimal" + "decimal"'),
    ("decimal", col("decimal") * 3, '"decimal" * 3'),
    ("decimal", col("decimal") - Decimal("0.005"), '"decimal" - 0.005'),
    ("decimal", col("decimal") * col("i16"), '"decimal" * i16'),
    ("decimal", col("decimal") / 4, '"decimal"::DOUBLE / 4'),
    ("decimal", col("decimal") * col("f64"), '"decimal"::DOUBLE * f64'),
    ("decimal", -col("decimal"), '-"decimal"'),
    ("decimal", abs(col("decimal")), 'abs("decimal")'),
    ("decimal", col("decimal").fill_null(0), 'coalesce("decimal", 0)'),
    (
        "decimal",
        sw.where(col("k") > 0, col("decimal"), Decimal("9.00")),
        'CASE WHEN k > 0 THEN "decimal" ELSE 9.00 END',
    ),
    ("decimal", col("decimal").cast("float64"), '"decimal"::DOUBLE'),
    ("decimal", col("decimal").cast("string"), '"decimal"::VARCHAR'),
    ("decimal", col("i16").cast("decimal128(9, 3)"), "i16::DECIMAL(9, 3)"),
    ("bytes", col("bytes") == b"a", "bytes = 'a'::BLOB"),
    ("long", col("long") == "a", "long = 'a'"),
    ("named", col("named").is_in(["x"]), "named IN ('x')"),
    ("u64", col("u64") > 5, "u64 > 5"),
    ("lasting", col("us") + col("lasting"), "us + lasting"),
]


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize(
    ("what", "ours", "theirs"), COMPARED, ids=[str(one) for _, one, _ in COMPARED]
)
def test_each_type_is_computed_as_duckdb_does(
    what: str, ours: sw.Expr, theirs: str, nulls: float
) -> None:
    table = rows(7, nulls=nulls)
    found = in_order(result(lambda one: one.with_columns(r=ours), table))["r"].to_pylist()
    with duckdb.connect() as database:
        flat = table.select([name for name in PLAIN if name not in ("widest", "far")] + ["ts", "k"])
        database.register("t", flat)
        sql = f"SELECT {theirs} FROM t ORDER BY ts"  # noqa: S608
        expected = [row[0] for row in database.execute(sql).fetchall()]
    assert list(map(plain, found)) == list(map(plain, expected)), what


def plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return round(value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp() * 1e6)
    if isinstance(value, Decimal):
        return value.normalize()
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_times_and_decimals_aggregate_as_in_duckdb(nulls: float) -> None:
    table = rows(8, nulls=nulls)
    names = ["decimal", "date32", "time64", "us", "lasting", "far"]
    made = {
        f"{of}_{name}": getattr(sw, of)(name) for name in names for of in ("min", "max", "count")
    }
    made |= {
        "sum": sw.sum("decimal"),
        "mean": sw.mean("decimal"),
        "half": sw.quantile("decimal", 0.5),
        "long": sw.sum("lasting"),
    }
    found = result(lambda one: one.aggregate(made, window=sw.tumbling("1s"), by="k"), table)
    for row in found.to_pylist():
        own = [one for one in table.to_pylist() if one["k"] == row["k"]]
        for name in names:
            values = [one[name] for one in own if one[name] is not None]
            assert row[f"count_{name}"] == len(values)
            assert row[f"min_{name}"] == min(values, default=None)
            assert row[f"max_{name}"] == max(values, default=None)
        decimals = [one["decimal"] for one in own if one["decimal"] is not None]
        assert row["sum"] == (sum(decimals) if decimals else None)
        lasting = [one["lasting"] for one in own if one["lasting"] is not None]
        assert row["long"] == (sum(lasting, datetime.timedelta(0)) if lasting else None)
        if decimals:
            assert row["mean"] == pytest.approx(float(sum(decimals) / len(decimals)))
            assert row["half"] == pytest.approx(float(np.median(list(map(float, decimals)))))
    assert found.schema.field("max_us").type == pa.timestamp("us", BERLIN)
    assert found.schema.field("sum").type == pa.decimal128(38, 2)


TIMES = ["date32", "date64", "time32", "time64", "s", "ms", "us", "ns", "lasting"]
UNITS = {"date32": 86_400 * 10**9, "date64": 10**6, "time32": 10**9, "time64": 1_000}
UNITS |= {"s": 10**9, "ms": 10**6, "us": 1_000, "ns": 1, "lasting": 10**6}


def near(seed: int, *, nulls: float) -> pa.Table:
    """Return rows of times that nanoseconds hold."""
    table = rows(seed, nulls=nulls)
    days = [datetime.date(2026, 1, 1), None if nulls else datetime.date(1969, 7, 20)] * (ROWS // 2)
    for name in ("date32", "date64"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(days, TYPES[name][0]))
    return table.select(["ts", "k", *TIMES])


def in_ns(table: pa.Table, name: str) -> list[int | None]:
    kind = table.schema.field(name).type
    whole = table[name].combine_chunks().view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return [None if one is None else one * UNITS[name] for one in whole.to_pylist()]


SCHEMA: dict[str, Any] = {name: TYPES[name][0] for name in TIMES}


SEEN: list[list[Any]] = []
"""Rows that a function was given: a run has a copy of the function, and of what it holds."""


def note(row: list[Any]) -> None:
    SEEN.append(row)


@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_user_functions_get_times_in_nanoseconds_and_may_return_them(nulls: float) -> None:
    table = near(10, nulls=nulls)
    SEEN.clear()

    def each_row(row: dict[str, Any]) -> dict[str, Any]:
        note([row[name] for name in TIMES])
        return {name: row[name] for name in TIMES}

    def each_batch(columns: dict[str, Any]) -> dict[str, Any]:
        return {name: columns[name] for name in TIMES}

    for method, function in (("map_rows", each_row), ("map_batches", each_batch)):
        found = result(lambda one, m=method, f=function: getattr(one, m)(f, schema=SCHEMA), table)
        same(found, table.select(TIMES))
    expected = list(zip(*(in_ns(table, name) for name in TIMES), strict=True))
    assert list(map(tuple, SEEN)) == expected


def test_user_functions_may_return_pythons_and_numpys_times() -> None:
    table = near(11, nulls=0.3)
    values = table.select(TIMES).to_pylist()

    def of_python(row: dict[str, Any]) -> dict[str, Any]:
        return values[row["k"]]

    numbered = table.set_column(1, "k", pa.array(range(ROWS)))
    found = result(lambda one: one.map_rows(of_python, schema=SCHEMA), numbered)
    same(found, table.select(TIMES))

    def of_numpy(columns: dict[str, Any]) -> dict[str, Any]:
        seconds = columns["k"].astype("datetime64[s]")
        return {"s": seconds, "us": seconds.astype("datetime64[us]"), "lasting": seconds - seconds}

    kinds = {name: SCHEMA[name] for name in ("s", "us", "lasting")}
    found = result(lambda one: one.map_batches(of_numpy, schema=kinds), numbered)
    assert found["s"].cast(pa.int64()).to_pylist() == list(range(ROWS))
    assert found.schema.field("us").type == SCHEMA["us"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s", 1_500_000_000),
        ("s", at(1, 5)),
        ("date32", at(1)),
        ("ms", np.datetime64("2026-01-01T00:00:00.000001")),
        ("time32", datetime.time(1, 0, 0, 5)),
        ("lasting", datetime.timedelta(microseconds=1)),
    ],
)
def test_a_time_that_its_unit_does_not_hold_is_refused(name: str, value: Any) -> None:
    table = near(12, nulls=0.0)
    with pytest.raises(SlackwaterError, match=name):
        result(
            lambda one: one.map_rows(lambda _: {name: value}, schema={name: SCHEMA[name]}), table
        )


YEARS_AWAY = datetime.date(9999, 12, 31), datetime.datetime(9999, 12, 31, 23, tzinfo=datetime.UTC)
NEAR = datetime.date(2026, 3, 1), datetime.datetime(2026, 3, 1, 7, tzinfo=datetime.UTC)
LIMIT = datetime.date(2262, 1, 1)


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (col("x") < LIMIT, "x < DATE '2262-01-01'"),
        (col("x") >= LIMIT, "x >= DATE '2262-01-01'"),
        (col("x") == YEARS_AWAY[0], "x = DATE '9999-12-31'"),
        (col("x") != NEAR[1], "x <> TIMESTAMP '2026-03-01 07:00:00'"),
        (col("x") <= NEAR[1], "x <= TIMESTAMP '2026-03-01 07:00:00'"),
        (col("x") == col("x"), "x = x"),
        (col("x").between(NEAR[0], LIMIT), "x BETWEEN DATE '2026-03-01' AND DATE '2262-01-01'"),
        (
            col("x").is_in([*YEARS_AWAY]),
            "x IN (DATE '9999-12-31', TIMESTAMP '9999-12-31 23:00:00')",
        ),
        (col("x").try_cast("timestamp[ns]").is_null(), "TRY_CAST(x AS TIMESTAMP_NS) IS NULL"),
        (col("x").cast("string"), "x::VARCHAR"),
        (col("x").cast("date"), "x::DATE"),
        (col("x").cast("timestamp[us]"), "x::TIMESTAMP"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([YEARS_AWAY[0], NEAR[0], None], pa.date32()),
        ([YEARS_AWAY[1], NEAR[1], None], pa.timestamp("s")),
        ([YEARS_AWAY[1], NEAR[1], None], pa.timestamp("us")),
    ],
    ids=["date", "s", "us"],
)
def test_times_far_away_are_compared_and_cast_in_their_own_unit(
    values: list[Any], kind: pa.DataType, expression: sw.Expr, sql: str
) -> None:
    table = pa.table({"ts": pa.array(range(3), pa.timestamp("us")), "x": pa.array(values, kind)})
    found = result(lambda one: one.with_columns(r=expression), table)
    with duckdb.connect() as database:
        database.register("rows", table)
        theirs = database.sql(f"SELECT {sql} FROM rows ORDER BY ts")  # noqa: S608
        assert found["r"].to_pylist() == [row[0] for row in theirs.fetchall()]


def test_a_filter_gets_rid_of_times_that_are_refused() -> None:
    days = pa.array([YEARS_AWAY[0], NEAR[0]], pa.date32())
    table = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "day": days})
    advice = r"\.filter\(~col\(\"day\"\)\.try_cast\('timestamp\[ns\]'\)\.is_null\(\)\)"
    with pytest.raises(SlackwaterError, match=advice):
        result(lambda one: one.with_columns(y=col("day").dt.year()), table)
    is_near = ~col("day").try_cast("timestamp[ns]").is_null()
    for test in (is_near, col("day") < LIMIT):
        found = result(
            lambda one, test=test: one.filter(test).select(y=col("day").dt.year()), table
        )
        assert found["y"].to_pylist() == [2026]


def test_a_year_9999_passes_and_is_refused_by_its_row_where_it_is_computed_on() -> None:
    table = rows(13, nulls=0.0).select(["ts", "far"])
    same(result(lambda one: one.filter(~col("far").is_null()), table), table)
    with pytest.raises(SlackwaterError, match=r"(?s)9999-12-31.*event_time_ns=0"):
        result(lambda one: one.filter(col("far").dt.year() > 1), table)
    with pytest.raises(SlackwaterError, match=r"(?s)9999-12-31.*event_time_ns=0"):
        result(lambda one: one.map_rows(dict, schema={"far": "int64"}), table)
