"""Nulls and NaN mean the same in each operation as in DuckDB, on the same rows.

Whole flows run in the simulator: rows are read, pass a gate or an operator, and are written.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine.values.drawn_types import drawn
from slackwater.runtime.model import Batch
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.model.schema import column_from_arrow, inside_schema
from tests.support.tables import result_of

ROWS = 240
NAN = float("nan")
NEW_YEAR = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
col = sw.col


def rows(seed: int, *, nulls: float) -> pa.Table:
    """Return rows of every kind of column, of which a share is null."""
    rng = np.random.default_rng(seed)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return drawn(rng, values, kind, rows=ROWS, nulls=nulls)

    floats = [-2.5, -0.0, 0.0, 1.5, 4.0, math.inf, -math.inf, NAN]
    days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2, 28)]
    return pa.table(
        {
            "ts": pa.array(range(ROWS), pa.timestamp("us")),
            "n": column([-7, -1, 0, 1, 2, 2**40], pa.int64()),
            "m": column([-3, 1, 2, 5], pa.int8()),
            "u": column([1, 2, 200], pa.uint16()),
            "x": column(floats, pa.float64()),
            "y": column([-1.0, 0.5, 1.5, NAN], pa.float64()),
            "z": column([0.25, 1.5, -8.0], pa.float32()),
            "b": column([True, False], pa.bool_()),
            "c": column([True, False], pa.bool_()),
            "s": column(["a", "b", "", "10"], pa.string()),
            "t": column(["a", "c"], pa.string()),
            "day": column(days, pa.timestamp("us")),
        }
    )


EXPRESSIONS: list[tuple[sw.Expr, str]] = [
    *[
        (compare(col(one), col(other)), f"{one} {sql} {other}")
        for one, other in [("n", "m"), ("x", "y"), ("x", "n"), ("z", "x"), ("s", "t"), ("u", "m")]
        for compare, sql in [
            (lambda a, b: a < b, "<"),
            (lambda a, b: a <= b, "<="),
            (lambda a, b: a > b, ">"),
            (lambda a, b: a >= b, ">="),
            (lambda a, b: a == b, "="),
            (lambda a, b: a != b, "<>"),
        ]
    ],
    (col("x") > 1.5, "x > 1.5"),
    (col("x") >= 1.5, "x >= 1.5"),
    (col("x") < 1.5, "x < 1.5"),
    (col("x") <= 1.5, "x <= 1.5"),
    (col("x") != 1.5, "x <> 1.5"),
    (1 < col("x"), "1 < x"),  # noqa: SIM300 - what a user may write
    (col("n") == 1, "n = 1"),
    (col("s") == "a", "s = 'a'"),
    (col("b") == col("c"), "b = c"),
    (
        col("day") > datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        "day > TIMESTAMP '2026-01-01'",
    ),
    (~(col("x") < 1.5), "NOT (x < 1.5)"),
    (~col("b"), "NOT b"),
    (col("b") & col("c"), "b AND c"),
    (col("b") | col("c"), "b OR c"),
    (~(col("b") & (col("n") > 0)), "NOT (b AND n > 0)"),
    ((col("x") < 1.5) | col("s").is_null(), "x < 1.5 OR s IS NULL"),
    (col("n").between(-1, 1), "n BETWEEN -1 AND 1"),
    (col("n").between(col("m"), 1), "n BETWEEN m AND 1"),
    (~col("x").between(-1.0, 2.0), "x NOT BETWEEN -1 AND 2"),
    (col("n").is_in([1, 2]), "n IN (1, 2)"),
    (~col("s").is_in(["a", ""]), "s NOT IN ('a', '')"),
    (col("x").is_in([1.5, NAN]), "x IN (1.5, 'NaN'::DOUBLE)"),
    (col("n") + col("m"), "n + m"),
    (col("n") - 3, "n - 3"),
    (col("n") * col("u"), "n * u"),
    (col("n") // 3, "floor(n / 3)::BIGINT"),
    (col("n") / 4, "n / 4"),
    (col("x") + col("y"), "x + y"),
    (col("x") * 2, "x * 2"),
    (col("x") - col("n"), "x - n"),
    (-col("n"), "-n"),
    (abs(col("m")), "abs(m::BIGINT)"),
    (col("x").floor(), "floor(x)"),
    (col("m") ** 2, "(m::BIGINT) ** 2"),
    (abs(col("x")).sqrt(), "sqrt(abs(x))"),
    (col("n").is_null(), "n IS NULL"),
    (col("x").is_null(), "x IS NULL"),
    (~col("b").is_null(), "b IS NOT NULL"),
    (col("n").fill_null(9), "coalesce(n, 9)"),
    (col("n").fill_null(col("m")), "coalesce(n, m)"),
    (col("x").fill_null(0), "coalesce(x, 0)"),
    (col("x").fill_null(col("y")), "coalesce(x, y)"),
    (col("b").fill_null(False), "coalesce(b, false)"),
    (col("s").fill_null(col("t")), "coalesce(s, t)"),
    (sw.where(col("n") > 0, col("x"), col("y")), "CASE WHEN n > 0 THEN x ELSE y END"),
    (sw.where(col("b"), col("s"), "none"), "CASE WHEN b THEN s ELSE 'none' END"),
    (sw.where(col("b"), col("n"), 0), "CASE WHEN b THEN n ELSE 0 END"),
    (sw.where(col("m") != 0, 10 // col("m"), 0), "CASE WHEN m <> 0 THEN floor(10 / m) ELSE 0 END"),
    (col("n").cast("float64"), "n::DOUBLE"),
    (col("m").cast("int64"), "m::BIGINT"),
    (col("b").cast("int64"), "b::BIGINT"),
    (col("n").cast("string"), "n::VARCHAR"),
    (col("b").cast("string"), "b::VARCHAR"),
    (col("day").cast("int64"), "epoch_ns(day)"),
    (col("day") + sw.duration("1h"), "day + INTERVAL 1 HOUR"),
]

AGGREGATES: dict[str, tuple[Callable[[str], sw.Aggregate], str]] = {
    "count": (sw.count, "count({})"),
    "sum": (sw.sum, "sum({})"),
    "mean": (sw.mean, "avg({})"),
    "min": (sw.min, "min({})"),
    "max": (sw.max, "max({})"),
    "half": (lambda name: sw.quantile(name, 0.5), "quantile_cont({}, 0.5)"),
}


result = partial(result_of, batch_rows=50)


def plain(value: Any) -> Any:
    """Return a value that equals its like: NaN as text, floats to ten digits, times in ns."""
    if isinstance(value, datetime.datetime):
        value = value.replace(tzinfo=datetime.UTC)
        return round(value.timestamp() * 1e6) * 1_000
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.10g}") + 0.0
    return value


def listed(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[plain(one) for one in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def asked(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Return DuckDB's answer."""
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return [tuple(map(plain, row)) for row in database.execute(sql).fetchall()]


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_each_expression_has_duckdbs_value_in_every_row(nulls: float) -> None:
    table = rows(1, nulls=nulls)
    columns = {f"r{number}": one for number, (one, _) in enumerate(EXPRESSIONS)}
    found = result(lambda stream: stream.with_columns(columns), table).sort_by("ts")
    sql = ", ".join(f"({text}) AS r{number}" for number, (_, text) in enumerate(EXPRESSIONS))
    expected = asked(f"SELECT {sql} FROM left_rows ORDER BY ts", left_rows=table)  # noqa: S608
    wrong = {}
    for number, (one, text) in enumerate(EXPRESSIONS):
        ours = [plain(value) for value in found[f"r{number}"].to_pylist()]
        theirs = [row[number] for row in expected]
        pairs = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
        if pairs:
            wrong[f"{one}, {text}"] = pairs[0]
    assert not wrong


