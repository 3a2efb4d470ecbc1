"""Windows that close by arrivals: neither how two sources take turns shows, nor any cut."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime, EventDriven
from slackwater.runtime.errors import DuplicateName, SettingError, TypeMismatch
from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import (
    END_NS,
    ON_ARRIVAL,
    PLACE_BITS,
    START_NS,
    Arrived,
    Batch,
    GateRead,
    Message,
    batch_of,
)
from slackwater.runtime.model.state import save
from slackwater.runtime.operators.aggregate.close import CloseInTime
from slackwater.runtime.operators.aggregate.segments import Wait
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.registry.operators import make_operator
from slackwater.runtime.schedule.arrivals import ArrivalFrontier
from tests.operators.literal import Leaves, leaves_of
from tests.support.chance import chance
from tests.support.closings import EndAndAWhile
from tests.support.examples import a_third
from tests.support.told import gate_read, message_of

MS = 1_000_000
TIMES = pa.timestamp("ns")
STEP = AggregateStep(
    name="counts",
    inputs=("rows",),
    schema=pa.schema(
        {
            "key": pa.int64(),
            "window_start": TIMES,
            "window_end": TIMES,
            "n": pa.int64(),
            "chance_missing": pa.float64(),
        }
    ),
    keys=("key",),
    window=Window(10 * MS, 5 * MS),
    aggregates={"n": Aggregate("count")},
    release=ON_ARRIVAL,
)
POLICIES = [
    EndAndAWhile(2 * MS),
    ByTime(0),
    ByTime(),
    EventDriven(),
    ProbSlack(0.3, ordered=False, first_rows=4),
]


def closing(policy: Any, kind: str | None = None, **settings: Any) -> AggregateStep:
    return replace(STEP, close=CloseInTime(policy, kind, None, every_ns=MS), **settings)


def source_rows(rank: int, drawn: list[tuple[int, int, int]]) -> Batch:
    """Rows of one source, each (arrival behind the last one, event time behind that, key); ms."""
    at = np.cumsum([gap for gap, _, _ in drawn], dtype=np.int64) * MS
    behind = np.array([late for _, late, _ in drawn], np.int64) * MS
    batch = batch_of(at - behind, {"key": np.array([key for *_, key in drawn], np.int64)})
    return batch.with_(arrivals=np.column_stack((at, np.arange(len(at)) + (rank << PLACE_BITS))))


def messages(rows: Batch, cut: Random) -> deque[Message]:
    """The rows in messages of a few, with words between that say how far arrivals are."""
    made: deque[Message] = deque()
    start = 0
    while start < len(rows):
        stop = min(start + cut.randint(1, 4), len(rows))
        at = rows.arrivals[:, 0] if rows.arrivals is not None else rows.event_time_ns
        told = Arrived(int(at[stop - 1]), 0, since_ns=int(at[0]))
        made.append(message_of(rows.slice(start, stop), START_NS, 0, None, told))
        if stop < len(rows) and cut.random() < 0.5:
            word = told._replace(ns=cut.randint(int(at[stop - 1]), int(at[stop])))
            made.append(message_of(None, START_NS, 0, None, word))
        start = stop
    made.append(message_of(None, END_NS, 0))
    return made


def reads(sources: list[Batch], cut: Random) -> list[GateRead]:
    """What a gate lets go of the sources' messages, in any of their interleavings."""
    gate = SlackGate([Writer(0, rank, is_mixed=True) for rank in range(2)], rule=ON_ARRIVAL)
    arrivals = ArrivalFrontier(2)
    queues = [messages(rows, cut) for rows in sources]
    found: list[GateRead] = []
    while any(queues):
        writer = cut.choice([n for n, queue in enumerate(queues) if queue])
        message = queues[writer].popleft()
        gate.insert(writer, message.batch, message.progress)
        arrivals.hear(writer, message)
        if cut.random() < 0.3 and any(queues):
            continue  # several messages in a read
        limit = cut.choice([1, 2, 100])
        while True:
            released = gate.read(limit=limit)
            told = arrivals.advance(gate.held() if gate.rows_held else ())
            if told is not None:
                released = released or gate.nothing_new()
                released.progress = released.progress.with_arrived(told)
            if released is None:
                break
            found.append(released)
    return found


