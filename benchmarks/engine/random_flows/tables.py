"""Streams whose rows change, whose answers DuckDB gives.

A table has changes, each with its time and a sign, in no order: what comes and goes at one time
cancels. So answers do not depend on which of two rows of one time is the first.

```
a 5 at 1, a 7 at 3, b 1 at 3     to_table by the first column      a 5  1  +1     a 7  3  +1
                                                                   a 5  3  −1     b 1  3  +1
```
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.answers import typed
from benchmarks.engine.random_flows.expressions import is_true, predicate
from benchmarks.engine.random_flows.sql import (
    MS,
    Step,
    ask,
    column_names,
    divided_by,
    drawn_keys,
    has_ties,
    like,
    made_of,
    partition_by,
    sql_table,
)
from benchmarks.engine.random_flows.sql_aggregates import (
    RETRACTED_KINDS,
    SCANNED_KINDS,
    draw_aggregates,
)
from benchmarks.engine.random_flows.twin import (
    DIFF,
    MOST_COLUMNS,
    TIME,
    Changes,
    Twin,
    one_of,
    some_of,
)

__all__ = ["TABLE_STEPS", "split_updates"]

MOST_ROWS, MOST_PAIRS = 300, 3_000
BEGIN_MS = 1_700_000_000_000


def split_updates(twin: Twin) -> Twin:
    """Return a table whose updates are deletions and insertions."""
    stream = twin.stream.filter(sw.lit(True))
    return replace(twin, stream=stream, changes="split", table_keys=())


def tabled(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Make the newest row of each key a row that changes."""
    twin = one_of(rng, twins)
    if twin.is_table:  # which of several rows is the newest is not known here
        if not twin.table_keys:
            return None
        return replace(twin, stream=twin.stream.to_table(twin.table_keys))
    keys = drawn_keys(rng, twin, least=1)
    if not keys or has_ties(twin, keys):
        return None
    options = divided_by(rng)
    stream = twin.stream.to_table(keys, **options)
    answer = ask(
        f"""
        SELECT _row, _t, 1 FROM rows
        UNION ALL SELECT _row, lead(_t) OVER ({partition_by(keys)} ORDER BY _t) AS _gone, -1
        FROM rows QUALIFY _gone IS NOT NULL
        """,
        rows=sql_table(twin),
    )
    rows = twin.rows.loc[[row for row, _, _ in answer]].reset_index(drop=True)
    rows = rows.assign(**{TIME: [time for _, time, _ in answer], DIFF: [d for *_, d in answer]})
    made = made_of(twin, stream, rows, is_ordered=not options)
    return replace(made, changes="whole", table_keys=tuple(keys))


def totalled(rng: np.random.Generator, twins: list[Twin]) -> Twin | None:
    """Aggregate all rows of each key so far."""
    twin = one_of(rng, twins)
    keys = drawn_keys(rng, twin, least=0)
    if len(twin.rows) > MOST_ROWS:
        return None
    kinds = RETRACTED_KINDS if twin.is_table else SCANNED_KINDS
    has_order = not has_ties(twin, keys)
    drawn = draw_aggregates(rng, twin, sql_table(twin), kinds, has_order=has_order)
    every_ms = one_of(rng, [None, None, 300, 5_000])
    at = "_t"
    if every_ms is not None:
        at = f"((_t // {every_ms * MS} + 1) * {every_ms * MS} - 1)"
    options = divided_by(rng) if keys else {}
    every = None if every_ms is None else f"{every_ms}ms"
    stream = twin.stream.aggregate(drawn.written, by=keys, every=every, **options)
    values = column_names([*twin.stream.columns, *drawn.conditions])
    own = "".join(f'"{key}" AS "_at_{key}", ' for key in keys)
    moment = "".join(f'"_at_{key}", ' for key in keys) + "_at"
    same = "".join(f' AND "{key}" IS NOT DISTINCT FROM "_at_{key}"' for key in keys)
    alive = "SELECT * FROM reach"
    if twin.is_table:  # of equal rows only the number counts
        alive = f"""
            SELECT *, CASE WHEN _copies > 0 THEN 0 END AS _row, unnest(range(greatest(_copies, 1)))
            FROM (
                SELECT {moment}, {values}, sum(_d)::BIGINT AS _copies FROM reach GROUP BY ALL
            )
        """
    answer = ask(
        f"""
        WITH moments AS (SELECT DISTINCT {own} {at} AS _at FROM rows),
        reach AS (SELECT * FROM moments JOIN rows ON {at} <= _at {same}),
        alive AS ({alive})
        SELECT {moment}, count(_row), {drawn.text} FROM alive GROUP BY {moment} ORDER BY {moment}
        """,
        rows=drawn.table,
    )
    rows = _differences(answer, [*keys, *drawn.written], keys=len(keys))
    made = made_of(twin, stream, rows, is_ordered=not options, rough=drawn.rough)
    return replace(made, changes="whole", table_keys=tuple(keys))


