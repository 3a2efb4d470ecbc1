"""Sources that read what is there already: longer slices, and a gate that waits for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Egress, Slice, Slot
from slackwater.runtime.schedule.stimulus_log import LoggedSlot, replay, replaying
from tests.support.examples import a_third
from tests.support.readers import JitterInput

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


@pytest.mark.parametrize(
    ("options", "limits", "expected"),
    [
        ({}, {}, 65_536),
        ({"speed": 1.0}, {}, 32_768),
        ({}, {"backlog_slice_ns": 1}, 32_768),
        ({"speed": 1.0}, {"slice_ns": 8 * MS}, 65_536),
        ({"read": lambda one: JitterInput(one, seed=1)}, {}, 32_768),
    ],
)
def test_slices_are_twice_as_long_where_no_row_is_due_by_a_clock(
    options: dict[str, Any], limits: dict[str, int], expected: int
) -> None:
    """Of rows that take 50 ns each; behind a slice of half the time comes a longer one."""
    rows = [(at, 1) for at in range(3)]
    size = slot_of(plan_of(rows, rows, **options), **limits)._slice_sizes["pairs"]
    for _ in range(20):
        size.took(size.rows, 50 * size.rows)
    assert size.rows == expected
