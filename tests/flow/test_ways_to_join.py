"""Joins with `how=`, and as-of joins, as users write them: what is refused, and what leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, SettingError, TypeMismatch

ROWS = 300


def table(seed: int) -> pa.Table:
    """Rows of a few keys, null among them; several have one time."""
    rng = np.random.default_rng(seed)
    keys = [None if key == 5 else f"line {key}" for key in rng.integers(0, 6, ROWS).tolist()]
    return pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, 500, ROWS)) * 10**7, pa.timestamp("ns")),
            "line": keys,
            "v": rng.integers(0, 1_000, ROWS),
        }
    )


def two(**more: Any) -> tuple[sw.Stream, sw.Stream]:
    flow = sw.Dataflow("two", **more)
    left, right = (
        flow.source(name, sw.table(table(seed)), event_time="ts") for seed, name in enumerate("ab")
    )
    return left, right


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"how": "full"}, SettingError, "or 'anti'; the nearest is 'outer'"),
        ({"how": "LEFT"}, SettingError, "or 'anti'; the nearest is 'left'"),
        ({"how": "left", "share": "all", "replicas": 2}, FlowError, "write share='keys'"),
        ({"how": "anti", "drift": "5ms"}, FlowError, "omit drift="),
        ({"within": ("5s", "1s"), "drift": "5ms"}, FlowError, "write within='5s'"),
        ({"within": ("5s", "0s", "1s")}, SettingError, "give one, or two"),
        ({"within": ("0s", "0s")}, SettingError, "more than zero"),
        ({"within": ("5s", "soon")}, SettingError, "within, after='soon'"),
        ({"how": "left", "left_on": "v", "right_on": "line"}, TypeMismatch, "one type"),
    ],
    ids=str,
)
def test_a_join_that_cannot_be_is_refused_with_a_way_out(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    left, right = two()
    keys = {} if "left_on" in options else {"on": "line"}
    with pytest.raises(error, match=r"join") as refused:
        left.join(right, **{"within": "5s", **keys, **options})
    assert says in str(refused.value)


def test_keys_of_a_side_that_leaves_alone_have_one_type_on_both() -> None:
    left, right = two()
    narrow = left.with_columns(v=sw.col("v").cast("int32"))
    joined = narrow.join(right, on="v", within="5s", how="left")
    assert joined.columns == ("ts", "line", "v", "ts_right", "line_right")
    way_out = f"before the join cast that of stream {narrow.name!r} by .*int64"
    for sides in ((narrow, right), (right, narrow)):
        with pytest.raises(TypeMismatch, match=way_out):
            sides[0].join(sides[1], on="v", within="5s", how="outer")
    floats = left.with_columns(v=sw.col("v").cast("float64"))
    with pytest.raises(TypeMismatch, match=r"on both sides: no type holds the values of both, so"):
        floats.join(right, on="v", within="5s")


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"tolerance": "-1s"}, SettingError, "tolerance"),
        ({"tolerance": -1}, SettingError, "must be zero or more"),
        ({"direction": "forward"}, SettingError, "write tolerance='5s'"),
        ({"direction": "next"}, SettingError, "'nearest'"),
        ({"how": "outer"}, SettingError, "'left' or 'inner'"),
        ({"left_on": "v", "right_on": "line"}, TypeMismatch, "one type on both sides"),
        ({"left_on": "line"}, FlowError, "asof needs keys"),
        ({"tolerance": "0s", "strict": True}, SettingError, "omit one of the two"),
    ],
    ids=str,
)
def test_an_asof_join_that_cannot_be_is_refused_with_a_way_out(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    left, right = two()
    keys = {} if "left_on" in options else {"on": "line"}
    with pytest.raises(error, match=r"asof") as refused:
        left.asof(right, **{**keys, **options})
    assert says in str(refused.value)


def test_explain_says_who_leaves_alone_and_how_long_that_waits() -> None:
    left, right = two()
    joined = left.join(right, on="line", within=("2s", "5s"), how="left", name="j")
    text = (
        joined.key_by("line").asof(right.key_by("line"), suffix="_b", name="newest").flow.explain()
    )
    assert "on       line, within 2.00 s before and 5.00 s after the left row" in text
    assert "how      left: pairs, and left rows without a partner" in text
    assert "leaves   5.00 s after the promise has passed a row" in text
    assert "on       line; the nearest right row, backward" in text


def leave(build: Any, *, nodes: int, slice_rows: int, **options: Any) -> pa.Table:
    left, right = two()
    build(left, right, **options).sink("out", sw.collect_sink())
    limits = sw.Limits(max_slice_rows=slice_rows, min_slice_rows=min(slice_rows, 1_000))
    job = sw.Simulation(nodes=nodes, seed=nodes).submit(left.flow, limits=limits)
    report = job.wait()
    assert report.ledger.is_balanced
    assert report.ledger.late == 0
    return job.result("out")


WAYS = [
    *({"how": how, "within": "200ms"} for how in ("left", "right", "outer", "semi", "anti")),
    {"how": "outer", "within": ("500ms", "0s"), "where": sw.col("v") < sw.col("v_right")},
    {},
    {"direction": "nearest", "tolerance": "300ms", "strict": True},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_same_rows_leave_in_one_order_for_any_replicas_and_slices(way: dict[str, Any]) -> None:
    def build(left: sw.Stream, right: sw.Stream, **options: Any) -> sw.Stream:
        method = left.join if "within" in way else left.asof
        return method(right, on="line", **way, **options)

    tables = [
        leave(build, nodes=nodes, slice_rows=size, replicas=replicas)
        for replicas, nodes, size in ((1, 1, 10_000), (2, 3, 16), (3, 2, 7))
    ]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    alone = leave(build, nodes=1, slice_rows=50)
    assert alone.equals(leave(build, nodes=2, slice_rows=10_000))
    names = [(name, "ascending") for name in alone.column_names]
    assert alone.sort_by(names).equals(tables[0].sort_by(names))
    assert alone.num_rows > 30


def test_a_gate_after_a_left_join_waits_as_long_as_its_rows() -> None:
    """Rows of the other input of a merge leave with those of the join, in order."""
    left, right = two()
    alone = left.join(right, on="line", within="200ms", how="anti").select("line", "v")
    merged = alone.merge(right.select("line", "v")).with_columns(t=sw.event_time())
    merged.sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=2).submit(left.flow)
    times = job.result("out")["t"].to_pylist()
    assert len(times) > ROWS
    assert times == sorted(times)