def test_each_expression_has_zero_where_it_is_null() -> None:
    """So sums and filters need not ask which rows are null."""
    table = rows(1, nulls=0.3)
    schema = inside_schema(table.schema, source="rows")
    columns = {
        name: column_from_arrow(name, table[name].combine_chunks(), schema.field(name).type, who="")
        for name in table.column_names
    }
    batch = Batch(
        event_time_ns=np.arange(ROWS), stimulus_time_ns=np.zeros(ROWS, np.int64), columns=columns
    )
    made = [one.bound(schema).evaluate(batch) for one, _ in EXPRESSIONS]
    with_nulls = [one for one in made if isinstance(one, Nullable)]
    assert len(with_nulls) > 50
    assert not any(one.values[~one.valid].any() for one in with_nulls)


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_each_filter_keeps_the_rows_that_duckdb_keeps(nulls: float) -> None:
    table = rows(2, nulls=nulls)
    schema = inside_schema(table.schema)
    filters = [pair for pair in EXPRESSIONS if pair[0].type_in(schema, step="s") == pa.bool_()]
    assert len(filters) > 40
    flow = sw.Dataflow("filters")
    stream = flow.source("rows", sw.table(table, batch_rows=50), event_time="ts")
    for number, (one, _) in enumerate(filters):
        stream.filter(one).sink(f"r{number}", sw.collect_sink())
    job = sw.Simulation().submit(flow)
    assert job.wait().ledger.is_balanced
    sql = ", ".join(f"({text}) AS r{number}" for number, (_, text) in enumerate(filters))
    told = asked(f"SELECT ts, {sql} FROM left_rows", left_rows=table)  # noqa: S608
    wrong = {}
    for number, (one, _) in enumerate(filters):
        found = job.result(f"r{number}").select(["ts"])
        expected = [row[:1] for row in told if row[1 + number]]
        if sorted(listed(found)) != sorted(expected):
            wrong[str(one)] = (found.num_rows, len(expected))
    assert not wrong


