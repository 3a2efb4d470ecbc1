"""Steps at random: each takes twins of a flow, and makes the twin of what leaves; or none fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.answers import aggregated, joined, left_of, nearest_of
from benchmarks.engine.random_flows.expressions import is_true, number, predicate
from benchmarks.engine.random_flows.functions import Halved, KeepSome, Several
from benchmarks.engine.random_flows.ranks import best
from benchmarks.engine.random_flows.twin import MOST_COLUMNS, TIME, Twin, one_of, some_of
from slackwater.runtime.operators.aggregate.interval_words import Intervals
from slackwater.runtime.operators.aggregate.written import Aggregate, Window

Step = Callable[[np.random.Generator, list[Twin]], Twin | None]
MOST_ROWS = 4_000
ANY_MS = 10**9
"""Longer than all rows of a flow: a join of tables."""


def filtered(rng: np.random.Generator, twins: list[Twin]) -> Twin:
    """Keep what is true."""
    twin = one_of(rng, twins)
    expression, known = predicate(rng, twin)
    rows = twin.rows[is_true(known)].reset_index(drop=True)
    return _like(twin, twin.stream.filter(expression), rows)


def assigned(rng: np.random.Generator, twins: list[Twin]) -> Twin:
    """Add or replace columns."""
    twin = one_of(rng, twins)
    columns, made = {}, {}
    for _ in range(int(rng.integers(1, 4))):
        name = one_of(rng, ["n", "x", "m", "y", "f", *twin.stream.columns])
        if rng.random() < 0.3:
            columns[name], known = predicate(rng, twin)
            made[name] = pd.Series(known)
        else:
            columns[name], made[name] = number(rng, twin)
    stream = twin.stream.with_columns(columns)
    rows = pd.DataFrame({**dict(twin.rows.items()), **made})[[*stream.columns, TIME]]
    result = _like(twin, stream, rows)
    result.rough = twin.rough - set(columns)
    return result


def selected(rng: np.random.Generator, twins: list[Twin]) -> Twin:
    """Keep some columns, some under new names; or drop some."""
    twin = one_of(rng, twins)
    names = some_of(rng, twin.stream.columns)
    if rng.random() < 0.3 and len(names) < len(twin.stream.columns):
        stream = twin.stream.drop(*names)
        return _like(twin, stream, twin.rows[[*stream.columns, TIME]])
    renamed = {name: name for name in names}
    if rng.random() < 0.4:
        free = [name for name in ("k", "n", "z", "v") if name not in names]
        if free:
            renamed[one_of(rng, free)] = renamed.pop(one_of(rng, names))
    stream = twin.stream.select(renamed)
    rows = pd.DataFrame({new: twin.rows[old] for new, old in {**renamed, TIME: TIME}.items()})
    result = _like(twin, stream, rows)
    result.rough = frozenset(new for new, old in renamed.items() if old in twin.rough)
    return result


def mapped(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Compute columns with a function, of a row or of a batch."""
    twin = one_of(rng, twins)
    whole = [twin.rows[name] for name in twin.columns("whole")]
    of = [str(one.name) for one in whole if one.notna().all() and (one.abs() < 2**40).all()]
    if not of:
        return None
    source, to = one_of(rng, of), one_of(rng, ["n", "made"])
    kept = [name for name in some_of(rng, twin.stream.columns) if name != to]
    types = {name: twin.schema.field(name).type for name in kept}
    rows = twin.rows[[*kept, TIME]].copy()
    values = twin.rows[source].astype("int64")
    way = rng.random()
    if way < 0.3:
        stream = twin.stream.flat_map(Several(tuple(kept), source, to), {**types, to: "int64"})
        times = (values % 3).to_numpy()
        rows = rows.loc[rows.index.repeat(times)].reset_index(drop=True)
        rows[to] = pd.Series([n for count in times for n in range(count)], dtype="Int64")
    elif way < 0.6:
        drops = int(rng.integers(0, 4))
        stream = twin.stream.map_rows(
            KeepSome(tuple(kept), source, to, drops), {**types, to: "int64"}
        )
        rows[to] = 2 * values + 1
        if drops:
            rows = rows[values % drops != 0].reset_index(drop=True)
    else:
        stream = twin.stream.map_batches(Halved(tuple(kept), source, to), {**types, to: "float64"})
        rows[to] = values / 2
    return _like(twin, stream, rows[[*stream.columns, TIME]])


