"""Rows of a backlog for several replicas wait for each other, and leave as they came."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Send, Slot
from tests.support.examples import a_third

Row = tuple[int, int, int]  # event time; key; 0 if a filter leaves it out
MOST_ROWS = 4
LONGEST_NS = 1_000


def plan_of(rows: list[Row]) -> Plan:
    """A source in a slot of its own, three replicas in another."""
    names = ("ts", "k", "v")
    types = (pa.int64(), pa.int64(), pa.float64())  # the mean of floats is added up in replicas
    columns = [pa.array([row[at] for row in rows], types[at]) for at in range(len(names))]
    flow = sw.Dataflow("gathered")
    source = flow.source("s", sw.table(pa.table(columns, names)), event_time="ts")
    means = source.filter(sw.col("v") > 0).aggregate(
        by="k", window=sw.tumbling("1s"), mean=sw.mean("v"), replicas=3, name="means"
    )
    means.sink("out", sw.collect_sink())
    return place("f", plan_stages(flow.graph), ["a", "b"], placement={"*": "b", "s": "a"})


def slot_of(plan: Plan, **options: Any) -> Slot:
    limits = Limits(
        max_slice_rows=MOST_ROWS, min_slice_rows=1, slice_ns=LONGEST_NS, longest_slice_ns=LONGEST_NS
    )
    return Slot("a", plan.stages_of("a"), start_ns=0, limits=limits, **options)


def sent(slot: Slot, now_ns: list[int], most: int = 1_000) -> list[list[Send]]:
    """Return the messages of each slice, at these times and then at the last of them."""
    slices: list[list[Send]] = []
    while len(slices) < most:
        at_ns = now_ns[min(len(slices), len(now_ns) - 1)]
        if (done := slot.step(at_ns)) is None:
            break
        slices.append([action for action in done.actions if isinstance(action, Send)])
        for action in slices[-1]:
            slot.credit(action.channel.name, max(action.message.rows, 1))
    return slices


def rows_by_channel(slices: list[list[Send]]) -> dict[str, list[tuple[int, float]]]:
    """Return the rows of each channel; check that none is older than promised before it."""
    rows: dict[str, list[tuple[int, float]]] = {}
    promised: dict[str, int] = {}
    for action in [action for actions in slices for action in actions]:
        name, batch = action.channel.name, action.message.batch
        own = rows.setdefault(name, [])
        if batch is not None:
            times, values = batch.event_time_ns.tolist(), batch.columns["v"].tolist()
            assert min(times) >= promised.get(name, 0)
            own += zip(times, values, strict=True)
        assert action.message.progress.promise_ns >= promised.get(name, 0)
        promised[name] = action.message.progress.promise_ns
    return rows


rows_in_order = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, 2)), max_size=60
).map(sorted)


@given(rows=rows_in_order, cut=st.integers(0, 25), steps=st.lists(st.integers(0, 700), max_size=30))
@a_third
def test_gathered_rows_leave_in_their_order_from_a_snapshot_too(
    rows: list[Row], cut: int, steps: list[int]
) -> None:
    plan = plan_of(rows)
    now_ns = [sum(steps[:n]) for n in range(len(steps) + 1)]
    alone = sent(slot_of(plan, deadline_ns=10**9), [0])  # with a deadline none waits
    slot, restored = slot_of(plan), slot_of(plan)
    before = sent(slot, now_ns, most=cut)
    restored.restore(from_plain(to_plain(slot.snapshot())))
    after = sent(restored, now_ns[len(before) :] or now_ns[-1:])
    assert restored.is_finished
    assert rows_by_channel(before + after) == rows_by_channel(alone)


def test_rows_wait_for_a_whole_slice_of_them_and_no_longer_than_a_slice_may_take() -> None:
    rows = [(at, at % 7, int(at % 2 == 0)) for at in range(80)]
    plan = plan_of(rows)

    def rows_of(slices: list[list[Send]]) -> list[int]:
        return [n for own in slices if (n := sum(action.message.rows for action in own))]

    assert rows_of(sent(slot_of(plan), [0]))[:-1] == [MOST_ROWS] * 9
    slow = [LONGEST_NS * n for n in range(100)]
    assert set(rows_of(sent(slot_of(plan), slow))) == {MOST_ROWS}  # of two slices
    assert set(rows_of(sent(slot_of(plan, is_sampled=True), [0]))) == {MOST_ROWS // 2}
