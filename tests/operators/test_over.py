"""Rows with aggregates of those before them: beside one row at a time, and as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    OperatorError,
    SettingError,
    SlackwaterError,
    TypeMismatch,
)
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import END_NS, READY_ONLY, batch_of
from slackwater.runtime.operators.aggregate.over_machine import over_machine
from slackwater.runtime.operators.aggregate.over_step import OverStep, Reach
from slackwater.runtime.operators.aggregate.runs import scan
from slackwater.runtime.operators.aggregate.written import Aggregate
from tests.operators.literal import Leaves, Row, Segment, any_row, reads_of, run, streams
from tests.support.chance import chance
from tests.support.rows import bound
from tests.support.told import gate_read

ROWS = pa.schema({"k": pa.int64(), "text": pa.string(), "x": pa.float64(), "n": pa.int64()})
VALUES = any_row([1, 2, 2**40], ["b", "a", None], [0.5, -1.0, None, 7.25], [3, -(2**40), 5])
X_OVER_0 = bound(col("x") > 0, pa.float64())
AGGREGATES = {
    "count": (pa.int64(), Aggregate("count")),
    "xs": (pa.int64(), Aggregate("count", "x", condition=X_OVER_0)),
    "sum": (pa.float64(), Aggregate("sum", "x")),
    "total": (pa.int64(), Aggregate("sum", "n")),
    "mean": (pa.float64(), Aggregate("mean", "n")),
    "least": (pa.float64(), Aggregate("min", "x")),
    "most": (pa.int64(), Aggregate("max", "n", condition=X_OVER_0)),
    "first": (pa.string(), Aggregate("first", "text")),
    "last": (pa.float64(), Aggregate("last", "x")),
    "distinct": (pa.int64(), Aggregate("count_distinct", "text", by="text")),
}
STEP = OverStep(
    name="over",
    inputs=("rows",),
    schema=pa.schema([*ROWS, *((name, kind) for name, (kind, _) in AGGREGATES.items())]),
    keys=("k",),
    reach=Reach(),
    aggregates={name: aggregate for name, (_, aggregate) in AGGREGATES.items()},
    release=READY_ONLY,
)


def literal(step: OverStep, segments: Sequence[Segment]) -> Leaves:
    """Return the rows of an `OverStep`, each with aggregates of a list of rows."""
    rows = [row for segment in segments for row in segment.rows]
    return [tuple(map(repr, _leaves(step, place, rows))) for place in range(len(rows))]


def _leaves(step: OverStep, place: int, rows: Sequence[Row]) -> tuple[Any, ...]:
    own, names = rows[place], ROWS.names
    keys = [names.index(name) for name in step.keys]
    reach = step.reach

    def is_near(row: Row) -> bool:
        start, stop = own.time - (reach.last_ns or 0), own.time + reach.ahead_ns
        after = row.time >= start if reach.closed in ("start", "both") else row.time > start
        return after and (row.time <= stop if reach.closed in ("end", "both") else row.time < stop)

    def is_like(row: Row) -> bool:
        return all(row.values[key] == own.values[key] for key in keys)

    if reach.last_ns is not None:
        near = [row for row in rows if is_like(row) and is_near(row)]
    else:
        near = [row for row in rows[: place + reach.has_itself] if is_like(row)]
        near = near if reach.rows is None else near[-reach.rows :]
    stimulus = max(row.stimulus for row in (own, *near))
    k, text, x, n = own.values
    texts = [row.values[1] for row in near if row.values[1] is not None]
    xs = [row.values[2] for row in near if row.values[2] is not None]
    ns = [row.values[3] for row in near]
    positive = [row.values[3] for row in near if (row.values[2] or 0) > 0]
    return (
        *(own.time, stimulus, k, text, x, n, len(near), len(positive)),
        *(sum(xs) if xs else None, sum(ns) if ns else None, sum(ns) / len(ns) if ns else None),
        *(min(xs, default=None), max(positive, default=None)),
        *(texts[0] if texts else None, xs[-1] if xs else None, len(set(texts))),
    )


REACHES = {
    "all before": Reach(),
    "all before, without itself": Reach(closed="start"),
    "2 rows": Reach(rows=2),
    "2 rows before": Reach(rows=2, closed="start"),
    "last": Reach(last_ns=4),
    "last, closed at both": Reach(last_ns=4, closed="both"),
    "last, without its end": Reach(last_ns=4, closed="start"),
    "around": Reach(last_ns=2, ahead_ns=3, closed="none"),
    "ahead alone": Reach(last_ns=0, ahead_ns=5),
    "ended before": Reach(last_ns=5, ahead_ns=-2, closed="both"),
}


@pytest.mark.parametrize("name", REACHES)
@given(segments=streams([VALUES]), keys=st.sampled_from([("k",), ("text", "k"), ()]), cut=chance)
def test_rows_have_the_aggregates_of_a_list_of_rows(
    name: str, segments: list[Segment], keys: tuple[str, ...], cut: Random
) -> None:
    step = replace(STEP, reach=REACHES[name], keys=keys)
    machine = over_machine(step, most_kept_rows=10**6)
    assert run(machine, reads_of(segments, [ROWS], cut)) == literal(step, segments)
    assert machine.late_dropped == sum(len(segment.late) for segment in segments)


@given(chance=chance)
def test_a_scan_is_that_of_each_run_alone(chance: Random) -> None:
    lengths = [chance.choice([1, 1, 2, 3, 40, 300]) for _ in range(chance.randint(1, 30))]
    values = np.array(
        [chance.uniform(-1, 1) * 10 ** chance.randint(0, 9) for _ in range(sum(lengths))]
    )
    starts = np.cumsum([0, *lengths[:-1]])
    expected = [np.add.accumulate(run) for run in np.split(values, starts[1:])]
    scan(np.add, values, starts)
    assert values.tolist() == np.concatenate(expected).tolist()


def test_rows_that_none_can_reach_are_forgotten() -> None:
    for reach, most in ((Reach(last_ns=5), 2_624), (Reach(rows=3), 1_036)):
        machine = over_machine(replace(STEP, reach=reach), most_kept_rows=10**6)
        for time in range(0, 400, 4):
            rows = batch_of([time] * 400, {"k": [1, 2] * 200, "text": pa.array(["a"] * 400)})
            rows.columns |= {"x": np.arange(400) / 2, "n": np.arange(400)}
            machine.work(gate_read([rows], [None], time + 1, 0, time + 1), 0)
            assert machine.rows_held <= most
        machine.work(gate_read([None], [None], END_NS, 0, END_NS), 0)
        assert machine.rows_held == 0


@pytest.mark.parametrize("reach", [Reach(), Reach(last_ns=9), Reach(rows=2_000)])
def test_more_rows_than_may_be_kept_are_an_error(reach: Reach) -> None:
    machine = over_machine(replace(STEP, reach=reach), most_kept_rows=2_000)
    keys = np.arange(5_000)
    rows = batch_of([5] * 5_000, {"k": keys, "text": pa.array(["a"] * 5_000), "x": keys / 2})
    rows.columns["n"] = keys
    with pytest.raises(OperatorError, match=r"5,000 .* are kept, more than most_kept_rows=2,000"):
        machine.work(gate_read([rows], [None], 5, 0, 5), 0)


def test_values_that_are_counted_are_kept_too() -> None:
    machine = over_machine(replace(STEP, keys=()), most_kept_rows=2_000)
    rows = batch_of([5] * 2_000, {"k": np.arange(2_000), "n": np.arange(2_000)})
    rows.columns |= {"text": pa.array(map(str, range(2_000))), "x": np.arange(2_000) / 2}
    with pytest.raises(OperatorError, match=r"2,001 keys and values are kept"):
        machine.work(gate_read([rows], [None], 5, 0, 5), 0)


@pytest.mark.parametrize("reach", [{}, {"rows": 2}, {"last": "9s"}])
@pytest.mark.parametrize(
    ("values", "made", "says"),
    [
        ([2**62, 2**62], sw.sum("v"), "sum of column 'v': 9223372036854775808 does not fit"),
        (pa.array(map(Decimal, ("1", "1e17")), pa.decimal128(20, 2)), sw.sum("v"), "'v' is 1000"),
    ],
)
def test_an_error_of_a_value_names_step_and_row(
    reach: dict[str, Any], values: Any, made: Any, says: str
) -> None:
    flow = sw.Dataflow("orders")
    rows = sw.table(pa.table({"t": [1, 2], "who": ["ann", "ann"], "v": values}))
    orders = flow.source("orders", rows, event_time="t", time_unit="s")
    orders.over(by="who", of=made, name="running", **reach).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes, pytest.raises(OperatorError) as problem:
        nodes.submit(flow).wait()
    assert f"step 'running': {says}" in str(problem.value)
    assert "row with event_time_ns=2000000000" in str(problem.value)


ORDERS = {
    "t": [1, 2, 3, 4, 11, 12],
    "who": ["ann", "bob", "ann", "ann", "bob", "ann"],
    "amount": [5, 9, -2, 4, 1, 3],
}


def stream(flow: sw.Dataflow) -> sw.Stream:
    return flow.source("orders", sw.table(ORDERS), event_time="t", time_unit="s")


def results(made: Any) -> list[dict[str, Any]]:
    flow = sw.Dataflow("orders")
    made(stream(flow)).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        rows: list[dict[str, Any]] = job.result("out").to_pylist()
        return rows


def test_a_balance_is_a_sum_over_all_rows_before() -> None:
    made = results(lambda s: s.key_by("who").over(balance=sw.sum("amount")))
    assert [row["balance"] for row in made] == [5, 9, 3, 7, 10, 10]
    assert list(made[0]) == ["t", "who", "amount", "balance"]


def test_aggregates_that_need_all_rows_may_have_a_reach() -> None:
    made = results(lambda s: s.over(rows=3, middle=sw.median("amount"), of=sw.collect("amount")))
    assert [row["middle"] for row in made] == [5, 7, 5, 4, 1, 3]
    assert made[3]["of"] == [9, -2, 4]


def test_rows_ahead_are_waited_for() -> None:
    made = results(lambda s: s.over(last="0s", ahead="2s", next=sw.first("amount")))
    assert [row["next"] for row in made] == [9, -2, 4, None, 3, None]


def test_columns_that_are_not_read_are_not_made() -> None:
    made = results(
        lambda s: (
            s.over(by="who", n=sw.count(), total=sw.sum("amount")).select("n").over(m=sw.max("n"))
        )
    )
    assert made[-1] == {"n": 4, "m": 4}


@pytest.mark.parametrize(
    ("made", "kind", "says"),
    [
        (lambda s: s.over(), FlowError, "over has no columns; write one"),
        (lambda s: s.over(n=3), TypeMismatch, "n=3 is not an aggregate"),
        (lambda s: s.over(last="-1s", n=sw.count()), SettingError, "last='-1s'"),
        (lambda s: s.over(last="1s", rows=2, n=sw.count()), SettingError, "are two reaches"),
        (lambda s: s.over(rows=0, n=sw.count()), SettingError, "rows=0 must be a whole number"),
        (lambda s: s.over(rows=2**63, n=sw.count()), SettingError, "000,000 at most"),
        (lambda s: s.over(ahead="1s", n=sw.count()), SettingError, "write last='0s'"),
        (
            lambda s: s.over(last="1s", ahead="-1s", n=sw.count()),
            SettingError,
            "are an empty reach",
        ),
        (lambda s: s.over(rows=2, closed="both", n=sw.count()), SettingError, "is for last="),
        (lambda s: s.over(by="whom", n=sw.count()), SlackwaterError, "the nearest is 'who'"),
        (lambda s: s.over(n=sw.sum("who")), TypeMismatch, "n=sum('who') takes numbers"),
        (lambda s: s.over(t=sw.count()), DuplicateName, "'t' is a column already"),
        (
            lambda s: s.over(m=sw.median("amount")),
            FlowError,
            "needs all rows of its key again for each row",
        ),
        (
            lambda s: s.aggregate(window=sw.tumbling("1s"), late="correct", n=sw.count()).over(
                m=sw.sum("n")
            ),
            FlowError,
            "would count each revision",
        ),
    ],
)
def test_what_has_no_reach_is_refused(made: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as problem:
        made(stream(sw.Dataflow("orders")))
    assert says in str(problem.value)
