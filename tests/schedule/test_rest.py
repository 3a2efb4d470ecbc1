"""A slot comes to rest, whatever is sent and set; and at the end it is finished, and has it all."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import END_NS, Batch
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Egress, Slot
from tests.support.examples import twice
from tests.support.rules import release
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array([1], pa.int64()), "w": pa.array([1])})
MIXED, QUIET, ORDERED = SOURCES = ("feed", "gps", "other")
OFTEN = 1_000
"""Slices: more than any of these runs needs before it rests."""


def plan() -> Plan:
    """Two sources of several writers, one of them with an idle, and one in order."""
    flow = sw.Dataflow("rest", deadline="6s")
    feed = flow.source(MIXED, sw.table(ROWS), event_time="ts", writer="w")
    gps = flow.source(QUIET, sw.table(ROWS), event_time="ts", writer="w", idle="30ns")
    other = flow.source(ORDERED, sw.table(ROWS), event_time="ts", idle="50ns")
    feed.merge(gps, other, name="both").sink("out", sw.collect_sink())
    where = {"*": "a", "both": "b", "out": "b"}
    return place(
        flow.name,
        plan_stages(flow.graph),
        ["a", "b"],
        placement=where,
        deadline_ns=flow.deadline_ns,
    )


PLAN = plan()


class Bench:
    """A slot, what went in, and what came out."""

    def __init__(self, max_rows: int) -> None:
        limits = Limits(min_slice_rows=1, max_slice_rows=max_rows, credit_rows=10**6)
        stages = PLAN.stages_of("b")
        self.slot = Slot("b", stages, start_ns=0, limits=limits, is_sampled=True)
        self.sent = 0
        self.got: list[int] = []
        self.now_ns = 0

    def send(self, source: str, times: list[int], writers: list[int], promise: int) -> None:
        """Deliver rows, numbered as they are sent; none: a promise alone."""
        batch = None
        if times:
            at = np.array(times, dtype=np.int64)
            numbers = np.arange(self.sent, self.sent + len(times))
            self.sent += len(times)
            own = None if source == ORDERED else np.array(writers[: len(times)], dtype=np.int64)
            stimulus = np.full(len(times), self.now_ns)
            batch = Batch(
                event_time_ns=at,
                stimulus_time_ns=stimulus,
                columns={"ts": at, "w": numbers},
                writers=own,
            )
        message = message_of(batch, promise, self.now_ns)
        self.slot.deliver(f"{source}→both", message, self.now_ns)

    def end(self) -> None:
        for source in SOURCES:
            self.send(source, [], [], END_NS)

    def rest(self) -> int:
        """Run until there is nothing to do; return how many slices that took."""
        for slices in range(OFTEN):
            done = self.slot.step(self.now_ns)
            if done is None:
                return slices
            self.slot.charge(done, 0)
            for action in done.actions:
                if isinstance(action, Egress) and action.batch is not None:
                    self.got += np.asarray(action.batch.columns["w"]).tolist()
        raise AssertionError(f"the slot never comes to rest at {self.now_ns}")

    def check_end(self) -> None:
        """Everything has come out once, and the slot knows that it is finished."""
        assert sorted(self.got) == list(range(self.sent))
        assert self.slot.is_finished
        (gate,) = [r for r in self.slot.reports(self.now_ns)[0] if r.name == "both"]
        assert gate.is_balanced
        assert gate.in_flight == 0
        assert self.slot.stages["both"].next is None


def test_a_row_late_by_its_writer_alone_does_not_keep_the_slot_busy() -> None:
    bench = Bench(100)
    bench.slot.apply(release("both", None, hold_ns=1_000))
    bench.send(ORDERED, [], [], 20)
    bench.send(QUIET, [], [], END_NS)
    bench.send(MIXED, [10], [2], 0)
    bench.rest()
    bench.now_ns = 1_000
    bench.rest()
    assert bench.got == [0]
    bench.send(MIXED, [10], [1], 0)  # as late as if it were older: writer 2 has been read
    bench.rest()
    assert bench.got == [0, 1]
    assert bench.slot.rest(1_000).until_ns is None
    bench.now_ns = 2_000
    assert bench.rest() == 0


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
def test_the_end_comes_through_behind_a_slice_full_of_late_rows(rows: int) -> None:
    bench = Bench(2)
    bench.slot.apply(release("both", -1))
    bench.send(ORDERED, [100], [], 100)
    bench.rest()
    for source in (QUIET, ORDERED):
        bench.send(source, [], [], END_NS)
    bench.rest()
    bench.send(MIXED, list(range(rows)), [0] * rows, END_NS)
    bench.rest()
    bench.check_end()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
def test_the_end_comes_through_behind_rows_of_one_time_that_no_slice_can_divide(rows: int) -> None:
    bench = Bench(2)
    for source in (QUIET, MIXED):
        bench.send(source, [], [], END_NS)
    bench.send(ORDERED, [5] * rows, [], END_NS)
    bench.rest()
    bench.check_end()


Step: TypeAlias = tuple[int, str, list[int], list[int], int | None, int | None, bool]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Return (pause, source or what to set, times, writers, promise or slack, hold, in full)."""
    what = draw(st.sampled_from([*SOURCES, "slack"]))
    return (
        draw(st.sampled_from([0, 1, 20, 60])),
        what,
        draw(st.lists(st.integers(-5, 3), max_size=3)),
        draw(st.lists(st.integers(0, 2), min_size=3, max_size=3)),
        draw(st.sampled_from([None, -1, 0, 2, 5]) if what == "slack" else st.integers(0, 12)),
        draw(st.sampled_from([None, 0, 10, 100])),
        draw(st.booleans()),
    )


@twice
@given(run=st.lists(steps(), max_size=30), max_rows=st.sampled_from([1, 2, 3, 1_000]))
def test_a_slot_always_comes_to_rest_and_ends_with_everything(
    run: list[Step], max_rows: int
) -> None:
    bench = Bench(max_rows)
    base, reached = 5, dict.fromkeys(SOURCES, 0)
    for pause_ns, what, offsets, writers, number, hold_ns, in_full in run:
        bench.now_ns += pause_ns
        if what == "slack":
            bench.slot.apply(release("both", number, hold_ns=hold_ns, in_full=in_full))
        else:
            times = [base + offset for offset in offsets]
            base += len(times) // 2
            if what == ORDERED:
                times = sorted(max(one, reached[what]) for one in times)
                reached[what] = max([reached[what], *times])
            else:
                reached[what] = max(reached[what], base - (number or 0))
            bench.send(what, times, writers, reached[what])
        bench.rest()
    bench.end()
    bench.rest()
    bench.check_end()
