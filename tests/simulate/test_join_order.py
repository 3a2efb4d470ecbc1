"""Why no rewrite changes the order of joins: neither brackets nor sides may be exchanged."""

from __future__ import annotations

import pyarrow as pa

import slackwater as sw


def source(flow: sw.Dataflow, name: str, *times_s: int) -> sw.Stream:
    ts = pa.array([time * 10**9 for time in times_s], pa.timestamp("ns"))
    numbers = pa.array(range(len(times_s)), pa.int64())
    table = pa.table({"ts": ts, "k": [1] * len(times_s), name: numbers})
    return flow.source(name, sw.table(table), event_time="ts").select("k", name)


def rows_of(flow: sw.Dataflow, joined: sw.Stream, *columns: str) -> list[tuple[int, ...]]:
    joined.select(*columns).sink("out", sw.collect_sink())
    rows = sw.Simulation(nodes=1).submit(flow).result("out").to_pylist()
    return [tuple(row[column] for column in columns) for row in rows]


def test_joins_in_intervals_are_not_associative() -> None:
    """A pair is as old as its later row, so what it is joined with next depends on the brackets."""
    left, right = sw.Dataflow("left"), sw.Dataflow("right")
    a, b, c = (source(left, name, at) for at, name in enumerate("abc"))
    first = a.join(b, on="k", within="1s").join(c, on="k", within="1s")
    assert rows_of(left, first, "a", "b", "c") == [(0, 0, 0)]
    a, b, c = (source(right, name, at) for at, name in enumerate("abc"))
    last = a.join(b.join(c, on="k", within="1s"), on="k", within="1s")
    assert rows_of(right, last, "a", "b", "c") == []


def test_the_sides_of_a_join_exchanged_give_another_order() -> None:
    """Rows of one time: all of the left, then all of the right, each with those before it."""
    one, other = sw.Dataflow("one"), sw.Dataflow("other")
    a, b = source(one, "a", 5, 5), source(one, "b", 5, 5)
    pairs = rows_of(one, a.join(b, on="k", within="1s"), "a", "b")
    a, b = source(other, "a", 5, 5), source(other, "b", 5, 5)
    exchanged = rows_of(other, b.join(a, on="k", within="1s"), "a", "b")
    assert sorted(pairs) == sorted(exchanged)
    assert pairs != exchanged
