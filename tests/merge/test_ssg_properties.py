"""Properties 1-3 and Theorem 5.3 of [ssg] §5.1.1, and what §4.1 promises of each reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import END_NS, START_NS
from tests.merge.literal_ssg import Event, Read
from tests.merge.reading import events_of, insert, read, read_all
from tests.support.rules import rule
from tests.support.told import put

WRITERS, READERS = 3, 2
SLACK = st.integers(0, 8)
INSERT = st.tuples(
    st.just("insert"),
    st.integers(0, WRITERS - 1),
    st.lists(st.integers(0, 5), min_size=1, max_size=3),
)

READ = st.tuples(st.just("read"), st.integers(0, READERS - 1), st.sampled_from([1, 2, None]))
SET_SLACK = st.tuples(st.just("slack"), st.none() | SLACK | st.just(-1), st.none())
ONE_SLACK = st.lists(INSERT | READ, max_size=50)
CHANGING_SLACK = st.lists(INSERT | READ | SET_SLACK, max_size=50)
STEPS = st.lists(st.tuples(st.integers(0, WRITERS - 1), st.integers(0, 5)), max_size=30)


class Play:
    """A gate, what its writers have inserted, and all that each reader has read so far."""

    def __init__(self, slack: int | None) -> None:
        self.gate = self.fresh(slack)
        self.inserted: list[Event] = []
        self.last = [START_NS] * WRITERS  # a writer's newest time, which is its promise
        self.read: list[list[Read]] = [[] for _ in range(READERS)]

    @staticmethod
    def fresh(slack: int | None) -> SlackGate:
        return SlackGate(
            [Writer(0, rank) for rank in range(WRITERS)], readers=READERS, rule=rule(slack)
        )

    def insert(self, writer: int, gaps: list[int]) -> list[Event]:
        events = []
        for gap in gaps:
            self.last[writer] = max(self.last[writer], 0) + gap
            events.append(Event(self.last[writer], writer, len(self.inserted)))
            self.inserted.append(events[-1])
        insert(self.gate, events)
        return events

    def steps(self, history: list[Any]) -> Iterator[tuple[int, list[Read]]]:
        """Play the history; after each read yield the reader, and what it was given."""
        for what, first, second in history:
            if what == "insert":
                self.insert(first, second)
            elif what == "slack":
                self.gate.set_rule(rule(first))
            else:
                found = read(self.gate, first, limit=second) or []
                yield first, found
                self.read[first] += found

    def finish(self) -> None:
        for writer in range(WRITERS):
            put(self.gate, writer, None, promise_ns=END_NS)
        for reader in range(READERS):
            self.read[reader] += read_all(self.gate, reader)

    @property
    def is_compatible(self) -> bool:
        """SLT-compatible: max_ts − merge_ts ≤ SLT."""
        gate, slack_ns = self.gate, self.gate.rule.lead_ns
        return slack_ns is None or gate.newest_ns - gate.frontier_ns <= slack_ns


@given(ONE_SLACK, SLACK)
def test_property_1_nothing_is_slack_ready_while_the_streams_are_within_the_slack(
    history: list[Any], slack: int
) -> None:
    play = Play(slack)
    for _, found in play.steps(history):
        if play.is_compatible:
            assert not any(one.is_slack_ready for one in found)


@given(CHANGING_SLACK, SLACK)
def test_property_1_holds_of_what_is_on_time_when_the_slack_changes(
    history: list[Any], slack: int
) -> None:
    """What is late may have been queued under a smaller slack, and not be ready by now."""
    play = Play(slack)
    for _, found in play.steps(history):
        if play.is_compatible:
            assert not any(one.is_slack_ready for one in found if not one.is_late)


@given(CHANGING_SLACK, SLACK)
def test_property_2_what_is_late_came_behind_something_slack_ready(
    history: list[Any], slack: int
) -> None:
    play = Play(slack)
    for reader, found in play.steps(history):
        before = [one for one in play.read[reader] if one.is_slack_ready and not one.is_late]
        for late in found:
            assert not late.is_late or any(one.event > late.event for one in before)


@given(ONE_SLACK, SLACK)
def test_property_3_what_is_late_is_slack_ready_and_checked_again_for_readiness(
    history: list[Any], slack: int
) -> None:
    play = Play(slack)
    for _, found in play.steps(history):
        frontier = min((promise, writer) for writer, promise in enumerate(play.last))
        for late in (one for one in found if one.is_late):
            assert play.gate.newest_ns - late.event.ts > slack
            assert late.is_slack_ready == ((late.event.ts, late.event.writer) > frontier)


@given(ONE_SLACK, SLACK, STEPS)
def test_theorem_5_3_after_a_disturbance_the_gate_is_as_one_that_reads_only_ready(
    disturbance: list[Any], slack: int, steps: list[tuple[int, int]]
) -> None:
    check_steady_after(disturbance, slack, steps, catch_up=0)


@given(CHANGING_SLACK, SLACK, STEPS)
def test_theorem_5_3_holds_though_the_slack_changed_once_merge_ts_is_past_what_was_read(
    disturbance: list[Any], slack: int, steps: list[tuple[int, int]]
) -> None:
    check_steady_after(disturbance, slack, steps, catch_up=1)


def check_steady_after(
    disturbance: list[Any], slack: int, steps: list[tuple[int, int]], *, catch_up: int
) -> None:
    play = Play(slack)
    for _ in play.steps(disturbance):
        pass
    play.gate.set_rule(rule(slack))
    # Every writer catches up, the queues empty; what follows stays within the slack.
    newest = max(0, *play.last) + catch_up
    for writer in range(WRITERS):
        play.insert(writer, [newest - max(0, play.last[writer])])
    twin = Play.fresh(None)
    for event in play.inserted:
        insert(twin, [event])
    for reader in range(READERS):
        play.read[reader] += read_all(play.gate, reader)
        read_all(twin, reader)
    for n, (wanted, step) in enumerate(steps):
        writer, gap = wanted, step
        if play.last[writer] + gap - min(play.last) > slack:
            writer = play.last.index(min(play.last))
            gap = max(play.last) - play.last[writer]
        insert(twin, play.insert(writer, [gap]))
        assert play.is_compatible
        found = read_all(play.gate, n % READERS, limit=1 + n % 3)
        assert found == read_all(twin, n % READERS)
        assert not any(one.is_slack_ready or one.is_late for one in found)


def test_steady_state_comes_when_merge_ts_passes_what_was_read_however_the_slack_grows() -> None:
    """The proof wants one slack. A larger one makes a history compatible before it is steady."""
    gate = SlackGate([Writer(0, 0), Writer(0, 1)], rule=rule(2))
    insert(gate, [Event(0, 1, 0)])
    insert(gate, [Event(4, 0, 0), Event(8, 0, 1)])
    first, second = read_all(gate)
    assert (first.is_slack_ready, second.is_slack_ready) == (False, True)
    gate.set_rule(rule(100))
    insert(gate, [Event(3, 1, 1)])
    # merge_ts is 3 and max_ts 8: compatible with 100, and yet behind what was read at 4.
    assert gate.newest_ns - gate.frontier_ns <= 100
    assert read_all(gate) == [Read(Event(3, 1, 1), is_slack_ready=False, is_late=True)]
    insert(gate, [Event(5, 1, 2)])
    assert read_all(gate) == [Read(Event(5, 1, 2), is_slack_ready=False, is_late=False)]


@given(CHANGING_SLACK, st.none() | SLACK)
def test_each_reader_has_each_event_once_and_a_writers_events_in_order(
    history: list[Any], slack: int | None
) -> None:
    play = Play(slack)
    for _ in play.steps(history):
        pass
    play.finish()
    for seen in play.read:
        events = [one.event for one in seen]
        assert sorted(events) == sorted(play.inserted)
        for writer in range(WRITERS):
            own = [event.number for event in events if event.writer == writer]
            assert own == sorted(own)
    assert play.gate.is_ended
    for reader, seen in enumerate(play.read):
        counts = play.gate.counts(reader)
        assert counts.ready + counts.slack_ready + counts.late == len(seen)


@given(CHANGING_SLACK, st.none() | SLACK)
def test_what_one_reader_reads_does_not_depend_on_the_others(
    history: list[Any], slack: int | None
) -> None:
    both, alone = Play(slack), Play(slack)
    for _ in both.steps(history):
        pass
    for _ in alone.steps([one for one in history if one[:2] != ("read", 1)]):
        pass
    assert both.read[0] == alone.read[0]


@given(CHANGING_SLACK, st.none() | SLACK)
def test_on_time_rows_leave_in_order_and_never_behind_the_watermark(
    history: list[Any], slack: int | None
) -> None:
    play = Play(slack)
    watermark_ns, last = START_NS, Event(START_NS, 0, 0)
    for what, first, second in history:
        if what == "insert":
            play.insert(first, second)
        elif what == "slack":
            play.gate.set_rule(rule(first))
        elif (released := play.gate.read(0, limit=second)) is not None:
            rows = events_of(released.ports[0])
            assert [last, *rows] == sorted([last, *rows])
            assert all(watermark_ns <= row.ts <= released.watermark_ns for row in rows)
            assert released.watermark_ns >= watermark_ns
            watermark_ns, last = released.watermark_ns, rows[-1] if rows else last