def _differences(answer: list[tuple[Any, ...]], columns: list[str], *, keys: int) -> pd.DataFrame:
    """Return the changes of results: each goes as the next one of its key comes.

    Args:
        answer: rows of (*key, time, number of rows, *values), by key and time.
        columns: columns of a result.
        keys: number of columns of a key.
    """
    changes: Counter[tuple[Any, ...]] = Counter()
    for _, moments in groupby(answer, key=lambda row: row[:keys]):
        before: tuple[Any, ...] | None = None
        for row in moments:
            time = row[keys]
            if before is not None:
                changes[(*before, time)] -= 1
            before = (*row[:keys], *row[keys + 2 :]) if row[keys + 1] else None
            if before is not None:
                changes[(*before, time)] += 1
    return _frame_of(changes, columns)


def _frame_of(changes: Counter[tuple[Any, ...]], columns: list[str]) -> pd.DataFrame:
    """Return changes, {(*values, time): sign}, as rows."""
    made = [(*row, sign // abs(sign)) for row, sign in changes.items() for _ in range(abs(sign))]
    return pd.DataFrame(made, columns=[*columns, TIME, DIFF], dtype=object)


def paired_tables(
    rng: np.random.Generator, twins: list[Twin], *, has_where: bool = False
) -> Twin | None:
    """Join two streams whatever the times of their rows.

    Args:
        rng: the generator that draws.
        twins: streams to choose from.
        has_where: whether pairs have a condition; then the join is inner.
    """
    left, right = one_of(rng, twins), one_of(rng, twins)
    kind = one_of(rng, ["whole", "text", "bool", "decimal"])
    keys = [
        [name for name in side.columns(kind) if name not in side.rough] for side in (left, right)
    ]
    nested = left.columns("list") or right.columns("list")
    if not all(keys) or nested or len(left.schema) + len(right.schema) > MOST_COLUMNS:
        return None
    on = one_of(rng, keys[0]), one_of(rng, keys[1])
    types = left.schema.field(on[0]).type, right.schema.field(on[1]).type
    suffix = f"_{len(left.stream.flow.steps)}"
    came = {
        name + suffix if name in left.stream.columns else name: name
        for name in right.stream.columns
        if name != on[1]
    }
    is_twice = {*came} & {*left.stream.columns}
    counts = [
        Counter(side.rows[key].dropna().tolist())
        for side, key in zip((left, right), on, strict=True)
    ]
    pairs = sum(size * counts[1][key] for key, size in counts[0].items())
    if (kind == "decimal" and types[0] != types[1]) or is_twice or pairs > MOST_PAIRS:
        return None
    how: Any = one_of(rng, ["inner", "inner", "left", "right", "outer", "semi", "anti"])
    if how in ("right", "outer") and types[0] != types[1]:
        how = "left"
    if has_where:
        how = "inner"
    names = [*left.stream.columns, *([] if how in ("semi", "anti") else came)]
    answer = ask(_join_sql(names, on, came, how), l=sql_table(left), r=sql_table(right))
    rows = pd.DataFrame(answer, columns=[*names, TIME, DIFF], dtype=object)
    is_plain = not (left.is_table or right.is_table) and how in ("inner", "semi")
    changes: Changes = "none" if is_plain else "split"
    if is_plain:
        rows = rows.drop(columns=DIFF)
    rough = left.rough | {new for new, old in came.items() if old in right.rough}
    options = divided_by(rng)
    if has_where:
        fields = [pa.field(new, right.schema.field(old).type) for new, old in came.items()]
        schema = pa.schema([*left.schema, *fields])
        own = typed(rows[[*names, TIME]], schema)
        made = Twin(left.stream, schema, own, rough=frozenset(rough), changes=changes)
        options["where"], known = predicate(rng, made)
        rows = rows[is_true(known)].reset_index(drop=True)
    stream = left.stream.join(
        right.stream,
        left_on=[on[0]],
        right_on=[on[1]],
        within=None,
        how=how,
        suffix=suffix,
        **options,
    )
    is_ordered = "replicas" not in options
    made = made_of(left, stream, rows, is_ordered=is_ordered, rough=frozenset(rough))
    return replace(made, changes=changes)


def _join_sql(names: list[str], on: tuple[str, str], came: dict[str, str], how: str) -> str:
    """Return the SQL of a join of the tables `l` and `r`, whose rows are changes.

    Pairs change with each of their rows. So does a row and the fact that its key is on the other
    side, which has changes itself.

    Args:
        names: columns of the rows that leave.
        on: key column of each side.
        came: {name that a right column leaves under: its own}.
        how: option of this name of the join.
    """
    both = ", ".join(f'r."{came[name]}"' if name in came else f'l."{name}"' for name in names)
    of_left = ", ".join("NULL" if name in came else f'l."{name}"' for name in names)
    of_right = ", ".join(
        f'r."{came[name]}"' if name in came else f'r."{on[1]}"' if name == on[0] else "NULL"
        for name in names
    )
    when = "greatest({0}._t, {1}._t), {0}._d * {1}._d"
    same = f'l."{on[0]}" = r."{on[1]}"'
    in_right = f'l JOIN known_r ON l."{on[0]}" = known_r._k'
    in_left = f'r JOIN known_l ON r."{on[1]}" = known_l._k'
    pairs = [f"SELECT {both}, {when.format('l', 'r')} FROM l JOIN r ON {same}"]
    left_alone = [
        f"SELECT {of_left}, l._t, l._d FROM l",
        f"SELECT {of_left}, greatest(l._t, known_r._t), -l._d * known_r._d FROM {in_right}",
    ]
    right_alone = [
        f"SELECT {of_right}, r._t, r._d FROM r",
        f"SELECT {of_right}, greatest(r._t, known_l._t), -r._d * known_l._d FROM {in_left}",
    ]
    parts = {
        "inner": pairs,
        "left": pairs + left_alone,
        "right": pairs + right_alone,
        "outer": pairs + left_alone + right_alone,
        "anti": left_alone,
        "semi": [f"SELECT {of_left}, {when.format('l', 'known_r')} FROM {in_right}"],
    }[how]
    columns = ", ".join(f"_c{place}" for place in range(len(names)))
    return f"""
        WITH {_known("l", on[0])}, {_known("r", on[1])},
        made({columns}, _t, _d) AS ({" UNION ALL ".join(parts)}),
        net AS (SELECT {columns}, _t, sum(_d)::BIGINT AS _net FROM made GROUP BY ALL)
        SELECT * EXCLUDE (_net, _copy), sign(_net) FROM (
            SELECT *, unnest(range(abs(_net))) AS _copy FROM net
        )
    """


def _known(side: str, key: str) -> str:
    """Return the table of the keys of a side, which come and go with their rows."""
    by_key = "OVER (PARTITION BY _k ORDER BY _t)"
    return f"""
        counts_{side} AS (
            SELECT "{key}" AS _k, _t, sum(_d) AS _d FROM {side} WHERE "{key}" IS NOT NULL
            GROUP BY ALL
        ), there_{side} AS (
            SELECT _k, _t, (sum(_d) {by_key} > 0)::INT AS _is FROM counts_{side}
        ), known_{side} AS (
            SELECT _k, _t, _is - coalesce(lag(_is) {by_key}, 0) AS _d FROM there_{side}
        )
    """


def changed(rng: np.random.Generator, twins: list[Twin]) -> Twin | list[Twin] | None:
    """Filter, divide, select or compute columns of a table, or put two together."""
    tables = [twin for twin in twins if twin.is_table]
    if not tables:
        return None
    twin = one_of(rng, tables)
    kind = one_of(rng, ["filter", "split", "select", "compute", "merge"])
    if kind == "merge":
        like_it = [other for other in twins if other.schema.equals(twin.schema)]
        other = one_of(rng, like_it)
        rows = [one.rows if one.is_table else one.rows.assign(**{DIFF: 1}) for one in (twin, other)]
        both = replace(
            twin,
            stream=twin.stream.merge(other.stream),
            rows=pd.concat(rows, ignore_index=True),
            is_ordered=True,
            rough=twin.rough | other.rough,
        )
        return split_updates(both)
    if kind == "select":
        names = {*some_of(rng, twin.stream.columns), *twin.table_keys}
        stream = twin.stream.select(*(name for name in twin.stream.columns if name in names))
        return made_like(twin, stream, twin.rows[[*stream.columns, TIME, DIFF]])
    condition, known = predicate(rng, twin)
    if kind == "compute":
        name = f"is{len(twin.stream.flow.steps)}"
        stream = twin.stream.with_columns({name: condition})
        return made_like(twin, stream, twin.rows.assign(**{name: pd.Series(known)}))
    places = np.arange(len(twin.rows))
    chosen = places[is_true(known)].tolist()
    if kind == "filter":
        part = like(twin, twin.stream.filter(condition), chosen)
        return replace(part, changes="split", table_keys=())
    name = f"part-{len(twin.stream.flow.steps)}"
    streams = twin.stream.split({name: condition})
    rest = [place for place in places.tolist() if place not in {*chosen}]
    return [
        replace(like(twin, stream, rows), changes="split", table_keys=())
        for stream, rows in zip(streams, (chosen, rest), strict=True)
    ]


def made_like(twin: Twin, stream: sw.Stream, rows: pd.DataFrame) -> Twin:
    """Return the twin of a stream whose rows change as those of another."""
    made = made_of(twin, stream, rows, is_ordered=twin.is_ordered)
    return replace(made, changes=twin.changes, table_keys=twin.table_keys)


def changelog(rng: np.random.Generator, twins: list[Twin]) -> Twin:
    """Add a source that is a changelog: with old rows, or of upserts that become a table."""
    flow: Any = twins[0].stream.flow  # streams know the base of flows alone
    is_upserts = bool(rng.random() < 0.5)
    alive: dict[int | None, tuple[Any, ...]] = {}
    log, changes = list[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    time_ms = BEGIN_MS
    for _ in range(int(rng.integers(0, 60))):
        time_ms += int(rng.integers(0, 700))
        key = one_of(rng, [0, 1, 2, 3, None])
        new = (key, one_of(rng, ["a", "b", "ü", None]), int(rng.integers(-9, 9)))
        old = alive.pop(key, None)
        if old is not None:
            changes[(*old, time_ms * MS)] -= 1
            is_deleted = rng.random() < 0.3
            if is_deleted or not is_upserts:
                log.append((time_ms, "d" if is_deleted else "-U", *old))
            if is_deleted:
                continue
        log.append((time_ms, "c" if old is None else "u" if is_upserts else "+U", *new))
        changes[(*new, time_ms * MS)] += 1
        alive[key] = new
    types = {
        "ts": pa.timestamp("ms"),
        "op": pa.string(),
        "k": pa.int64(),
        "g": pa.string(),
        "n": pa.int64(),
    }
    columns = zip(*log, strict=True) if log else [()] * len(types)
    table = pa.table(
        {
            name: pa.array(values, of)
            for (name, of), values in zip(types.items(), columns, strict=True)
        }
    )
    source = flow.source(f"log-{len(flow.steps) + 1}", sw.table(table), event_time="ts")
    stream = source.drop("ts").changes("op", upserts=is_upserts)
    if is_upserts:
        stream = stream.to_table("k", **divided_by(rng))
    twin = Twin(stream, stream.schema, _frame_of(changes, ["k", "g", "n"]))
    made = made_of(twin, stream, twin.rows, is_ordered=False)
    return replace(made, changes="whole", table_keys=("k",))


TABLE_STEPS: dict[str, Step] = {
    "to_table": tabled,
    "totals": totalled,
    "join of tables": paired_tables,
    "join of tables where": partial(paired_tables, has_where=True),
    "changes": changed,
    "changelog": changelog,
}
"""Steps that take tables, too."""
