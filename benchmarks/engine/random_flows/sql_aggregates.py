"""Aggregates at random, each with its SQL over the rows of a result.

Functions of two columns are written as sums. These are exact of small numbers, so that only the
division at the end is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.expressions import predicate
from benchmarks.engine.random_flows.twin import Twin, one_of
from slackwater.runtime.operators.aggregate.running import RETRACTED, SCANNED
from slackwater.runtime.operators.aggregate.written import Aggregate

__all__ = ["ALL", "RETRACTED_KINDS", "SCANNED_KINDS", "SqlAggregates", "draw_aggregates"]

PAIRS = ("covar", "corr", "slope", "intercept")
BITS = ("bit_and", "bit_or", "bit_xor")
RETRACTED_KINDS = sorted(RETRACTED)
SCANNED_KINDS = sorted(SCANNED)
ALL = [*SCANNED_KINDS, *PAIRS, *BITS, "var", "quantile", "arg_max", "top_k", "collect"]
ROUGH = frozenset({*PAIRS, "mean", "var", "quantile"})
"""Kinds of aggregates whose last digits are open."""
_BY_ORDER = frozenset({"first", "last", "collect"})
_FLAT = ("whole", "text", "bool", "decimal")


class SqlAggregates(NamedTuple):
    """Aggregates that were drawn.

    Attributes:
        written: {column: aggregate that makes it}.
        text: the same as a list of SQL, over rows of which `_row` is not null.
        table: rows of the stream, with a column for each condition.
        conditions: names of these columns.
        rough: columns whose last digits are open.
    """

    written: dict[str, Aggregate]
    text: str
    table: pa.Table
    conditions: list[str]
    rough: frozenset[str]


def draw_aggregates(
    rng: np.random.Generator,
    twin: Twin,
    table: pa.Table,
    kinds: Sequence[str],
    *,
    has_order: bool,
    most: int = 4,
) -> SqlAggregates:
    """Return one or more aggregates of a stream's rows.

    Args:
        rng: the generator that draws.
        twin: stream with the rows.
        table: its rows for SQL.
        kinds: kinds that may be drawn.
        has_order: whether it is known which rows of a result are first and last.
        most: number of aggregates at most.
    """
    written: dict[str, Aggregate] = {}
    texts, conditions, rough = [], list[str](), set[str]()
    usable = [kind for kind in kinds if has_order or kind not in _BY_ORDER]
    place = len(twin.stream.flow.steps)
    for number in range(int(rng.integers(1, most + 1))):
        where, counts = None, "_row IS NOT NULL"
        if rng.random() < 0.3:
            where, known = predicate(rng, twin)
            conditions.append(f"_is{number}")
            table = table.append_column(conditions[-1], pa.array(known))
            counts += f" AND {conditions[-1]}"
        name = f"a{place}_{number}"
        written[name], text = _drawn(rng, twin, one_of(rng, usable), where, counts)
        texts.append(f'{text} AS "{name}"')
        if written[name].kind in ROUGH or {*written[name].columns} & twin.rough:
            rough.add(name)
    return SqlAggregates(written, ", ".join(texts), table, conditions, frozenset(rough))


def _drawn(  # noqa: PLR0911 - one for each kind
    rng: np.random.Generator, twin: Twin, kind: str, where: sw.Expr | None, counts: str
) -> tuple[Aggregate, str]:
    """Return an aggregate of a kind, or a count where no column fits, and its SQL."""
    make = getattr(sw, kind)
    if kind in PAIRS:
        if small := _small(twin, "whole", "float", "decimal"):
            y, x = one_of(rng, small), one_of(rng, small)
            if kind != "covar":
                return make(y, x, where=where), _of_pairs(kind, y, x, counts)
            ddof = int(rng.integers(0, 3))
            return make(y, x, ddof=ddof, where=where), _of_pairs(kind, y, x, counts, ddof=ddof)
    elif kind == "var":
        if small := _small(twin, "whole", "float", "decimal"):
            name, ddof = one_of(rng, small), int(rng.integers(0, 3))
            text = _of_pairs("covar", name, name, counts, ddof=ddof)
            return make(name, ddof=ddof, where=where), text
    elif kind == "arg_max":
        flat = twin.columns(*_FLAT)
        by = [name for name in flat if twin.rows[name].dropna().is_unique]
        if by:
            name, of = one_of(rng, flat), one_of(rng, by)
            make, word = one_of(rng, [(sw.arg_max, "arg_max"), (sw.arg_min, "arg_min")])
            there = f'{counts} AND "{name}" IS NOT NULL AND "{of}" IS NOT NULL'
            return make(name, of, where=where), f'{word}("{name}", "{of}") FILTER (WHERE {there})'
    elif usable := _columns_of(twin, kind):
        name = one_of(rng, usable)
        text = f'FILTER (WHERE {counts} AND "{name}" IS NOT NULL)'
        if kind == "quantile":
            level = float(one_of(rng, [0.25, 0.5, 0.75]))
            return make(
                name, level, where=where
            ), f'quantile_cont("{name}"::DOUBLE, {level}) {text}'
        if kind == "top_k":
            k, distinct = int(rng.integers(1, 5)), bool(rng.random() < 0.6)
            values = f'list("{name}") {text}'
            values = f"list_distinct({values})" if distinct else values
            text = f"list_slice(list_reverse_sort({values}), 1, {k})"
            return make(name, k, distinct=distinct, where=where), text
        if kind != "count" or rng.random() < 0.5:
            return make(name, where=where), _TEXTS[kind](f'"{name}"', text)
    return sw.count(where=where), f"count(*) FILTER (WHERE {counts})"


_TEXTS: dict[str, Callable[[str, str], str]] = {
    "count": lambda x, rows: f"count({x}) {rows}",
    "sum": lambda x, rows: f"sum({x}) {rows}",
    "mean": lambda x, rows: f"(sum({x}) {rows})::DOUBLE / (count({x}) {rows})",
    "min": lambda x, rows: f"min({x}) {rows}",
    "max": lambda x, rows: f"max({x}) {rows}",
    "any": lambda x, rows: f"bool_or({x}) {rows}",
    "all": lambda x, rows: f"bool_and({x}) {rows}",
    "first": lambda x, rows: f"first({x} ORDER BY _t) {rows}",
    "last": lambda x, rows: f"last({x} ORDER BY _t) {rows}",
    "count_distinct": lambda x, rows: f"count(DISTINCT {x}) {rows}",
    "collect": lambda x, rows: f"list({x} ORDER BY _t) {rows}",
    "bit_and": lambda x, rows: f"bit_and({x}) {rows}",
    "bit_or": lambda x, rows: f"bit_or({x}) {rows}",
    "bit_xor": lambda x, rows: f"bit_xor({x}) {rows}",
}


def _columns_of(  # noqa: PLR0911 - one for each kind
    twin: Twin, kind: str
) -> list[str]:
    """Return the columns that an aggregate of a kind can take."""
    if kind in ("sum", "mean"):
        numbers = twin.columns("whole", "float", "decimal")
        return [name for name in numbers if name not in twin.rough and _most(twin, name) < 2**40]
    if kind in ("min", "max"):
        return twin.columns("whole", "float", "decimal", "time")
    if kind == "quantile":
        return twin.columns("whole", "float", "decimal")
    if kind in BITS:
        return twin.columns("whole")
    if kind in ("any", "all"):
        return twin.columns("bool")
    if kind == "count":
        return list(twin.stream.columns)
    return twin.columns(*_FLAT)


def _small(twin: Twin, *kinds: str) -> list[str]:
    """Return columns of numbers whose products and their sums are exact, if not decimals."""
    names = [name for name in twin.columns(*kinds) if name not in twin.rough]
    return [name for name in names if _most(twin, name) < 2**12]


def _most(twin: Twin, name: str) -> float:
    return float(twin.rows[name].dropna().astype("float64").abs().max() or 0)


def _of_pairs(kind: str, y: str, x: str, counts: str, *, ddof: int = 0) -> str:
    """Return the SQL of a function of two columns, of rows where neither is null."""
    there = f'FILTER (WHERE {counts} AND "{y}" IS NOT NULL AND "{x}" IS NOT NULL)'
    size = f"(count(*) {there})"
    a, b = f'"{y}"::DOUBLE', f'"{x}"::DOUBLE'

    def total(text: str) -> str:
        return f"(sum({text}) {there})"

    def product(one: str, other: str) -> str:
        """Return a covariance, times the number of pairs squared."""
        return f"({size} * {total(f'{one} * {other}')} - {total(one)} * {total(other)})"

    if kind == "covar":
        return f"CASE WHEN {size} > {ddof} THEN {product(a, b)} / {size} / ({size} - {ddof}) END"
    has_y, has_x = (f"(count(DISTINCT {column}) {there}) > 1" for column in (a, b))
    line = f"({product(a, b)} / {product(b, b)})"
    if kind == "slope":
        return f"CASE WHEN {has_x} THEN {line} END"
    if kind == "intercept":
        return f"CASE WHEN {has_x} THEN ({total(a)} - {line} * {total(b)}) / {size} END"
    spread = f"sqrt({product(a, a)}) / sqrt({product(b, b)})"
    return f"CASE WHEN {has_y} AND {has_x} THEN {product(a, b)} / {spread} END"
