"""A source's rows that its filter leaves out: as behind a slice with a message, only shorter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.measure.outcomes import FILTERED, READY
from slackwater.runtime.measure.report import ChannelReport, StageReport
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Egress, Send, Slot
from slackwater.runtime.schedule.source_node import SourceNode
from tests.support.examples import a_third
from tests.support.readers import JitterInput
from tests.support.states import canonical

MS = 1_000_000
Row = tuple[int, int, int]  # ms until it arrives behind the one before; its event time; its value
_leave_out = SourceNode.leave_out


def plan_of(left: list[Row], right: list[Row], *, slack: str | None, apart: bool) -> Plan:
    flow = sw.Dataflow("left out", slack=slack)
    streams = []
    for name, rows in (("left", left), ("right", right)):
        at, arrivals = 0, []
        for gap, _, _ in rows:
            arrivals.append(at := at + gap)
        table = pa.table(
            {
                "arrival": pa.array(arrivals, pa.int64()),
                "ts": pa.array([ts for _, ts, _ in rows], pa.int64()),
                "v": pa.array([value for _, _, value in rows], pa.int64()),
                "k": pa.array([1] * len(rows), pa.int64()),
            }
        )
        stream = flow.source(
            name,
            sw.table(table),
            event_time="ts",
            time_unit="ms",
            arrival="arrival",
            speed=1.0,
            out_of_order="late",
        )
        streams.append(stream.filter((sw.col("v") > 0) & (sw.col("v") < 3)))
    joined = streams[0].join(streams[1], on="k", within="10ms", name="pairs")
    joined.sink("out", sw.collect_sink())
    where = {"pairs": "b", "out": "b"} if apart else {}
    return place(flow.name, plan_stages(flow.graph), ["a", "b"], placement={"*": "a", **where})


def slot_of(plan: Plan, gap_ns: int) -> Slot:
    return Slot("a", plan.stages_of("a"), start_ns=0, limits=Limits(source_gap_ns=gap_ns))


def told(slot: Slot, now_ns: int) -> tuple[list[Any], list[Any]]:
    """Return a slot's slices until it sleeps, sorted, and what it sends and hands over.

    Slices take as long as they have rows; what is sent finds credit again.
    """
    slices: list[Any] = []
    found: list[Any] = []
    while (done := slot.step(now_ns)) is not None:
        slot.charge(done, 1_000 * sum(part.rows for part in done.parts))
        slices += [(part.stage, part.rows, part.released, part.results) for part in done.parts]
        for action in done.actions:
            match action:
                case Send(channel, message):
                    found.append((channel.name, canonical(to_plain(message))))
                    slot.credit(channel.name, message.rows)
                case Egress(stage, batch, is_end):
                    found.append((stage, canonical(to_plain(batch)), is_end))
    return sorted(slices), found


def state_of(slot: Slot) -> Any:
    """Return its snapshot; which stage had its turn before which is nobody's business."""
    state = to_plain(slot.snapshot())
    return {**state, "stream": {**state["stream"], "turns": {}}}


def reports_of(slot: Slot, now_ns: int) -> tuple[list[StageReport], list[ChannelReport]]:
    """Return a slot's reports, without the counts of rows that came again after a restart."""
    stages, channels = slot.reports(now_ns)
    return [replace(report, to_pass_over=0) for report in stages], channels


row = st.tuples(st.sampled_from([0, 1, 1, 3]), st.integers(0, 30), st.sampled_from([0, 0, 0, 1, 3]))
rows = st.lists(row, min_size=5, max_size=30)


@given(
    left=rows,
    right=rows,
    slack=st.sampled_from([None, "0s", "5ms"]),
    apart=st.booleans(),
    gap_ns=st.sampled_from([1, 2 * MS, 30 * MS]),
    cut=st.integers(0, 30),
)
@a_third
def test_all_is_as_by_slices_with_messages(
    left: list[Row], right: list[Row], slack: str | None, apart: bool, gap_ns: int, cut: int
) -> None:
    """The other slot asks arrays, and never takes the short path; one is put away in the middle."""
    plan = plan_of(left, right, slack=slack, apart=apart)
    short, long = slot_of(plan, gap_ns), slot_of(plan, gap_ns)
    for machine in long.stages.values():
        if machine.source is not None:
            assert machine.source.row_tests is not None
            machine.source.row_tests = None
    for look in range(40):
        now_ns = look * 2 * MS
        assert told(short, now_ns) == told(long, now_ns)
        rests = short.rest(now_ns), long.rest(now_ns)
        assert rests[0] == rests[1] or look > cut, "one that was restored may look once more"
        assert canonical(state_of(short)) == canonical(state_of(long))
        assert reports_of(short, now_ns) == reports_of(long, now_ns)
        if look == cut:
            state = from_plain(to_plain(short.snapshot()))
            short = slot_of(plan, gap_ns)
            short.restore(state)


def test_rows_that_are_left_out_one_by_one_make_no_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the path is taken at all; a row that passes takes the other one."""
    left_out: list[int] = []

    def counted(self: SourceNode, now_ns: int, max_rows: int, *, below_ns: int) -> int:
        left_out.append(_leave_out(self, now_ns, max_rows, below_ns=below_ns))
        return left_out[-1]

    monkeypatch.setattr(SourceNode, "leave_out", counted)
    values = [0, 0, 1, 0, 5, 0]
    left = [(1, at, value) for at, value in enumerate(values)]
    slot = slot_of(plan_of(left, [], slack="0s", apart=False), 1)
    for now_ns in range(0, 7 * MS, MS):
        told(slot, now_ns)
    assert sum(left_out) == 5
    [report] = [one for one in slot.reports(7 * MS)[0] if one.name == "left"]
    assert (report.counts[READY], report.counts[FILTERED], report.rows_out) == (6, 5, 1)
    assert report.steps[1].rows_in == [6]


@pytest.mark.parametrize(
    "over", [1, 1.5], ids=["asked row by row", "asked as arrays: int64, float"]
)
@pytest.mark.parametrize("seed", range(5))
def test_a_live_source_of_few_rows_counts_what_its_filter_leaves_out(
    seed: int, over: float
) -> None:
    rows = range(60)
    table = pa.table({"ts": list(rows), "v": [at % 4 for at in rows]})
    slots = []
    for is_short in (True, False):
        flow = sw.Dataflow("live")
        live = JitterInput(sw.table(table), seed)
        kept = flow.source("live", live, event_time="ts", time_unit="ms").filter(sw.col("v") > over)
        kept.sink("out", sw.collect_sink())
        slot = slot_of(place(flow.name, plan_stages(flow.graph), ["a"]), 1)
        source = slot.stages["live"].source
        assert source is not None
        assert source.row_tests is not None
        if not is_short:
            source.row_tests = None
        slots.append(slot)
    for now_ns in range(0, 400 * MS, MS):
        short, long = (told(slot, now_ns) for slot in slots)
        assert short == long
        assert slots[0].reports(now_ns) == slots[1].reports(now_ns)
    [report] = [one for one in slots[0].reports(400 * MS)[0] if one.name == "live"]
    assert slots[0].is_finished
    assert (report.counts[READY], report.counts[FILTERED], report.rows_out) == (60, 30, 30)
