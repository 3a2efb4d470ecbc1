"""Clocks that run ahead: an event that cannot have happened yet waits until it can have."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import memory
from slackwater.runtime.errors import OrderError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import EARLIEST_NS, END_NS, LATEST_NS, START_NS, concat_batches
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.early import MOST_ROWS
from tests.support.sources import drain, machine, next_due_ns, take, times

PICTURE: dict[str, Any] = {
    "a": [10, 11, 12, 13, 14, 15, 16, 17],
    "t": [10, 16, 11, 13, 13, 15, 15, 17],
}
LENIENT: dict[str, Any] = {"arrival": "a", "out_of_order": "late", "disorder_ns": 1_000}


def test_an_early_event_leaves_before_the_first_that_is_right_and_has_its_time() -> None:
    source = machine(PICTURE, ahead_ns=2, **LENIENT)
    newest = []
    while (message := take(source, 0, max_rows=1)) is not None:
        newest += [(times([message]), source.newest_ns, message.progress.promise_ns)]
    assert [(rows, newest) for rows, newest, _ in newest] == [
        ([10], 10),
        ([11], 11),
        ([13], 13),
        ([13], 13),
        ([15], 15),
        ([15], 15),
        ([16], 16),
        ([17], 17),
        ([], 17),
    ]
    assert [promise + 1_000 for *_, promise in newest[:-1]] == [10, 11, 13, 13, 15, 15, 16, 17]
    assert (source.rows_in, source.early, source.held) == (8, 1, 0)


@pytest.mark.parametrize("writer", [None, "w"])
@pytest.mark.parametrize("lag", [0, 1, 7])
def test_one_event_ahead_makes_no_right_one_an_error(writer: str | None, lag: int) -> None:
    right = list(range(60))
    sent = [*right[:5], 40, *right[6:]]  # one event 35 ahead, the clock right again behind it
    data = {"a": [at + lag for at in right], "t": sent, "w": ["v"] * 60}
    source = machine(data, arrival="a", writer=writer, ahead_ns=2)
    assert times(drain(source)) == sorted(sent)
    assert source.early == 1


def test_a_feed_that_is_ahead_for_good_leaves_by_its_arrivals() -> None:
    data = {"a": [0, 0, 10, 20, 30], "t": [0, 15, 25, 35, 45]}
    source = machine(data, arrival="a", ahead_ns=2, speed=1.0)
    leaves = [(now, times([m])) for now in range(31) if (m := take(source, now))]
    assert leaves == [(0, [0]), (20, [15]), (30, [25])]


def test_what_is_held_is_counted_as_held() -> None:
    source = machine(
        memory.table({"a": [1, 2, 3], "t": [9, 2, 9]}, batch_rows=2), ahead_ns=0, **LENIENT
    )
    assert times([take(source, 0)]) == [2]
    assert (source.rows_in, source.held, source.early) == (2, 1, 1)
    assert times(drain(source)) == [9, 9]
    assert (source.rows_in, source.held, source.early) == (3, 0, 2)


def test_at_the_end_of_the_input_all_leave_by_event_time() -> None:
    data = {"a": [1, 2, 3], "t": [3_000, 2, 2_000]}
    taken = drain(machine(data, ahead_ns=5, **LENIENT))
    assert times(taken) == [2, 2_000, 3_000]
    assert taken[-1].progress.promise_ns == END_NS
    only_early = drain(machine({"a": [1], "t": [9]}, ahead_ns=5, **LENIENT))
    assert times(only_early) == [9]


def test_a_million_rows_are_no_clock_that_runs_ahead() -> None:
    arrival = np.arange(2 * MOST_ROWS) * 1_000
    data = pa.table({"a": arrival, "t": arrival + 3_600 * 10**9})  # an hour: another time zone
    source = machine(data, ahead_ns=10**9, time_unit="ns", **LENIENT)
    with pytest.raises(OrderError) as refused:
        drain(source)
    assert "source 's': 1,114,112 rows are held back, for their 't' is" in str(refused.value)
    assert "more than 1.00 s ahead of 'a', that of the nearest by 60.0 min" in str(refused.value)
    assert source.rows_in == source.held == source.early


def test_rows_are_judged_as_they_leave() -> None:
    data = {"a": [1, 2, 3, 60, 61], "t": [1, 60, 3, 60, 51], "w": ["a", "b", "a", "a", "b"]}
    source = machine(data, writer="w", arrival="a", ahead_ns=10)
    with pytest.raises(OrderError, match=r"row 4 .*of writer 'b' has event time"):
        drain(source)
    assert source.newest_ns == 60
    in_order = {"a": [1, 2, 3, 40, 60], "t": [1, 50, 3, 40, 60]}
    assert times(drain(machine(in_order, arrival="a", ahead_ns=0))) == [1, 3, 40, 50, 60]


def test_a_promise_is_not_made_before_its_event_leaves() -> None:
    data = {"a": [1, 2, 3, 30], "t": [1, 20, 3, 30], "p": [0, 19, 2, 29]}
    source = machine(data, arrival="a", ahead_ns=0, promise=col("p"))
    assert [m.progress.promise_ns for m in drain(source, max_rows=1)] == [0, 2, 19, 29, END_NS]


def test_a_paced_early_row_is_due_with_the_arrival_that_frees_it() -> None:
    source = machine({"a": [0, 5, 9], "t": [8, 5, 9]}, arrival="a", ahead_ns=0, speed=1.0)
    assert [(now, times([m])) for now in range(12) if (m := take(source, now))] == [
        (5, [5]),
        (9, [8, 9]),
        (10, []),
    ]


def test_an_arrival_does_not_run_back_behind_that_of_a_row_that_is_held() -> None:
    data = {"a": [0, 5, 2], "t": [0, 60, 1]}  # 60 is early; what comes behind it comes at 5
    source = machine(data, ahead_ns=2, speed=1.0, **LENIENT)
    due = []
    while (at := next_due_ns(source, 0)) is not None and (message := take(source, at)) is not None:
        due += [(at, one) for one in times([message])]
    assert due == [(0, 0), (5, 1), (5, 60)]


def test_times_at_the_ends_of_time_do_not_wrap() -> None:
    data = {"a": [EARLIEST_NS, 0, LATEST_NS], "t": [EARLIEST_NS, LATEST_NS, 0]}
    for ahead_ns in (0, 2**62 - 1):
        source = machine(
            data, arrival="a", ahead_ns=ahead_ns, out_of_order="late", disorder_ns=2**62
        )
        drain(source)
        assert (source.rows_in, source.early, source.held) == (3, 1, 0)


# Against the rule, one row at a time


@dataclass
class Case:
    """Rows (arrival, event time), and how they are cut."""

    rows: list[tuple[int, int]]
    ahead_ns: int
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rows, arrival = [], 0
    for gap, ahead in draw(
        st.lists(st.tuples(st.sampled_from([0, 0, 1, 2, -1]), st.integers(-3, 9)), max_size=40)
    ):
        arrival += gap
        rows.append((arrival, arrival + ahead))
    return Case(rows, draw(st.integers(0, 5)), draw(st.integers(0, 2**32)))


def literal(case: Case) -> tuple[list[int], int]:
    """Row numbers in the order in which they leave, and how many were held."""
    held: list[tuple[int, int]] = []
    left: list[int] = []
    clock = newest = reached = START_NS
    early = lag = 0
    for row, (arrival, event_time) in enumerate(case.rows):
        clock = max(clock, arrival)
        if event_time - case.ahead_ns <= clock:
            newest = max(newest, event_time)
            lag = max(lag, clock - newest)
        reached = max(reached, newest, clock - lag)
        for one in sorted(held):
            if one[0] <= reached:
                held.remove(one)
                left.append(one[1])
        if event_time - case.ahead_ns > clock:
            held.append((event_time, row))
            early += 1
        else:
            left.append(row)
    return left + [row for _, row in sorted(held)], early


MANY_TAKES = 1_000


def source_of(case: Case, batch_rows: int, **spec: Any) -> Any:
    columns = {
        "a": pa.array([row[0] for row in case.rows], pa.int64()),
        "t": pa.array([row[1] for row in case.rows], pa.int64()),
        "row": pa.array(range(len(case.rows)), pa.int64()),
    }
    table = memory.table(pa.table(columns), batch_rows=batch_rows)
    return machine(table, ahead_ns=case.ahead_ns, **{**LENIENT, **spec})


@given(cases(), st.sampled_from([{}, {"speed": 1.0}]))
def test_any_cut_lets_rows_leave_as_the_rule_does(case: Case, spec: dict[str, Any]) -> None:
    chance = random.Random(case.seed)  # noqa: S311 - jitter, not a secret
    expected, early = literal(case)
    for batch_rows in (1, 3, 100):
        source, left, now = source_of(case, batch_rows, **spec), [], 0
        while not source.is_ended:
            now += 1
            assert now < MANY_TAKES, "the source never ends"
            message = take(source, now, max_rows=chance.choice([1, 2, None]))
            if message is None:
                continue
            if message.batch is not None:
                left.append(message.batch)
            assert source.rows_in == sum(map(len, left)) + source.held
            if chance.random() < 0.1:
                state = save(source)
                source = source_of(case, chance.choice([1, 3, 100]), **spec)
                restore(source, state)
        rows = concat_batches(left).columns["row"].tolist() if left else []
        assert rows == expected
        assert (source.early, source.held, source.late_dropped) == (early, 0, 0)
