"""What pandas makes of an aggregate and of a join."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.engine.random_flows.twin import TIME, kind_of, pandas_type
from slackwater.runtime.model import LATEST_NS
from slackwater.runtime.operators.aggregate.interval_words import Intervals
from slackwater.runtime.operators.aggregate.written import Aggregate, Window

_ID, _START, _END, _LEAVES = "\0w", "\0start", "\0end", "\0leaves"
"""Columns of rows in windows: a window's number, its bounds, and the time of its result."""


def aggregated(
    rows: pd.DataFrame,
    keys: list[str],
    window: Window | Intervals,
    aggregates: dict[str, Aggregate],
    schema: pa.Schema,
    *,
    where: dict[str, np.ndarray],
) -> pd.DataFrame:
    """Return a row for each key and window that had rows; nulls are skipped, all null is null.

    Args:
        rows: the rows, as a `Twin` has them.
        keys: key columns of the aggregate.
        window: windows of the aggregate.
        aggregates: functions of the windows, {column: aggregate}.
        schema: the columns of the results.
        where: {column: the rows for which its condition is true}, of aggregates that have one.
    """
    rows = rows.assign(**{f"\0where {name}": is_true for name, is_true in where.items()})
    exploded = (
        _in_intervals(rows, keys, window)
        if isinstance(window, Intervals)
        else _in_numbered(rows, window)
    )
    codes = exploded.groupby([_ID, *keys], dropna=False, sort=False).ngroup().to_numpy()
    columns = {name: exploded[name].to_numpy() for name in exploded.columns}
    made: list[dict[str, Any]] = []
    order = codes.argsort(kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if not len(group):
            continue
        row = {name: columns[name][group[0]] for name in keys}
        row |= {
            name: int(columns[own][group[0]])
            for name, own in (("window_start", _START), ("window_end", _END), (TIME, _LEAVES))
        }
        for name, aggregate in aggregates.items():
            own = group[columns[f"\0where {name}"][group].astype(bool)] if name in where else group
            row[name] = _of_group(columns, own, aggregate)
        made.append(row)
    frame = pd.DataFrame(made, columns=[*schema.names, TIME], dtype=object)
    return typed(frame, schema)


def _in_numbered(rows: pd.DataFrame, window: Window) -> pd.DataFrame:
    """Return each row once for each of its windows."""
    parts = []
    turns = 1 if window.is_tumbling else -(-window.size_ns // window.slide_ns)
    for back in range(turns):  # each row is in so many windows at most
        times = rows[TIME].to_numpy(np.int64)
        number = np.asarray(window.last_begun(times)) - back
        end = np.asarray(window.end_ns(number))
        start = np.asarray(window.start_ns(number)) - window.shift_ns
        own = {_ID: number, _START: start, _END: end - window.shift_ns, _LEAVES: end - 1}
        parts.append(rows.assign(**own)[times < end])
    return pd.concat(parts, ignore_index=True)


def _in_intervals(rows: pd.DataFrame, keys: list[str], window: Intervals) -> pd.DataFrame:
    """Return each row with its interval: those of a key with no more than a gap between them."""
    times, gap = rows[TIME].to_numpy(np.int64), window.reach_ns
    codes = np.zeros(len(rows), np.int64)
    if keys and len(rows):
        codes = rows.groupby(keys, dropna=False, sort=False).ngroup().to_numpy()
    order = np.lexsort((times, codes))
    apart = np.diff(codes[order]) != 0
    if gap is not None:
        apart |= np.diff(times[order]) > gap
    number = np.zeros(len(rows), np.int64)
    number[order] = np.append(0, apart.cumsum())[: len(rows)]
    first = pd.Series(times).groupby(number).transform("min").to_numpy(np.int64)
    last = pd.Series(times).groupby(number).transform("max").to_numpy(np.int64)
    end = last if gap is None else last + gap
    leaves = np.full(len(rows), LATEST_NS) if gap is None else end
    return rows.assign(**{_ID: number, _START: first, _END: end, _LEAVES: leaves})


def _of_group(columns: dict[str, Any], group: np.ndarray, aggregate: Aggregate) -> Any:
    """Return an aggregate of the rows of a group, by event time."""
    if aggregate.column is None:
        return len(group)
    order = columns[TIME][group].astype("int64").argsort(kind="stable")
    values = columns[aggregate.column][group[order]]
    there = ~pd.isna(values)
    if aggregate.by is not None:
        by = columns[aggregate.by][group[order]]
        there &= ~pd.isna(by)
        if not there.any():
            return None
        by = by[there].tolist()
        best = (max if aggregate.kind == "arg_max" else min)(by)
        return values[there][by.index(best)]
    return _one(values[there], aggregate)


def _one(values: Any, aggregate: Aggregate) -> Any:  # noqa: PLR0911 - one for each kind
    kind = aggregate.kind
    if kind == "count":
        return len(values)
    if kind == "count_distinct":
        return len(set(values.tolist()))
    if not len(values):
        return None
    if kind in ("first", "last"):
        return values[0 if kind == "first" else -1]
    if kind in ("collect", "top_k"):
        return (
            values.tolist() if kind == "collect" else sorted(values, reverse=True)[: aggregate.size]
        )
    if kind in ("any", "all"):
        return bool(getattr(values.astype(bool), kind)())
    if kind in ("std", "var"):
        return _spread(values, aggregate)
    if kind == "quantile":
        return float(np.quantile(values.astype("float64"), aggregate.level or 0.5))
    if kind in ("min", "max"):
        return getattr(values, kind)()
    if isinstance(values[0], Decimal):
        return sum(values.tolist()) / (1 if kind == "sum" else len(values))
    wide = values.astype("float64" if values.dtype.kind == "f" else "int64")
    return wide.sum() / len(wide) if kind == "mean" else wide.sum()


def _spread(values: Any, aggregate: Aggregate) -> float | None:
    """Return the variance or its root, computed exactly."""
    exact = [Fraction(value) for value in values.tolist()]
    divisor = len(exact) - (aggregate.ddof or 0)
    if divisor <= 0:
        return None
    mean = sum(exact) / len(exact)
    variance = float(sum((value - mean) ** 2 for value in exact) / divisor)
    return variance if aggregate.kind == "var" else sqrt(variance)


LEFT_ROW, RIGHT_ROW = "\0left row", "\0right row"


def joined(
    left: pd.DataFrame,
    right: pd.DataFrame,
    on: tuple[list[str], list[str]],
    within_ns: tuple[int, int],
    right_names: dict[str, str],
) -> pd.DataFrame:
    """Return the pairs with equal keys that are not null, and times that are near.

    They have the columns that leave, TIME, and the indices of both rows.

    Args:
        left: left rows, as those of a Twin.
        right: rows of the right side.
        on: key columns of both sides.
        within_ns: how far the right row may be before, and after.
        right_names: {right column: name it leaves under}.
    """
    left = left.assign(**{LEFT_ROW: left.index}).dropna(subset=on[0]).rename(columns={TIME: "\0l"})
    right = right.assign(**{RIGHT_ROW: right.index})
    columns = {**right_names, TIME: "\0r", RIGHT_ROW: RIGHT_ROW}
    right = right.dropna(subset=on[1])
    keys = {f"\0k{place}": right[name] for place, name in enumerate(on[1])}
    right = right[list(columns)].rename(columns=columns).assign(**keys)
    names = list(left.columns)
    left = left.assign(**{f"\0k{place}": left[name] for place, name in enumerate(on[0])})
    pairs = left.merge(right, on=list(keys), how="inner")
    apart = pairs["\0r"] - pairs["\0l"]
    pairs = pairs[(-within_ns[0] <= apart) & (apart <= within_ns[1])].reset_index(drop=True)
    pairs[TIME] = np.maximum(pairs["\0l"], pairs["\0r"])
    return pairs[
        [*[name for name in names if name != "\0l"], *right_names.values(), TIME, RIGHT_ROW]
    ]


def left_of(
    pairs: pd.DataFrame,
    left: pd.DataFrame,
    right: pd.DataFrame,
    names: tuple[dict[str, str], dict[str, str]],
    how: str,
    schema: pa.Schema,
) -> pd.DataFrame:
    """Return what leaves a join: pairs, and rows without a partner.

    Args:
        pairs: pairs as of `joined`, those for which the predicate holds.
        left: rows of the left side.
        right: rows of the right side.
        names: {column: name it leaves under} of a left row, and a right row, without a partner.
        how: as of the join.
        schema: columns of the rows that leave.
    """
    columns = [*schema.names, TIME]
    if how == "semi":
        first = pairs.groupby(LEFT_ROW)[TIME].min()
        rows = left.loc[first.index].assign(**{TIME: first})
        return typed(rows.reset_index(drop=True), schema)
    parts = [] if how == "anti" else [pairs[columns]]
    for side, row, own, alone in (
        (left, LEFT_ROW, names[0], ("left", "outer", "anti")),
        (right, RIGHT_ROW, names[1], ("right", "outer")),
    ):
        if how in alone:
            rest = side[~side.index.isin(pairs[row])]
            made = {new: rest[old] for old, new in own.items()}
            parts.append(pd.DataFrame({**made, TIME: rest[TIME]}).reindex(columns=columns))
    made = {name: [value for part in parts for value in part[name].tolist()] for name in columns}
    return typed(pd.DataFrame(made, columns=columns, dtype=object), schema)


def nearest_of(  # noqa: PLR0913 - options of an as-of join
    left: pd.DataFrame,
    right: pd.DataFrame,
    on: tuple[str, str],
    right_names: dict[str, str],
    *,
    direction: str,
    how: str,
    strict: bool,
    tolerance_ns: int | None,
    schema: pa.Schema,
) -> pd.DataFrame:
    """Return each left row with the nearest right one, as `merge_asof` of pandas has it."""
    codes = {key: code for code, key in enumerate(right[on[1]].dropna().unique())}
    keyed = right.dropna(subset=[on[1]]).sort_values(TIME, kind="stable")
    keys = [codes[key] for key in keyed[on[1]]]
    keyed = pd.DataFrame({TIME: keyed[TIME], "\0k": keys, RIGHT_ROW: keyed.index})
    rows = left.sort_values(TIME, kind="stable")
    keys = [-1 if pd.isna(key) else codes.get(key, -1) for key in rows[on[0]]]
    sought = pd.DataFrame({TIME: rows[TIME], "\0k": keys, LEFT_ROW: rows.index})
    pairs = pd.merge_asof(
        sought.astype("int64"),
        keyed.astype("int64"),
        on=TIME,
        by="\0k",
        direction=direction,
        tolerance=tolerance_ns,
        allow_exact_matches=not strict,
    )
    if how == "inner":
        pairs = pairs.dropna(subset=[RIGHT_ROW])
    made = left.loc[pairs[LEFT_ROW]].reset_index(drop=True)
    places = [None if pd.isna(row) else int(row) for row in pairs[RIGHT_ROW]]
    values = {
        new: [None if place is None else right[old].loc[place] for place in places]
        for old, new in right_names.items()
    }
    frame = {name: made[name].tolist() for name in [*made.columns]} | values
    return typed(pd.DataFrame(frame, columns=[*schema.names, TIME], dtype=object), schema)


def typed(frame: pd.DataFrame, schema: pa.Schema) -> pd.DataFrame:
    """Return the frame with the types of a schema, as `Twin` has them."""
    made = {}
    for field in schema:
        values = frame[field.name].tolist()
        if kind_of(field.type) != "float":
            values = [None if _is_null(value) else value for value in values]
        made[field.name] = pd.Series(values, dtype=pandas_type(field.type))
    made[TIME] = pd.Series(frame[TIME].tolist(), dtype="int64")
    return pd.DataFrame(made)


def _is_null(value: Any) -> bool:
    return not isinstance(value, list) and bool(pd.isna(value))
