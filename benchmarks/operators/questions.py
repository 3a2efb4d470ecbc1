"""Questions of the benchmark, each as a flow, as a query of Polars and as SQL of DuckDB.

A column of times is in microseconds. What leaves has the same names and values everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import slackwater as sw
from benchmarks.operators.rows import Tables

__all__ = ["QUESTIONS", "Question"]

Streams = Mapping[str, sw.Stream]
"""Streams by name; a table without times is an input, for look-ups."""
Frames = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """One question in three languages.

    Attributes:
        name: name of the operator or query.
        tables: function that returns {input: rows}.
        ours: makes the last stream of a flow.
        polars: makes a lazy frame; the first argument is the module.
        sql: the question in DuckDB's SQL.
    """

    name: str
    tables: Callable[[Tables], dict[str, pa.Table]]
    ours: Callable[[Streams], sw.Stream]
    polars: Callable[[Any, Frames], Any]
    sql: str


def _rows(tables: Tables) -> dict[str, pa.Table]:
    return {"rows": tables.rows}


def _halves(tables: Tables) -> dict[str, pa.Table]:
    return {"a": tables.halves[0], "b": tables.halves[1]}


def _bids(tables: Tables) -> dict[str, pa.Table]:
    return {"bids": tables.bids}


def _session(s: Streams) -> sw.Stream:
    return s["rows"].aggregate(by="k", window=sw.session("1s"), n=sw.count(), total=sw.sum("x"))


def _session_polars(pl: Any, f: Frames) -> Any:
    k, t = pl.col("k"), pl.col("t")
    begins = (k != k.shift()) | (t - t.shift() > pl.duration(seconds=1))
    rows = f["rows"].sort("k", "t").with_columns(s=begins.fill_null(True).cum_sum())
    return (
        rows.group_by("s")
        .agg(
            k.first(),
            t.first().alias("window_start"),
            (t.last() + pl.duration(seconds=1)).alias("window_end"),
            pl.len().alias("n"),
            pl.col("x").sum().alias("total"),
        )
        .drop("s")
    )


SESSION_SQL = """
    WITH begun AS (
        SELECT *, coalesce(t - lag(t) OVER (PARTITION BY k ORDER BY t) > INTERVAL 1 SECOND, true)
            AS begins
        FROM rows
    ), numbered AS (
        SELECT *, sum(begins::INT) OVER (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING) AS s
        FROM begun
    )
    SELECT k, min(t) AS window_start, max(t) + INTERVAL 1 SECOND AS window_end,
        count(*) AS n, sum(x)::BIGINT AS total
    FROM numbered GROUP BY k, s
"""


def _asof(s: Streams) -> sw.Stream:
    return s["a"].asof(s["b"].select("k", "y"), on="k")


def _asof_polars(pl: Any, f: Frames) -> Any:  # noqa: ARG001 - as the others
    return f["a"].join_asof(f["b"], on="t", by="k", check_sortedness=False)


ASOF_SQL = "SELECT a.*, b.y FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t >= b.t"


def _left(s: Streams) -> sw.Stream:
    right = s["b"].rename({"t": "t_right"})
    return s["a"].join(right, on="k", within="500ms", how="left")


def _left_polars(pl: Any, f: Frames) -> Any:
    """Join by buckets of time: a join by key alone makes all pairs of a key."""
    half_s = 500_000
    bucket = pl.col("t").cast(pl.Int64) // half_s
    left = f["a"].with_row_index("row").with_columns(bucket=bucket)
    right = f["b"].rename({"t": "t_right"})
    of_right = pl.col("t_right").cast(pl.Int64) // half_s
    near = pl.concat([right.with_columns(bucket=of_right + step) for step in (-1, 0, 1)])
    apart = (pl.col("t").cast(pl.Int64) - pl.col("t_right").cast(pl.Int64)).abs()
    pairs = left.join(near, on=["k", "bucket"]).filter(apart <= half_s)
    alone = left.join(pairs, on="row", how="anti")
    return pl.concat([pairs, alone], how="diagonal").drop("row", "bucket")


LEFT_SQL = """
    SELECT a.*, b.t AS t_right, b.y FROM a LEFT JOIN b ON a.k = b.k
    AND b.t BETWEEN a.t - INTERVAL 500 MILLISECOND AND a.t + INTERVAL 500 MILLISECOND
