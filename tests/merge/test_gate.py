"""The gate: one order for every interleaving, mixed writers, silence, ends, restoring."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import SettingError
from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import END_NS, Batch, Progress, ReleaseRule, batch_of
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from tests.support.rules import rule
from tests.support.told import put

Row = tuple[int, int, int]  # (event time, writer, number within the writer)


def rows_of(batch: Batch | None) -> list[Row]:
    if batch is None:
        return []
    columns = (batch.event_time_ns, batch.columns["writer"], batch.columns["number"])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def make_batch(rows: list[Row]) -> Batch:
    return batch_of(
        [row[0] for row in rows],
        {"writer": [row[1] for row in rows], "number": [row[2] for row in rows]},
    )


def read_all(gate: SlackGate, reader: int, limit: int | None) -> list[tuple[Row, str]]:
    seen: list[tuple[Row, str]] = []
    while (released := gate.read(reader, limit=limit)) is not None:
        seen += [(row, "late") for batch in released.late for row in rows_of(batch)]
        rows = sorted(row for batch in released.ports for row in rows_of(batch))
        assert rows == [row for batch in released.ports for row in rows_of(batch)]
        seen += [(row, "on time") for row in rows]
    return seen


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
)
def test_ready_only_gives_one_order_for_every_interleaving(gaps: list[list[int]], rng: Any) -> None:
    streams: list[list[Row]] = []
    for writer, own in enumerate(gaps):
        times = np.cumsum(own).tolist()
        streams.append([(t, writer, n) for n, t in enumerate(times)])
    gate = SlackGate([Writer(0, rank) for rank in range(len(gaps))])
    out: list[Row] = []
    left = [list(stream) for stream in streams]
    open_writers = list(range(len(gaps)))
    while open_writers:
        writer = rng.choice(open_writers)
        rows, left[writer] = left[writer][: (n := rng.randrange(4))], left[writer][n:]
        if rows:
            put(gate, writer, make_batch(rows), promise_ns=rows[-1][0])
        if not left[writer]:
            put(gate, writer, None, promise_ns=END_NS)
            open_writers.remove(writer)
        if rng.random() < 0.7:
            out += [row for row, _ in read_all(gate, 0, rng.choice([None, 2]))]
    out += [row for row, _ in read_all(gate, 0, None)]
    assert out == sorted(row for stream in streams for row in stream)
    assert gate.counts().slack_ready == gate.counts().late == 0


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=9),
    st.sampled_from([None, 1, 3]),
)
def test_rows_of_a_mixed_writer_are_sorted_within_its_promise(
    polls: list[list[int]], limit: int | None
) -> None:
    gate = SlackGate([Writer(0, 1 << 48, is_mixed=True), Writer(0, 2 << 48)])
    out: list[Row] = []
    rows: list[Row] = []
    for poll, ages in enumerate(polls):
        times = [10 * poll + age for age in ages]
        batch = make_batch([(t, 0, len(rows) + n) for n, t in enumerate(times)])
        batch = batch.with_(
            writers=np.asarray([(1 << 48) + age % 3 for age in ages], dtype=np.int64)
        )
        rows += [
            (t, int(w), len(rows) + n)
            for n, (t, w) in enumerate(zip(times, batch.writers, strict=True))
        ]
        put(gate, 0, batch, promise_ns=10 * poll)
        put(gate, 1, None, promise_ns=10 * poll + 5)
        out += [row for row, _ in read_all(gate, 0, limit)]
    put(gate, 0, None, promise_ns=END_NS)
    put(gate, 1, None, promise_ns=END_NS)
    out += [row for row, _ in read_all(gate, 0, limit)]
    assert [(t, n) for t, _, n in out] == [(t, n) for t, _, n in sorted(rows)]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=5), max_size=12),
    st.sampled_from([None, -1, 0, 3]),
    st.booleans(),
)
def test_a_batch_of_a_mixed_writer_means_the_same_as_its_events(
    polls: list[list[tuple[int, int]]], slack: int | None, has_writers: bool
) -> None:
    """Two mixed writers take turns; a read follows each poll, on time or late."""
    together, apart = (
        SlackGate([Writer(0, 0, True), Writer(0, 1 << 48, True)], rule=rule(slack))
        for _ in range(2)
    )
    number = 0
    for poll, rows in enumerate(polls):
        writer, promise_ns = poll % 2, 2 * poll
        batch = make_batch(
            [(2 * poll + age, writer, number + n) for n, (age, _) in enumerate(rows)]
        )
        number += len(rows)
        if has_writers:
            own = [(writer << 48) + own for _, own in rows]
            batch = batch.with_(writers=np.asarray(own, dtype=np.int64))
        put(together, writer, batch, promise_ns=promise_ns)
        for n in range(len(rows)):
            put(apart, writer, batch.slice(n, n + 1), promise_ns=promise_ns)
        put(apart, writer, None, promise_ns=promise_ns)
        assert together.rows_held == apart.rows_held
        one, other = together.read(), apart.read()
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert rows_of(one.late[0]) == rows_of(other.late[0])
            assert rows_of(one.ports[0]) == rows_of(other.ports[0])
            assert one.watermark_ns == other.watermark_ns
    for count in ("rows", "ready", "slack_ready", "late", "late_ready"):
        assert getattr(together.counts(), count) == getattr(apart.counts(), count)


def test_only_the_rows_behind_what_was_read_are_late() -> None:
    gate = SlackGate([Writer(0, 0), Writer(0, 1)], rule=rule(-1))
    put(gate, 0, batch_of([5]), promise_ns=5)
    assert gate.read() is not None
    # Of time 5, writer 1 comes after what was read, and so does its next row.
    put(gate, 1, batch_of([3, 4, 5, 6]), promise_ns=6)
    released = gate.read()
    assert released is not None
    assert released.late[0] is not None
    assert released.late[0].event_time_ns.tolist() == [3, 4]
    assert released.ports[0] is not None
    assert released.ports[0].event_time_ns.tolist() == [5, 6]
    assert gate.counts().late == 2


@pytest.mark.parametrize("is_mixed", [False, True])
def test_the_last_nanosecond_leaves_at_the_end(is_mixed: bool) -> None:
    gate = SlackGate([Writer(0, 0, is_mixed), Writer(0, 1, is_mixed)])
    for writer in (0, 1):
        put(gate, writer, batch_of([END_NS - 2, END_NS - 1]), promise_ns=END_NS - 2)
    first = gate.read()
    for writer in (0, 1):
        put(gate, writer, None, promise_ns=END_NS)
    second = gate.read()
    assert second is not None
    got = [len(read.ports[0] or ()) for read in (first, second) if read is not None]
    assert got == ([0, 4] if is_mixed else [1, 3])
    assert gate.is_ended


def test_gate_holds_a_tuple_until_every_writer_has_passed_it() -> None:
    gate = SlackGate([Writer(0, 0), Writer(0, 1)])
    put(gate, 0, batch_of([1, 4, 9]), promise_ns=9)
    assert gate.read() is None
    put(gate, 1, batch_of([2]), promise_ns=8)
    released = gate.read()
    assert released is not None
    assert released.ports[0] is not None
    assert released.ports[0].event_time_ns.tolist() == [1, 2, 4]
    assert released.watermark_ns == 8
    assert gate.holders() == [1]


def test_an_idle_writer_holds_nobody_back_until_it_speaks() -> None:
    gate = SlackGate([Writer(0, 0), Writer(0, 1)])
    put(gate, 0, batch_of([5]), promise_ns=5)
    gate.mark_idle(1)
    released = gate.read()
    assert released is not None
    assert len(released.ports[0] or ()) == 1
    put(gate, 1, batch_of([3]), promise_ns=3)
    again = gate.read()
    assert again is not None
    assert again.late[0] is not None
    assert gate.counts().late == 1


@pytest.mark.parametrize("writers", [2, 20])
@pytest.mark.parametrize("slack", [None, 2])
def test_a_limit_of_one_gives_the_rows_one_by_one_ties_too(writers: int, slack: int | None) -> None:
    gate = SlackGate([Writer(0, rank) for rank in range(writers)], rule=rule(slack))
    rows = [[(t, w, n) for n, t in enumerate((3, 5, 5, 9))] for w in (0, 1)]
    for own in rows:
        put(gate, own[0][1], make_batch(own), promise_ns=9)
    for writer in range(2, writers):
        put(gate, writer, None, promise_ns=END_NS)
    single = []
    while (released := gate.read(limit=1)) is not None:
        single += [rows_of(released.ports[0])] if released.ports[0] is not None else []
    # What a writer repeats cannot be divided; the last 9 waits for another of writer 0.
    first, second = rows
    assert single == [first[:1], second[:1], first[1:3], second[1:3], first[3:]]


def test_a_join_gate_keeps_its_ports_apart_and_breaks_ties_by_port() -> None:
    gate = SlackGate([Writer(0, 0), Writer(1, 1)])
    put(gate, 1, batch_of([5], {"side": ["right"]}), promise_ns=5)
    put(gate, 0, batch_of([5], {"side": ["left"]}), promise_ns=5)
    released = gate.read()
    assert released is not None
    # The left row of time 5 is ready; the right one waits: left may still repeat time 5.
    assert [len(batch or ()) for batch in released.ports] == [1, 0]


def test_slack_out_of_range_is_refused() -> None:
    with pytest.raises(SettingError, match="slack_ns=-2 must be"):
        SlackGate([Writer(0, 0)], rule=rule(-2))


def test_a_gate_that_waits_in_full_is_a_k_slack_buffer() -> None:
    gate = SlackGate([Writer(0, 0), Writer(0, 1)])
    gate.set_rule(ReleaseRule.in_full(3))
    put(gate, 0, batch_of([1, 5], {}, 0), promise_ns=5)
    put(gate, 1, batch_of([2, 5], {}, 0), promise_ns=5)
    released = gate.read()
    assert released is not None
    assert released.ports[0] is not None
    assert released.ports[0].event_time_ns.tolist() == [1]  # 2 is ready, and 3 old: not more
    assert released.watermark_ns == 2
    put(gate, 0, None, promise_ns=END_NS)
    assert gate.read() is None  # an end of one is no news of time
    put(gate, 1, None, promise_ns=END_NS)
    released = gate.read()
    assert released is not None
    assert released.ports[0] is not None
    assert released.ports[0].event_time_ns.tolist() == [2, 5, 5]
    assert gate.is_ended


def test_a_frontier_that_comes_on_is_told_though_all_rows_have_left_by_their_slack() -> None:
    gate = SlackGate([Writer(0, 0), Writer(0, 1)], rule=rule(-1))
    put(gate, 0, batch_of([100], {}), promise_ns=100)
    put(gate, 1, batch_of([80], {}), promise_ns=80)
    first = gate.read()
    assert first is not None
    assert (first.watermark_ns, first.progress.promise_ns) == (100, 80)
    put(gate, 1, None, promise_ns=95)
    told = gate.read()
    assert told is not None
    assert (told.ports, told.watermark_ns, told.progress.promise_ns) == ([None], 100, 95)
    assert gate.read() is None


@pytest.mark.parametrize("writers", [1, 2, 40])
def test_a_read_of_long_runs_keeps_its_limit_nearly_in_full(writers: int) -> None:
    gate = SlackGate([Writer(0, rank) for rank in range(writers)])
    chance = np.random.default_rng(7)
    rows, limit = 40_000 // writers, 10_000
    for writer in range(writers):
        times = np.sort(chance.integers(0, 10**9, rows)).tolist()
        batch = make_batch([(time, writer, number) for number, time in enumerate(times)])
        gate.insert(writer, batch, Progress(END_NS, 0, times[-1]))
    reads: list[list[Row]] = []
    while (released := gate.read(limit=limit)) is not None:
        reads.append(rows_of(released.ports[0]))
    left = [row for own in reads for row in own]
    assert len(left) == rows * writers
    assert left == sorted(left)
    for own in reads[:-1]:
        assert limit * 7 // 8 <= len(own) <= limit


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=12), min_size=2, max_size=20),
    st.randoms(use_true_random=False),
)
def test_rows_merged_for_reads_to_come_keep_their_order_through_a_restore(
    gaps: list[list[int]], rng: Any
) -> None:
    """Three ports; the middle one is of one writer, whose rows are not merged ahead."""
    ports = [1 if w == 1 else 2 * (w % 2) for w in range(len(gaps))]
    writers = [Writer(port, rank) for rank, port in enumerate([*ports, 1][: len(gaps)])]
    streams = [
        [(t, w, n) for n, t in enumerate(np.cumsum(own).tolist())] for w, own in enumerate(gaps)
    ]
    gate = SlackGate(writers)
    out: dict[int, list[Row]] = {}
    reads: list[list[Row]] = []

    def read(limit: int | None) -> None:
        while (released := gate.read(limit=limit)) is not None:
            reads.append([])
            for port, batch in enumerate(released.ports):
                out.setdefault(port, []).extend(rows_of(batch))
                reads[-1] += rows_of(batch)

    left = [list(stream) for stream in streams]
    while any(left):
        writer = rng.choice([w for w, own in enumerate(left) if own])
        rows, left[writer] = left[writer][: (n := 1 + rng.randrange(4))], left[writer][n:]
        promise_ns = rows[-1][0] if left[writer] else END_NS
        put(gate, writer, make_batch(rows), promise_ns=promise_ns)
        if rng.random() < 0.5:
            released = gate.read(limit=rng.choice([1, 2, 3, 8]))
            for port, batch in enumerate([] if released is None else released.ports):
                out.setdefault(port, []).extend(rows_of(batch))
            other = SlackGate(writers)
            restore(other, from_plain(to_plain(save(gate))))
            assert canonical_rows(other) == canonical_rows(gate)
            gate = other
    for writer, own in enumerate(streams):
        if not own:
            put(gate, writer, None, promise_ns=END_NS)
    read(rng.choice([2, 5, None]))
    assert gate.is_ended
    for port, rows in out.items():
        assert rows == sorted(
            r for w, own in enumerate(streams) if writers[w].port == port for r in own
        )
    for earlier, later in itertools.pairwise(read for read in reads if read):
        assert max(row[0] for row in earlier) <= min(row[0] for row in later)


def canonical_rows(gate: SlackGate) -> list[Row]:
    return sorted(row for batch in gate.held() for row in rows_of(batch))


def test_ready_rows_of_many_writers_are_merged_once_for_several_reads() -> None:
    gate = SlackGate([Writer(0, rank) for rank in range(20)])
    for writer in range(20):
        rows = [(10 * number + writer, writer, number) for number in range(100)]
        put(gate, writer, make_batch(rows), promise_ns=END_NS)
    reads = [rows_of(read.ports[0]) for _ in range(20) if (read := gate.read(limit=150))]
    assert [row for read in reads for row in read] == sorted(row for read in reads for row in read)
    assert max(map(len, reads)) <= 150
    bases = {id(batch.event_time_ns.base) for batch in gate.held()}
    assert len(bases) <= 1, "one result of one merge, not a part of each writer's"


def test_a_row_older_than_its_writer_promised_leaves_before_newer_ones_that_are_ready() -> None:
    """Nothing of such a writer is merged ahead: what is ready is not all that may come."""
    gate = SlackGate([Writer(0, 0, may_be_late=True), Writer(0, 1)])
    put(gate, 0, make_batch([(t, 0, t) for t in (1, 2, 30, 40)]), promise_ns=50)
    put(gate, 1, make_batch([(t, 1, t) for t in (3, 31, 41, 47)]), promise_ns=50)
    first = gate.read(limit=2)
    assert first is not None
    assert rows_of(first.ports[0]) == [(1, 0, 1), (2, 0, 2)]
    gate.insert(0, make_batch([(45, 0, 45)]), Progress(50, 0, 47))
    rest = [row[0] for row, _ in read_all(gate, 0, 2)]
    assert rest == [3, 30, 31, 40, 41, 45, 47]
