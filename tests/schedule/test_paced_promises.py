"""Promises alone between slots: no more than their rate allows, none lost, none much later."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import END_NS
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Send, Slot

MS = 1_000_000
REPLICAS, ROWS, GAP_NS = 4, 400, MS // 2
UNTIL_NS = 60 * MS  # the last row is due at 40 ms
"""A gap of 2 ms: this for each of the four channels that leave the slot."""


def plan_of() -> Plan:
    """Return the plan of a source of a row each 100 µs, most with one key, for four replicas."""
    times = [at * MS // 10 for at in range(ROWS)]
    table = pa.table({"ts": times, "k": [at // 30 * (at % 30 == 0) for at in range(ROWS)]})
    flow = sw.Dataflow("paced")
    stream = flow.source("rows", sw.table(table), event_time="ts", time_unit="ns", speed=1.0)
    counted = stream.aggregate(
        by="k", window=sw.tumbling("10ms"), n=sw.count(), name="counts", replicas=REPLICAS
    )
    counted.sink("out", sw.collect_sink())
    stages = plan_stages(flow.graph)
    return place(flow.name, stages, ["a", "b"], placement={"*": "b", "rows": "a"})


def slot_of(plan: Plan, gap_ns: int = GAP_NS) -> Slot:
    return Slot("a", plan.stages_of("a"), start_ns=0, limits=Limits(promise_gap_ns=gap_ns))


def sent(slot: Slot, until_ns: int, *, from_ns: int = 0) -> list[tuple[int, str, Any]]:
    """Run as a host does; return (when, channel, message) of each that leaves."""
    found = []
    now_ns: int | None = from_ns
    while now_ns is not None and now_ns <= until_ns:
        while (done := slot.step(now_ns)) is not None:
            slot.charge(done, 1_000)
            found += [
                (now_ns, action.channel.name, action.message)
                for action in done.actions
                if isinstance(action, Send)
            ]
        before_ns, now_ns = now_ns, slot.rest(now_ns).until_ns
        assert now_ns is None or now_ns > before_ns, "a slot without work sleeps"
    return found


def test_a_promise_alone_waits_for_a_silent_channel_and_no_longer_than_a_gap() -> None:
    slot, gap_ns = slot_of(plan_of()), GAP_NS * REPLICAS
    last_ns, told = dict.fromkeys(slot.channels, 0), {name: [(0, -1)] for name in slot.channels}
    found = sent(slot, UNTIL_NS)
    alone = 0
    for now_ns, channel, message in found:
        promise_ns = message.progress.promise_ns
        if message.batch is None and promise_ns != END_NS:
            alone += 1
            assert 2 * (now_ns - last_ns[channel]) >= gap_ns
        last_ns[channel] = now_ns
        told[channel].append((now_ns, promise_ns))
    assert alone, "some channel was silent"
    for at_ns, _, message in found:
        promise_ns = message.progress.promise_ns
        for channel, heard in told.items():
            by_then = max(known_ns for when, known_ns in heard if when <= at_ns + gap_ns)
            assert by_then >= promise_ns, (at_ns, channel)


@pytest.mark.parametrize(
    ("gap_ns", "most"), [(1, REPLICAS * ROWS), (GAP_NS, 2 * 40 // 2 * REPLICAS)]
)
def test_the_gap_bounds_the_rate_and_the_report_counts_both_kinds(gap_ns: int, most: int) -> None:
    slot = slot_of(plan_of(), gap_ns)
    found = sent(slot, UNTIL_NS)
    told: dict[str, set[int]] = {name: set() for name in slot.channels}
    for _, channel, message in found:
        told[channel].add(message.progress.promise_ns)
    moves = len(set[int]().union(*told.values()))
    for channel in slot.reports(UNTIL_NS)[1]:
        assert len(told[channel.name]) + channel.withheld == moves
        assert channel.promises == sum(m.batch is None for _, n, m in found if n == channel.name)
    alone = sum(message.batch is None for _, _, message in found)
    assert 0 < alone <= most
    withheld = sum(moves - len(own) for own in told.values())
    assert (withheld > alone) == (gap_ns == GAP_NS)


@pytest.mark.parametrize("cut_ns", [5 * MS, 7 * MS + MS // 3, 20 * MS])
def test_a_snapshot_keeps_what_is_owed(cut_ns: int) -> None:
    plan = plan_of()
    whole = [(at, name, m.progress) for at, name, m in sent(slot_of(plan), UNTIL_NS)]
    first, again = slot_of(plan), slot_of(plan)
    found = sent(first, cut_ns)
    again.restore(from_plain(to_plain(first.snapshot())))
    found += sent(again, UNTIL_NS, from_ns=cut_ns)
    assert [(at, name, m.progress) for at, name, m in found] == whole
