"""Expressions at random, each with what pandas makes of it: nulls by the rules of SQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

import slackwater as sw
from benchmarks.engine.random_flows.twin import TIME, Twin, one_of

Drawn = tuple[sw.Expr, Any]
"""An expression, and its value for each row: a Series, or a BooleanArray with its nulls."""
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def predicate(  # noqa: PLR0911 - one for each kind
    rng: np.random.Generator, twin: Twin, *, depth: int = 2
) -> Drawn:
    """Return what is true, false or unknown (a pandas BooleanArray) of each row."""
    kind = one_of(rng, ["compare", "compare", "text", "bool", "and", "or", "not", "null", "time"])
    if depth and kind in ("and", "or"):
        left, right = predicate(rng, twin, depth=depth - 1), predicate(rng, twin, depth=depth - 1)
        if kind == "and":
            return left[0] & right[0], left[1] & right[1]
        return left[0] | right[0], left[1] | right[1]
    if depth and kind == "not":
        inner = predicate(rng, twin, depth=depth - 1)
        return ~inner[0], ~inner[1]
    if kind == "time" and not twin.is_table:  # equal rows must have equal values
        modulus, rest = int(rng.integers(2, 5)), int(rng.integers(0, 2))
        seconds = twin.rows[TIME].to_numpy() // 10**9
        expression = (sw.event_time() // sw.duration("1s")) % modulus != rest
        return expression, _known(seconds % modulus != rest)
    texts, bools = twin.columns("text"), twin.columns("bool")
    if kind == "text" and texts:
        return _of_text(rng, twin, one_of(rng, texts))
    if kind == "bool" and bools:
        name = one_of(rng, bools)
        return sw.col(name) == True, pd.array(twin.rows[name], dtype="boolean")  # noqa: E712 - ours
    if kind == "null" and twin.stream.columns:
        name = one_of(rng, [each.name for each in twin.schema])
        return sw.col(name).is_null(), _known(twin.rows[name].isna().to_numpy())
    return _comparison(rng, twin)


def is_true(values: Any) -> np.ndarray:
    """Return a mask of what is known to be true."""
    return np.asarray(values.to_numpy(bool, na_value=False))


def number(rng: np.random.Generator, twin: Twin) -> Drawn:
    """Return a number for each row: whole, or a float that is exact in 64 bits."""
    wholes, floats = twin.columns("whole"), _smooth(twin)
    small = [name for name in wholes if _is_small(twin.rows[name])]
    kind = one_of(rng, ["whole", "whole", "float", "where", "fill"])
    if kind in ("float", "fill", "where") and floats:
        name = one_of(rng, floats)
        column, values = sw.col(name), twin.rows[name]
        by = int(rng.integers(-8, 8)) / 4
        if kind == "fill":
            return column.fill_null(by), values.fillna(by)
        if kind == "where":
            known = predicate(rng, twin, depth=1)
            chosen = np.where(is_true(known[1]), values.to_numpy(), values.dtype.type(by))
            return sw.where(known[0], column, by), pd.Series(chosen, dtype=values.dtype)
        if not _is_small(values.fillna(0)):
            return column + by, values + values.dtype.type(by)
        return one_of(
            rng,
            [
                (column + by, values + values.dtype.type(by)),
                (column * 2 - by, values * values.dtype.type(2) - values.dtype.type(by)),
                ((column / 4).floor(), np.floor(values / values.dtype.type(4))),
                (abs(-column), values.abs()),
                (column.cast("float64"), values.astype("float64")),
            ],
        )
    if small:
        name = one_of(rng, small)
        column, values = sw.col(name), twin.rows[name].astype("Int64")
        by = int(rng.integers(1, 9))
        return one_of(
            rng,
            [
                (column + by, values + by),
                (by - column * 3, by - values * 3),
                (column // by, values // by),
                (column % -by, values % -by),
                (abs(-column), values.abs()),
                (column / 4, _floats(values) / 4),
                (column**2, values**2),
                (column.cast("float32"), _floats(values).astype("float32")),
            ],
        )
    return sw.event_time() // 10**6, pd.Series(twin.rows[TIME].to_numpy() // 10**6, dtype="int64")


def _floats(values: pd.Series) -> pd.Series:
    """Return whole numbers as floats, null as NaN."""
    return pd.Series(values.to_numpy(dtype="float64", na_value=np.nan))


def _of_text(rng: np.random.Generator, twin: Twin, name: str) -> Drawn:
    column, values = sw.col(name), twin.rows[name]
    unknown = values.isna().to_numpy()
    kind = one_of(rng, ["isin", "==", "!=", "fill"])
    if kind == "isin":
        return column.is_in(["a", ""]), _known(values.isin(["a", ""]).to_numpy(), unknown)
    if kind == "fill":
        return column.fill_null("b") == "b", _known(
            values.isna().to_numpy() | (values == "b").to_numpy()
        )
    same = np.array([value == "a" for value in values], dtype=bool)
    if kind == "==":
        return column == "a", _known(same, unknown)
    return column != "a", _known(~same, unknown)


def _comparison(rng: np.random.Generator, twin: Twin) -> Drawn:
    others = twin.columns("decimal", "time")
    if others and rng.random() < 0.3:
        return _beside_literal(rng, twin, one_of(rng, others))
    names = [name for name in twin.columns("whole", "float") if name not in twin.rough]
    if not names:
        return sw.event_time() > 0, _known(np.ones(len(twin.rows), dtype=bool))
    name = one_of(rng, names)
    column = sw.col(name)
    values, unknown = _numbers(twin.rows[name])
    kind = one_of(rng, ["between", "isin", "column", *["literal"] * 3])
    with np.errstate(invalid="ignore"):
        if kind == "between":
            low = int(rng.integers(-20, 10))
            mask = (values >= low) & (values <= low + 15)
            return column.between(low, low + 15), _known(mask, unknown)
        if kind == "isin":
            few = [int(value) for value in rng.integers(-3, 8, 4)]
            return column.is_in(few), _known(np.isin(values, few), unknown)
        op = one_of(rng, list(COMPARE))
        if kind == "column":
            other = one_of(rng, names)
            beside, absent = _numbers(twin.rows[other])
            mask = COMPARE[op](values, beside)
            return COMPARE[op](column, sw.col(other)), _known(mask, unknown | absent)
        literal = one_of(rng, [0, 2, -4, 1.5, 300])
        return COMPARE[op](column, literal), _known(COMPARE[op](values, literal), unknown)


def _beside_literal(rng: np.random.Generator, twin: Twin, name: str) -> Drawn:
    """Compare decimals or times with one."""
    op, values = one_of(rng, list(COMPARE)), twin.rows[name]
    literal: Any = one_of(rng, [0, Decimal("1.25"), Decimal(-2), 1.25])
    plain = literal
    if name in twin.columns("time"):
        plain = (1_700_000_000 + int(rng.integers(0, 40))) * 10**9
        literal = datetime.fromtimestamp(plain // 10**9, UTC)
    unknown = values.isna().to_numpy()
    known = [
        not absent and COMPARE[op](value, plain)
        for value, absent in zip(values.tolist(), unknown.tolist(), strict=True)
    ]
    return COMPARE[op](sw.col(name), literal), _known(known, unknown)


def _numbers(values: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, 0 for null if they are whole, and which are null."""
    unknown = values.isna().to_numpy()
    if values.dtype.kind == "f":
        return values.to_numpy(), unknown
    return values.to_numpy(dtype="int64", na_value=0), unknown


def _known(values: Any, unknown: Any = None) -> Any:
    mask = np.zeros(len(values), dtype=bool) if unknown is None else np.asarray(unknown)
    return pd.arrays.BooleanArray(np.asarray(values, dtype=bool).copy(), mask.copy())


def _smooth(twin: Twin) -> list[str]:
    return [name for name in twin.columns("float") if name not in twin.rough]


def _is_small(values: pd.Series) -> bool:
    return bool((values.dropna().astype("float64").abs() < 2**16).all())
