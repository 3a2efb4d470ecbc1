"""How long rows wait in a gate: Eq. 1 of [ssg], beside a log that keeps row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge import SlackGate, WaitLog, Writer
from slackwater.runtime.model import END_NS, START_NS, Batch, batch_of
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.schedule.stage_sampler import ReadLog
from tests.support.examples import twice
from tests.support.rules import rule
from tests.support.told import put


@dataclass
class RowByRow:
    """The reference: each row and when it came, one by one."""

    came: dict[int, int] = field(default_factory=dict)  # {row: when}, of those held
    time: dict[int, int] = field(default_factory=dict)  # {row: event time}

    def add(self, rows: list[int], times: list[int], came_ns: int) -> None:
        self.came |= dict.fromkeys(rows, came_ns)
        self.time |= dict(zip(rows, times, strict=True))

    def left(self, rows: list[int]) -> int | None:
        return min((self.came.pop(row) for row in rows), default=None)

    def oldest_ns(self) -> int | None:
        return min(self.came.values(), default=None)

    def due(self, until_ns: int) -> int | None:
        times = [self.time[row] for row, came_ns in self.came.items() if came_ns <= until_ns]
        return max(times, default=None)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[bool], list[tuple[str, int, list[int]]]]:
    """Return (which writers are mixed, steps: (what, writer or number, times))."""
    is_mixed = draw(st.lists(st.booleans(), min_size=2, max_size=3))
    step = st.one_of(
        st.tuples(
            st.just("rows"),
            st.integers(0, len(is_mixed) - 1),
            st.lists(st.integers(0, 30), min_size=1, max_size=4),
        ),
        st.tuples(st.just("promise"), st.integers(0, len(is_mixed) - 1), st.just([])),
        st.tuples(st.just("slack"), st.integers(-1, 20), st.just([])),
        st.tuples(st.just("ready-only"), st.just(0), st.just([])),
        st.tuples(st.just("limit"), st.integers(1, 6), st.just([])),
        st.tuples(st.just("hold"), st.integers(0, 8), st.just([])),
        st.tuples(st.just("read"), st.just(0), st.just([])),
    )
    return is_mixed, draw(st.lists(step, max_size=40))


@twice
@given(run=runs())
def test_any_run_gives_the_waits_that_a_log_row_by_row_gives(  # noqa: PLR0915 - one story
    run: tuple[list[bool], list[tuple[str, int, list[int]]]],
) -> None:
    is_mixed, steps = run
    writers = [Writer(0, rank, mixed) for rank, mixed in enumerate(is_mixed)]
    gate, reference = SlackGate(writers, keeps_waits=True), RowByRow()
    newest, number, limit = [0] * len(is_mixed), 0, None
    slack: int | None = None
    hold: int | None = None
    for now_ns, (what, at, times) in enumerate([*steps, ("read", 0, [])]):
        if what == "slack":
            slack = at
        elif what == "ready-only":
            slack = None
        elif what == "limit":
            limit = at
        elif what == "hold":
            hold = at
        elif what == "promise":
            put(gate, at, None, promise_ns=newest[at] + 1)
        elif what == "rows":
            # In order a writer goes on from where it was; a mixed one may send anything.
            own = times if is_mixed[at] else sorted(newest[at] + one // 4 for one in times)
            rows = list(range(number, number + len(own)))
            number += len(own)
            batch = batch_of(own, {"row": rows}, now_ns)
            batch = of_two(batch) if is_mixed[at] else batch
            put(gate, at, batch, promise_ns=newest[at], came_ns=now_ns)
            newest[at] = max(newest[at], *own)
            reference.add(rows, own, now_ns)
        gate.set_rule(rule(slack, hold_ns=hold))
        due_ns = None if hold is None else reference.due(now_ns - hold)
        may_release = gate.may_release()
        in_order: list[int] = []
        late: list[int] = []
        since: list[int] = []
        # A limit may keep late rows back: the stage then reads again before anything else.
        while (released := gate.read(limit=limit, now_ns=now_ns)) is not None:
            in_order += rows_of(released.ports)
            late += rows_of(released.late)
            came_ns = gate.left_since_ns
            since += [] if came_ns is None else [came_ns]
            if in_order or not late:
                break
        assert min(since, default=None) == reference.left(in_order + late)
        if due_ns is None:
            assert may_release == bool(in_order)
        oldest_ns = reference.oldest_ns()
        assert gate.waiting_since_ns == oldest_ns
        ends_ns = None if oldest_ns is None or hold is None else oldest_ns + hold
        assert gate.hold_ends_ns() == ends_ns
    copy = SlackGate(writers, keeps_waits=True)
    restore(copy, save(gate))
    assert copy.waiting_since_ns == gate.waiting_since_ns
    for one in (copy, gate):
        for writer in range(len(writers)):
            put(one, writer, None, promise_ns=END_NS)
        one.read()
    assert (copy.left_since_ns, copy.waiting_since_ns) == (gate.left_since_ns, None)


def rows_of(parts: Sequence[Batch | None]) -> list[int]:
    return [row for part in parts if part is not None for row in part.columns["row"].tolist()]


def of_two(batch: Batch) -> Batch:
    """Give rows to two writers in turn, the second first."""
    writers = 1 - np.arange(len(batch)) % 2
    return Batch(
        event_time_ns=batch.event_time_ns,
        stimulus_time_ns=batch.stimulus_time_ns,
        columns=batch.columns,
        writers=writers,
    )


def rows(*times: int) -> Batch:
    return batch_of(list(times), {"row": list(times)}, 0)


NOTHING_SEEN = (START_NS, -1, 0)


def test_a_row_that_leaves_at_its_own_frontier_has_not_waited_for_the_next_one() -> None:
    log = WaitLog()
    log.add(0, rows(100), 1_000, is_mixed=False, last_key=NOTHING_SEEN)
    assert log.left((100, 1)) == 1_000  # of one writer, its own newest row is ready
    assert log.oldest_ns() is None
    log.add(0, rows(200), 5_000, is_mixed=False, last_key=(100, 0, 0))
    assert log.left((200, 1)) == 5_000


def test_a_late_row_leaves_with_the_next_read_wherever_that_cuts() -> None:
    log = WaitLog()
    log.add(0, rows(50), 7, is_mixed=False, last_key=(60, 0, 0))
    assert log.oldest_ns() is None
    restored = WaitLog()
    restore(restored, save(log))
    assert restored.left((START_NS, 0)) == 7
    assert log.left((START_NS, 0)) == 7
    assert log.left((END_NS, 1)) is None


def test_of_rows_at_the_time_last_seen_those_of_earlier_writers_are_late() -> None:
    log = WaitLog()
    log.add(1, of_two(rows(60, 60, 70)), 7, is_mixed=True, last_key=(60, 1, 1))
    assert [times.tolist() for _, _, times in log.held()] == [[60, 70]]
    log.add(1, of_two(rows(60, 60)), 8, is_mixed=True, last_key=(60, 0, 1))
    assert [times.tolist() for _, _, times in log.held()] == [[60, 70], [60, 60]]


def test_memory_stays_bounded_behind_a_row_far_in_the_future() -> None:
    log = WaitLog()
    log.add(0, rows(10**9), 0, is_mixed=True, last_key=NOTHING_SEEN)
    sizes = []
    for now in range(1, 20_000):
        log.add(0, rows(now), now, is_mixed=True, last_key=(now - 1, 0, 0))
        log.left((now + 1, 0))
        sizes.append(len(log._by_coming))
    assert max(sizes) < 1_000
    assert log.oldest_ns() == 0
    assert log.due(0) == 10**9
    assert [(came, times.tolist()) for came, _, times in log.held()] == [(0, [10**9])]


def test_times_of_a_message_are_not_changed_by_sorting_them() -> None:
    log, batch = WaitLog(), rows(3, 1, 2)
    log.add(0, batch, 0, is_mixed=True, last_key=NOTHING_SEEN)
    assert np.array_equal(batch.event_time_ns, [3, 1, 2])


def test_a_replica_goes_on_with_reads_from_a_snapshot_and_a_cut_one_waits_to_its_end() -> None:
    log = ReadLog()
    for number, came_ns in ((1, 10), (2, 30), (2, 20), (3, 40)):
        log.add(number, came_ns)
    assert log.left(unread=3, held=2) == 10
    restored = ReadLog()
    restore(restored, save(log))
    assert restored.oldest_ns() == 30
    assert restored.left(unread=3, held=3) == 30
    assert restored.oldest_ns() == 40
    assert restored.left(unread=3, held=3) is None
