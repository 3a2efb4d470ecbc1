"""Late rows leave first, oldest first, and no more of them than a read may have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.merge.late import LateQueue
from slackwater.runtime.model import END_NS, batch_of
from slackwater.runtime.model.state import restore, save
from tests.merge.literal_ssg import Event
from tests.merge.reading import insert, read, read_all
from tests.support.rules import rule


def behind(times: list[int], *, writers: list[Writer] | None = None) -> SlackGate:
    """A gate that holds nothing, whose reader is at 1,000; these of writer 1 come behind."""
    gate = SlackGate(writers or [Writer(0, 0), Writer(0, 1)], rule=rule(-1))
    insert(gate, [Event(1_000, 0, 0)])
    read_all(gate)
    for number, time in enumerate(times):
        insert(gate, [Event(time, 1, number)])
    return gate


@given(
    st.lists(st.integers(0, 500), unique=True, max_size=60).map(sorted),
    st.integers(1, 12),
    st.integers(0, 20),
    st.booleans(),
)
def test_every_read_keeps_its_limit_and_the_late_come_first(
    late: list[int], limit: int, on_time: int, restores: bool
) -> None:
    gate = behind(late)
    events = [Event(2_000 + n, 0, n) for n in range(on_time)]
    for event in events:
        insert(gate, [event])
    out: list[Event] = []
    flags: list[bool] = []
    while (found := read(gate, limit=limit)) is not None:
        assert len(found) <= limit
        out += [one.event for one in found]
        flags += [one.is_late for one in found]
        assert gate.rows_held == len(late) + on_time - len(out)
        assert gate.rows_held_of(1) == max(len(late) - len(out), 0)
        if restores:
            other = SlackGate([Writer(0, 0), Writer(0, 1)])
            restore(other, save(gate))
            gate = other
    assert [event.ts for event in out] == [*late, *(event.ts for event in events)]
    assert flags == [True] * len(late) + [False] * on_time


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.lists(st.integers(0, 30), min_size=1, max_size=9), st.booleans()
        ),
        max_size=20,
    ),
    st.integers(1, 7),
)
def test_in_any_cut_the_oldest_leave_first_and_ties_together(
    pieces: list[tuple[int, list[int], bool]], limit: int
) -> None:
    ports = [0, 0, 1]
    queue = LateQueue(ports)
    held: list[tuple[int, int]] = []  # (time, place)
    for place, times, reads in pieces:
        queue.add((place, batch_of(sorted(times)), 0, len(times)))
        held += [(time, place) for time in times]
        if not reads:
            continue
        taken = rows_of(queue.take(limit), ports)
        left = sorted(held)[: len(taken)]
        assert sorted(taken) == left
        assert len(taken) <= limit or len({time for time, _ in left}) == 1
        held = sorted(held)[len(taken) :]
        assert not held or not left or held[0][0] > left[-1][0]
        assert queue.rows == len(held)
        assert [queue.rows_of(p) for p in range(3)] == [
            sum(place == p for _, place in held) for p in range(3)
        ]
    assert sorted(rows_of(queue.take(None), ports)) == sorted(held)
    assert queue.rows == 0


def rows_of(taken: Any, ports: list[int]) -> list[tuple[int, int]]:
    rows = []
    for port, pieces in enumerate(taken):
        places = [piece[0] for piece in pieces]
        assert places == sorted(places)
        for place, batch, start, stop in pieces:
            assert ports[place] == port
            rows += [(time, place) for time in batch.event_time_ns[start:stop].tolist()]
    return rows


def test_a_late_row_at_the_end_of_time_leaves_too() -> None:
    queue = LateQueue([0])
    queue.add((0, batch_of([1, END_NS]), 0, 2))
    assert rows_of(queue.take(1), [0]) == [(1, 0)]
    assert rows_of(queue.take(9), [0]) == [(END_NS, 0)]


@pytest.mark.parametrize("limit", [1, 2])
def test_what_becomes_late_between_two_reads_takes_its_place(limit: int) -> None:
    gate = behind([10, 20, 30])
    assert [one.event.ts for one in read(gate, limit=1) or []] == [10]
    insert(gate, [Event(15, 1, 9)])
    assert [one.event.ts for one in read_all(gate, limit=limit)] == [15, 20, 30]
