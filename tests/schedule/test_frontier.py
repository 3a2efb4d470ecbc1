"""What a gate's stage promises is never ahead of a row that it still holds."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import END_NS, START_NS, Message, batch_of
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.schedule import Send, Slot
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array([1], pa.int64())})


def slot_of(slack: str, *, rows_a_slice: int) -> Slot:
    """A merge alone; its sources and its sink are elsewhere."""
    flow = sw.Dataflow("f", slack=slack)
    left, right = (flow.source(name, sw.table(ROWS), event_time="ts") for name in ("a", "b"))
    left.merge(right, name="both").sink("out", sw.collect_sink())
    plan = place("f", plan_stages(flow.graph), ["x", "y"], placement={"*": "y", "both": "x"})
    limits = Limits(min_slice_rows=1, max_slice_rows=rows_a_slice, credit_rows=10**6)
    return Slot("x", plan.stages_of("x"), start_ns=0, limits=limits)


def message(times: list[int], promise_ns: int) -> Message:
    return message_of(batch_of(times, {"ts": times}) if times else None, promise_ns, 0)


def sent(slot: Slot) -> list[Message]:
    messages: list[Message] = []
    while (done := slot.step(10)) is not None:
        messages += [action.message for action in done.actions if isinstance(action, Send)]
    return messages


def check_promises(messages: list[Message]) -> list[int]:
    """Check that none is broken by a later message; return all event times."""
    promised, times = START_NS, []
    for one in messages:
        if one.batch is not None:
            assert int(one.batch.event_time_ns.min()) >= promised
            times += one.batch.event_time_ns.tolist()
        assert one.progress.promise_ns >= promised
        promised = one.progress.promise_ns
    return times


def test_a_read_whose_limit_leaves_late_rows_in_the_queue_does_not_promise_past_them() -> None:
    slot = slot_of("0s", rows_a_slice=5)
    slot.deliver("a→both", message([100], 100), 10)
    before = sent(slot)
    slot.deliver("b→both", message(list(range(1, 11)), 50), 10)
    after = sent(slot)
    assert [one.rows for one in after] == [5, 5], "the limit cut the late rows in two"
    assert check_promises(before + after) == [100, *range(1, 11)]
    assert [one.progress.promise_ns for one in after] == [6, 50]


STEPS = st.lists(
    st.tuples(
        st.booleans(), st.lists(st.integers(0, 30), max_size=8).map(sorted), st.integers(0, 9)
    ),
    max_size=12,
)


@given(steps=STEPS, slack=st.sampled_from(["0s", "5ns", "40ns"]), rows=st.integers(1, 6))
def test_no_row_breaks_a_promise_that_was_sent_before_it(
    steps: list[tuple[bool, list[int], int]], slack: str, rows: int
) -> None:
    slot = slot_of(slack, rows_a_slice=rows)
    promises = {"a→both": 0, "b→both": 0}
    inserted: list[int] = []
    messages: list[Message] = []
    for is_left, aheads, beyond in steps:
        channel = "a→both" if is_left else "b→both"
        times = [promises[channel] + ahead for ahead in aheads]
        promises[channel] = max([promises[channel] + beyond, *times])
        slot.deliver(channel, message(times, promises[channel]), 10)
        inserted += times
        messages += sent(slot)
    for channel in promises:
        slot.deliver(channel, message([], END_NS), 10)
    messages += sent(slot)
    assert sorted(check_promises(messages)) == sorted(inserted)
    assert messages[-1].progress.is_end
