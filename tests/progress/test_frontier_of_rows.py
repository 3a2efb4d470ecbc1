"""The frontier of all rows of a block is that of messages that tell the same one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.progress import Frontier, frontier_of_rows
from slackwater.runtime.progress.frontier_of_rows import WriterEntries


class Entry(NamedTuple):
    writer: int
    step: int
    more: int
    """Rise of its value over the last one of its writer."""
    speaks_for: int
    has_value: bool
    is_spoken: bool


WRITERS, STEPS = 4, 12
ENTRIES = st.lists(
    st.builds(
        Entry,
        st.integers(0, WRITERS - 1),
        st.integers(0, STEPS - 1),
        st.integers(0, 5),
        st.integers(0, 6),
        st.booleans(),
        st.booleans(),
    ),
    max_size=30,
)


def by_messages(entries: list[Entry], values: list[int], unknown_until: int) -> list[int]:
    """Return the frontier at each step, one message after the other."""
    frontier = Frontier(WRITERS + 1)  # the last is the one that has not been heard
    speaks_until = [0] * WRITERS
    found = []
    for step in range(STEPS):
        for entry, value in zip(entries, values, strict=True):
            if entry.step == step:
                if entry.has_value:
                    frontier.promises_ns[entry.writer] = value
                if entry.is_spoken:
                    speaks_until[entry.writer] = step + entry.speaks_for
        idle = [writer for writer in range(WRITERS) if speaks_until[writer] <= step]
        if unknown_until <= step:
            idle.append(WRITERS)
        frontier.wait_for_all_but(idle)
        promise_ns, holder = frontier.minimum()
        found.append(END_NS if holder > WRITERS else promise_ns)
    return found


@given(ENTRIES, st.integers(0, STEPS))
def test_rows_and_messages_come_to_the_same(entries: list[Entry], unknown_until: int) -> None:
    # Each writer is known from the start, silent, as one of earlier blocks is.
    known = [Entry(writer, 0, 0, 0, True, True) for writer in range(WRITERS)]
    entries = known + sorted(entries, key=lambda entry: entry.step)
    values, newest = [], [10 * (writer + 1) for writer in range(WRITERS)]
    for entry in entries:
        newest[entry.writer] += entry.more
        values.append(newest[entry.writer])
    told = WriterEntries(
        np.array([entry.writer for entry in entries]),
        np.array([entry.step for entry in entries]),
        np.array(values),
        np.array([entry.step + entry.speaks_for for entry in entries]),
        np.array([entry.has_value for entry in entries]),
        np.array([entry.is_spoken for entry in entries]),
    )
    least_ns, latest = frontier_of_rows(told, steps=STEPS, unknown_until=unknown_until)
    assert least_ns.tolist() == by_messages(entries, values, unknown_until)
    last = {
        entry.writer: value for entry, value in zip(entries, values, strict=True) if entry.has_value
    }
    assert latest.tolist() == [last[writer] for writer in range(WRITERS)]


def test_a_writer_that_has_not_been_heard_is_waited_for() -> None:
    told = WriterEntries(np.array([0]), np.array([0]), np.array([7]), np.array([9]))
    least_ns, _ = frontier_of_rows(told, steps=4, unknown_until=2)
    assert least_ns.tolist() == [START_NS, START_NS, 7, 7]