def merged(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Put streams of one schema together, perhaps one twice; slack costs no rows."""
    first = one_of(rng, twins)
    like = [twin for twin in twins if twin.schema.equals(first.schema)]
    if len(like) == 1 and rng.random() < 0.8:
        return None
    others = [one_of(rng, like) for _ in range(int(rng.integers(1, 4)))]
    rows = pd.concat([twin.rows for twin in (first, *others)], ignore_index=True)
    if len(rows) > MOST_ROWS:
        return None
    stream = first.stream.merge(*[twin.stream for twin in others], fill=bool(rng.random() < 0.5))
    rough = frozenset().union(*(twin.rough for twin in (first, *others)))
    return Twin(stream, stream.schema, rows, rough=rough)


def _windows() -> list[Window | Intervals]:
    return [
        sw.tumbling("700ms"),
        sw.tumbling("10s"),
        sw.tumbling("1h"),
        sw.sliding("10s", "5s"),
        sw.sliding("3s", "2s"),
        sw.sliding("2500ms", "1s"),
        sw.cumulative("10s", "2s"),
        sw.cumulative("1m", "30s", offset="7s", closed="end"),
        sw.tumbling("10s", offset="3s"),
        sw.sliding("10s", "5s", offset="1s", closed="end"),
        sw.tumbling("700ms", closed="end"),
        sw.calendar("day", zone="Europe/Warsaw"),
        sw.calendar("week", zone="America/New_York", offset="6h"),
        sw.calendar("month", every=2),
        sw.session("2s"),
        sw.session("1m"),
        sw.everything(),
    ]


def ranked(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Keep the best rows of each key and window.

    Rows of the whole input are not drawn: a gate beside would hold its other inputs to the end.
    """
    twin = one_of(rng, twins)
    usable = twin.columns("whole", "text", "bool", "decimal")
    compared = [name for name in twin.columns("whole", "text", "time") if name not in twin.rough]
    if not compared or any(name in twin.stream.columns for name in ("place", "window_start")):
        return None
    keys = some_of(rng, usable, least=0)[:2]
    of = some_of(rng, compared)[:2]
    up = [bool(rng.random() < 0.5) for _ in of]
    window = one_of(rng, [sw.tumbling("700ms"), sw.tumbling("10s"), sw.sliding("3s", "2s")])
    k, replicas = int(rng.integers(1, 4)), 1
    if keys and rng.random() < 0.25:
        replicas = int(rng.integers(2, 4))
    # Rows that are equal in all that is compared, and in time, have no order that pandas knows.
    known = [*keys, *of, TIME]
    if twin.rows.duplicated(known).any():
        return None
    stream = twin.stream.top_k(
        of, k, by=keys, window=window, ascending=up, rank="place", replicas=replicas
    )
    rows = best(twin.rows, keys, window, list(zip(of, up, strict=True)), k, stream.schema)
    return Twin(stream, stream.schema, rows, is_ordered=replicas == 1, rough=twin.rough)


def grouped(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Aggregate in windows, by keys or none, perhaps by replicas."""
    twin = one_of(rng, twins)
    kinds = ("whole", "text", "bool", "decimal")
    usable = [name for name in twin.columns(*kinds) if not name.startswith("window")]
    keys = some_of(rng, usable, least=0)[:2] if usable else []
    window = one_of(rng, _windows())
    aggregates: dict[str, Aggregate] = {}
    where: dict[str, np.ndarray] = {}
    for place in range(int(rng.integers(1, 5))):
        name = f"a{len(twin.stream.flow.steps)}{place}"
        condition = None
        if rng.random() < 0.3:
            condition, known = predicate(rng, twin)
            where[name] = is_true(known)
        aggregates[name] = _aggregate(rng, twin, condition)
    replicas = int(rng.integers(2, 4)) if keys and rng.random() < 0.25 else 1
    if rng.random() < 0.5 and keys:
        stream = twin.stream.key_by(*keys).aggregate(aggregates, window=window, replicas=replicas)
    else:
        stream = twin.stream.aggregate(aggregates, by=keys, window=window, replicas=replicas)
    rows = aggregated(twin.rows, keys, window, aggregates, stream.schema, where=where)
    rough = frozenset(
        name
        for name, each in aggregates.items()
        if each.kind in ("mean", "quantile", "std", "var") or each.column in twin.rough
    )
    return Twin(stream, stream.schema, rows, is_ordered=replicas == 1, rough=rough)


def paired(  # noqa: PLR0911, PLR0912 - what cannot be joined is not
    rng: np.random.Generator, twins: list[Twin]
) -> Twin | None:
    """Join two streams, or one with itself, perhaps by replicas."""
    left, right = one_of(rng, twins), one_of(rng, twins)
    if len(left.stream.columns) + len(right.stream.columns) > MOST_COLUMNS:
        return None
    kind = one_of(rng, ["whole", "text", "whole", "text", "bool", "decimal"])
    left_keys, right_keys = left.columns(kind), right.columns(kind)
    if not left_keys or not right_keys:
        return None
    on = [one_of(rng, left_keys)], [one_of(rng, right_keys)]
    types = left.schema.field(on[0][0]).type, right.schema.field(on[1][0]).type
    if kind == "decimal" and types[0] != types[1]:
        return None
    within_ms = one_of(rng, [1, 250, 2_000, 60_000])
    suffix = f"_{len(left.stream.flow.steps)}"
    right_names = {
        name: name + suffix if name in left.stream.columns else name
        for name in right.stream.columns
        if name not in on[1]
    }
    if len({*left.stream.columns, *right_names.values()}) < len(left.stream.columns) + len(
        right_names
    ):
        return None
    left_counts, right_counts = (
        Counter(side.rows[own[0]].dropna().tolist())
        for side, own in ((left, on[0]), (right, on[1]))
    )
    if sum(count * right_counts[key] for key, count in left_counts.items()) > 50 * MOST_ROWS:
        return None
    how = one_of(rng, ["inner", "inner", "left", "right", "outer", "semi", "anti"])
    if how in ("right", "outer") and types[0] != types[1]:
        how = "left"
    if how in ("inner", "semi") and rng.random() < 0.3:  # of other tables rows change
        within_ms = ANY_MS
    before_ms, after_ms = one_of(rng, [(within_ms,) * 2, (within_ms,) * 2, (within_ms, 0)])
    if within_ms == ANY_MS:
        after_ms = ANY_MS
    rows = joined(left.rows, right.rows, on, (before_ms * 10**6, after_ms * 10**6), right_names)
    if len(rows) > MOST_ROWS:
        return None
    options: dict[str, Any] = {"within": f"{within_ms}ms", "suffix": suffix, "how": how}
    if within_ms == ANY_MS:
        options["within"] = None
    elif before_ms != after_ms:
        options["within"] = (f"{before_ms}ms", f"{after_ms}ms")
    if rng.random() < 0.3:
        shares = ["keys", "all"] if how == "inner" and within_ms != ANY_MS else ["keys"]
        options |= {"replicas": int(rng.integers(2, 4)), "share": one_of(rng, shares)}
    rough = left.rough | {right_names[name] for name in right.rough if name in right_names}
    is_ordered = "replicas" not in options
    if rng.random() < 0.3 and (within_ms != ANY_MS or how == "inner"):
        schema = pa.schema(
            [
                *left.schema,
                *(pa.field(new, right.schema.field(old).type) for old, new in right_names.items()),
            ]
        )
        twin = Twin(left.stream, schema, rows, rough=frozenset(rough))
        options["where"], known = predicate(rng, twin)
        rows = rows[is_true(known)].reset_index(drop=True)
    keys = dict(zip(on[1], on[0], strict=True))
    names = {name: name for name in left.stream.columns}, {**keys, **right_names}
    if on[0] == on[1] and rng.random() < 0.5:
        stream = left.stream.join(right.stream, on=on[0][0], **options)
    else:
        stream = left.stream.join(right.stream, left_on=on[0], right_on=on[1], **options)
    rows = left_of(rows, left.rows, right.rows, names, how, stream.schema)
    rough &= set(stream.columns)
    return Twin(stream, stream.schema, rows, is_ordered=is_ordered, rough=frozenset(rough))


def nearest(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Give each row the nearest one of another stream, perhaps by replicas."""
    left, right = one_of(rng, twins), one_of(rng, twins)
    names = [*left.stream.columns, *right.stream.columns]
    kind = one_of(rng, ["whole", "text", "bool"])
    left_keys, right_keys = left.columns(kind), right.columns(kind)
    if len(names) > MOST_COLUMNS or not left_keys or not right_keys:
        return None
    mine, other = one_of(rng, left_keys), one_of(rng, right_keys)
    if right.rows.duplicated([other, TIME]).any():  # which came last is not known here
        return None
    suffix = f"_{len(left.stream.flow.steps)}"
    right_names = {
        name: name + suffix if name in left.stream.columns else name
        for name in right.stream.columns
        if name != other
    }
    if len({*left.stream.columns, *right_names.values()}) < len(left.stream.columns) + len(
        right_names
    ):
        return None
    direction = one_of(rng, ["backward", "backward", "forward", "nearest"])
    tolerance_ms = one_of(rng, [250, 2_000, None if direction == "backward" else 60_000])
    options: dict[str, Any] = {
        "direction": direction,
        "tolerance": None if tolerance_ms is None else f"{tolerance_ms}ms",
        "how": one_of(rng, ["left", "left", "inner"]),
        "strict": bool(rng.random() < 0.3),
    }
    if rng.random() < 0.3:
        options["replicas"] = int(rng.integers(2, 4))
    stream = left.stream.asof(
        right.stream, left_on=[mine], right_on=[other], suffix=suffix, **options
    )
    rows = nearest_of(
        left.rows,
        right.rows,
        (mine, other),
        right_names,
        tolerance_ns=None if tolerance_ms is None else tolerance_ms * 10**6,
        schema=stream.schema,
        **{name: options[name] for name in ("direction", "how", "strict")},
    )
    rough = left.rough | {right_names[name] for name in right.rough if name in right_names}
    return Twin(
        stream, stream.schema, rows, is_ordered="replicas" not in options, rough=frozenset(rough)
    )


def _aggregate(  # noqa: PLR0911 - one for each kind
    rng: np.random.Generator, twin: Twin, where: sw.Expr | None
) -> Aggregate:
    numbers = twin.columns("whole", "float", "decimal")
    ordered = [*numbers, *twin.columns("time")]
    kind = one_of(rng, ["count", "count of", "sum", "mean", "min", "max", "quantile", *_MORE])
    if kind == "count of":
        return sw.count(one_of(rng, twin.stream.columns), where=where)
    if kind == "quantile" and numbers:
        level = float(one_of(rng, [0.25, 0.5, 0.75]))
        return sw.quantile(one_of(rng, numbers), level, where=where)
    if kind in ("min", "max") and ordered:
        return (sw.min if kind == "min" else sw.max)(one_of(rng, ordered), where=where)
    summed = [
        name
        for name in numbers
        if name not in twin.rough and (twin.rows[name].dropna().abs() < 2**40).all()
    ]
    if kind in ("sum", "mean") and summed:
        return (sw.sum if kind == "sum" else sw.mean)(one_of(rng, summed), where=where)
    if kind in ("std", "var") and summed:
        spread = sw.std if kind == "std" else sw.var
        return spread(one_of(rng, summed), ddof=int(rng.integers(0, 3)), where=where)
    if kind in _MORE and (made := _of_rows(rng, twin, kind, where)) is not None:
        return made
    return sw.count(where=where)


_MORE = ("std", "var", "any", "first", "last", "arg_max", "top_k", "count_distinct", "collect")


def _of_rows(  # noqa: PLR0911 - one for each kind
    rng: np.random.Generator, twin: Twin, kind: str, where: sw.Expr | None
) -> Aggregate | None:
    """Return an aggregate that chooses rows; None if none has one answer.

    Rows of one time come in an order that pandas does not know.
    """
    flat = twin.columns("whole", "float", "decimal", "text", "bool")
    exact = [name for name in flat if name not in twin.rough]
    bools = twin.columns("bool")
    if kind == "any" and bools:
        return (sw.any if rng.random() < 0.5 else sw.all)(one_of(rng, bools), where=where)
    if kind == "top_k" and flat:
        return sw.top_k(one_of(rng, flat), int(rng.integers(1, 5)), where=where)
    if kind == "count_distinct" and exact:
        return sw.count_distinct(one_of(rng, exact), where=where)
    by = [name for name in exact if twin.rows[name].dropna().is_unique]
    if kind == "arg_max" and by:
        column = one_of(rng, twin.stream.columns)
        return (sw.arg_max if rng.random() < 0.5 else sw.arg_min)(
            column, one_of(rng, by), where=where
        )
    if kind in ("first", "last") and twin.rows[TIME].is_unique:
        column = one_of(rng, twin.stream.columns)
        return (sw.first if kind == "first" else sw.last)(column, where=where)
    if kind == "collect" and flat and twin.rows[TIME].is_unique:
        return sw.collect(one_of(rng, flat), where=where)
    return None


def _like(twin: Twin, stream: sw.Stream, rows: pd.DataFrame) -> Twin:
    return replace(twin, stream=stream, schema=stream.schema, rows=rows)


STEPS: dict[str, Step] = {
    "filter": filtered,
    "assign": assigned,
    "select": selected,
    "map": mapped,
    "merge": merged,
    "top_k": ranked,
    "aggregate": grouped,
    "join": paired,
    "asof": nearest,
}