def leaves(step: AggregateStep, read: list[GateRead]) -> tuple[Leaves, int, Any]:
    operator = make_operator(step)
    left = leaves_of([operator.work(one, now_ns=0).rows for one in read])
    assert operator.rows_held == 0
    return left, operator.late_dropped, operator.counts()["closing"]


ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-2, 14), st.integers(0, 1)), min_size=1, max_size=25
)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)
@a_third
@example(first=[(0, 0, 0)], second=[(1, 7, 0)], cut=Random(2274))  # noqa: S311 - a draw
@given(first=ROWS, second=ROWS, cut=chance)
def test_no_interleaving_and_no_cut_shows(
    policy: Any, first: list[Any], second: list[Any], cut: Random
) -> None:
    sources = [source_rows(0, first), source_rows(1, second)]
    expected = leaves(closing(policy), reads(sources, Random(0)))  # noqa: S311 - a draw
    assert leaves(closing(policy), reads(sources, cut)) == expected


def one_read(rows: Batch, *, told: int, end: bool = False, now_ns: int = 0) -> GateRead:
    del now_ns
    watermark = END_NS if end else START_NS
    return gate_read([rows], [None], watermark, 0, watermark, Arrived(told, 77))


def counts(batch: Batch | None) -> list[tuple[int, int]]:
    if batch is None:
        return []
    ends = batch.columns["window_end"]
    return list(zip((ends // MS).tolist(), batch.columns["n"].tolist(), strict=True))


def test_a_window_closes_at_its_own_moment_between_two_rows_of_one_read() -> None:
    # Windows [-5, 5) and [0, 10), 2 ms behind their ends: at 7 and at 12.
    # They come at 1, 6, 7, 13, and are of 1, 4, 4, 9.
    rows = source_rows(0, [(1, 0, 7), (5, 2, 7), (1, 3, 7), (6, 4, 7)])
    operator = make_operator(closing(EndAndAWhile(2 * MS)))
    left = operator.work(one_read(rows, told=11 * MS), now_ns=0).rows
    assert counts(left) == [(5, 2)]  # the row of 4 that came at 7 is late for it
    left = operator.work(one_read(rows.slice(0, 0), told=14 * MS), now_ns=0).rows
    assert counts(left) == [(10, 3)]  # and that of 9, at 13, is late for this one
    assert operator.late_dropped == 0
    assert operator.late_used == 2  # type: ignore[attr-defined]


def test_a_row_waits_until_arrivals_have_passed_it_and_the_end_lets_all_go() -> None:
    rows = source_rows(0, [(1, 0, 7), (5, 2, 7)])
    operator = make_operator(closing(EndAndAWhile(2 * MS)))
    assert operator.work(one_read(rows, told=1 * MS), now_ns=0).rows is None
    assert operator.rows_held == 2
    left = operator.work(one_read(rows.slice(0, 0), told=6 * MS, end=True), now_ns=0).rows
    assert counts(left) == [(5, 2), (10, 2)]


def test_what_is_promised_follows_what_is_closed_ahead_of_what_was_promised_before() -> None:
    operator = make_operator(closing(EndAndAWhile(2 * MS)))
    result = operator.work(one_read(source_rows(0, [(1, 0, 7)]), told=8 * MS), now_ns=0)
    assert result.promise_ns == 10 * MS - 1  # [-5, 5) has closed: [0, 10) comes next


def test_types_are_sources_or_the_values_of_a_column() -> None:
    """The policy of the test tells the number of types that it has seen as a window's chance."""
    sources = [source_rows(n, [(1, 0, n), (9, 0, n)]) for n in range(2)]
    read = reads(sources, Random(3))  # noqa: S311 - a draw
    for step in (closing(EndAndAWhile(2 * MS)), closing(EndAndAWhile(2 * MS), "key")):
        found, _, _ = leaves(step, read)
        assert {row[-1] for row in found if row[-1] != "nan"} == {"2.0", "0.0"}  # 0: by the end
    alike = [source_rows(n, [(1, 0, 7), (9, 0, 7)]) for n in range(2)]
    found, _, _ = leaves(closing(EndAndAWhile(2 * MS), "key"), reads(alike, Random(3)))  # noqa: S311
    assert {row[-1] for row in found if row[-1] != "nan"} == {"1.0", "0.0"}


@pytest.mark.parametrize("awaits", [True, False])
def test_by_the_clock_windows_wait_until_each_source_has_promised_something(awaits: bool) -> None:
    """The frontier has none of a source not heard; of some it never has one before the end."""
    close = CloseInTime(EventDriven(), None, 1.0, every_ns=MS, awaits=awaits, untold=("rows",))
    operator = make_operator(replace(STEP, close=close))
    rows, left = source_rows(0, [(1, 0, 7), (20, 0, 7), (3, 0, 7)]), []
    for n, frontier in enumerate([START_NS, START_NS, 2 * MS]):
        read = gate_read([rows.slice(n, n + 1)], [None], START_NS, 0, frontier)
        left.append(counts(operator.work(read, now_ns=10 * n * MS + 1).rows))
    gone = [(5, 1), (10, 1)]
    assert left == ([[], [], gone] if awaits else [[], gone, []])


@pytest.mark.parametrize("policy", [ByTime(0), EventDriven()], ids=lambda one: type(one).__name__)
def test_what_only_the_end_closes_misses_nothing_however_far_ahead_an_event_is(policy: Any) -> None:
    # 89 years of windows are open at the end. Told one by one they would not fit in memory.
    rows = source_rows(0, [(1, 0, 7), (7, -88 * 365 * 86_400_000, 7)])
    operator = make_operator(closing(policy))
    left = operator.work(one_read(rows, told=8 * MS, end=True), now_ns=0).rows
    assert left is not None
    chances = dict(zip(counts(left), left.columns["chance_missing"].tolist(), strict=True))
    assert [chance for (end, _), chance in chances.items() if end > 10] == [0.0, 0.0]


def test_what_was_told_of_a_window_is_forgotten_once_it_cannot_be_corrected() -> None:
    schema = STEP.schema.append(pa.field("revision", pa.int64()))
    operator: Any = make_operator(closing(EndAndAWhile(0), late="correct", schema=schema))
    kept = []
    for at in range(5, 300, 5):
        rows = source_rows(0, [(at, 0, 7)])
        told = Arrived((at + 1) * MS, 77)
        operator.work(gate_read([rows], [None], at * MS, 0, at * MS, told), now_ns=0)
        kept.append(sum(map(len, save(operator)["closer"]["ends"])))
    assert 0 < max(kept) < 5


def test_what_a_window_waited_for_by_the_clock_is_taken_off_its_stimulus() -> None:
    wait = Wait(arrival_ns=100, speed=2.0)
    assert wait.since_ns(np.array([40, 100, 130])).tolist() == [30, 0, 0]  # 130 has not ended yet
    step = replace(STEP, close=CloseInTime(EndAndAWhile(2 * MS), None, 2.0, every_ns=MS))
    operator = make_operator(step)
    left = operator.work(one_read(source_rows(0, [(1, 0, 7)]), told=9 * MS), now_ns=0).rows
    assert left is not None
    assert left.stimulus_time_ns.tolist() == [0]  # that of its row, which is later than 77 − 2 ms


def test_a_read_by_the_clock_takes_rows_when_they_come_and_closes_when_that_is_due() -> None:
    step = replace(
        STEP, close=CloseInTime(EndAndAWhile(2 * MS), None, 1.0, every_ns=MS, untold=("rows",))
    )
    assert step.traits.uses_clock
    operator = make_operator(step)
    rows = batch_of([4 * MS], {"key": [7]}, 6 * MS)
    read = gate_read([rows], [None], START_NS, 0, START_NS)
    result = operator.work(read, now_ns=6 * MS)
    assert result.rows is None
    assert result.due_ns == 7 * MS
    nothing = gate_read([None], [None], START_NS, 0, START_NS)
    assert counts(operator.work(nothing, now_ns=7 * MS).rows) == [(5, 1)]
    # One whose stimulus was before that has come behind it all the same.
    late = batch_of([3 * MS], {"key": [7]}, 5 * MS)
    read = gate_read([None], [late], START_NS, 0, START_NS)
    assert operator.work(read, now_ns=8 * MS).rows is None
    assert operator.counts()["late_used"] == 1


def test_what_is_wrong_is_said_where_it_is_written() -> None:
    import slackwater as sw  # noqa: PLC0415

    flow = sw.Dataflow("wrong")
    rows = flow.source("rows", sw.table(pa.table({"ts": [1], "key": [1.5]})), event_time="ts")
    window = sw.tumbling("1s")
    with pytest.raises(TypeMismatch, match=r"is not a closing policy; write sw\.closing"):
        rows.aggregate(window=window, n=sw.count(), close=0.1)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="close= and slack= both say how long a window waits"):
        rows.aggregate(window=window, n=sw.count(), close=EndAndAWhile(0), slack="1s")
    with pytest.raises(DuplicateName, match="close= adds a column 'chance_missing'"):
        rows.aggregate(window=window, chance_missing=sw.count(), close=EndAndAWhile(0))
    with pytest.raises(TypeMismatch, match="key"):
        rows.aggregate(window=window, n=sw.count(), close=EndAndAWhile(0, "key"))
