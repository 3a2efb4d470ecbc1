"""Channels that fall silent: the gate goes on, and is fair to those that wake up."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model import END_NS, Message, batch_of
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.schedule import Egress, Grant, Slot
from tests.support.own_inputs import Feed
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array([1], pa.int64())})
MS = 10**6
LEFT, RIGHT = "left→both", "right→both"


def slot_of(
    *, names: tuple[str, ...] = ("left", "right"), limits: Limits | None = None, **idle: str
) -> Slot:
    """A merge and its sink alone; its sources, some with an idle, are elsewhere."""
    flow = sw.Dataflow("silent")
    first, *others = (
        flow.source(name, sw.table(ROWS), event_time="ts", idle=idle.get(name)) for name in names
    )
    first.merge(*others, name="both").sink("out", sw.collect_sink())
    plan = place("silent", plan_stages(flow.graph), ["a", "b"], placement={"*": "b", **HERE})
    return Slot("a", plan.stages_of("a"), start_ns=0, limits=limits)


HERE = {"both": "a", "out": "a"}


def message(times: list[int], promise_ns: int | None = None) -> Message:
    return message_of(batch_of(times, {"ts": times}), promise_ns or times[-1], 0)


def out(slot: Slot, now_ns: int) -> list[int]:
    times: list[int] = []
    while (done := slot.step(now_ns)) is not None:
        for action in done.actions:
            if isinstance(action, Egress) and action.batch is not None:
                times += action.batch.event_time_ns.tolist()
    return times


def gate_report(slot: Slot, now_ns: int) -> StageReport:
    stages, _ = slot.reports(now_ns)
    (report,) = [stage for stage in stages if stage.name == "both"]
    assert report.is_balanced
    return report


@pytest.mark.parametrize("others", [0, 20])
def test_a_gate_goes_on_without_a_channel_that_is_silent_for_too_long(others: int) -> None:
    names = ("left", "right", *(f"more-{n}" for n in range(others)))
    slot = slot_of(names=names, right="100ns")
    for name in names[2:]:
        slot.deliver(f"{name}→both", message_of(None, END_NS, 0), 0)
    slot.deliver(LEFT, message([5, 9]), 10)
    slot.deliver(RIGHT, message([1]), 20)
    assert out(slot, 20) == [1]
    assert slot.rest(20).until_ns == 120, "asked to look again when right is idle"
    assert out(slot, 119) == []
    assert gate_report(slot, 119).still_ns == 99
    assert out(slot, 120) == [5, 9]
    assert gate_report(slot, 120).still_ns == 0
    assert slot.rest(120).until_ns is None
    assert gate_report(slot, 120).idle_marks == {"right": 1}
    assert gate_report(slot, 120).waiting_for == ["left"]
    slot.deliver(RIGHT, message([2, 12]), 500)
    assert out(slot, 500) == [2], "late; 12 waits for left"
    assert gate_report(slot, 500).late == 1
    slot.deliver(LEFT, message([13]), 550)
    assert out(slot, 550) == [12]


def test_a_promise_alone_is_a_word() -> None:
    slot = slot_of(right="100ns")
    slot.deliver(LEFT, message([9]), 0)
    for now_ns in (90, 180, 270):
        slot.deliver(RIGHT, message_of(None, 1, 0), now_ns)
        assert out(slot, now_ns) == []
        assert slot.rest(now_ns).until_ns == now_ns + 100
    assert gate_report(slot, 270).idle_marks == {}


def test_a_channel_that_nobody_waits_for_is_not_marked() -> None:
    slot = slot_of(left="100ns")
    slot.deliver(LEFT, message([9]), 0)
    for now_ns in range(0, 1_000, 50):
        slot.deliver(RIGHT, message_of(None, 1, 0), now_ns)
        assert out(slot, now_ns) == []
    assert slot.rest(1_000).until_ns is None
    assert gate_report(slot, 1_000).idle_marks == {}
    slot.deliver(RIGHT, message([20]), 1_000)
    assert out(slot, 1_000) == [9, 20], "now they wait for left, which is long silent"
    assert gate_report(slot, 1_000).idle_marks == {"left": 1}


def test_those_that_fall_silent_together_cost_one_wait_together() -> None:
    names = ("live", *(f"dead-{n}" for n in range(20)))
    slot = slot_of(names=names, **dict.fromkeys(names[1:], "100ns"))
    for nth, name in enumerate(names[1:]):
        slot.deliver(f"{name}→both", message([nth]), 0)
    for now_ns in (0, 30, 60, 90):
        slot.deliver("live→both", message([1_000 + now_ns]), now_ns)
        out(slot, now_ns)
    assert out(slot, 100)[-4:] == [1_000, 1_030, 1_060, 1_090]


def test_a_channel_that_the_gate_gave_no_credit_was_not_silent() -> None:
    slot = slot_of(limits=Limits(gate_rows=4, credit_rows=8), left="100ns")
    slot.deliver(LEFT, message([1, 2, 3, 4, 5, 6, 7, 8]), 0)
    slot.deliver(RIGHT, message([0]), 0)
    assert out(slot, 0) == [0]
    for now_ns in range(50, 1_000, 50):
        slot.deliver(RIGHT, message_of(None, 0, 0), now_ns)
        assert out(slot, now_ns) == []
    slot.deliver(RIGHT, message([9]), 1_000)
    done = slot.step(1_000)
    assert done is not None
    granted = [action.channel.name for action in done.actions if isinstance(action, Grant)]
    assert LEFT in granted
    assert gate_report(slot, 1_000).waiting_for == ["left"], "it may speak again only now"
    slot.deliver(LEFT, message([9]), 1_050)
    out(slot, 1_050)
    slot.deliver(RIGHT, message([20]), 1_100)
    assert out(slot, 1_100) == []
    assert slot.rest(1_100).until_ns == 1_150
    assert (gate_report(slot, 1_100).late, gate_report(slot, 1_100).idle_marks) == (0, {})


def test_a_word_that_a_busy_slot_has_not_taken_in_is_no_silence() -> None:
    slot = slot_of(left="100ns")
    slot.deliver(LEFT, message([1]), 0)
    for now_ns in range(0, 500, 50):
        slot.deliver(RIGHT, message([now_ns + 2]), now_ns)
    assert out(slot, 500) == [1], "its sender may have waited for the credit of that message"
    assert slot.rest(500).until_ns == 600
    assert out(slot, 600) == list(range(2, 500, 50))


def test_without_idle_a_gate_waits_for_ever() -> None:
    slot = slot_of()
    slot.deliver(LEFT, message([9]), 0)
    assert out(slot, 10**18) == []
    assert slot.rest(10**18).until_ns is None


@pytest.mark.parametrize("others", [0, 20])
def test_the_end_of_all_others_is_not_that_of_an_idle_channel(others: int) -> None:
    names = ("left", "right", *(f"more-{n}" for n in range(others)))
    slot = slot_of(names=names, right="100ns")
    for name in names[2:]:
        slot.deliver(f"{name}→both", message_of(None, END_NS, 0), 0)
    slot.deliver(LEFT, message([9], END_NS), 0)
    assert out(slot, 100) == [9]
    assert not slot.is_finished, "right may still wake up"
    slot.deliver(RIGHT, message([3, 11]), 200)
    assert out(slot, 200) == [3, 11]
    slot.deliver(RIGHT, message_of(None, END_NS, 0), 300)
    assert out(slot, 300) == []
    assert slot.is_finished
    assert gate_report(slot, 300).rows_out == 3


def test_the_last_that_is_not_idle_is_waited_for() -> None:
    slot = slot_of(left="50ns", right="100ns")
    slot.deliver(RIGHT, message([4]), 0)
    slot.deliver(LEFT, message([5, 9]), 0)
    assert out(slot, 0) == [4]
    assert out(slot, 99) == []
    assert out(slot, 100) == [5, 9]
    assert slot.rest(1_000).until_ns is None
    assert out(slot, 1_000) == []
    assert gate_report(slot, 1_000).idle_marks == {"right": 1}
    assert gate_report(slot, 1_000).waiting_for == ["left"]


def test_the_last_that_could_speak_is_waited_for_if_no_rows_of_ended_ones_wait() -> None:
    slot = slot_of(names=("left", "right", "ended"), left="50ns", right="50ns")
    slot.deliver("ended→both", message([1], END_NS), 0)
    slot.deliver(LEFT, message([5]), 0)
    slot.deliver(RIGHT, message([5]), 0)
    assert out(slot, 0) == [1, 5]
    assert out(slot, 1_000) == [5], "left might have said 5 again"
    assert sum(gate_report(slot, 1_000).idle_marks.values()) == 1
    assert len(gate_report(slot, 1_000).waiting_for) == 1


@given(
    lags=st.lists(st.integers(0, 99), min_size=2, max_size=4),
    pause=st.tuples(st.integers(100, 1_000), st.integers(100, 2_000)),
    back=st.lists(st.integers(0, 99), min_size=4, max_size=4),
    has_ended=st.booleans(),
)
def test_what_comes_after_a_pause_of_all_inputs_is_not_late(
    lags: list[int], pause: tuple[int, int], back: list[int], has_ended: bool
) -> None:
    """All tick every 40 ns, each with its lag. During the pause nothing arrives; then all does."""
    names, others = [f"feed-{n}" for n in range(len(lags))], ["ended"] * has_ended
    down_ns, up_ns = pause[0], sum(pause)
    arrivals = []  # (when, source, event time)
    for name, lag, late in zip(names, lags, back, strict=False):
        for tick in range(0, up_ns + 500, 40):
            at_ns = tick + lag
            arrivals.append(
                (up_ns + late if down_ns <= at_ns < up_ns + late else at_ns, name, tick)
            )
    slot = slot_of(names=(*names, *others), **dict.fromkeys(names, "100ns"))
    for name in others:
        slot.deliver(f"{name}→both", message([0], END_NS), 0)
    newest = 0  # that could be read before the pause was over
    wake_ns = 0
    for at_ns, name, tick in [*sorted(arrivals), (up_ns + 10_000, names[0], up_ns + 10_000)]:
        while (due_ns := slot.rest(wake_ns).until_ns) is not None and due_ns < at_ns:
            wake_ns = due_ns
            out(slot, wake_ns)
        before = gate_report(slot, at_ns).late
        slot.deliver(f"{name}→both", message([tick]), at_ns)
        out(slot, at_ns)
        wake_ns = at_ns
        if at_ns < down_ns:
            newest = max(newest, tick)
        assert gate_report(slot, at_ns).late == before or tick <= newest


def test_a_channel_that_was_silent_before_a_pause_of_all_is_not_waited_for_again() -> None:
    slot = slot_of(right="100ns")
    slot.deliver(RIGHT, message([1]), 0)
    slot.deliver(LEFT, message([2]), 0)
    assert out(slot, 0) == [1]
    assert out(slot, 100) == [2]
    slot.deliver(LEFT, message([500]), 500)
    assert out(slot, 500) == [], "all had paused: right gets its time to come back"
    assert out(slot, 600) == [500]
    slot.deliver(LEFT, message([1_000]), 1_000)
    assert out(slot, 1_000) == [1_000], "it had its time"
    assert gate_report(slot, 1_000).idle_marks == {"right": 2}


def test_of_channels_that_never_spoke_one_is_waited_for() -> None:
    slot = slot_of(left="50ns", right="50ns")
    assert out(slot, 1_000) == []
    assert sum(gate_report(slot, 1_000).idle_marks.values()) == 1


def test_a_slow_replay_is_not_a_silence() -> None:
    for speed, expected in ((None, 2), (10.0, 2), (0.5, 4)):
        flow = sw.Dataflow("slow")
        source = flow.source("feed", sw.table(ROWS), event_time="ts", idle="2s", speed=speed)
        source.aggregate(window=sw.tumbling("1s"), n=sw.count(), name="n").sink(
            "out", sw.collect_sink()
        )
        (channel,) = plan_stages(flow.graph)[1].inputs
        assert channel.idle_ns == expected * 10**9


def test_idle_reaches_gates_behind_gates_with_what_each_may_add() -> None:
    flow = sw.Dataflow("chain")
    source = flow.source("feed", sw.table(ROWS), event_time="ts", idle="2s")
    source.sink("raw", sw.collect_sink())
    kept = source.filter(sw.col("ts") > 0, name="kept")
    counts = kept.aggregate(window=sw.tumbling("1s"), n=sw.count(), name="counts")
    counts.aggregate(window=sw.tumbling("5s"), n=sw.count(), name="more").sink(
        "out", sw.collect_sink()
    )
    idle = {c.name: c.idle_ns for stage in plan_stages(flow.graph) for c in stage.inputs}
    assert idle == {
        "feed→raw": None,
        "feed→kept": None,
        "kept→counts": 2 * 10**9,
        "counts→more": (2 + 2 + 1) * 10**9,
        "more→out": None,
    }


def test_a_stage_with_a_source_that_may_be_silent_for_ever_may_be_so_too() -> None:
    flow = sw.Dataflow("chain")
    quiet, other = (
        flow.source(name, sw.table(ROWS), event_time="ts", idle=idle)
        for name, idle in (("quiet", "2s"), ("other", None))
    )
    both = quiet.merge(other, name="both")
    both.merge(quiet, name="all").sink("out", sw.collect_sink())
    (merged,) = [stage for stage in plan_stages(flow.graph) if stage.name == "all"]
    assert [channel.idle_ns for channel in merged.inputs] == [None, 2 * 10**9]


@pytest.mark.parametrize("replicas", [1, 2])
def test_idle_ends_the_wait_behind_an_aggregate_too(replicas: int) -> None:
    flow = pausing(idle="10s", counted=replicas)
    report = sw.Simulation().submit(flow).wait()
    stages = {stage.name: stage for stage in report.stages}
    (sink,) = report.sinks
    assert sink.rows == 120 + 65
    names = ["c-right"] if replicas == 1 else ["c-right.1", "c-right.2"]
    assert stages["both"].idle_marks == dict.fromkeys(names, 1)
    # Idle after 21 s: 10 of the source, as many for its gate, 1 of the window. The last word was
    # at 4, and what has waited longest is the window that ended at 5: with replicas= its last
    # moment must be over.
    assert sink.latency.quantile(1) / 1e9 == pytest.approx(20, rel=0.02)


def test_a_long_window_is_no_silence() -> None:
    flow = sw.Dataflow("long")
    ticks = pa.table({"ts": list(range(0, 300, 4))})
    fast, slow = (
        flow.source(name, sw.table(ticks), event_time="ts", time_unit="s", speed=1.0, idle="5s")
        for name in ("fast", "slow")
    )
    short = fast.aggregate(window=sw.tumbling("1s"), n=sw.count(), name="short")
    long = slow.aggregate(window=sw.tumbling("60s"), n=sw.count(), name="long")
    short.merge(long, name="both").sink("out", sw.collect_sink())
    report = sw.Simulation().submit(flow).wait()
    (both,) = [stage for stage in report.stages if stage.name == "both"]
    assert (both.idle_marks, both.late) == ({}, 0)


# Whole flows


def pausing(*, counted: int = 0, **options: Any) -> sw.Dataflow:
    """left ticks each second for two minutes; right says nothing from second 5 to 60.

    counted: replicas of an aggregate between each and the gate; 0: there is none.
    """
    flow = sw.Dataflow("pausing")
    ticks = [list(range(120)), [*range(5), *range(60, 120)]]
    left, right = (
        flow.source(
            name,
            sw.table(pa.table({"ts": own})),
            event_time="ts",
            time_unit="s",
            speed=1.0,
            **options,
        )
        for name, own in zip(("left", "right"), ticks, strict=True)
    )
    if counted:
        left, right = (
            one.aggregate(
                by="ts", window=sw.tumbling("1s"), n=sw.count(), replicas=counted, name=name
            )
            for one, name in ((left, "c-left"), (right, "c-right"))
        )
    left.merge(right, name="both").sink("out", sw.collect_sink())
    return flow


def test_a_pause_costs_the_others_their_wait_for_it_and_no_more() -> None:
    worst = {}
    for idle in (None, "10s"):
        report = sw.Simulation().submit(pausing(idle=idle)).wait()
        (sink,) = report.sinks
        worst[idle] = sink.latency.quantile(1) / 1e9
        assert report.ledger.is_balanced
        assert sink.rows == 120 + 65
        (both,) = [stage for stage in report.stages if stage.name == "both"]
        assert both.idle_marks == ({} if idle is None else {"right": 1})
    assert worst[None] == pytest.approx(55, rel=0.05)
    # Its last word was at second 4, so it is idle at 14; what came at 5 has waited longest.
    assert worst["10s"] == pytest.approx(9, rel=0.05)


def test_of_a_gates_only_input_all_leaves_once_it_is_silent_for_too_long() -> None:
    flow = sw.Dataflow("alone")
    rows = flow.source("left", sw.table(ROWS), event_time="ts", disorder="60ns", idle="100ns")
    windows = rows.aggregate(window=sw.tumbling("10ns"), n=sw.count(), name="both")
    windows.sink("out", sw.collect_sink())
    plan = place("alone", plan_stages(flow.graph), ["a", "b"], placement={"*": "b", **HERE})
    slot = Slot("a", plan.stages_of("a"), start_ns=0)
    slot.deliver("left→both", message([5, 3, 14, 27], -33), 10)
    assert out(slot, 10) == []
    assert slot.rest(10).until_ns == 110
    assert len(out(slot, 110)) == 2, "the window of 27 may have more"
    assert slot.rest(110).until_ns is None
    assert gate_report(slot, 110).idle_marks == {"left": 1}
    slot.deliver("left→both", message([28, 6, 40], -20), 500)
    slot.deliver("left→both", message_of(None, END_NS, 0), 500)
    assert len(out(slot, 500)) == 2
    report = gate_report(slot, 500)
    assert (report.late, report.late_dropped) == (0, 1), "6: its window has left"


def live_slot(*names: str, idle: str = "80ms") -> Slot:
    """The gate of live sources with an idle alone."""
    flow = sw.Dataflow("silent")
    live = Feed(lambda: iter([]))
    first, *others = (flow.source(name, live, event_time="t", idle=idle) for name in names)
    first.merge(*others, name="both").sink("out", sw.collect_sink())
    plan = place("silent", plan_stages(flow.graph), ["a", "b"], placement={"*": "b", **HERE})
    return Slot("a", plan.stages_of("a"), start_ns=0)


def live_message(times: list[int]) -> Message:
    """Return a message of times in ms."""
    times_ns = [time * MS for time in times]
    return message_of(batch_of(times_ns, {"t": times_ns}), times_ns[-1], 0)


def frontier(slot: Slot, now_ms: int) -> int:
    out(slot, now_ms * MS)
    frontier_ns = gate_report(slot, now_ms * MS).frontier_ns
    return frontier_ns if frontier_ns == END_NS else frontier_ns // MS


def test_a_live_source_has_no_idle_below_a_millisecond() -> None:
    with pytest.raises(SettingError, match=r"source 'left': idle of 5 ns is too short for a live"):
        live_slot("left", idle="5ns")


@pytest.mark.parametrize("names", [("left",), ("left", "right"), ("left", "right", "more")])
def test_time_goes_on_by_the_clock_where_all_live_channels_are_silent(
    names: tuple[str, ...],
) -> None:
    slot = live_slot(*names)
    for name in names:
        slot.deliver(f"{name}→both", live_message([14]), 20 * MS)
    assert [frontier(slot, 20), frontier(slot, 99)] == [14, 14]
    for now_ms in range(100, 1_000, 10):
        assert frontier(slot, now_ms) == 14 + now_ms - 100, "idle after the clock"
        until_ns = slot.rest(now_ms * MS).until_ns
        assert until_ns == (now_ms + 10) * MS, "asked to look again, eight times in each idle"
    slot.deliver("left→both", live_message([5_000]), 1_000 * MS)
    assert out(slot, 1_080 * MS) == [5_000 * MS], "what is newer is never late"
    assert gate_report(slot, 1_080 * MS).late == 0


def test_an_ended_channel_neither_holds_time_nor_stops_it() -> None:
    slot = live_slot("left", "right")
    slot.deliver(LEFT, live_message([14]), 20 * MS)
    assert frontier(slot, 20) < 0, "right has not spoken"
    slot.deliver(RIGHT, message_of(None, END_NS, 0), 60 * MS)
    assert frontier(slot, 60) == 14
    assert frontier(slot, 120) == 14 + 20
    slot.deliver(LEFT, message_of(None, END_NS, 0), 200 * MS)
    assert frontier(slot, 200) == END_NS


def test_a_channel_that_is_older_than_the_clock_after_a_silence_is_late() -> None:
    slot = live_slot("left")
    slot.deliver(LEFT, live_message([14]), 20 * MS)
    assert [frontier(slot, 20), frontier(slot, 200)] == [14, 114]
    slot.deliver(LEFT, live_message([100, 130]), 210 * MS)
    assert out(slot, 210 * MS) == [100 * MS, 130 * MS]
    assert gate_report(slot, 210 * MS).late == 1
