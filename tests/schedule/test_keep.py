"""With keep="promise" a slack costs order and no result: every pair, none twice, as ready-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.measure.assemble import job_report
from slackwater.runtime.model import END_NS, batch_of
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.plan.traits import Keep, Share
from slackwater.runtime.schedule import Egress, Slot
from slackwater.runtime.schedule.outputs import Divided, Form
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array([1], pa.int64()), "key": [1], "id": [1]})
WITHIN = 6
SOURCES = ("a", "b", "c")
Row = tuple[int, int, int]  # (event time, key, number)
Pair = tuple[int, int]  # the numbers of two rows


def plan_of(
    slack: str | None,
    *,
    replicas: int = 1,
    share: Share = "all",
    keep: Keep | None = None,
    idle: str | None = None,
) -> Plan:
    """Two sources merged, joined with a third: two gates in a row, all in one slot but sources."""
    flow = sw.Dataflow("f", slack=slack, keep=keep)
    a, b, c = (flow.source(n, sw.table(ROWS), event_time="ts", idle=idle) for n in SOURCES)
    pairs = a.merge(b, name="left").join(
        c, on="key", within=f"{WITHIN}ns", replicas=replicas, share=share, name="pairs"
    )
    pairs.sink("out", sw.collect_sink())
    where = {"*": "x", **dict.fromkeys(SOURCES, "y")}
    return place("f", plan_stages(flow.graph), ["x", "y"], placement=where)


@dataclass
class Work:
    """A slot, and the pairs that have left it."""

    plan: Plan
    limits: Limits

    def __post_init__(self) -> None:
        self.slot = self._fresh()
        self.pairs: list[Pair] = []
        self.now_ns = 0

    def _fresh(self) -> Slot:
        return Slot("x", self.plan.stages_of("x"), start_ns=0, limits=self.limits)

    def send(self, source: str, rows: Sequence[Row], promise_ns: int) -> None:
        batch = None
        if rows:
            times, keys, numbers = (list(column) for column in zip(*rows, strict=True))
            batch = batch_of(times, {"ts": times, "key": keys, "id": numbers})
        inputs = [channel for stage in self.plan.stages_of("x") for channel in stage.inputs]
        for channel in inputs:
            if channel.source == source:
                part, owned = batch, channel.owned
                if batch is not None and owned is not None:
                    form = Form(0, tuple(channel.schema.names), frozenset())
                    part = Divided.of(batch, owned.columns, owned.groups).part(owned.replica, form)
                self.slot.deliver(channel.name, message_of(part, promise_ns, 0), self.now_ns)

    def run(self) -> None:
        while (done := self.slot.step(self.now_ns)) is not None:
            for action in done.actions:
                if isinstance(action, Egress) and action.batch is not None:
                    ids = [action.batch.columns[n].tolist() for n in ("id", "id_right")]
                    self.pairs += zip(*ids, strict=True)

    def restore(self) -> None:
        """Go on in a new slot, from what the stages of this one say of themselves."""
        again = self._fresh()
        for name, machine in self.slot.stages.items():
            restore(again.stages[name], save(machine))
        self.slot = again


@dataclass(frozen=True)
class Sent:
    """Some rows of one source, and what it promises behind them."""

    source: str
    rows: tuple[Row, ...]
    promise_ns: int
    runs: bool
    restores: bool


@st.composite
def histories(draw: st.DrawFn) -> list[Sent]:
    promised = dict.fromkeys(SOURCES, 0)
    history: list[Sent] = []
    number = 0
    for _ in range(draw(st.integers(0, 14))):
        source = draw(st.sampled_from(SOURCES))
        start = promised[source]
        times = sorted(start + ahead for ahead in draw(st.lists(st.integers(0, 25), max_size=7)))
        keys = draw(st.lists(st.integers(1, 2), min_size=len(times), max_size=len(times)))
        numbers = range(number, number + len(times))
        number += len(times)
        promised[source] = max([start + draw(st.integers(0, 9)), *times])
        history.append(
            Sent(
                source,
                tuple(zip(times, keys, numbers, strict=True)),
                promised[source],
                draw(st.booleans()),
                draw(st.integers(0, 9)) == 0,
            )
        )
    return history


def pairs_of(history: Sequence[Sent]) -> list[Pair]:
    """Return all pairs, found by trying every two rows."""
    left = [row for one in history if one.source != "c" for row in one.rows]
    right = [row for one in history if one.source == "c" for row in one.rows]
    return sorted(
        (i, j)
        for (s, own, i) in left
        for (t, other, j) in right
        if own == other and abs(s - t) <= WITHIN
    )


def found_by(work: Work, history: Sequence[Sent]) -> list[Pair]:
    for one in history:
        work.send(one.source, one.rows, one.promise_ns)
        if one.runs:
            work.run()
        if one.restores:
            work.restore()
    for source in SOURCES:
        work.send(source, (), END_NS)
    work.run()
    assert work.slot.is_finished
    return sorted(work.pairs)


REPLICAS: list[tuple[int, Share]] = [(1, "all"), (2, "keys"), (3, "all")]
PLANS = {
    (slack, replicas): plan_of(slack, replicas=replicas, share=share)
    for slack in ("0s", "4ns", "15ns", None)
    for replicas, share in REPLICAS
}


@given(history=histories(), slack=st.sampled_from(["0s", "4ns", "15ns"]), most=st.integers(1, 9))
@pytest.mark.parametrize("replicas", [number for number, _ in REPLICAS])
def test_under_any_slack_the_pairs_are_those_of_ready_only_and_of_trying_all(
    replicas: int, history: list[Sent], slack: str, most: int
) -> None:
    limits = Limits(min_slice_rows=1, max_slice_rows=most, credit_rows=10**6)
    expected = pairs_of(history)
    work = Work(PLANS[slack, replicas], limits)
    assert found_by(work, history) == expected
    reports, _ = work.slot.reports(0)
    assert sum(stage.late_dropped + stage.dropped_early + stage.held for stage in reports) == 0
    if not any(one.restores for one in history):
        assert all(stage.is_balanced for stage in reports)
    assert not any(stage.older_than_promised for stage in reports)
    assert found_by(Work(PLANS[None, 1], limits), history) == expected


LATE = [
    Sent("a", ((10, 1, 0),), 10, runs=True, restores=False),
    Sent("b", ((11, 1, 1), (90, 1, 2)), 90, runs=True, restores=False),
    Sent("c", ((8, 1, 3),), 8, runs=True, restores=False),
]


def test_kept_by_slack_a_late_row_misses_partners_that_it_finds_by_the_promise() -> None:
    limits = Limits()
    assert found_by(Work(plan_of("0s", keep="slack"), limits), LATE) == []
    assert found_by(Work(plan_of("0s"), limits), LATE) == [(0, 3), (1, 3)]


def notes_of(work: Work) -> list[str]:
    """Return what a report of the job would say beside its figures."""
    stages, channels = work.slot.reports(work.now_ns)
    return job_report(
        work.plan,
        state="running",
        host="test",
        nodes=["x"],
        elapsed_s=1,
        stages=stages,
        channels=channels,
        sinks=[],
    ).notes


@pytest.mark.parametrize("replicas", [1, 3])
def test_beyond_the_most_kept_rows_the_oldest_go_and_the_report_says_whom_they_waited_for(
    replicas: int,
) -> None:
    plan = plan_of("0s", replicas=replicas)
    work = Work(plan, Limits(most_kept_rows=8))
    rows = [(time, 1, time) for time in range(0, 400, 2)]
    for start in range(0, 200, 10):  # c is silent, and all wait for it
        chunk = rows[start : start + 10]
        work.send("a", chunk, chunk[-1][0])
        work.send("b", (), chunk[-1][0])
        work.run()
    reports, _ = work.slot.reports(0)
    joins = [stage for stage in reports if stage.kind == "join"]
    assert sum(stage.held for stage in joins) <= 8 * replicas
    assert sum(stage.dropped_early for stage in joins) > 150
    notes = notes_of(work)
    assert len(notes) == replicas
    assert all("waited for the promise of 'c'" in note for note in notes)
    assert all("most_kept_rows" in note for note in notes)
    work.send("c", [(398, 1, 1_000)], 398)
    work.run()
    found = {left for left, _ in work.pairs}
    assert found == {392, 394, 396, 398}, "what a slack would have kept is kept"


def test_what_a_slack_keeps_is_never_let_go_however_many_there_are() -> None:
    work = Work(plan_of("0s"), Limits(most_kept_rows=1))
    work.send("a", [(time, 1, time) for time in range(7)], 6)
    work.send("b", (), 6)
    work.run()
    assert sum(stage.dropped_early for stage in work.slot.reports(0)[0]) == 0
    work.send("c", [(6, 1, 100)], 6)
    work.run()
    assert sorted(left for left, _ in work.pairs) == list(range(7))


def test_rows_of_a_writer_that_was_idle_are_counted_by_its_name() -> None:
    plan = plan_of("0s", idle="30ns")
    work = Work(plan, Limits())
    work.send("a", [(10, 1, 0)], 10)
    work.send("b", [(12, 1, 1)], 12)
    work.send("c", [(1, 1, 2)], 1)
    work.run()
    for now_ns in range(10, 70, 10):  # c is silent for longer than its idle, the others are not
        work.now_ns = now_ns
        work.send("a", [(10 + now_ns, 1, now_ns)], 10 + now_ns)
        work.send("b", (), 10 + now_ns)
        work.run()
    work.send("c", [(9, 1, 6), (70, 1, 7)], 70)
    work.run()
    reports, _ = work.slot.reports(work.now_ns)
    (join,) = [stage for stage in reports if stage.kind == "join"]
    assert join.idle_marks == {"c": 1}
    assert join.older_than_promised == {"c": 1}
    (note,) = notes_of(work)
    assert "may have missed partners: 1 of 'c'" in note


def test_rows_that_come_through_another_gate_are_counted_with_the_names_of_the_sources() -> None:
    work = Work(plan_of("0s", idle="30ns"), Limits())
    for source, time in (("a", 1), ("b", 12), ("c", 10)):
        work.send(source, [(time, 1, time)], time)
    work.run()
    for now_ns in range(10, 70, 10):  # a is silent for longer than its idle, the others are not
        work.now_ns = now_ns
        for source in ("b", "c"):
            work.send(source, [(20 + now_ns, 1, now_ns)], 20 + now_ns)
        work.run()
    work.send("a", [(9, 1, 6)], 9)
    work.run()
    (note,) = notes_of(work)
    assert "may have missed partners: 1 of 'left' (fed by 'a', 'b')" in note


def test_who_was_waited_for_through_another_gate_is_told_with_the_names_of_the_sources() -> None:
    work = Work(plan_of("0s"), Limits(most_kept_rows=8))
    for start in range(0, 200, 10):  # a is silent, so the merge of a and b promises nothing
        rows = [(time, 1, time) for time in range(start, start + 10, 2)]
        work.send("c", rows, rows[-1][0])
        work.run()
    (note,) = notes_of(work)
    assert "waited for the promise of 'left' (fed by 'a', 'b')." in note