@pytest.mark.parametrize("keys", [(), ("n",), ("b",), ("s",), ("u", "b"), ("m", "s")], ids=str)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_each_aggregate_is_duckdbs_and_null_is_a_group(nulls: float, keys: tuple[str, ...]) -> None:
    table = rows(3, nulls=nulls)
    made, sql = {}, []
    for name, (of, text) in AGGREGATES.items():
        for column in ("n", "m", "x", "z", "u"):
            if name == "half" and column == "x":
                continue  # DuckDB meets ±inf otherwise: it interpolates inf − inf
            made[f"{name}_{column}"] = of(column)
            sql.append(f"{text.format(column)} AS {name}_{column}")
    made |= {"rows": sw.count(), "some": sw.count("s")}
    sql += ["count(*) AS rows", "count(s) AS some"]

    def windows(stream: sw.Stream) -> sw.Stream:
        return stream.aggregate(made, window=sw.tumbling("1s"), by=keys)

    found = result(windows, table).select([*keys, *made])
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    text = f"SELECT {', '.join([*keys, *sql])} FROM left_rows {group}"  # noqa: S608
    ours, theirs = sorted(listed(found), key=str), sorted(asked(text, left_rows=table), key=str)
    assert list(map(floats_of, ours)) == list(map(floats_of, theirs))


CHOSEN: dict[str, tuple[Callable[[str], sw.Aggregate], str]] = {
    "distinct": (sw.count_distinct, "count(DISTINCT {})"),
    "first": (sw.first, "first({0} ORDER BY ts) FILTER ({0} IS NOT NULL)"),
    "last": (sw.last, "last({0} ORDER BY ts) FILTER ({0} IS NOT NULL)"),
    "top": (lambda name: sw.top_k(name, 3), "max({}, 3)"),
    "list": (sw.collect, "list({0} ORDER BY ts) FILTER ({0} IS NOT NULL)"),
    "most": (lambda name: sw.arg_max("order", name), "arg_max(ts, {} ORDER BY ts)"),
    "least": (lambda name: sw.arg_min("order", name), "arg_min(ts, {} ORDER BY ts)"),
    "some": (
        lambda name: sw.count(name, where=(col("m") > 0) | col("b")),
        "count({}) FILTER (m > 0 OR b)",
    ),
}
SPREADS: dict[str, tuple[Callable[[str], sw.Aggregate], str]] = {
    "std": (sw.std, "stddev({})"),
    "var": (sw.var, "variance({})"),
    "std_pop": (lambda name: sw.std(name, ddof=0), "stddev_pop({})"),
    "var_some": (lambda name: sw.var(name, where=col("c")), "var_samp({}) FILTER (c)"),
}


