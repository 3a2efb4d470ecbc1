"""The slot: earliest stimulus first, credit, bounded gates, ends; stimuli in, actions out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import Message, batch_of
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Egress, Grant, Send, Slot
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array(range(1, 101), pa.int64()), "key": pa.array([1] * 100)})


def two_sources(slack: str | None = None) -> sw.Dataflow:
    flow = sw.Dataflow("two", slack=slack)
    left = flow.source("left", sw.table(ROWS), event_time="ts")
    right = flow.source("right", sw.table(ROWS), event_time="ts")
    left.merge(right, name="both").sink("out", sw.collect_sink())
    return flow


def planned(flow: sw.Dataflow, **where: str) -> Plan:
    slots = sorted({"a", *where.values()})
    return place(flow.name, plan_stages(flow.graph), slots, placement={"*": "a", **where})


def slot_of(plan: Plan, name: str, **limits: int) -> Slot:
    return Slot(name, plan.stages_of(name), start_ns=0, limits=Limits(**limits))


def run(slot: Slot, *, now_ns: int = 1_000, most: int = 10_000) -> list[Any]:
    actions: list[Any] = []
    for _ in range(most):
        done = slot.step(now_ns)
        if done is None:
            return actions
        slot.charge(done, 1_000)
        actions += done.actions
    raise AssertionError("the slot never comes to rest")


def message(times: list[int], stimulus_ns: int, promise_ns: int | None = None) -> Message:
    batch = batch_of(times, {"ts": times, "key": times}, stimulus_ns)
    return message_of(batch, times[-1] if promise_ns is None else promise_ns, stimulus_ns)


def test_the_message_with_the_earliest_stimulus_goes_first() -> None:
    flow = sw.Dataflow("lines")
    for name in ("one", "two"):
        source = flow.source(name, sw.table(ROWS), event_time="ts")
        source.sink(f"out-{name}", sw.collect_sink())
    plan = planned(flow, **{"out-one": "b", "out-two": "b"})
    slot = slot_of(plan, "b")
    slot.deliver("one→out-one", message([1], 50), 60)
    slot.deliver("two→out-two", message([1], 40), 70)
    slot.deliver("one→out-one", message([2], 45), 80)
    left = [a for a in run(slot) if isinstance(a, Egress) and a.batch is not None]
    order = [(a.stage, a.batch.event_time_ns.tolist()) for a in left if a.batch is not None]
    assert order == [("out-two", [1]), ("out-one", [1, 2])], "a sink takes all that waits"


def test_a_source_that_is_behind_is_as_urgent_as_the_row_that_waits_longest() -> None:
    """And not as the moment from which on it may be asked again: that is never long ago."""
    flow = sw.Dataflow("behind")
    flow.source("rows", sw.table(ROWS), event_time="ts", speed=1.0).sink("out", sw.collect_sink())
    slot = slot_of(planned(flow, out="b"), "a", max_slice_rows=1, min_slice_rows=1)
    source, gap_ns = slot.stages["rows"], Limits().source_gap_ns
    slot.open(0)
    found = []
    for now_ns in (gap_ns, 2 * gap_ns, 3 * gap_ns):
        assert source.next is not None
        assert source.next.at_ns <= now_ns
        found.append(source.next.rank_ns)
        assert slot.step(now_ns) is not None
        assert source.next.at_ns > now_ns, "it took rows just now"
    assert found == [0, 1, 2]


def test_a_stage_without_credit_does_not_run_until_it_is_granted() -> None:
    plan = planned(two_sources(), both="b", out="b")
    slot = slot_of(plan, "a", credit_rows=30, max_slice_rows=10, min_slice_rows=1)
    sent = [a for a in run(slot) if isinstance(a, Send)]
    rows = {name: sum(s.message.rows for s in sent if s.channel.name == name) for name in CHANNELS}
    assert rows == {"left→both": 30, "right→both": 30}
    slot.credit("left→both", 10)
    more = [a for a in run(slot) if isinstance(a, Send)]
    assert [s.channel.name for s in more] == ["left→both"]


CHANNELS = ("left→both", "right→both")


def test_a_gate_grants_only_to_the_writer_that_everybody_waits_for() -> None:
    plan = planned(two_sources(), left="b", right="b")
    slot = slot_of(plan, "a", gate_rows=5, credit_rows=8)
    slot.deliver("left→both", message(list(range(1, 21)), 1), 10)
    grants = [a for a in run(slot) if isinstance(a, Grant)]
    assert grants == []  # 20 rows of left wait for right
    slot.deliver("right→both", message([1, 2], 2), 20)
    grants = [a for a in run(slot) if isinstance(a, Grant)]
    assert [(g.channel.name, g.rows) for g in grants] == [("right→both", 2)]
    slot.deliver("right→both", message([18], 3), 30)
    grants = [a for a in run(slot) if isinstance(a, Grant)]
    assert sorted((g.channel.name, g.rows) for g in grants) == [
        ("left→both", 20),
        ("right→both", 1),
    ]


def test_rows_are_accounted_for_at_every_moment() -> None:
    plan = planned(two_sources("5ns"))
    slot = slot_of(plan, "a", max_slice_rows=7, min_slice_rows=1)
    out = 0
    while (done := slot.step(1_000)) is not None:
        slot.charge(done, 1_000)
        out += sum(len(a.batch) for a in done.actions if isinstance(a, Egress) and a.batch)
        stages, _ = slot.reports(1_000)
        assert all(stage.is_balanced for stage in stages)
    assert out == 200
    assert slot.is_finished


def test_a_report_stays_as_it_was_while_the_slot_goes_on() -> None:
    slot = slot_of(planned(two_sources("5ns")), "a", max_slice_rows=7, min_slice_rows=1)
    stages, channels = slot.reports(0)
    before = [stage.to_json() for stage in stages], [asdict(channel) for channel in channels]
    while (done := slot.step(1_000)) is not None:
        slot.charge(done, 1_000)
    assert ([stage.to_json() for stage in stages], [asdict(one) for one in channels]) == before


def test_the_end_passes_through_and_closes_the_sink_once() -> None:
    slot = slot_of(planned(two_sources()), "a")
    ends = [a for a in run(slot) if isinstance(a, Egress) and a.is_end]
    assert len(ends) == 1
    assert slot.is_finished


def test_a_gate_that_can_be_read_takes_nothing_more_in() -> None:
    flow = sw.Dataflow("one")
    source = flow.source("events", sw.table(ROWS), event_time="ts")
    source.aggregate(by="key", window=sw.tumbling("10ns"), n=sw.count(), name="counts").sink(
        "out", sw.collect_sink()
    )
    plan = planned(flow, events="b")
    slot = slot_of(plan, "a", max_slice_rows=10, min_slice_rows=1, credit_rows=8)
    for start in range(0, 10_000, 100):  # a hundred messages, each worth ten slices
        slot.deliver("events→counts", message(list(range(start, start + 100)), start), 10)
    gate = slot.stages["counts"].gate
    assert gate is not None
    while (done := slot.step(20)) is not None:
        slot.charge(done, 1)
        assert gate.rows_held <= 110
    assert gate.counts().ready > 9_900


def test_a_flood_of_late_rows_leaves_slice_by_slice() -> None:
    plan = planned(two_sources("5ns"), left="b", right="b")
    slot = slot_of(plan, "a", max_slice_rows=100, min_slice_rows=100, credit_rows=5_000)
    gate = slot.stages["both"].gate
    assert gate is not None
    slot.deliver("left→both", message([10**6, 10**6 + 9], 0), 1)
    run(slot)  # reads the first of them
    late = 0
    for start in range(0, 4_000, 400):  # right, far behind, has been cut off for a while
        slot.deliver("right→both", message(list(range(start, start + 400)), start), 2)
        late += 400
    out, most_held = 0, 0
    while (done := slot.step(3)) is not None:
        slot.charge(done, 1)
        most_held = max(most_held, gate.rows_held)
        for action in done.actions:
            if isinstance(action, Egress) and action.batch is not None:
                assert len(action.batch) <= 100
                out += len(action.batch)
        stages, _ = slot.reports(3)
        assert all(stage.is_balanced for stage in stages)
    assert out == late
    assert most_held <= 401, "one message is taken in, and read to its end"
    (both,) = [stage for stage in slot.reports(3)[0] if stage.name == "both"]
    assert both.late == late
