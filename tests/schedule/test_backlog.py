"""Rows that have waited get longer slices; a gate of two files waits for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import Batch, Message
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Egress, Slice, Slot
from slackwater.runtime.schedule.stimulus_log import LoggedSlot, replay, replaying
from tests.support.examples import a_third
from tests.support.readers import JitterInput
from tests.support.told import message_of

MS = 1_000_000
Row = tuple[int, int]  # ms of event time, and its value; those of value 0 are left out


def stream_of(
    flow: sw.Dataflow,
    name: str,
    rows: list[Row],
    *,
    read: Callable[[Any], Any] = lambda one: one,
    **options: Any,
) -> sw.Stream:
    table = pa.table(
        {
            "ts": pa.array([at for at, _ in rows], pa.int64()),
            "v": pa.array([value for _, value in rows], pa.int64()),
            "k": pa.array([1] * len(rows), pa.int64()),
        }
    )
    source = flow.source(name, read(sw.table(table)), event_time="ts", time_unit="ms", **options)
    return source.filter(sw.col("v") > 0)


def plan_of(
    left: list[Row], right: list[Row], *, slack: str | None = None, where: str = "a", **options: Any
) -> Plan:
    flow = sw.Dataflow("backlog", slack=slack)
    streams = [stream_of(flow, name, rows, **options) for name, rows in (("l", left), ("r", right))]
    joined = streams[0].join(streams[1], on="k", within="10ms", name="pairs")
    joined.sink("out", sw.collect_sink())
    placement = {"*": "a", "pairs": where, "out": where}
    return place(flow.name, plan_stages(flow.graph), ["a", "b"], placement=placement)


def slot_of(plan: Plan, *, waits: bool = True, **limits: Any) -> Slot:
    """Return slot a; one that does not wait is as it would be without `AwaitedSources`."""
    slot = Slot("a", plan.stages_of("a"), start_ns=0, limits=Limits(**limits))
    if not waits:
        slot._awaited.gates.clear()
    return slot


def slices(slot: Slot, most: int = 10_000) -> Iterator[Slice]:
    for _ in range(most):
        if (done := slot.step(0)) is None:
            return
        slot.charge(done, 1_000)
        yield done


def results(found: list[Slice]) -> list[tuple[int, int]]:
    return [
        (int(left), int(right))
        for done in found
        for action in done.actions
        if isinstance(action, Egress) and action.batch is not None
        for left, right in zip(
            action.batch.columns["v"], action.batch.columns["v_right"], strict=True
        )
    ]


def staggered(rows: int, by: int) -> list[Row]:
    """Return rows of which one in ten is let in: one each ms, and `by` more in the first."""
    return [(max(at - by, 0), 1 + at if at % 10 == 0 else 0) for at in range(rows)]


def test_a_join_of_two_files_takes_a_slice_of_both_at_once() -> None:
    plan = plan_of(staggered(2_000, 0), staggered(2_000, 25))
    found = {}
    for waits in (True, False):
        done = list(slices(slot_of(plan, waits=waits, max_slice_rows=100)))
        found[waits] = results(done)
        rows = [one.released for one in done if one.stage == "pairs" and one.released]
        assert sum(rows) == 400
        few = [one for one in rows[2:-2] if one < 8]  # what was left of the other
        assert (not few) if waits else len(few) > 5, rows
    assert found[True] == found[False]


def test_a_source_that_has_nothing_to_say_is_let_go_first_once() -> None:
    """All of its rows are left out, and a promise alone is not sent before anybody asks for it."""
    plan = plan_of([(at, 1) for at in range(1_000)], [(at // 10, 0) for at in range(10_000)])
    slot = slot_of(plan, max_slice_rows=10)
    assert "pairs" in slot._awaited.gates
    order = [done.stage for done in slices(slot, most=200)]
    waiting = [0]
    for stage in order:
        waiting.append(0 if stage == "pairs" else waiting[-1] + (stage == "r"))
    assert order.count("pairs") >= 20
    assert max(waiting) <= 3, "one that went first, and one or two whose turn it was"


row = st.tuples(st.integers(0, 40), st.sampled_from([0, 1, 2, 3]))
rows = st.lists(row, max_size=40).map(sorted)


@given(
    left=rows,
    right=rows,
    max_rows=st.sampled_from([1, 3, 8, 100]),
    credit_rows=st.sampled_from([1, 5, 1_000]),
    cut=st.integers(0, 30),
)
@a_third
def test_what_leaves_is_the_same_and_in_the_same_order(
    left: list[Row], right: list[Row], max_rows: int, credit_rows: int, cut: int
) -> None:
    """Beside a slot that waits for nobody; the one that does is restored on the way."""
    plan = plan_of(left, right)
    limits = {"max_slice_rows": max_rows, "credit_rows": credit_rows, "min_slice_rows": 1}
    slot, other = (slot_of(plan, waits=waits, **limits) for waits in (True, False))
    found = list(slices(slot, most=cut))
    restored = slot_of(plan, **limits)
    restored.restore(from_plain(to_plain(slot.snapshot())))
    again = list(slices(restored))
    assert [one.stage for one in again] == [one.stage for one in slices(slot)]
    assert results(found + again) == results(list(slices(other)))
    assert restored.is_finished
    assert other.is_finished
    for one, two in zip(restored.reports(0)[0], other.reports(0)[0], strict=True):
        assert (one.rows_in, one.rows_out, one.counts) == (two.rows_in, two.rows_out, two.counts)


def test_stages_that_go_on_in_a_new_slot_are_the_ones_that_it_waits_for() -> None:
    """As when other stages of a slot move away: what stays, stays as it is, its open input too."""
    plan = plan_of(staggered(600, 0), staggered(600, 25))
    undisturbed, slot, after = (slot_of(plan, max_slice_rows=20) for _ in range(3))
    found = results(list(slices(undisturbed)))
    before = list(slices(slot, most=40))
    after.restore(slot.snapshot(()), slot)
    assert results(before + list(slices(after))) == found
    assert after.is_finished
    for one, two in zip(after.reports(0)[0], undisturbed.reports(0)[0], strict=True):
        assert (one.rows_in, one.rows_out, one.counts) == (two.rows_in, two.rows_out, two.counts)


def test_a_log_replays_who_went_first() -> None:
    plan = plan_of(staggered(600, 0), staggered(600, 25))
    logged = LoggedSlot(
        "a", plan.stages_of("a"), start_ns=0, limits=Limits(log=100_000, max_slice_rows=20)
    )
    done = [(one.stage, one.rows) for one in slices(logged)]
    log = logged.log()
    again = Slot(
        "a", replaying(plan.stages_of("a"), log), start_ns=0, limits=Limits(max_slice_rows=20)
    )
    assert [(one.stage, one.rows) for one in replay(again, log) if one is not None] == done


def test_only_a_ready_only_gate_with_both_sources_beside_it_waits() -> None:
    rows = [(at, 1) for at in range(10)]
    assert slot_of(plan_of(rows, rows))._awaited.gates == {"pairs"}
    assert not slot_of(plan_of(rows, rows, speed=1.0))._awaited.gates, "due by the clock"
    assert not slot_of(plan_of(rows, rows, slack="5ms"))._awaited.gates, "late is who comes late"
    assert not slot_of(plan_of(rows, rows, where="b"))._awaited.gates
    assert not slot_of(plan_of(rows, rows, idle="1s"))._awaited.gates
    live = plan_of(rows, rows, read=lambda one: JitterInput(one, seed=1))
    assert not slot_of(live)._awaited.gates, "what may be live is not there already"
    late = plan_of(rows, rows, out_of_order=sw.order.k_slack("3ms", late="pass"))
    assert not slot_of(late)._awaited.gates, "late is who comes behind a promise"
    plan = plan_of(rows, rows)
    logged = LoggedSlot("a", plan.stages_of("a"), start_ns=0, limits=Limits(log=10))
    assert logged._awaited.gates == {"pairs"}, "a log changes nothing of what it tells"
    sampled = Slot("a", plan.stages_of("a"), start_ns=0, is_sampled=True)
    assert not sampled._awaited.gates


ROWS_OF_2_MS = 20_000  # of 100 ns each


def settled_size(slot: Slot, stage: str = "pairs") -> None:
    """Let full slices of a stage take 100 ns for each row."""
    size = slot._lengths.sizes[stage]
    for _ in range(20):
        size.took(size.rows, 100 * size.rows)


def next_rows(slot: Slot, now_ns: int, stage: str = "pairs") -> int:
    slot._ready.first(now_ns, lambda _: True)  # what is due by now has work
    return slot._lengths.next_rows(slot.stages[stage], slot._ready, now_ns)


@pytest.mark.parametrize(
    ("now_ns", "most_ns"),
    [(0, 2 * MS), (9 * MS, 2 * MS), (15 * MS, 3 * MS), (10**9, 4 * MS)],
)
def test_slices_of_existing_data_grow_with_the_wait_since_the_start(
    now_ns: int, most_ns: int
) -> None:
    rows = [(at, 1) for at in range(3)]
    slot = slot_of(plan_of(rows, rows))
    settled_size(slot)
    expected = pytest.approx(most_ns / 100, rel=0.01)  # at most twice what was tried
    assert next_rows(slot, now_ns) == expected


def test_flows_of_existing_data_begin_with_long_slices() -> None:
    rows = [(at, 1) for at in range(3)]
    live = {"read": lambda one: JitterInput(one, seed=1)}
    for options, source, pairs in (({}, 65_536, 1_000), ({"speed": 1.0}, 64, 64), (live, 64, 64)):
        sizes = slot_of(plan_of(rows, rows, **options))._lengths.sizes
        first = [sizes[stage].rows for stage in ("l", "pairs", "out")]
        assert first == [source, pairs, 64], options
    plan = plan_of(rows, rows)
    hurried = Slot("a", plan.stages_of("a"), start_ns=0, deadline_ns=30 * MS)
    assert hurried._lengths.sizes["l"].rows == 64, "a deadline leaves no time for a long one"


def test_a_step_that_runs_users_code_begins_with_a_short_slice() -> None:
    flow = sw.Dataflow("own")
    rows = stream_of(flow, "l", [(at, 1) for at in range(3)])
    rows.map_rows(lambda row: {"v": row["v"]}, {"v": "int64"}).sink("out", sw.collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["a"])
    sizes = slot_of(plan)._lengths.sizes
    assert [size.rows for size in sizes.values()] == [64, 64]


def test_slices_stay_short_where_rows_may_be_due_by_the_clock() -> None:
    rows = [(at, 1) for at in range(3)]
    slot = slot_of(plan_of(rows, rows, speed=1.0))
    settled_size(slot)
    assert next_rows(slot, 10**9) == pytest.approx(ROWS_OF_2_MS, rel=0.01)


def test_the_plan_says_in_each_slot_that_all_data_exists() -> None:
    rows = [(at, 1) for at in range(3)]
    live = {"read": lambda one: JitterInput(one, seed=1)}
    for options, expected in (({}, 2), ({"speed": 1.0}, 1), (live, 1)):
        plan = plan_of(rows, rows, where="b", **options)
        slot = Slot("b", plan.stages_of("b"), start_ns=0)
        settled_size(slot)
        assert next_rows(slot, 10**9) == pytest.approx(expected * ROWS_OF_2_MS, rel=0.01)


def test_an_input_that_always_has_rows_is_a_backlog_until_it_has_none() -> None:
    rows = [(at, 1) for at in range(300)]
    blocks = plan_of(rows, rows, read=lambda one: JitterInput(one, seed=1))
    slot = slot_of(blocks)
    settled_size(slot)
    assert next_rows(slot, 15 * MS) == pytest.approx(1.5 * ROWS_OF_2_MS, rel=0.01)
    for name in ("l", "r"):
        stage = slot.stages[name]
        while stage.work(14 * MS, max_rows=1_000).sends:  # until a poll has nothing
            pass
    assert next_rows(slot, 15 * MS) == pytest.approx(ROWS_OF_2_MS, rel=0.01)


def test_a_deadline_bounds_slices_to_its_tenth() -> None:
    rows = [(at, 1) for at in range(3)]
    plan = plan_of(rows, rows)
    slot = Slot("a", plan.stages_of("a"), start_ns=0, deadline_ns=30 * MS)
    settled_size(slot)
    assert next_rows(slot, 10**9) == pytest.approx(1.5 * ROWS_OF_2_MS, rel=0.01)
    slot = Slot("a", plan.stages_of("a"), start_ns=0, deadline_ns=10 * MS)
    settled_size(slot)
    assert next_rows(slot, 10**9) == pytest.approx(ROWS_OF_2_MS / 2, rel=0.01)


def rows_at(*stimuli_ns: int) -> Message:
    times = np.arange(len(stimuli_ns), dtype=np.int64)
    columns = {"k": times, "v": times}
    return message_of(
        Batch(event_time_ns=times, stimulus_time_ns=np.array(stimuli_ns), columns=columns),
        0,
        stimuli_ns[-1],
    )


def test_a_long_slice_takes_no_row_past_an_older_one_of_another_stage() -> None:
    """Two gates have work, of 40 ms ago and of 30: the first takes what came before the second."""
    flow = sw.Dataflow("two")
    for name in ("one", "two"):
        rows = stream_of(flow, name, [(at, 1) for at in range(3)])
        rows.aggregate(by="k", window=sw.tumbling("10ms"), n=sw.count(), name=f"n-{name}").sink(
            f"out-{name}", sw.collect_sink()
        )
    placement = {"*": "a", "one": "b", "two": "b"}
    plan = place(flow.name, plan_stages(flow.graph), ["a", "b"], placement=placement)
    slot = Slot("a", plan.stages_of("a"), start_ns=0)
    size = slot._lengths.sizes["n-one"]
    for _ in range(20):
        size.took(size.rows, 1_000_000 * size.rows)  # a row takes 1 ms: two in 2 ms, eight in 8
    assert size.rows == 2
    for stimulus_ms in (10, 18, 22, 24, 26):
        message = rows_at(stimulus_ms * MS)
        slot.deliver("one→n-one", message, stimulus_ms * MS)
    assert next_rows(slot, 50 * MS, "n-one") == 4, "twice what was tried"
    slot.deliver("two→n-two", rows_at(23 * MS), 23 * MS)
    assert next_rows(slot, 50 * MS, "n-one") == 3, "those of 10, 18 and 22 ms"
    slot.deliver("two→n-two", rows_at(11 * MS), 24 * MS)
    assert next_rows(slot, 50 * MS, "n-one") == 2, "a usual slice, whatever else waits"
