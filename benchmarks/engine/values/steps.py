"""Operators over a column `x`, and the rows that DuckDB makes of the same rows.

Each answer is a query over the tables `a` and `b`. A step is refused where its type has no such
operation; the benchmark checks that, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import slackwater as sw
from benchmarks.engine.values.drawn_types import NESTED

__all__ = ["STEPS", "Step"]

Make = Callable[[sw.Stream, sw.Stream], sw.Stream]
col = sw.col


@dataclass(frozen=True)
class Step:
    """Operation on a column, and its SQL.

    Attributes:
        make: of two streams, the result.
        sql: the same, over the tables `a` and `b`.
        is_keyed: whether `x` is a key, so that nested values are refused.
        only: types that have the step; empty: all.
    """

    make: Make
    sql: str
    is_keyed: bool = False
    only: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Whether a type of this name has the step."""
        return name in self.only if self.only else not (self.is_keyed and name in NESTED)


_LISTS = frozenset(("list", "listed"))
_ORDERED = frozenset(("i8", "i16", "i32", "u8", "u16", "u32", "decimal", "s", "us", "ns", "time64"))
STEPS: dict[str, Step] = {
    "filter": Step(
        lambda one, _: one.filter(~col("x").is_null() & (col("k") > 0)),
        "SELECT * FROM a WHERE x IS NOT NULL AND k > 0",
    ),
    "with_columns": Step(
        lambda one, _: one.with_columns(y=col("x"), n=col("x").is_null()),
        "SELECT *, x AS y, x IS NULL AS n FROM a",
    ),
    "where": Step(
        lambda one, _: one.with_columns(y=sw.coalesce(col("x"), col("x"))).select("ts", "k", "y"),
        "SELECT ts, k, coalesce(x, x) AS y FROM a",
        only=frozenset(("i8", "u64", "f32", "bool", "decimal", "text", "bytes", "fixed")),
    ),
    "select": Step(lambda one, _: one.select("ts", z="x"), "SELECT ts, x AS z FROM a"),
    "rename": Step(lambda one, _: one.rename({"x": "z"}), "SELECT ts, k, x AS z FROM a"),
    "no name": Step(
        lambda one, _: one.rename({"x": ""}).filter(sw.lit(True)).rename({"": "x"}),
        "SELECT * FROM a",
    ),
    "count by no name": Step(
        lambda one, _: (
            one.rename({"x": ""})
            .aggregate(n=sw.count(), m=sw.count(""), by="", window=sw.tumbling("1h"))
            .select("n", "m", x=col(""))
        ),
        "SELECT count(*) AS n, count(x) AS m, x FROM a GROUP BY x",
        is_keyed=True,
    ),
    "merge": Step(lambda one, other: one.merge(other), "SELECT * FROM a UNION ALL SELECT * FROM b"),
    "explode": Step(
        lambda one, _: one.explode("x"),
        "SELECT ts, k, unnest(CASE WHEN x IS NULL OR len(x) = 0 THEN [NULL] ELSE x END) AS x "
        "FROM a",
        only=_LISTS,
    ),
    "element": Step(
        lambda one, _: one.with_columns(y=col("x")[-1]).drop("x"),
        "SELECT ts, k, x[-1] AS y FROM a",
        only=frozenset(("list", "listed")),
    ),
    "field": Step(
        lambda one, _: one.with_columns(y=col("x")["a"], z=col("x")["b"][0]).drop("x"),
        "SELECT ts, k, x.a AS y, x.b[1] AS z FROM a",
        only=frozenset(("struct",)),
    ),
    "dedupe": Step(
        lambda one, _: one.dedupe("x", within="1h"),
        "SELECT ts, k, x FROM a QUALIFY row_number() OVER (PARTITION BY x ORDER BY ts) = 1",
        is_keyed=True,
    ),
    "count by key": Step(
        lambda one, _: one.aggregate(
            n=sw.count(), m=sw.count("x"), by="x", window=sw.tumbling("1h"), replicas=2
        ).select("x", "n", "m"),
        "SELECT x, count(*) AS n, count(x) AS m FROM a GROUP BY x",
        is_keyed=True,
    ),
    "least and greatest": Step(
        lambda one, _: one.aggregate(
            low=sw.min("x"), high=sw.max("x"), by="k", window=sw.tumbling("1h")
        ).select("k", "low", "high"),
        "SELECT k, min(x) AS low, max(x) AS high FROM a GROUP BY k",
        only=_ORDERED,
    ),
    "join by key": Step(
        lambda one, other: one.join(other.select("x", t="ts", q="k"), on="x", within="1h").select(
            "ts", "k", "x", "t", "q"
        ),
        "SELECT a.ts, a.k, a.x, b.ts AS t, b.k AS q FROM a JOIN b ON a.x = b.x",
        is_keyed=True,
    ),
    "join that carries it": Step(
        lambda one, other: one.join(other.select("k", y="x", t="ts"), on="k", within="5ms").select(
            "ts", "k", "x", "t", "y"
        ),
        "SELECT a.ts, a.k, a.x, b.ts AS t, b.x AS y FROM a JOIN b ON a.k = b.k "
        "AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000",
    ),
}
"""{name: step}"""
