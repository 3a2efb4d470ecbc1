"""Aggregates in windows, and over the rows around each row, whose answers DuckDB gives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.expressions import predicate
from benchmarks.engine.random_flows.sql import (
    MS,
    Step,
    ask,
    divided_by,
    drawn_keys,
    has_ties,
    made_of,
    partition_by,
    same_keys,
    sql_table,
)
from benchmarks.engine.random_flows.sql_aggregates import ALL, SCANNED_KINDS, draw_aggregates
from benchmarks.engine.random_flows.twin import MOST_COLUMNS, TIME, Twin, one_of
from slackwater.runtime.model import LATEST_NS

__all__ = ["WINDOW_STEPS"]

MOST_ROWS = 600
_TIMES: list[Any] = ["end", "end", "start", "first", "last"]


def in_intervals(
    rng: np.random.Generator,
    twins: list[Twin],
    *,
    kinds: Sequence[str] = ("session", "everything", "rows", "opened_by"),
) -> Twin | None:
    """Aggregate in windows that follow from the rows of a key."""
    twin = one_of(rng, twins)
    keys = _window_keys(rng, twin)
    if not twin.rows[TIME].is_unique:
        return None
    table = sql_table(twin)
    kind = one_of(rng, kinds)
    if kind in ("session", "session by row"):
        if kind == "session":
            gap_ms = one_of(rng, [300, 2_000, 60_000])
            window: Any = sw.session(f"{gap_ms}ms")
            gaps_ns = np.full(len(twin.rows), gap_ms * MS)
        elif (gap := _gap_of_rows(rng, twin)) is not None:
            window, gaps_ns = sw.session(gap[0]), gap[1]
        else:
            return None
        table = table.append_column("_reach", pa.array(twin.rows[TIME].to_numpy() + gaps_ns))
        cells = f"""
            apart AS (
                SELECT *, _t <= max(_reach) OVER ({partition_by(keys)} ORDER BY _t
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS _near FROM rows
            ), cells AS (
                SELECT *, sum(CASE WHEN _near THEN 0 ELSE 1 END)
                    OVER ({partition_by(keys)} ORDER BY _t) AS _cell FROM apart
            )
        """
        bounds = "min(_t)", "max(_reach)", "max(_reach)"
    elif kind == "everything":
        window = sw.everything()
        cells = "cells AS (SELECT *, 0 AS _cell FROM rows)"
        bounds = "min(_t)", "max(_t)", str(LATEST_NS)
    elif kind == "rows":
        size = int(rng.integers(1, 6))
        every = int(rng.integers(1, size + 1))
        window = sw.rows(size, every=every)
        cells = f"""
            numbered AS (
                SELECT *, row_number() OVER ({partition_by(keys)} ORDER BY _t) - 1 AS _n FROM rows
            ), cells AS (
                SELECT *, _n // {every} - back AS _cell FROM numbered,
                    range({-(-size // every)}) AS r(back)
                WHERE _cell >= 0 AND _n < _cell * {every} + {size}
            )
        """
        leaves = f"CASE WHEN count(*) = {size} THEN max(_t) ELSE {LATEST_NS} END"
        bounds = "min(_t)", "max(_t)", leaves
    else:
        condition, known = predicate(rng, twin)
        length_ms = one_of(rng, [250, 2_000, 30_000])
        window = sw.opened_by(condition, f"{length_ms}ms")
        table = table.append_column("_is", pa.array(known))
        cells = f"""
            cells AS (
                SELECT r.*, o._t AS _cell FROM rows o JOIN rows r
                ON r._t >= o._t AND r._t < o._t + {length_ms * MS}
                AND {same_keys(keys, "r", "o")} WHERE o._is
            )
        """
        end = f"_cell + {length_ms * MS}"
        bounds = "_cell", end, f"{end} - 1"
    time = one_of(rng, _TIMES)
    if time != "end":
        bounds = *bounds[:2], {"start": bounds[0], "first": "min(_t)", "last": "max(_t)"}[time]
    drawn = draw_aggregates(rng, twin, table, ALL, has_order=True)
    options = divided_by(rng) if keys else {}
    stream = twin.stream.aggregate(drawn.written, by=keys, window=window, time=time, **options)
    by = _each(keys)
    answer = ask(
        f"WITH {cells} SELECT {by} {', '.join(bounds)}, {drawn.text} FROM cells"
        f" GROUP BY {by} _cell",
        rows=drawn.table,
    )
    names = [*keys, "window_start", "window_end", TIME, *drawn.written]
    rows = pd.DataFrame(answer, columns=names, dtype=object)
    return made_of(twin, stream, rows, is_ordered=not options, rough=drawn.rough)


def _gap_of_rows(rng: np.random.Generator, twin: Twin) -> tuple[sw.Expr, np.ndarray] | None:
    """Return a gap after each row, of one of its columns, and its nanoseconds.

    None if no column has small whole numbers.
    """
    usable = [
        name
        for name in twin.columns("whole")
        if (twin.rows[name].dropna().astype("float64").abs() < 2**16).all()
    ]
    if not usable:
        return None
    name, unit_ms = one_of(rng, usable), int(one_of(rng, [1, 100, 2_000]))
    least_ms = int(one_of(rng, [1, 300]))
    column = abs(sw.col(name).fill_null(1).cast("int64")) * unit_ms + least_ms
    values = twin.rows[name].fillna(1).to_numpy(dtype="int64")
    gaps_ns = (np.abs(values) * unit_ms + least_ms) * MS
    if rng.random() < 0.5:
        return column.cast("duration[ms]"), gaps_ns
    return column * MS, gaps_ns


class _Numbered(NamedTuple):
    """Numbered windows, all times in nanoseconds."""

    size: int
    slide: int
    offset: int
    is_closed_at_end: bool
    is_cumulative: bool

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Numbered:
        """Return windows at random."""
        size, slide = one_of(
            rng, [(700, 700), (10_000, 10_000), (60_000, 60_000), (3_000, 2_000), (10_000, 5_000)]
        )
        offset = int(one_of(rng, [0, 0, 300]))
        is_cumulative = size % slide == 0 and bool(rng.random() < 0.3)
        if is_cumulative and size == slide:
            slide = size // int(one_of(rng, [1, 2, 5]))
        is_closed_at_end = bool(rng.random() < 0.3)
        return cls(size * MS, slide * MS, offset * MS, is_closed_at_end, is_cumulative)

    @property
    def begin(self) -> int:
        """The first moment of window 0."""
        return self.offset + self.is_closed_at_end

    def written(self) -> Any:
        """Return the windows as a user writes them."""
        closed: Any = "end" if self.is_closed_at_end else "start"
        size, slide, offset = (f"{ns // MS}ms" for ns in self[:3])
        if self.is_cumulative:
            return sw.cumulative(size, slide, offset=offset, closed=closed)
        if self.size == self.slide:
            return sw.tumbling(size, offset=offset, closed=closed)
        return sw.sliding(size, slide, offset=offset, closed=closed)

    @property
    def inside(self) -> str:
        """Table of each row in each of its windows: `_n` is their number, `_end` their end."""
        last = f"(_t - {self.begin}) // {self.slide}"
        if self.is_cumulative:
            last = f"(_t - {self.begin}) // {self.size} * {self._steps}"
        return f"""
            inside AS (
                SELECT *, {last} - back AS _n, {self.end("_n")} AS _end
                FROM rows, range({-(-self.size // self.slide)}) AS r(back) WHERE _t < _end
            )
        """

    def start(self, number: str) -> str:
        """Return the first moment of a window by its number."""
        if self.is_cumulative:
            size = f"({number} + {self._steps - 1}) // {self._steps} * {self.size}"
            return f"({size} + {self.begin})"
        return f"({number} * {self.slide} + {self.begin})"

    def end(self, number: str) -> str:
        """Return the end of a window by its number."""
        return f"({number} * {self.slide} + {self.begin + self.size})"

    @property
    def _steps(self) -> int:
        return self.size // self.slide


def in_numbered(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Aggregate in windows that all keys share, with options on when results leave."""
    twin = one_of(rng, twins)
    keys, window = _window_keys(rng, twin), _Numbered.drawn(rng)
    if len(twin.rows) > MOST_ROWS:
        return None
    time, how = one_of(rng, _TIMES), one_of(rng, ["plain", "empty", "early", "early rows"])
    if how == "early rows" and (window.size != window.slide or has_ties(twin, keys)):
        how = "early"
    written: dict[str, Any] = {"time": time}
    # Cells are known by `_cell`; `_until` says which rows of a window are in it.
    if how == "plain":
        cells = f"SELECT DISTINCT {_each(keys)} _n, _end AS _until, 0 AS revision FROM inside"
    elif how == "empty":
        empty = window.slide * int(one_of(rng, [1, 3, 10])) + int(one_of(rng, [0, 1])) * MS
        written = {"time": one_of(rng, ["end", "start"]), "empty": f"{empty // MS}ms"}
        cells = _with_empty(window, keys, empty)
    else:
        written = {"early": int(rng.integers(1, 5))}
        fires = f"""
            SELECT *, _t + 1 AS _until, 0 AS _is_last FROM inside
            QUALIFY row_number() OVER (PARTITION BY {_each(keys)} _n ORDER BY _t)
                % {written["early"]} = 0
        """
        if how == "early":
            every = int(one_of(rng, [100, 700, 2_000, 10_000])) * MS
            written = {"early": f"{every // MS}ms"}
            fires = f"""
                SELECT *, (_t // {every} + 1) * {every} AS _until, 0 AS _is_last FROM inside
                WHERE _until < _end
            """
        cells = f"""
            SELECT *, row_number()
                OVER (PARTITION BY {_each(keys)} _n ORDER BY _until, _is_last) - 1 AS revision
            FROM (
                SELECT DISTINCT {_each(keys)} _n, _until, _is_last FROM ({fires})
                UNION ALL SELECT DISTINCT {_each(keys)} _n, _end, 1 FROM inside
            )
        """
    time = written.get("time", "end")
    start = window.start("_at")
    leaves = {"end": "_at_until - 1", "start": start, "first": "min(_t)", "last": "max(_t)"}[time]
    drawn = draw_aggregates(
        rng, twin, sql_table(twin), ALL, has_order=bool(twin.rows[TIME].is_unique)
    )
    options = divided_by(rng) if keys else {}
    stream = twin.stream.aggregate(
        drawn.written, by=keys, window=window.written(), **written, **options
    )
    shift = int(window.is_closed_at_end)
    by = _each([f"_at_{key}" for key in keys])
    answer = ask(
        f"""
        WITH {window.inside}, cells AS ({cells}),
        own AS ({_renamed(keys, "_n AS _at, _until AS _at_until, revision AS _of")} FROM cells)
        SELECT {by} {start} - {shift}, {window.end("_at")} - {shift}, {leaves}, _of, {drawn.text}
        FROM own LEFT JOIN inside ON _at = _n AND _t < _at_until AND {_in_own(keys)}
        GROUP BY {by} _at, _at_until, _of
        """,
        rows=drawn.table,
    )
    names = [*keys, "window_start", "window_end", TIME, "revision", *drawn.written]
    rows = pd.DataFrame(answer, columns=names, dtype=object)
    made = made_of(twin, stream, rows, is_ordered=not options, rough=drawn.rough)
    made.is_last = "early" in written
    return made


def _with_empty(window: _Numbered, keys: list[str], empty: int) -> str:
    """Return the SQL of windows with rows, and of those without that leave after them."""
    most = (2 * window.size + empty) // window.slide + 2
    gap = f"OVER ({partition_by(keys)} ORDER BY _n)"
    start, end = (edge("(gaps._n + more)") for edge in (window.start, window.end))
    return f"""
        WITH known AS (SELECT DISTINCT {_each(keys)} _n FROM inside),
        gaps AS (SELECT *, lead(_n) {gap} AS _next FROM known)
        SELECT {_each(keys)} gaps._n + more AS _n, {end} AS _until, 0 AS revision
        FROM gaps, range({most}) AS r(more)
        WHERE more = 0 OR (
            (_next IS NULL OR gaps._n + more < _next)
            AND {start} < {window.end("gaps._n")} + {empty}
        )
    """


def over_rows(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Give each row aggregates of the rows around it."""
    twin = one_of(rng, twins)
    if len(twin.rows) > MOST_ROWS or len(twin.stream.columns) + 4 > MOST_COLUMNS:
        return None
    keys = drawn_keys(rng, twin, least=0)
    is_ordered = not has_ties(twin, keys)
    kind = one_of(
        rng, ["all", "rows", "last", "last", "ahead"] if is_ordered else ["last", "ahead"]
    )
    written: dict[str, Any] = {"closed": one_of(rng, ["end", "start"])}
    last_place = "_at - 1" if written["closed"] == "start" else "_at"
    reach = f"_n <= {last_place}"
    if kind == "rows":
        written["rows"] = int(rng.integers(1, 6))
        reach += f" AND _n > {last_place} - {written['rows']}"
    elif kind != "all":
        last_ms, ahead_ms = int(one_of(rng, [100, 700, 5_000])), 0
        if kind == "ahead":
            last_ms, ahead_ms = one_of(rng, [(0, 300), (700, 2_000), (5_000, -700), (300, -300)])
        closed = one_of(rng, ["end", "start", "both", "none"])
        if last_ms + ahead_ms == 0:
            closed = "both"
        written = {"last": f"{last_ms}ms", "ahead": f"{ahead_ms}ms", "closed": closed}
        after = ">=" if closed in ("start", "both") else ">"
        until = "<=" if closed in ("end", "both") else "<"
        reach = f"_t {after} _at_t - {last_ms * MS} AND _t {until} _at_t + {ahead_ms * MS}"
    kinds = SCANNED_KINDS if kind == "all" else ALL
    drawn = draw_aggregates(rng, twin, sql_table(twin), kinds, has_order=is_ordered)
    options = divided_by(rng) if keys else {}
    stream = twin.stream.over(drawn.written, by=keys, **written, **options)
    answer = ask(
        f"""
        WITH numbered AS (
            SELECT *, row_number() OVER ({partition_by(keys)} ORDER BY _t) AS _n FROM rows
        ), own AS ({_renamed(keys, "_row AS _of, _t AS _at_t, _n AS _at")} FROM numbered)
        SELECT {drawn.text} FROM own LEFT JOIN numbered ON {reach} AND {_in_own(keys)}
        GROUP BY _of ORDER BY _of
        """,
        rows=drawn.table,
    )
    columns = {
        name: pd.Series([row[at] for row in answer], dtype=object)
        for at, name in enumerate(drawn.written)
    }
    rows = twin.rows.assign(**columns)
    return made_of(twin, stream, rows, is_ordered=not options, rough=drawn.rough)


def _window_keys(rng: np.random.Generator, twin: Twin) -> list[str]:
    """Return keys of an aggregate, which has columns of its own."""
    own = ("window", "revision")
    return [name for name in drawn_keys(rng, twin, least=0) if not name.startswith(own)]


def _renamed(keys: list[str], others: str) -> str:
    """Return the begin of a query whose keys have names that rows do not have."""
    return "SELECT " + "".join(f'"{key}" AS "_at_{key}", ' for key in keys) + others


def _in_own(keys: list[str]) -> str:
    """Return the condition that a row has the keys of a renamed one."""
    return " AND ".join(f'"{key}" IS NOT DISTINCT FROM "_at_{key}"' for key in keys) or "true"


def _each(names: list[str]) -> str:
    """Return columns as the begin of a list of SQL that goes on."""
    return "".join(f'"{name}", ' for name in names)


WINDOW_STEPS: dict[str, Step] = {
    "intervals": in_intervals,
    "sessions by row": partial(in_intervals, kinds=["session by row"]),
    "windows": in_numbered,
    "over": over_rows,
}
