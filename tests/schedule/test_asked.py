"""Promises that a join asks for: none is told that lets nothing go, none is missed that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import IDLE_PROMISE_NS, Plan, plan_stages
from slackwater.runtime.schedule import Egress, Send, Slot
from tests.support.examples import a_third

MS = 1_000_000
LEFT, RIGHT = "left→pairs", "right→pairs"


def flow_of(
    left: list[tuple[int, int]],
    right: list[tuple[int, int]],
    *,
    replicas: int | None = None,
    **options: Any,
) -> Any:
    """A join of replays, each row (ms of event time, its value); those of value 0 are left out."""
    flow = sw.Dataflow("asked", **options)
    streams = []
    for name, rows in (("left", left), ("right", right)):
        table = pa.table(
            {
                "ts": pa.array([at for at, _ in rows], pa.int64()),
                "v": pa.array([value for _, value in rows], pa.int64()),
                "k": pa.array([1] * len(rows), pa.int64()),
            }
        )
        stream = flow.source(name, sw.table(table), event_time="ts", time_unit="ms", speed=1.0)
        streams.append(stream.filter(sw.col("v") > 0))
    joined = streams[0].join(streams[1], on="k", within="10ms", name="pairs", replicas=replicas)
    joined.sink("out", sw.collect_sink())
    return flow


def plan_of(flow: sw.Dataflow, **where: str) -> Plan:
    return place(flow.name, plan_stages(flow.graph), ["a", "b"], placement={"*": "a", **where})


def slot_of(plan: Plan, name: str = "a", **settings: Any) -> Slot:
    return Slot(name, plan.stages_of(name), start_ns=0, limits=Limits(), **settings)


def steps(slot: Slot, until_ns: int, *, from_ns: int = 0) -> Iterator[tuple[int, Any]]:
    """Run as a host does; yield each action, and when."""
    now_ns: int | None = from_ns
    while now_ns is not None and now_ns <= until_ns:
        while (done := slot.step(now_ns)) is not None:
            slot.charge(done, 1_000)
            for action in done.actions:
                yield now_ns, action
        now_ns = slot.rest(now_ns).until_ns


def results(found: Iterator[tuple[int, Any]]) -> list[tuple[int, int, int]]:
    """Return (ms of the clock, value, value of the right) of each pair that left."""
    return [
        (now_ns // MS, int(left), int(right))
        for now_ns, action in found
        if isinstance(action, Egress) and action.batch is not None
        for left, right in zip(
            action.batch.columns["v"], action.batch.columns["v_right"], strict=True
        )
    ]


def every_ms(count: int, **values: int) -> list[tuple[int, int]]:
    return [(at, values.get(f"at_{at}", 0)) for at in range(count)]


def test_a_join_is_told_of_a_promise_once_it_lets_a_row_go() -> None:
    flow = flow_of(every_ms(40, at_10=1), every_ms(40, at_12=2))
    slot = slot_of(plan_of(flow))
    assert results(steps(slot, 39 * MS)) == [(13, 1, 2)], "at 12 the left may have one more of 12"
    left, right = slot.channels[LEFT].messages, slot.channels[RIGHT].messages
    # Its row, and what lets the other's go.
    assert left + right <= 6, "forty promises each, of which most let nothing go"


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_sink_that_puts_rows_in_order_asks_joins_which_ask_sources(replicas: int) -> None:
    flow = flow_of(every_ms(40, at_10=1), every_ms(40, at_12=2), replicas=replicas)
    slot = slot_of(plan_of(flow))
    assert results(steps(slot, 38 * MS)) == [(13, 1, 2)], "no other pair of 12 can follow"
    messages = {name: channel.messages for name, channel in slot.channels.items()}
    assert sum(messages.values()) <= 6 * 2 * replicas, messages


def test_a_row_that_waits_for_what_was_promised_before_leaves_at_once() -> None:
    """Right has promised 30, and nobody was told; then a row of 5 comes late from left."""
    left = [(0, 0), (5, 1), (31, 0)]
    flow = sw.Dataflow("late")
    table = pa.table({"ts": [at for at, _ in left], "arrival": [0, 30, 31], "v": [0, 1, 0]})
    table = table.append_column("k", pa.array([1, 1, 1]))
    late = flow.source(
        "left", sw.table(table), event_time="ts", time_unit="ms", arrival="arrival", speed=1.0
    )
    rows = every_ms(40, at_6=2)
    table = pa.table({"ts": [at for at, _ in rows], "v": [v for _, v in rows], "k": [1] * 40})
    other = flow.source("right", sw.table(table), event_time="ts", time_unit="ms", speed=1.0)
    kept = [one.filter(sw.col("v") > 0) for one in (late, other)]
    kept[0].join(kept[1], on="k", within="10ms", name="pairs").sink("out", sw.collect_sink())
    slot = slot_of(plan_of(flow))
    found = results(steps(slot, 60 * MS))
    assert found == [(31, 1, 2)], "6 of the right waits for the left, which comes to it at 31"


def test_promises_alone_are_told_now_and_then_so_that_a_join_forgets() -> None:
    flow = flow_of(every_ms(400, at_3=1), every_ms(400))
    slot = slot_of(plan_of(flow))
    assert results(steps(slot, 300 * MS)) == []
    assert slot.stages["pairs"].operator is not None
    assert slot.stages["pairs"].operator.rows_held == 0
    gaps = 300 * MS // IDLE_PROMISE_NS
    assert gaps <= slot.channels[LEFT].messages <= 2 * gaps + 4


def test_who_is_sampled_or_counts_late_rows_or_is_elsewhere_is_told_everything() -> None:
    rows = every_ms(40), every_ms(40)
    sampled = slot_of(plan_of(flow_of(*rows)), is_sampled=True)
    slack = slot_of(plan_of(flow_of(*rows, slack="5ms")))
    for slot in (sampled, slack):
        list(steps(slot, 39 * MS))
        assert slot.channels[LEFT].messages >= 39
    apart = slot_of(plan_of(flow_of(*rows), pairs="b", out="b"))
    assert sum(isinstance(action, Send) for _, action in steps(apart, 39 * MS)) >= 78


def moved_away(flow: Any) -> tuple[dict[str, Any], Plan]:
    """Return what a slot of two sources has behind 20 ms, and where its join is from now on."""
    here = slot_of(plan_of(flow))
    list(steps(here, 20 * MS))
    state = from_plain(to_plain(here.snapshot()))
    mine, channels = ("left", "right"), (LEFT, RIGHT)
    for kind, part, names in (
        ("stream", "stages", mine),
        ("stream", "sent", channels),
        ("stream", "credit", channels),
        ("measures", "stages", mine),
        ("measures", "slice_sizes", mine),
        ("measures", "channels", channels),
    ):
        state[kind][part] = {name: state[kind][part][name] for name in names}
    state["stream"] |= {"owed": {}, "received": {}}
    return state, plan_of(flow, pairs="b", out="b")


def told_at_once(slot: Slot) -> dict[str, int]:
    """Return what the first slice of a slot promises: {channel: promise}."""
    done = slot.step(20 * MS)
    assert done is not None
    return {
        a.channel.name: a.message.progress.promise_ns for a in done.actions if isinstance(a, Send)
    }


def test_a_join_that_moves_away_is_told_what_nobody_had_asked_for() -> None:
    state, plan = moved_away(flow_of(every_ms(40, at_3=1), every_ms(40)))
    slot = slot_of(plan)
    slot.restore(state)
    assert told_at_once(slot) == {LEFT: 20 * MS, RIGHT: 20 * MS}


def test_so_it_is_if_its_sources_are_put_away_again_before_they_have_said_it() -> None:
    state, plan = moved_away(flow_of(every_ms(40, at_3=1), every_ms(40)))
    between, slot = slot_of(plan), slot_of(plan)
    between.restore(state)
    slot.restore(from_plain(to_plain(between.snapshot())))
    assert told_at_once(slot) == {LEFT: 20 * MS, RIGHT: 20 * MS}


values = st.lists(st.integers(0, 2), min_size=1, max_size=40)


@given(left=values, right=values, cut=st.integers(0, 50))
@a_third
def test_the_pairs_and_when_they_leave_are_those_of_one_that_is_told_everything(
    left: list[int], right: list[int], cut: int
) -> None:
    """Also where the slot is put away and taken out again in the middle."""
    rows = list(enumerate(left)), list(enumerate(right))
    plan = plan_of(flow_of(*rows))
    told = results(steps(slot_of(plan, is_sampled=True), 100 * MS))
    first, again = slot_of(plan), slot_of(plan)
    found = results(steps(first, cut * MS))
    again.restore(from_plain(to_plain(first.snapshot())))
    found += results(steps(again, 100 * MS, from_ns=cut * MS))
    assert found == told


def test_on_arrival_nothing_changes() -> None:
    flow = flow_of(every_ms(40, at_10=1), every_ms(40, at_12=2), slack="0s")
    assert results(steps(slot_of(plan_of(flow)), 39 * MS)) == [(12, 1, 2)]