"""


def _top_k(s: Streams) -> sw.Stream:
    best = s["rows"].top_k("id", 3, by="k", window=sw.tumbling("10s"), rank="place")
    return best.select("k", "id", "place", "window_start")


def _top_k_polars(pl: Any, f: Frames) -> Any:
    rows = f["rows"].select("k", "id", window_start=pl.col("t").dt.truncate("10s"))
    best = rows.group_by("window_start", "k").agg(pl.col("id").top_k(3).sort(descending=True))
    return best.with_columns(place=pl.int_ranges(1, pl.col("id").list.len() + 1)).explode(
        "id", "place"
    )


TOP_K_SQL = """
    SELECT k, id, row_number() OVER (PARTITION BY k, w ORDER BY id DESC) AS place,
        w AS window_start
    FROM (SELECT *, time_bucket(INTERVAL 10 SECOND, t) AS w FROM rows) QUALIFY place <= 3
"""


def _distinct(s: Streams) -> sw.Stream:
    counts = s["rows"].aggregate(by="k", window=sw.tumbling("10s"), n=sw.count_distinct("x"))
    return counts.drop("window_end")


def _distinct_polars(pl: Any, f: Frames) -> Any:
    rows = f["rows"].with_columns(window_start=pl.col("t").dt.truncate("10s"))
    return rows.group_by("window_start", "k").agg(n=pl.col("x").n_unique())


DISTINCT_SQL = """
    SELECT k, time_bucket(INTERVAL 10 SECOND, t) AS window_start, count(DISTINCT x) AS n
    FROM rows GROUP BY ALL
"""


def _q1(s: Streams) -> sw.Stream:
    return s["bids"].select("auction", "bidder", {"euros": sw.col("price") * 0.908}, "t")


def _q1_polars(pl: Any, f: Frames) -> Any:
    return f["bids"].select("auction", "bidder", (pl.col("price") * 0.908).alias("euros"), "t")


Q1_SQL = "SELECT auction, bidder, price * 0.908::DOUBLE AS euros, t FROM bids"


def _q2(s: Streams) -> sw.Stream:
    return s["bids"].filter(sw.col("auction") % 123 == 0).select("auction", "price")


def _q2_polars(pl: Any, f: Frames) -> Any:
    return f["bids"].filter(pl.col("auction") % 123 == 0).select("auction", "price")


Q2_SQL = "SELECT auction, price FROM bids WHERE auction % 123 = 0"


def _q5(s: Streams) -> sw.Stream:
    counts = s["bids"].aggregate(by="auction", window=sw.sliding("10s", "2s"), n=sw.count())
    most = counts.aggregate(window=sw.tumbling("2s"), n=sw.max("n")).select("n")
    return counts.join(most, on="n", within="1ns").select("auction", "n", "window_start")


def _q5_polars(pl: Any, f: Frames) -> Any:
    pane = pl.col("t").dt.truncate("2s")
    panes = f["bids"].group_by("auction", pane.alias("pane")).agg(n=pl.len())
    each = [
        panes.with_columns(window_start=pl.col("pane") - pl.duration(seconds=2 * back))
        for back in range(5)
    ]
    counts = pl.concat(each).group_by("auction", "window_start").agg(pl.col("n").sum())
    most = counts.group_by("window_start").agg(pl.col("n").max())
    return counts.join(most, on=["window_start", "n"])


Q5_SQL = """
    WITH panes AS (
        SELECT auction, time_bucket(INTERVAL 2 SECOND, t) AS pane, count(*) AS n
        FROM bids GROUP BY ALL
    ), counts AS (
        SELECT auction, pane - INTERVAL 2 SECOND * back AS window_start, sum(n)::BIGINT AS n
        FROM panes, range(5) AS r(back) GROUP BY ALL
    ), most AS (SELECT window_start, max(n) AS n FROM counts GROUP BY ALL)
    SELECT auction, n, window_start FROM counts JOIN most USING (window_start, n)
