"""Windows that late rows correct, and the rows that could not count: behind a real gate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.merge import SlackGate, Writer
from slackwater.runtime.model import END_NS, Batch, GateRead, Int64Array
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.aggregate.cells import PaneCells
from slackwater.runtime.operators.aggregate.machine import AggregateMachine
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.aggregate.window import Windows
from slackwater.runtime.operators.aggregate.written import Aggregate, Window
from slackwater.runtime.operators.ground.codes import IntCodes
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.registry.operators import make_operator
from tests.support.rules import rule
from tests.support.told import gate_read, put

TIMES = pa.timestamp("ns")
COUNTS = AggregateStep(
    name="counts",
    inputs=("rows",),
    schema=pa.schema(
        {
            "line": pa.int64(),
            "window_start": TIMES,
            "window_end": TIMES,
            "n": pa.int64(),
            "total": pa.int64(),
            "revision": pa.int64(),
        }
    ),
    keys=("line",),
    window=Window(10, 10),
    aggregates={"n": Aggregate("count"), "total": Aggregate("sum", "value")},
    release=rule(0),
    late="correct",
    keeps_late=True,
)

WINDOWS = pytest.mark.parametrize("window", [Window(10, 10), Window(12, 4)], ids=str)


def rows_of(times: list[int]) -> Batch:
    """Return a row at each time; its value is unlike all others'."""
    at = np.array(times, dtype=np.int64)
    values = np.array([1 << (t % 60) for t in times], dtype=np.int64)
    return Batch(event_time_ns=at, stimulus_time_ns=at, columns={"line": at % 3, "value": values})


def reads(random: Random, *, slack_ns: int | None) -> tuple[list[int], list[GateRead]]:
    """Return all event times that three writers send, as they take turns, and what a gate reads.

    What follows a promise is never older than it; the last writer is often far behind.
    """
    gate = SlackGate([Writer(0, rank) for rank in range(3)], rule=rule(slack_ns))
    at, sent, found = [0, 0, 0], [], []
    for _ in range(random.randint(1, 30)):
        writer = random.choice([0, 0, 0, 1, 1, 2])
        times = sorted(at[writer] + random.randint(0, 9) for _ in range(random.randint(0, 4)))
        at[writer] = (times or at)[-1] + random.randint(0, 6) if times else at[writer]
        sent += times
        put(gate, writer, rows_of(times) if times else None, promise_ns=at[writer])
        while (read := gate.read(limit=random.choice([1, 3, 100]))) is not None:
            found.append(read)
    for writer in range(3):
        put(gate, writer, None, promise_ns=END_NS)
    while (read := gate.read()) is not None:
        found.append(read)
    return sent, found


def leaves(step: AggregateStep, read: list[GateRead]) -> Iterator[tuple[int, ...]]:
    """Yield (window_end, line, n, total, revision) of each row that leaves."""
    machine = make_operator(step)
    promise_ns = -(2**63)
    for released in read:
        batch, following_ns, *_ = machine.work(released, now_ns=0)
        if batch is not None:
            assert batch.event_time_ns.min() >= promise_ns, "it breaks its promise"
            names = ("window_end", "line", "n", "total", "revision")
            yield from zip(*(batch.columns[name].tolist() for name in names), strict=True)
        promise_ns = following_ns
        again = make_operator(step)
        restore(again, save(machine))
        machine = again
    assert machine.rows_held == 0


