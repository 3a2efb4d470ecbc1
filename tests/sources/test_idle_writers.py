"""Sources of several writers that may fall silent: what is promised, and to whom it is unfair."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest import memory
from slackwater.runtime.errors import OrderError, SettingError
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.idle_writers import IdleWriters
from slackwater.runtime.sources.spec import SourceSpec
from tests.support.sources import Stuttering, drain, machine, take, times

IDLE_NS = 15


def promises(data: dict[str, Any], **spec: Any) -> list[int]:
    """What is promised from each row on."""
    options = {"writer": "w", "arrival": "a", "idle_ns": IDLE_NS, **spec}
    return [m.progress.promise_ns for m in drain(machine(data, **options), max_rows=1)][:-1]


def test_a_silent_writer_is_waited_for_until_it_is_idle() -> None:
    data = {
        "a": [0, 0, 10, 10, 20, 20, 30, 30, 40, 40],
        "w": ["a", "b", "a", "b", "a", "c", "a", "c", "a", "c"],
        "t": [1, 2, 11, 12, 21, 19, 31, 29, 41, 39],
    }
    assert promises(data) == [START_NS] * 6 + [12, 12, 29, 39]


def test_the_writer_that_is_waited_for_is_known() -> None:
    arrival, writer = [0, 0, 10, 10, 20, 20, 30, 30, 40, 40], [0, 1, 0, 1, 0, 2, 0, 2, 0, 2]
    newest = [1, 2, 11, 12, 21, 19, 31, 29, 41, 39]
    rule, holders = IdleWriters(IDLE_NS), []
    for row in range(0, len(arrival), 2):
        both = (np.array(column[row : row + 2]) for column in (writer, newest, arrival))
        rule.extend(*both)
        holders.append(rule.holder())
    assert holders == [None, None, None, 1, 2]  # those not heard yet, then b, then c


def test_nothing_is_promised_before_a_writer_not_heard_yet_would_be_idle() -> None:
    data = {"a": [0, 15, 16, 17], "w": ["a"] * 4, "t": [0, 15, 16, 17]}
    assert promises(data) == [START_NS] * 3 + [17]


def test_a_pause_of_the_whole_feed_makes_nobody_idle() -> None:
    # By the poll of 900 all three have been silent for as long; it waits for each of them.
    data = {
        "a": [0, 20, 20, 20, 900, 900, 900],
        "w": ["a", "a", "b", "c", "a", "b", "c"],
        "t": [0, 19, 17, 18, 880, 860, 850],
    }
    assert promises(data) == [START_NS] * 4 + [17, 18, 850]


def test_without_an_arrival_silence_is_measured_on_the_newest_event_time() -> None:
    data = {"w": ["a", "b", "a", "a", "a"], "t": [0, 1, 16, 17, 18]}
    assert promises(data, arrival=None) == [START_NS] * 3 + [1, 18]


def test_an_awakened_writer_is_no_error_and_is_sent_on() -> None:
    data = {
        "a": [0, 20, 40, 41, 41],
        "w": ["b", "a", "a", "b", "c"],
        "t": [0, 20, 40, 5, 6],
    }
    for out_of_order in ("error", "late"):
        source = machine(data, writer="w", arrival="a", idle_ns=IDLE_NS, out_of_order=out_of_order)
        taken = drain(source, max_rows=1)
        assert times(taken) == data["t"]
        assert [m.progress.promise_ns for m in taken] == [START_NS] * 2 + [40, 40, 40, END_NS]
        assert source.late_dropped == 0


def test_rows_of_one_writer_out_of_order_are_the_error_still() -> None:
    data = {"a": [0, 20, 40, 41], "w": ["b", "a", "a", "a"], "t": [0, 20, 40, 39]}
    source = machine(data, writer="w", arrival="a", idle_ns=IDLE_NS)
    with pytest.raises(OrderError, match=r"row 3 .*of writer 'a' has event time"):
        drain(source)
    source = machine(data, writer="w", arrival="a", idle_ns=IDLE_NS, out_of_order="late")
    assert times(drain(source)) == [0, 20, 40]
    assert source.late_dropped == 1


def test_a_disorder_that_bounds_all_writers_needs_no_silence() -> None:
    data = {"a": [0, 1], "w": ["a", "b"], "t": [0, 9]}
    assert promises(data, disorder_ns=4) == [-4, 5]


def test_an_idle_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="idle_ns=0 must be more than zero"):
        SourceSpec(input=Stuttering(), event_time="t", idle_ns=0)


# Against the rule, one row at a time


@dataclass
class Feed:
    """Rows (arrival, writer, event time), and how they are cut."""

    rows: list[tuple[int, int, int]]
    idle_ns: int
    seed: int
    has_arrival: bool


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    rows, arrival = [], draw(st.integers(-5, 5))
    own = dict.fromkeys(range(4), -100)
    for gap, writer, behind in draw(
        st.lists(
            st.tuples(
                st.sampled_from([0, 0, 0, 1, 3, 12, -2]), st.integers(0, 3), st.integers(0, 8)
            ),
            min_size=1,
            max_size=60,
        )
    ):
        arrival += gap
        own[writer] = max(own[writer], arrival - behind)
        rows.append((arrival, writer, own[writer]))
    return Feed(
        rows, draw(st.sampled_from([1, 2, 5, 11])), draw(st.integers(0, 2**32)), draw(st.booleans())
    )


def literal(feed: Feed) -> list[int]:
    """The rule as it is told: after each row, who may still speak, and the least of them."""
    newest: dict[int, int] = {}
    spoke: dict[int, int] = {}
    promised, clock, first = START_NS, START_NS, None
    complete = START_NS  # the newest arrival all of whose rows have been seen
    said = []
    for arrival, writer, event_time in feed.rows:
        now = max(clock, arrival if feed.has_arrival else event_time)
        first = now if first is None else first
        if now > clock:
            clock, complete = now, clock
        newest[writer] = max(newest.get(writer, START_NS), event_time)
        spoke[writer] = clock
        waited_for = [
            newest[w]
            for w, since in spoke.items()
            if since == clock or complete - since <= feed.idle_ns
        ]
        if complete != START_NS and complete - first > feed.idle_ns:
            promised = max(promised, min(waited_for))
        said.append(promised)
    return said


@given(feeds())
def test_any_cut_of_a_feed_promises_what_the_rule_promises(feed: Feed) -> None:
    chance = random.Random(feed.seed)  # noqa: S311 - jitter, not a secret
    expected = literal(feed)
    columns = {name: [row[at] for row in feed.rows] for at, name in enumerate("awt")}
    for batch_rows in (1, 7, 1_000):
        source = machine(
            memory.table(columns, batch_rows=batch_rows),
            writer="w",
            idle_ns=feed.idle_ns,
            arrival="a" if feed.has_arrival else None,
        )
        sent = 0
        while not source.is_ended:
            message = take(source, 0, max_rows=chance.choice([1, 2, 9]))
            sent += message.rows
            if not message.progress.is_end:
                assert message.progress.promise_ns == expected[sent - 1]
        assert sent == len(feed.rows)


def told(feed: Feed, *, batch_rows: int, ahead_ns: int, restarts: random.Random | None) -> Any:
    """(row, what is promised from it on), one by one."""

    def opened() -> Any:
        columns = {name: [row[at] for row in feed.rows] for at, name in enumerate("awt")}
        return machine(
            memory.table({**columns, "row": list(range(len(feed.rows)))}, batch_rows=batch_rows),
            writer="w",
            idle_ns=feed.idle_ns,
            arrival="a",
            ahead_ns=ahead_ns,
            out_of_order="late",
        )

    source, found = opened(), []
    while not source.is_ended:
        message = take(source, 0, max_rows=1)
        rows = [] if message.batch is None else message.batch.columns["row"].tolist()
        found.append((rows, message.progress.promise_ns, source.newest_ns, source.late_dropped))
        assert source.rows_in == sum(len(rows) for rows, *_ in found) + source.late_dropped + (
            source.held
        )
        if restarts is not None and restarts.random() < 0.2:
            state = save(source)
            source = opened()
            restore(source, state)
    return found


@given(feeds(), st.integers(0, 3), st.integers(0, 6))
def test_with_clocks_ahead_too_neither_cut_nor_restart_shows(
    feed: Feed, ahead_ns: int, fast_ns: int
) -> None:
    # Writer 0 has a clock that is fast, so that some of its events are early.
    feed.rows = [(a, w, t + 2 * fast_ns * (w == 0)) for a, w, t in feed.rows]
    whole = told(feed, batch_rows=1_000, ahead_ns=ahead_ns, restarts=None)
    chance = random.Random(feed.seed)  # noqa: S311 - jitter, not a secret
    for batch_rows in (1, 7):
        assert told(feed, batch_rows=batch_rows, ahead_ns=ahead_ns, restarts=None) == whole
        assert told(feed, batch_rows=batch_rows, ahead_ns=ahead_ns, restarts=chance) == whole
    promises = [promise for _, promise, *_ in whole]
    assert promises == sorted(promises)


@pytest.mark.data
def test_the_promise_of_warsaws_buses_moves_with_the_polls_and_none_is_late(
    warsaw: Path,
) -> None:
    fixes = pq.read_table(warsaw / "2024-02-16_1136.parquet")
    arrivals, times_s = fixes["recv_time_s"], fixes["event_time_s"]
    fixes = fixes.filter(pc.less_equal(pc.subtract(arrivals, times_s), 60)).slice(0, 60_000)
    source = machine(
        fixes,
        event_time="event_time_s",
        time_unit="s",
        arrival="recv_time_s",
        writer="vehicle",
        idle_ns=30 * 10**9,
        max_rows=500,
    )
    event_time_ns = fixes["event_time_s"].to_numpy() * 10**9
    arrival_ns = fixes["recv_time_s"].to_numpy() * 10**9
    promised, lags, at = START_NS, [], 0
    while not (message := take(source, 0)).progress.is_end:
        rows = slice(at, at + message.rows)
        assert event_time_ns[rows].min() >= promised, "nobody is late at the gate"
        at, promised = rows.stop, message.progress.promise_ns
        if arrival_ns[at - 1] > arrival_ns[0] + 60 * 10**9:
            lags.append((arrival_ns[at - 1] - promised) / 1e9)
    assert 30 < np.median(lags) < 60
    assert max(lags) < 90