"""


def _people(tables: Tables) -> dict[str, pa.Table]:
    return {"persons": tables.persons, "auctions": tables.auctions}


def _q8(s: Streams) -> sw.Stream:
    window = sw.tumbling("10s")
    persons = s["persons"].aggregate(by="id", window=window, n=sw.count())
    sellers = s["auctions"].aggregate(by="seller", window=window, m=sw.count())
    new = persons.join(sellers.select("seller"), left_on="id", right_on="seller", within="1ns")
    return new.select("id", "window_start")


def _q8_polars(pl: Any, f: Frames) -> Any:
    window = pl.col("t").dt.truncate("10s").alias("window_start")
    persons = f["persons"].select("id", window).unique()
    sellers = f["auctions"].select(window, id="seller").unique()
    return persons.join(sellers, on=["id", "window_start"], how="semi")


Q8_SQL = """
    SELECT DISTINCT id, time_bucket(INTERVAL 10 SECOND, p.t) AS window_start
    FROM persons p SEMI JOIN auctions a ON id = seller
    AND time_bucket(INTERVAL 10 SECOND, p.t) = time_bucket(INTERVAL 10 SECOND, a.t)
"""


def _places(tables: Tables) -> dict[str, pa.Table]:
    return {"rows": tables.rows, "places": tables.places}


def _lookup(s: Streams) -> sw.Stream:
    places: Any = s["places"]
    return s["rows"].lookup(places, on="k")


def _lookup_polars(pl: Any, f: Frames) -> Any:  # noqa: ARG001 - as the others
    return f["rows"].join(f["places"], on="k", how="left")


LOOKUP_SQL = "SELECT rows.*, place FROM rows LEFT JOIN places USING (k)"


def _changes(s: Streams) -> sw.Stream:
    return s["rows"].aggregate(by="k", n=sw.count(), total=sw.sum("x"))


def _changes_polars(pl: Any, f: Frames) -> Any:
    n = pl.int_range(1, pl.len() + 1).over("k")
    rows = f["rows"].select("k", n=n, total=pl.col("x").cum_sum().over("k"))
    first = pl.when(pl.col("n") == 1).then(pl.lit("insert"))
    return rows.with_columns(change=first.otherwise(pl.lit("update")))


CHANGES_SQL = """
    SELECT k, n, total, if(n = 1, 'insert', 'update') AS change FROM (
        SELECT k, row_number() OVER key AS n, sum(x) OVER key AS total FROM rows
        WINDOW key AS (PARTITION BY k ORDER BY t ROWS UNBOUNDED PRECEDING)
    )
"""


def _over(s: Streams) -> sw.Stream:
    return s["rows"].over(by="k", last="1s", total=sw.sum("x"))


def _over_polars(pl: Any, f: Frames) -> Any:
    total = pl.col("x").rolling_sum_by("t", "1s").over("k")
    return f["rows"].with_columns(total=total)


OVER_SQL = """
    SELECT *, sum(x) OVER (
        PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL 999999 MICROSECOND PRECEDING
        AND CURRENT ROW
    )::BIGINT AS total FROM rows
"""


def _over_rows(s: Streams) -> sw.Stream:
    return s["rows"].over(by="k", rows=10, total=sw.sum("x"))


def _over_rows_polars(pl: Any, f: Frames) -> Any:
    return f["rows"].with_columns(total=pl.col("x").rolling_sum(10, min_samples=1).over("k"))


OVER_ROWS_SQL = """
    SELECT *, sum(x) OVER (
        PARTITION BY k ORDER BY t ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
    )::BIGINT AS total FROM rows
"""

QUESTIONS = (
    Question("session", _rows, _session, _session_polars, SESSION_SQL),
    Question("as-of", _halves, _asof, _asof_polars, ASOF_SQL),
    Question("left join", _halves, _left, _left_polars, LEFT_SQL),
    Question("top-k", _rows, _top_k, _top_k_polars, TOP_K_SQL),
    Question("count_distinct", _rows, _distinct, _distinct_polars, DISTINCT_SQL),
    Question("lookup", _places, _lookup, _lookup_polars, LOOKUP_SQL),
    Question("changes", _rows, _changes, _changes_polars, CHANGES_SQL),
    Question("over", _rows, _over, _over_polars, OVER_SQL),
    Question("over rows", _rows, _over_rows, _over_rows_polars, OVER_ROWS_SQL),
    Question("q1", _bids, _q1, _q1_polars, Q1_SQL),
    Question("q2", _bids, _q2, _q2_polars, Q2_SQL),
    Question("q5", _bids, _q5, _q5_polars, Q5_SQL),
    Question("q8", _people, _q8, _q8_polars, Q8_SQL),
)
