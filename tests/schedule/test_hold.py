"""A gate that may hold a row only so long by the clock, and slacks set from outside."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.control.commands import Command, Move, Shed, Warn
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import END_NS, NS_PER_SECOND, ReleaseRule, batch_of
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Egress, Slot
from tests.support.rules import release
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array([1], pa.int64()), "key": pa.array([1])})
HOLD = 1_000


def plan() -> Plan:
    flow = sw.Dataflow("two", deadline="6s")
    left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
    left.merge(right, name="both").sink("out", sw.collect_sink())
    where = {"*": "a", "both": "b", "out": "b"}
    return place(
        flow.name,
        plan_stages(flow.graph),
        ["a", "b"],
        placement=where,
        deadline_ns=flow.deadline_ns,
    )


def slot(*, is_sampled: bool = True, **limits: int) -> Slot:
    of_gate = plan().stages_of("b")
    return Slot("b", of_gate, start_ns=0, limits=Limits(**limits), is_sampled=is_sampled)


def deliver(to: Slot, source: str, times: list[int], now_ns: int, promise: int = 0) -> None:
    batch = batch_of(times, {"ts": times, "key": times}, now_ns) if times else None
    promise = promise or times[-1]
    to.deliver(f"{source}→both", message_of(batch, promise, now_ns), now_ns)


def run(one: Slot, now_ns: int) -> list[int]:
    """Return the event times that left for good now; the slot comes to rest."""
    out: list[int] = []
    for _ in range(1_000):
        done = one.step(now_ns)
        if done is None:
            return out
        one.charge(done, 0)
        for action in done.actions:
            if isinstance(action, Egress) and action.batch is not None:
                out += action.batch.event_time_ns.tolist()
    raise AssertionError(f"the slot never comes to rest at {now_ns}")


def counts(one: Slot) -> Any:
    return {report.name: report for report in one.reports(0)[0]}["both"]


def test_while_event_time_stands_still_a_row_leaves_when_its_hold_ends() -> None:
    one = slot()
    one.apply(release("both", None, hold_ns=HOLD))
    deliver(one, "left", [10, 20], 5)
    assert run(one, 5) == []
    assert one.rest(5).until_ns == 5 + HOLD
    assert run(one, 5 + HOLD - 1) == []
    assert run(one, 5 + HOLD) == [10, 20]
    assert (counts(one).slack_ready, counts(one).in_flight) == (2, 0)
    assert one.rest(5 + HOLD).until_ns is None


def test_rows_of_one_message_and_of_one_time_leave_together_and_in_order() -> None:
    one = slot()
    one.apply(release("both", None, hold_ns=HOLD))
    deliver(one, "left", [10, 20, 20], 0)
    deliver(one, "right", [15, 20, 30], 1)
    # 10 to 15 are ready; of those held the first must go, and with them right's at 20 too.
    assert run(one, 1) == [10, 15, 20, 20]
    assert run(one, HOLD + 1) == [20, 30]


def test_without_a_hold_rows_wait_for_event_time() -> None:
    one = slot()
    deliver(one, "left", [10, 20], 0)
    assert run(one, 0) == []
    assert one.rest(0).until_ns is None
    assert run(one, 10**15) == []


def test_a_late_row_behind_a_hold_that_has_ended_does_not_keep_the_slot_busy() -> None:
    one = slot()
    one.apply(release("both", None, hold_ns=HOLD))
    deliver(one, "left", [100], 0)
    assert run(one, HOLD) == [100]
    deliver(one, "right", [50], HOLD + 1)
    assert run(one, HOLD + 1) == [50]
    assert counts(one).late == 1
    assert one.rest(HOLD + 1).until_ns is None
    assert run(one, 10 * HOLD) == []


def test_a_hold_that_is_cut_by_the_size_of_a_slice_goes_on_at_once() -> None:
    one = slot(max_slice_rows=3, min_slice_rows=1)
    one.apply(release("both", None, hold_ns=HOLD))
    for at in range(0, 20, 2):
        deliver(one, "left", [at + 1, at + 2], 0)
    assert run(one, 0) == []
    assert run(one, HOLD) == list(range(1, 21))


def test_the_longest_wait_of_a_second_is_the_hold() -> None:
    one = slot()
    one.apply(release("both", None, hold_ns=HOLD))
    deliver(one, "left", [10], 7)
    run(one, 7)
    run(one, 7 + HOLD)
    both, out = one.samples(NS_PER_SECOND)
    assert (both.stage, both.latency_ns, both.slack_ready) == ("both", HOLD, 1)
    assert (both.held, both.last_event_ns, out.rows) == (0, 10, 1)


def test_a_message_counts_for_the_second_in_which_it_came() -> None:
    one = slot()
    deliver(one, "left", [10], NS_PER_SECOND + 1)
    run(one, NS_PER_SECOND + 1)
    samples = [s for s in one.samples(2 * NS_PER_SECOND) if s.stage == "both"]
    assert [(s.second, s.held) for s in samples] == [(0, 0), (1, 1)]


def test_a_stage_without_a_gate_has_no_skew() -> None:
    one = slot()
    deliver(one, "left", [10], 0, promise=END_NS)
    deliver(one, "right", [], 0, promise=END_NS)
    assert run(one, 0) == [10]
    assert {s.stage: s.skew_ns for s in one.samples(NS_PER_SECOND)} == {"both": 0, "out": 0}
    assert one.is_finished


def test_a_lower_slack_lets_go_at_once_without_a_message() -> None:
    one = slot()
    one.apply(release("both", 50))
    deliver(one, "left", [10, 40, 45], 0)
    assert run(one, 0) == []
    one.apply(release("both", 10))
    assert run(one, 1) == [10]
    one.apply(release("both", -1))
    assert run(one, 2) == [40, 45]


def test_a_slack_that_lets_nothing_go_costs_no_slice() -> None:
    one = slot()
    deliver(one, "left", [10, 40], 0)
    assert run(one, 0) == []
    for slack_ns in (50, 60, None, 30):
        one.apply(release("both", slack_ns))
        assert one.step(1) is None


def test_a_lower_hold_lets_go_at_once() -> None:
    one = slot()
    one.apply(release("both", None, hold_ns=10 * HOLD))
    deliver(one, "left", [10], 0)
    assert run(one, HOLD) == []
    one.apply(release("both", None, hold_ns=HOLD))
    assert run(one, HOLD) == [10]


def test_what_waits_for_credit_does_not_hide_when_another_stage_is_due() -> None:
    flow = sw.Dataflow("two", deadline="6s")
    left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
    left.merge(right, name="both").sink("out", sw.collect_sink())
    late = pa.table({"ts": pa.array([0, 10**6], pa.int64())})
    flow.source("slow", sw.table(late), event_time="ts", speed=1.0).sink("o2", sw.collect_sink())
    where = {"*": "a", "both": "b", "slow": "b"}
    placed = place(flow.name, plan_stages(flow.graph), ["a", "b"], placement=where)
    one = Slot(
        "b", placed.stages_of("b"), start_ns=0, limits=Limits(credit_rows=1), is_sampled=True
    )
    one.apply(release("both", None, hold_ns=HOLD))
    run(one, 0)
    one.credit("slow→o2", 1)
    for at in (1, 2):  # the first takes the credit, the second is due and cannot go
        deliver(one, "left", [at], at)
        run(one, at + HOLD)
    assert counts(one).in_flight == 1
    assert one.rest(5 * HOLD).until_ns == 10**6


@pytest.mark.parametrize(
    ("stage", "slack_ns", "hold_ns", "says"),
    [
        ("out", 5, None, "'out': it has no gate"),
        ("both", -2, None, "slack_ns=-2"),
        ("both", None, -1, "hold_ns=-1"),
        ("left", 5, None, "has no stage 'left'"),
    ],
)
def test_a_slack_that_cannot_be_is_refused_and_changes_nothing(
    stage: str, slack_ns: int | None, hold_ns: int | None, says: str
) -> None:
    one = slot()
    one.apply(release("both", 30, hold_ns=HOLD))
    with pytest.raises(SettingError, match=says):
        one.apply(release(stage, slack_ns, hold_ns=hold_ns))
    deliver(one, "left", [10, 50], 0)
    assert run(one, 0) == [10]
    assert one.rest(0).until_ns == HOLD


def test_a_gate_that_was_planned_as_ready_only_stays_so() -> None:
    flow = sw.Dataflow("two")
    left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
    left.merge(right, name="both").sink("out", sw.collect_sink())
    placed = place(flow.name, plan_stages(flow.graph), ["b"])
    one = Slot("b", placed.stages_of("b"), start_ns=0, is_sampled=True)
    one.apply(release("both", None))
    for slack_ns, hold_ns in ((5, None), (None, 5)):
        with pytest.raises(SettingError, match="'both' was planned as ready-only"):
            one.apply(release("both", slack_ns, hold_ns=hold_ns))


def test_of_commands_that_overtake_each_other_the_newest_stays_also_after_a_restore() -> None:
    one, again = slot(), slot()
    for turn, sent in ((0, 1), (0, 3), (0, 2), (1, 1), (0, 4)):
        one.apply(release("both", 10 * turn + sent), number=(turn, sent))
    assert one.stages["both"].gate.rule == ReleaseRule.slack(11)
    again.restore(one.snapshot())
    again.apply(release("both", 0), number=(0, 5))
    assert again.stages["both"].gate.rule == ReleaseRule.slack(11)
    again.apply(release("both", 0))  # who has no numbers is obeyed
    assert again.stages["both"].gate.rule == ReleaseRule.slack(0)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Move(Subject("both"), "b"), "'both' cannot move to slot 'b'"),
        (Shed(Subject("both"), 250), "'both' sheds nothing"),
        (Warn(Subject("both"), "slow"), "'both' is for the job's report"),
    ],
)
def test_what_no_slot_can_do_yet_is_refused_by_name(command: Command, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        slot().apply(command)


def test_a_slack_for_a_stage_that_is_elsewhere_is_refused() -> None:
    with pytest.raises(SettingError, match=r"has no stage 'left'.*'both', 'out'"):
        slot().apply(release("left", 5))


def test_a_hold_needs_a_slot_that_takes_samples() -> None:
    one = slot(is_sampled=False)
    one.apply(release("both", 30))
    with pytest.raises(SettingError, match="takes samples"):
        one.apply(release("both", 30, hold_ns=HOLD))
    assert one.samples(10**12) == []


def test_slack_hold_and_waits_survive_a_restore() -> None:
    before, after = slot(), slot()
    before.apply(release("both", 30, hold_ns=HOLD))
    deliver(before, "left", [10, 60, 70], 5)
    assert run(before, 5) == [10]
    restore(after.stages["both"], save(before.stages["both"]))
    assert after.rest(5).until_ns == 5 + HOLD
    assert run(after, 5 + HOLD) == [60, 70]
    sample = next(s for s in after.samples(NS_PER_SECOND) if s.stage == "both")
    assert (sample.slack_ready, sample.rule.slack_ns, sample.latency_ns) == (3, 30, HOLD)


def test_what_a_slot_without_samples_did_is_in_no_second_of_one_that_takes_them() -> None:
    before, after = slot(is_sampled=False), slot()
    before.apply(release("both", 30))
    deliver(before, "left", [10, 60, 70], 5)
    assert run(before, 5) == [10]
    after.restore(before.snapshot())
    sample = next(s for s in after.samples(NS_PER_SECOND) if s.stage == "both")
    assert (sample.slack_ready, sample.rows, sample.held) == (0, 0, 2)


Step = tuple[str, list[int], int]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["left", "right"]),
            st.lists(st.integers(0, 5), max_size=4),
            st.integers(0, 700),
        ),
        max_size=25,
    ),
    slack_ns=st.none() | st.integers(-1, 20),
    max_slice_rows=st.integers(1, 5),
)
def test_no_row_waits_longer_than_the_hold_and_none_is_lost(
    steps: list[Step], slack_ns: int | None, max_slice_rows: int
) -> None:
    one = slot(max_slice_rows=max_slice_rows, min_slice_rows=1)
    one.apply(release("both", slack_ns, hold_ns=HOLD))
    newest = {"left": 1, "right": 1}
    waiting: list[tuple[int, int]] = []  # (event time, when it came)
    now_ns, entered = 0, 0

    def let(until_ns: int) -> None:
        """Run at each moment at which the slot wants to be woken."""
        at_ns = now_ns
        while True:
            for time_ns in run(one, at_ns):
                came = min(entry for entry in waiting if entry[0] == time_ns)
                waiting.remove(came)
            assert all(at_ns < came_ns + HOLD for _, came_ns in waiting)
            wake_ns = one.rest(at_ns).until_ns
            if wake_ns is None or wake_ns > until_ns:
                return
            at_ns = wake_ns

    for source, gaps, pause_ns in steps:
        times = [newest[source] + sum(gaps[: n + 1]) for n in range(len(gaps))]
        newest[source] = times[-1] if times else newest[source]
        deliver(one, source, times, now_ns, promise=newest[source])
        waiting += [(time_ns, now_ns) for time_ns in times]
        entered += len(times)
        let(now_ns + pause_ns)
        now_ns += pause_ns
    let(now_ns + HOLD)
    assert waiting == []
    report = counts(one)
    assert report.ready + report.slack_ready + report.late == entered
    assert (report.rows_in, report.rows_out, report.in_flight) == (entered, entered, 0)