BITS: dict[str, tuple[Callable[[str], sw.Aggregate], str]] = {
    "bit_and": (sw.bit_and, "bit_and({})"),
    "bit_or": (sw.bit_or, "bit_or({})"),
    "bit_xor": (sw.bit_xor, "bit_xor({})"),
}


@pytest.mark.parametrize("keys", [(), ("b",), ("u", "b"), ("m", "s")], ids=str)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_rows_are_chosen_and_spread_as_duckdb_does(nulls: float, keys: tuple[str, ...]) -> None:
    table = rows(6, nulls=nulls)
    table = table.append_column("order", table["ts"])
    made, sql = {}, []
    for functions, columns in (
        (CHOSEN, ("n", "m", "x", "z", "s", "b", "day")),
        (SPREADS, "nmz"),
        (BITS, "nmu"),
    ):
        for name, (of, text) in functions.items():
            for column in columns:
                made[f"{name}_{column}"] = of(column)
                sql.append(f"{text.format(column)} AS {name}_{column}")
    made |= {"any": sw.any("b"), "all": sw.all("c"), "half": sw.median("n")}
    sql += ["bool_or(b) AS any", "bool_and(c) AS all", "median(n) AS half"]

    def windows(stream: sw.Stream) -> sw.Stream:
        return stream.aggregate(made, window=sw.tumbling("1s"), by=keys)

    found = result(windows, table).select([*keys, *made])
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    text = f"SELECT {', '.join([*keys, *sql])} FROM left_rows {group}"  # noqa: S608
    ours, theirs = sorted(listed(found), key=str), sorted(asked(text, left_rows=table), key=str)
    for own, other in zip(map(floats_of, ours), map(floats_of, theirs), strict=True):
        different = [
            (name, mine, duckdbs)
            for name, mine, duckdbs in zip([*keys, *made], own, other, strict=True)
            if mine != duckdbs
        ]
        assert not different