def expected(times: list[int], window: Window) -> dict[tuple[int, int], tuple[int, int]]:
    """Return {(window_end, line): (n, total)} over all rows, one at a time."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for t in times:
        for k in range((t - window.size_ns) // window.slide_ns + 1, t // window.slide_ns + 1):
            key = (k * window.slide_ns + window.size_ns, t % 3)
            n, total = found.get(key, (0, 0))
            found[key] = (n + 1, total + (1 << (t % 60)))
    return found


@WINDOWS
@given(random=st.randoms(use_true_random=False), slack_ns=st.sampled_from([-1, 0, 3, 20, None]))
def test_the_last_revision_of_a_window_counts_every_row_that_was_promised(
    window: Window, random: Random, slack_ns: int | None
) -> None:
    sent, read = reads(random, slack_ns=slack_ns)
    last: dict[tuple[int, int], tuple[int, int]] = {}
    revisions: dict[tuple[int, int], list[int]] = {}
    for end, line, n, total, revision in leaves(replace(COUNTS, window=window), read):
        last[end, line] = (n, total)
        revisions.setdefault((end, line), []).append(revision)
    assert last == expected(sent, window)
    assert all(found == list(range(len(found))) for found in revisions.values())
    if slack_ns is None:
        assert all(found == [0] for found in revisions.values())


@WINDOWS
@given(random=st.randoms(use_true_random=False), slack_ns=st.sampled_from([-1, 0, 3, 20, None]))
def test_late_rows_are_those_that_miss_a_window(
    window: Window, random: Random, slack_ns: int | None
) -> None:
    sent, read = reads(random, slack_ns=slack_ns)
    step = replace(COUNTS, window=window, late="drop", schema=COUNTS.schema.remove(5))
    machine = make_operator(step)
    counted: dict[tuple[int, int], int] = {}
    missed, late = 0, []
    for released in read:
        result = machine.work(released, now_ns=0)
        batch = result.rows
        if batch is not None:
            ends, lines, n = (batch.columns[c].tolist() for c in ("window_end", "line", "n"))
            counted.update(zip(zip(ends, lines, strict=True), n, strict=True))
        late += result.late
    for key, (n, _) in expected(sent, window).items():
        missed += n - counted.get(key, 0)
    dropped = sum(int(one.is_dropped.sum()) for one in late)
    assert dropped == machine.late_dropped
    assert all((one.late_by_ns > 0).all() for one in late)
    rows = sum(len(one.batch) for one in late)
    assert rows <= missed <= rows * (window.size_ns // window.slide_ns)
    assert (rows == 0) == (missed == 0)


JOIN = JoinStep(
    name="pairs",
    inputs=("a", "b"),
    schema=pa.schema({"line": pa.int64(), "value": pa.int64(), "other": pa.int64()}),
    left_on=("line",),
    right_on=("line",),
    within_ns=5,
    where=None,
    right_names={"value": "other"},
    release=rule(-1),
    keeps_late=True,
)


def test_a_join_names_the_rows_that_missed_partners_and_those_that_found_none() -> None:
    machine = make_operator(replace(JOIN, keep="slack"))
    none: list[Batch | None] = [None, None]
    assert machine.work(gate_read([rows_of([0, 20]), None], none, 20, 0, 0), now_ns=0).late == []
    (late,) = machine.work(gate_read(none, [None, rows_of([3, 16])], 20, 0, 0), now_ns=0).late
    assert (late.port, late.batch.event_time_ns.tolist()) == (1, [3, 16])
    assert late.late_by_ns.tolist() == [17, 4]
    assert late.is_dropped.tolist() == [True, False]
    assert machine.work(gate_read(none, none, 20, 0, 0), now_ns=0).late == []
    assert machine.late_dropped == 1


def test_a_join_that_keeps_rows_by_promise_has_no_late_ones_within_it() -> None:
    machine = make_operator(JOIN)
    none: list[Batch | None] = [None, None]
    machine.work(gate_read([rows_of([0, 20]), None], none, 20, 0, 0), now_ns=0)
    result = machine.work(gate_read(none, [None, rows_of([3])], 20, 0, 0), now_ns=0)
    assert result.rows is not None
    assert result.late == []


def test_beyond_most_kept_rows_the_oldest_closed_windows_are_final_and_that_is_counted() -> None:
    machine = make_operator(COUNTS, most_kept_rows=24)
    assert isinstance(machine, AggregateMachine)
    none: list[Batch | None] = [None]
    for start in range(0, 100, 10):
        machine.work(
            gate_read([rows_of(list(range(start, start + 10)))], none, start, 0, 0), now_ns=0
        )
        assert machine.rows_held <= 24
    assert machine.dropped_early == 80
    machine.work(gate_read(none, [rows_of([75])], 90, 0, 0), now_ns=0)
    machine.work(gate_read(none, [rows_of([85])], 90, 0, 0), now_ns=0)
    assert machine.late_dropped == 1
    assert machine.rows_held == 21


@pytest.mark.parametrize(("window", "beside"), [(Window(10, 10), 1), (Window(20, 10), 3)], ids=str)
def test_a_read_looks_at_what_it_changes_and_not_at_all_that_is_kept(
    window: Window, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, windows = 100, 50
    machine = make_operator(replace(COUNTS, window=window))

    def read(times: list[int], line: list[int], *, upto: int, final: int = 0) -> int:
        at = np.array(times, dtype=np.int64)
        rows = Batch(
            event_time_ns=at,
            stimulus_time_ns=at,
            columns={"line": np.array(line), "value": np.ones(len(at), np.int64)},
        )
        left = machine.work(
            gate_read((None,), (rows if times else None,), upto, 0, final), now_ns=0
        ).rows
        return 0 if left is None else len(left)

    for number in range(windows):
        read([10 * number] * lines, list(range(lines)), upto=10 * number)
    read([], [], upto=10 * windows)
    assert machine.rows_held == lines * windows
    looked_at = 0

    def counting(self: Windows, panes: Int64Array, **span: int) -> tuple[Int64Array, Int64Array]:
        nonlocal looked_at
        looked_at += len(panes)
        return covering(self, panes, **span)

    covering = Windows.covering
    monkeypatch.setattr(Windows, "covering", counting)
    assert read([203], [7], upto=10 * windows) == window.size_ns // 10
    assert looked_at == 1 + beside, "the row, and what its key has in its windows"
    looked_at = 0
    read([10 * windows] * lines, list(range(lines)), upto=10 * windows + 10, final=30)
    assert looked_at <= 4 * lines, "of a window that closes: its cells and panes"
    gone = (30 - window.size_ns) // 10 + 1  # windows that are final
    assert machine.rows_held == lines * (windows + 1 - gone) + 1


@given(
    st.lists(st.lists(st.integers(-5, 5), max_size=6), max_size=8),
    st.integers(-6, 6),
    st.integers(-6, 6),
)
def test_the_cells_of_panes_are_those_that_were_added_and_not_dropped(
    batches: list[list[int]], first: int, end: int
) -> None:
    index, panes = PaneCells(), [pane for batch in batches for pane in batch]
    for number, batch in enumerate(batches):
        index.add(np.array(batch, np.int64), first=sum(map(len, batches[:number])))
    asked = index.between(first, end)
    assert asked == sorted({pane for pane in panes if first <= pane < end})
    assert index.cells(asked).tolist() == [n for n, p in enumerate(panes) if first <= p < end]
    gone = index.drop_before(end)
    assert gone.tolist() == [n for n, pane in enumerate(panes) if pane < end]
    assert len(index) == len(panes) - len(gone)
    assert index.between(-9, 9) == sorted({pane for pane in panes if pane >= end})


@given(st.lists(st.integers(-(2**62), 2**62), max_size=20), st.lists(st.integers(-9, 9)))
def test_codes_are_found_without_being_given(far: list[int], near: list[int]) -> None:
    codes = IntCodes()
    given = codes.codes(np.array(near, np.int64))
    assert codes.find(np.array(near, np.int64)).tolist() == given.tolist()
    given = codes.codes(np.array(far, np.int64))  # beyond what a table covers
    found = codes.find(np.array([*far, 10, *near], np.int64)).tolist()
    assert found[: len(far)] == given.tolist()
    assert found[len(far)] == (found[far.index(10)] if 10 in far else -1)
    assert len(codes) == len({*far, *near})
