"""Channels that fall silent: the gate goes on, and is fair to those that wake up."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from runtime.flow.place import place
from runtime.flow.plan import plan_stages
from runtime.measure.report import StageReport
from runtime.model import END_NS, Message, batch_of
from runtime.schedule import Egress, Slot

ROWS = pa.table({"ts": pa.array([1], pa.int64())})
LEFT, RIGHT = "left→both", "right→both"


def slot_of(*, names: tuple[str, ...] = ("left", "right"), **idle: str) -> Slot:
    """A merge and its sink alone; its sources, some with an idle, are elsewhere."""
    flow = sw.Dataflow("silent")
    first, *others = (
        flow.source(name, sw.table(ROWS), event_time="ts", idle=idle.get(name)) for name in names
    )
    first.merge(*others, name="both").sink("out", sw.collect_sink())
    plan = place("silent", plan_stages(flow), ["a", "b"], placement={"*": "b", **HERE})
    return Slot("a", plan.stages_of("a"), start_ns=0)


HERE = {"both": "a", "out": "a"}


def message(times: list[int], promise_ns: int | None = None) -> Message:
    return Message(batch_of(times, {"ts": times}), promise_ns or times[-1], 0)


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
        slot.deliver(f"{name}→both", Message(None, END_NS, 0), 0)
    slot.deliver(LEFT, message([5, 9]), 10)
    slot.deliver(RIGHT, message([1]), 20)
    assert out(slot, 20) == [1]
    assert slot.wake_ns(20) == 120, "asked to look again when right is idle"
    assert out(slot, 119) == []
    assert out(slot, 120) == [5, 9]
    assert slot.wake_ns(120) is None
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
        slot.deliver(RIGHT, Message(None, 1, 0), now_ns)
        assert out(slot, now_ns) == []
        assert slot.wake_ns(now_ns) == now_ns + 100
    assert gate_report(slot, 270).idle_marks == {}


def test_a_channel_that_nobody_waits_for_is_not_marked() -> None:
    slot = slot_of(left="100ns")
    slot.deliver(LEFT, message([9]), 0)
    slot.deliver(RIGHT, message([1]), 0)
    assert out(slot, 1_000) == [1]
    assert slot.wake_ns(1_000) is None
    slot.deliver(RIGHT, message([20]), 1_000)
    assert out(slot, 1_000) == [9, 20], "now they wait for left, which is long silent"
    assert gate_report(slot, 1_000).idle_marks == {"left": 1}


def test_without_idle_a_gate_waits_for_ever() -> None:
    slot = slot_of()
    slot.deliver(LEFT, message([9]), 0)
    assert out(slot, 10**18) == []
    assert slot.wake_ns(10**18) is None


@pytest.mark.parametrize("others", [0, 20])
def test_the_end_of_all_others_is_not_that_of_an_idle_channel(others: int) -> None:
    names = ("left", "right", *(f"more-{n}" for n in range(others)))
    slot = slot_of(names=names, right="100ns")
    for name in names[2:]:
        slot.deliver(f"{name}→both", Message(None, END_NS, 0), 0)
    slot.deliver(LEFT, message([9], END_NS), 0)
    assert out(slot, 100) == [9]
    assert not slot.is_finished, "right may still wake up"
    slot.deliver(RIGHT, message([3, 11]), 200)
    assert out(slot, 200) == [3, 11]
    slot.deliver(RIGHT, Message(None, END_NS, 0), 300)
    assert out(slot, 300) == []
    assert slot.is_finished
    assert gate_report(slot, 300).rows_out == 3


def test_the_last_that_is_not_idle_is_waited_for() -> None:
    slot = slot_of(left="50ns", right="100ns")
    slot.deliver(RIGHT, message([4]), 0)
    slot.deliver(LEFT, message([5, 9]), 0)
    assert out(slot, 99) == [4]
    assert out(slot, 100) == [5, 9]
    assert slot.wake_ns(1_000) is None
    assert out(slot, 1_000) == []
    assert gate_report(slot, 1_000).idle_marks == {"right": 1}
    assert gate_report(slot, 1_000).waiting_for == ["left"]


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
        (channel,) = plan_stages(flow)[1].inputs
        assert channel.idle_ns == expected * 10**9


def test_idle_reaches_the_gate_through_stateless_stages_and_no_further() -> None:
    flow = sw.Dataflow("chain")
    source = flow.source("feed", sw.table(ROWS), event_time="ts", idle="2s")
    source.sink("raw", sw.collect_sink())
    kept = source.filter(sw.col("ts") > 0, name="kept")
    counts = kept.aggregate(window=sw.tumbling("1s"), n=sw.count(), name="counts")
    counts.aggregate(window=sw.tumbling("5s"), n=sw.count(), name="more").sink(
        "out", sw.collect_sink()
    )
    idle = {c.name: c.idle_ns for stage in plan_stages(flow) for c in stage.inputs}
    assert idle == {
        "feed→raw": None,
        "feed→kept": None,
        "kept→counts": 2 * 10**9,
        "counts→more": None,
        "more→out": None,
    }


# Whole flows


def pausing(**options: Any) -> sw.Dataflow:
    """left ticks each second for two minutes; right says nothing from second 5 to 60."""
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
