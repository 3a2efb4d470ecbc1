"""Keyed steps at random, with `replicas=` left open, and stateless steps between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.random_flows.twin import kind_of, one_of, some_of
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.operators.aggregate.interval_words import Intervals
from slackwater.runtime.operators.aggregate.written import Window
from slackwater.runtime.plan.changes import carried_by

MS = 1_000_000
MOST_COLUMNS, MOST_MERGED, MOST_TRIES = 40, 3, 6
MADE = {"said": "string", "rows": "int64", "least": "int64"}


@dataclass(frozen=True)
class Drawing:
    """A stream, and whether its rows depend on the order of rows of equal times.

    Attributes:
        has_written: whether a step upstream has `replicas=` written, so that rows of one time have
            another order than without.
        varies: whether rows, not just their order, depend on that.
        by_order: whether rows depend on the order of sources' rows, too.
    """

    stream: sw.Stream
    has_written: bool = False
    varies: bool = False
    by_order: bool = False

    def then(self, stream: sw.Stream, *others: Drawing) -> Drawing:
        """Return a stream made of this one and others, whose rows do not depend on order."""
        return Drawing(
            stream,
            any(one.has_written for one in (self, *others)),
            any(one.varies for one in (self, *others)),
            any(one.by_order for one in (self, *others)),
        )

    def then_by_order(self, stream: sw.Stream) -> Drawing:
        """Return a stream made of this one, in which the first of equal times has a part."""
        return Drawing(stream, self.has_written, self.varies or self.has_written, by_order=True)

    def columns(self, *kinds: str) -> list[str]:
        """Return the names of columns of these kinds (`kind_of`); all kinds if none is given."""
        return [one.name for one in self.stream.schema if not kinds or kind_of(one.type) in kinds]

    @property
    def has_changes(self) -> bool:
        """Whether its rows update and delete others."""
        return self._changes != "none"

    @property
    def is_last(self) -> bool:
        """Whether no keyed step can follow: its results leave again."""
        return self._changes == "revisions"

    @property
    def _changes(self) -> str:
        return carried_by(self.stream.flow.steps, self.stream.name).changes

    def keys(self, rng: np.random.Generator) -> list[str]:
        """Return one or two key columns; the event time is one only by chance."""
        usable = self.columns()
        liked = [name for name in usable if not name.startswith(("ts", "id", "window"))]
        return some_of(rng, liked or usable)[: 1 if rng.random() < 0.6 else 2]


class Said:
    """What came of a key so far, and that it has been silent for a while."""

    def __init__(self) -> None:
        self.rows, self.least = 0, 0
        self.due_ns: int | None = None

    def on_rows(self, key: Any, rows: Any) -> list[dict[str, Any]]:
        """Return a row for each, and be called a while after the last."""
        made = []
        for row in rows:
            self.rows += 1
            text = repr(sorted((name, str(value)) for name, value in row.items()))
            self.least = (self.least * 31 + len(text)) % 1_000_003
            made.append({"said": f"{key!r}: {text[-20:]}", "rows": self.rows, "least": self.least})
        self.due_ns = rows.event_time_ns + 40 * MS
        return made[:2]

    def on_time(self, key: Any, t: int) -> list[dict[str, Any]]:
        """Return what there was."""
        return [{"said": f"{key!r} at {t}", "rows": -self.rows, "least": self.least}]


Keyed = Callable[[np.random.Generator, Drawing, Drawing, int | None], "Drawing | None"]
_WITHIN = ("1ms", "20ms", "300ms")


def joined(
    rng: np.random.Generator, left: Drawing, right: Drawing, replicas: int | None
) -> Drawing | None:
    """Join two streams, or one with itself, by one or two keys, of one name or of two."""
    if len(left.stream.columns) + len(right.stream.columns) > MOST_COLUMNS:
        return None
    on: list[tuple[str, str]] = []
    most = 1 if rng.random() < 0.7 else 2
    for _ in range(MOST_TRIES):  # not all kinds are on both sides, and of one type
        if len(on) == most:
            break
        kind = one_of(rng, ["whole", "whole", "text", "decimal", "float", "time", "bool"])
        pair = left.columns(kind), right.columns(kind)
        if not all(pair):
            continue
        mine, other = one_of(rng, pair[0]), one_of(rng, pair[1])
        types = [s.stream.schema.field(n).type for s, n in ((left, mine), (right, other))]
        same = kind in ("whole", "text") or types[0] == types[1]
        if same and all(mine != a and other != b for a, b in on):
            on.append((mine, other))
    if not on:
        return None
    options: dict[str, Any] = {
        "left_on": [a for a, _ in on],
        "right_on": [b for _, b in on],
        "within": one_of(rng, _WITHIN),
        "suffix": f"_{rng.integers(10_000)}",
    }
    columns = {*left.stream.columns, *right.stream.columns}
    if rng.random() < 0.15 and "certain" not in columns:
        options["drift"] = one_of(rng, ["100us", "400us"])
    else:
        options |= _any_how(rng, left, right, on)
    stream = left.stream.join(right.stream, replicas=replicas, **options)
    return left.then(stream, right)


def _any_how(
    rng: np.random.Generator, left: Drawing, right: Drawing, on: list[tuple[str, str]]
) -> dict[str, Any]:
    """Return which rows of a join leave, and on which side of a row its partners may be."""
    how = one_of(rng, ["inner", "inner", "left", "right", "outer", "semi", "anti"])
    schemas = left.stream.schema, right.stream.schema
    if how in ("right", "outer") and any(
        schemas[0].field(mine).type != schemas[1].field(other).type for mine, other in on
    ):
        how = "left"
    if rng.random() < 0.3:
        return {"how": how, "within": one_of(rng, [("20ms", "0s"), ("0s", "20ms"), ("1ms", "9ms")])}
    return {"how": how}


def nearest(
    rng: np.random.Generator, left: Drawing, right: Drawing, replicas: int | None
) -> Drawing | None:
    """Give each row the nearest one of a stream, by one key."""
    kind = one_of(rng, ["whole", "text", "time", "bool"])
    pair = left.columns(kind), right.columns(kind)
    if len(left.stream.columns) + len(right.stream.columns) > MOST_COLUMNS or not all(pair):
        return None
    mine, other = one_of(rng, pair[0]), one_of(rng, pair[1])
    types = [s.stream.schema.field(n).type for s, n in ((left, mine), (right, other))]
    if kind == "time" and types[0] != types[1]:
        return None
    direction: Any = one_of(rng, ["backward", "backward", "forward", "nearest"])
    how: Any = one_of(rng, ["left", "left", "inner"])
    tolerances: list[Any] = [*_WITHIN, None] if direction == "backward" else [*_WITHIN]
    stream = left.stream.asof(
        right.stream,
        left_on=[mine],
        right_on=[other],
        direction=direction,
        tolerance=one_of(rng, tolerances),
        how=how,
        strict=bool(rng.random() < 0.3),
        suffix=f"_{rng.integers(10_000)}",
        replicas=replicas,
    )
    both = left.then(stream, right)
    return both.then_by_order(stream)


def aggregated(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Aggregate in windows that all keys share, or that follow from the rows of each."""
    windows: list[Window | Intervals] = [
        sw.tumbling("20ms"),
        sw.tumbling("1s"),
        sw.tumbling("20ms", closed="end"),
        sw.sliding("100ms", "40ms"),
        sw.cumulative("120ms", "40ms"),
        sw.calendar("day", zone="Europe/Warsaw"),
        sw.session("10ms"),
        sw.session("50ms"),
        sw.everything(),
        sw.rows(3, every=2),
        sw.opened_by(sw.event_time() // sw.duration("1ms") % 3 == 0, "15ms"),
    ]
    window = one_of(rng, windows)
    leaves = _any_leaving(rng, window)
    made: dict[str, Any] = {"c": sw.count()}
    place = rng.integers(10_000)
    for number in range(int(rng.integers(0, 3))):
        # Sums of others would depend on the order of their rows.
        exact = [n for n in given.columns("whole", "float") if not n.startswith(("f", "q"))]
        if not exact:
            break
        kind = one_of(rng, [sw.sum, sw.min, sw.max, sw.count])
        made[f"a{place}{number}"] = kind(one_of(rng, exact))
        if rng.random() < 0.3:
            made[f"q{place}{number}"] = sw.quantile(one_of(rng, exact), 0.5)
    keys = [name for name in given.keys(rng) if name != "c"]
    if not keys or any(name in made or name.startswith(("window", "revision")) for name in keys):
        return None
    stream = given.stream.aggregate(made, by=keys, window=window, replicas=replicas, **leaves)
    by_order = getattr(window, "word", "") in ("rows", "opened_by") or "early" in leaves
    return given.then_by_order(stream) if by_order else given.then(stream)


def _any_leaving(rng: np.random.Generator, window: Window | Intervals) -> dict[str, Any]:
    """Return when results leave, and with which time: mostly at the end of their window."""
    kind = one_of(rng, ["end", "end", "time", "early", "empty"])
    if kind == "time":
        return {"time": one_of(rng, ["start", "first", "last"])}
    if kind == "end" or not isinstance(window, Window):
        return {}
    is_short = window.size_ns < 2_000 * MS
    if kind == "empty":
        return {"empty": "200ms"} if is_short else {}
    return {"early": one_of(rng, ["7ms", 2]) if window.is_tumbling and is_short else "9ms"}


def deduped(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Keep the first of rows that are alike."""
    stream = given.stream.dedupe(given.keys(rng), within=one_of(rng, _WITHIN), replicas=replicas)
    return given.then_by_order(stream)


def ranked(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Keep the best rows of each key and window.

    Rows of the whole input are not drawn: a gate beside would hold its other inputs to the end.
    """
    keys, values = given.keys(rng), given.columns("whole", "float", "text", "time")
    if not values or any(name.startswith("window") for name in given.stream.columns):
        return None
    of = some_of(rng, values)[:2]
    window = one_of(rng, [sw.tumbling("20ms"), sw.sliding("100ms", "40ms")])
    if rng.random() < 0.3:
        make = one_of(rng, [given.stream.newest, given.stream.oldest])
        stream = make(keys, window=window, replicas=replicas)
    else:
        how: dict[str, Any] = {"ascending": bool(rng.random() < 0.5), "rank": None}
        if "place" not in given.stream.columns and rng.random() < 0.5:
            how["rank"] = "place"
        k = int(rng.integers(1, 4))
        stream = given.stream.top_k(of, k, by=keys, window=window, replicas=replicas, **how)
    return given.then_by_order(stream)


def silenced(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Say which keys are silent."""
    keys = given.keys(rng)
    if "silent_since" in keys:
        return None
    return given.then(given.stream.silence(keys, after=one_of(rng, _WITHIN), replicas=replicas))


def followed(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Pair an event with the next one."""
    values, keys = given.columns("whole"), given.keys(rng)
    if not values or len(given.stream.columns) * 2 > MOST_COLUMNS:
        return None
    value = sw.col(one_of(rng, values))
    schema_names = {p + n for p in ("first_", "then_") for n in given.stream.columns}
    if schema_names & set(keys):
        return None
    options: dict[str, Any] = {"within": one_of(rng, _WITHIN)}
    if rng.random() < 0.2 and "certain" not in keys:
        options["drift"] = one_of(rng, ["100us", "400us"])
    stream = given.stream.followed_by(
        first=value % 2 == 0, then=value % 3 == 0, by=keys, replicas=replicas, **options
    )
    return given.then_by_order(stream)


def _has_match(given: Drawing) -> bool:
    """Return whether columns have names that a pattern gives."""
    made = ("events", "window_start", "small_", "great_", "other_")
    return any(name.startswith(made) for name in given.stream.columns)


def matched(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Find a sequence of events in any scope."""
    values, keys = given.columns("whole"), given.keys(rng)
    if not values or len(given.stream.columns) * 2 > MOST_COLUMNS or _has_match(given):
        return None
    value = sw.col(one_of(rng, values))
    small = sw.patterns.event("small", where=value % 2 == 0)
    great = sw.patterns.event("great", where=value % 3 == 0)
    other = sw.patterns.event("other", where=value % 5 == 0)
    scope: dict[str, Any] = one_of(
        rng,
        [
            {"within": "20ms"},
            {"within": 6},
            {"window": sw.patterns.opened_by(small, within="40ms"), "matches": 1},
            {"window": sw.sliding("40ms", "20ms")},
            {"window": sw.patterns.count_window(6, every=3)},
        ],
    )
    parts: list[Any] = [small, one_of(rng, [great, sw.patterns.any_of(1, other)])]
    if "matches" in scope and rng.random() < 0.5:
        parts.append(sw.patterns.no(other))
    stream = given.stream.pattern(
        sw.patterns.seq(*parts),
        by=keys,
        selection=one_of(rng, ["first", "last", "each"]),
        consumption=one_of(rng, ["consumed", "zero"]),
        replicas=replicas,
        **scope,
    )
    return given.then_by_order(stream)


def processed(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Give each key an object, whose rows have no key."""
    stream = given.stream.process(
        Said,
        MADE,
        by=given.keys(rng),
        within=one_of(rng, [None, "60ms"]),
        replicas=replicas,
    )
    return given.then_by_order(stream)


def tabled(
    rng: np.random.Generator, given: Drawing, other: Drawing, replicas: int | None
) -> Drawing | None:
    """Make a table of the newest rows, or join two tables."""
    if rng.random() < 0.4:
        stream = given.stream.to_table(given.keys(rng), replicas=replicas, **_fate(given))
        return given.then_by_order(stream)
    keys = [*{*given.columns("whole", "text")} & {*other.columns("whole", "text")}]
    keys = [name for name in sorted(keys) if _type(given, name) == _type(other, name)]
    nested = any(
        family(field.type) == "nested" for s in (given, other) for field in s.stream.schema
    )
    if not keys or nested or len(given.columns()) + len(other.columns()) > MOST_COLUMNS:
        return None
    how: Any = one_of(rng, ["inner", "left", "right", "outer", "semi", "anti"])
    stream = given.stream.join(
        other.stream,
        one_of(rng, keys),
        within=None,
        how=how,
        suffix=f"_{rng.integers(10_000)}",
        replicas=replicas,
        **_fate(given, other),
    )
    both = given.then(stream, other)
    return both.then_by_order(stream) if both.has_changes else both


def over_rows(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Give each row aggregates of those before it."""
    if len(given.columns()) + 3 > MOST_COLUMNS:
        return None
    reaches: list[dict[str, Any]] = [
        {},
        {"closed": "start"},
        {"rows": 3},
        {"last": "20ms"},
        {"last": "20ms", "ahead": "5ms", "closed": "both"},
    ]
    made = _scanned(rng, given, [sw.sum, sw.min, sw.max, sw.count, sw.first, sw.last])
    keys = given.keys(rng)
    stream = given.stream.over(made, by=keys, replicas=replicas, **one_of(rng, reaches))
    return given.then_by_order(stream)


def totalled(
    rng: np.random.Generator, given: Drawing, _: Drawing, replicas: int | None
) -> Drawing | None:
    """Aggregate all rows so far, of a stream whose rows may change."""
    made = _scanned(rng, given, [sw.sum, sw.min, sw.max, sw.count, sw.count_distinct])
    stream = given.stream.aggregate(
        made,
        by=given.keys(rng),
        every=one_of(rng, [None, None, "20ms"]),
        replicas=replicas,
        **_fate(given),
    )
    return given.then_by_order(stream)


def _fate(*inputs: Drawing) -> dict[str, Any]:
    """Return the fate of rows that take out what is not there, where rows go."""
    return {"on_missing": "count"} if any(each.has_changes for each in inputs) else {}


def _scanned(
    rng: np.random.Generator, given: Drawing, kinds: list[Callable[[str], Any]]
) -> dict[str, Any]:
    """Return aggregates with names of their own: a number of rows, and perhaps others."""
    place = rng.integers(10_000)
    made: dict[str, Any] = {f"c{place}": sw.count()}
    exact = [n for n in given.columns("whole", "float") if not n.startswith(("f", "q"))]
    for number in range(int(rng.integers(0, 3)) if exact else 0):
        made[f"a{place}{number}"] = one_of(rng, kinds)(one_of(rng, exact))
    return made


def _type(given: Drawing, name: str) -> pa.DataType:
    return given.stream.schema.field(name).type


CHANGING = ("table", "totals")
"""Kinds of steps that take streams whose rows change."""
KEYED: dict[str, Keyed] = {
    "table": tabled,
    "totals": totalled,
    "over": over_rows,
    "join": joined,
    "asof": nearest,
    "aggregate": aggregated,
    "dedupe": deduped,
    "top_k": ranked,
    "silence": silenced,
    "followed_by": followed,
    "pattern": matched,
    "process": processed,
}


def stateless(rng: np.random.Generator, given: Drawing) -> Drawing:
    """Filter, compute, or drop columns, at times those of the key."""
    stream = given.stream
    kind = one_of(rng, ["filter", "select", "assign", "map", "lookup"])
    whole = given.columns("whole")
    if kind == "select":
        stream = stream.select(*sorted(some_of(rng, stream.columns), key=stream.columns.index))
    elif kind == "assign":
        stream = stream.with_columns({one_of(rng, ["k", "x"]): _number(rng, whole)})
    elif kind == "filter" and whole:
        column = sw.col(one_of(rng, whole))
        stream = stream.filter(column % 3 != int(rng.integers(0, 3)))
    elif kind == "map" and whole:
        stream = stream.map_rows(Tagged(one_of(rng, whole)), _with_tag(stream.schema))
    elif kind == "lookup" and whole and len(stream.columns) < MOST_COLUMNS:
        name = one_of(rng, whole)
        keys = pa.array([0, 1, 2, None], stream.schema.field(name).type)
        own = f"p{rng.integers(10_000)}"
        table = pa.table({"id": keys, own: pa.array([1.5, None, 2.0, 7.25])})
        how: Any = one_of(rng, ["left", "inner"])
        stream = stream.lookup(table, left_on=[name], right_on=["id"], how=how)
    return given.then(stream)


def _number(rng: np.random.Generator, whole: list[str]) -> sw.Expr:
    return sw.col(one_of(rng, whole)) % 4 if whole else sw.lit(1)


def _with_tag(schema: pa.Schema) -> dict[str, Any]:
    return {**{one.name: one.type for one in schema}, "tag": "string"}


@dataclass(frozen=True)
class Tagged:
    """Adds a text made of `of` to a row."""

    of: str

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row with its tag."""
        value = row[self.of]
        return {**row, "tag": None if value is None else f"{value % 3}"}


def merged(given: Drawing, others: list[Drawing]) -> Drawing | None:
    """Put a stream and others of its columns together, replicated or not."""
    like = [one for one in others if one.stream.schema.equals(given.stream.schema)]
    if not like:
        return None
    like = like[:MOST_MERGED]
    return given.then(given.stream.merge(*[one.stream for one in like]), *like)