def floats_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return whole numbers as floats: DuckDB sums them in wider types."""
    return tuple(float(one) if type(one) in (int, Decimal) else one for one in row)


@pytest.mark.parametrize("key", ["n", "m", "u", "b", "s"])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_a_join_pairs_what_duckdb_pairs_and_null_equals_nothing(nulls: float, key: str) -> None:
    left, right = rows(4, nulls=nulls).slice(0, 60), rows(5, nulls=nulls).slice(0, 60)
    right = right.select(["ts", "n", "m", "u", "b", "s", "x"])

    def joined(one: sw.Stream, other: sw.Stream) -> sw.Stream:
        return one.join(other, on=key, within="20us", where=col("x") < 2).select("n", "x", "s", "c")

    found = result(joined, left, right)
    near = "abs(epoch_us(l.ts) - epoch_us(r.ts)) <= 20"
    sql = f"SELECT l.n, l.x, l.s, l.c FROM l JOIN r ON l.{key} = r.{key} AND {near} WHERE l.x < 2"  # noqa: S608
    assert sorted(listed(found), key=str) == sorted(asked(sql, l=left, r=right), key=str)


@pytest.mark.parametrize("key", ["n", "m", "u", "b", "s", "x", "day"])
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_a_lookup_finds_what_a_left_join_of_duckdb_does(nulls: float, key: str) -> None:
    left, right = rows(4, nulls=nulls), rows(5, nulls=nulls)
    sql = f"SELECT {key}, min(ts) AS at FROM r WHERE {key} IS NOT NULL GROUP BY {key}"  # noqa: S608
    with duckdb.connect() as database:
        database.register("r", right)
        table = database.sql(sql).to_arrow_table()
    found = result(lambda one: one.lookup(table, on=key).select("ts", "at"), left)
    sql = f"SELECT l.ts, r.at FROM l LEFT JOIN r ON l.{key} = r.{key}"  # noqa: S608
    assert sorted(listed(found), key=str) == sorted(asked(sql, l=left, r=table), key=str)


HOWS = {
    "left": "SELECT l.s, l.x, r.x FROM l LEFT JOIN r ON {on}",
    "right": "SELECT l.s, l.x, r.x FROM l RIGHT JOIN r ON {on}",
    "outer": "SELECT l.s, l.x, r.x FROM l FULL JOIN r ON {on}",
    "semi": "SELECT l.s, l.x, l.z FROM l SEMI JOIN r ON {on}",
    "anti": "SELECT l.s, l.x, l.z FROM l ANTI JOIN r ON {on}",
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("between", [(20, 20), (20, 0), (3, 30)], ids=str)
def test_rows_without_a_partner_are_duckdbs(
    how: Any, nulls: float, between: tuple[int, int]
) -> None:
    left, right = rows(4, nulls=nulls).slice(0, 60), rows(5, nulls=nulls).slice(0, 60)
    right = right.select(["ts", "n", "x"])
    within = tuple(f"{length}us" for length in between)

    def joined(one: sw.Stream, other: sw.Stream) -> sw.Stream:
        pairs = one.join(other, on="n", within=within, where=col("z") < 1, how=how)
        return pairs.select("s", "x", "z" if how in ("semi", "anti") else "x_right")

    found = result(joined, left, right)
    apart = "epoch_us(r.ts) - epoch_us(l.ts)"
    on = f"l.n = r.n AND l.z < 1 AND {apart} BETWEEN -{between[0]} AND {between[1]}"
    sql = HOWS[how].format(on=on)
    assert sorted(listed(found), key=str) == sorted(asked(sql, l=left, r=right), key=str)


@pytest.mark.parametrize("key", ["n", "b", "s"])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    ("options", "compared"),
    [
        ({}, ">="),
        ({"strict": True}, ">"),
        ({"direction": "forward", "tolerance": "1s"}, "<="),
        ({"direction": "forward", "tolerance": "1s", "strict": True}, "<"),
        ({"how": "inner"}, ">="),
    ],
    ids=str,
)
def test_the_nearest_row_is_duckdbs(
    key: str, nulls: float, options: dict[str, Any], compared: str
) -> None:
    left, right = rows(6, nulls=nulls), rows(7, nulls=nulls).slice(0, 100)
    right = right.select(["ts", "n", "b", "s", "x"])
    found = result(
        lambda one, other: one.asof(other, on=key, **options).select("ts", key, "x_right"),
        left,
        right,
    )
    how = "" if options.get("how") == "inner" else "LEFT"
    sql = f"SELECT l.ts, l.{key}, r.x FROM l ASOF {how} JOIN r "  # noqa: S608
    sql += f"ON l.{key} = r.{key} AND l.ts {compared} r.ts"
    assert sorted(listed(found), key=str) == sorted(asked(sql, l=left, r=right), key=str)


@pytest.mark.parametrize("keys", [("n",), ("b", "s"), ("u",)], ids=str)
def test_a_dedupe_keeps_one_of_each_key_null_included(keys: tuple[str, ...]) -> None:
    table = rows(6, nulls=0.3)
    found = result(lambda stream: stream.dedupe(keys, within="1s"), table)
    names = ", ".join(keys)
    sql = f"SELECT {names}, min(ts) FROM left_rows GROUP BY {names}"  # noqa: S608
    ours = sorted(listed(found.select([*keys, "ts"])), key=str)
    assert ours == sorted(asked(sql, left_rows=table), key=str)
