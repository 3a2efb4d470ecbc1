"""When a slot looks at what: paced sources at one time, inputs that wake it once they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import START_NS
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule import Slot
from slackwater.runtime.schedule.polls import Looks
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput
from tests.support.told import message_of

SCHEMA = pa.schema([("ts", pa.int64())])


def slot_of(flow: sw.Dataflow, limits: Limits | None = None) -> Slot:
    plan = place(flow.name, plan_stages(flow.graph), ["a"])
    return Slot("a", plan.stages_of("a"), start_ns=0, limits=limits)


def replay(**times: list[int]) -> sw.Dataflow:
    """Sources that are replayed, each with a sink of its own."""
    flow = sw.Dataflow("replay")
    for name, at in times.items():
        table = pa.table({"ts": pa.array(at, pa.int64())})
        source = flow.source(name, sw.table(table), event_time="ts", speed=1.0)
        source.sink(f"out-{name}", sw.collect_sink())
    return flow


def looks_at(slot: Slot, *, within_ns: int = 10**9) -> dict[int, list[str]]:
    """Sleep as a host does; return {time: sources that had a slice then}."""
    now_ns, found = 0, dict[int, list[str]]()
    while now_ns <= within_ns:
        while (done := slot.step(now_ns)) is not None:
            slot.charge(done, 1_000)
            if slot.stages[done.stage].stage.kind == "source" and not done.has_read:
                found.setdefault(now_ns, []).append(done.stage)
        until_ns = slot.rest(now_ns).until_ns
        if until_ns is None:
            return found
        assert until_ns > now_ns, "it would not sleep"
        now_ns = until_ns
    raise AssertionError("it sleeps for longer than its rows are apart")


def test_the_paced_sources_of_a_slot_are_looked_at_together() -> None:
    """The second one's row is due behind a look at the first one, so waits for the next."""
    slot = slot_of(
        replay(one=[0, 1_000, 2_000], two=[0, 1_300, 2_100]), Limits(source_gap_ns=1_000)
    )
    assert looks_at(slot) == {
        0: ["one", "two"],
        1_000: ["one"],
        2_000: ["two", "one"],  # 1,300 of the second, which is more urgent, and 2,000
        3_000: ["one", "two"],  # its end, and 2,100
        4_000: ["two"],
    }


def test_a_row_that_comes_alone_waits_for_no_other() -> None:
    slot = slot_of(replay(one=[0, 50_000], two=[0, 70_000]), Limits(source_gap_ns=1_000))
    assert sorted(looks_at(slot)) == [0, 50_000, 51_000, 70_000, 71_000], "and their ends"


@given(
    one=st.lists(st.integers(0, 200), min_size=1, max_size=30),
    two=st.lists(st.integers(0, 200), min_size=1, max_size=30),
    gap_ns=st.integers(1, 40),
)
def test_no_two_looks_are_nearer_than_the_gap_and_no_row_waits_longer(
    one: list[int], two: list[int], gap_ns: int
) -> None:
    rows = {"one": sorted(one), "two": sorted(two)}
    slot = slot_of(replay(**rows), Limits(source_gap_ns=gap_ns))
    times = sorted(looks_at(slot))
    assert all(after - before >= gap_ns for before, after in pairwise(times))
    for due_ns in (at - own[0] for own in rows.values() for at in own):
        assert any(due_ns <= at <= due_ns + gap_ns for at in times)
    stages, _ = slot.reports(times[-1])
    assert sum(stage.rows_out for stage in stages if stage.kind == "source") == len(one + two)


def test_a_clock_that_was_set_back_does_not_keep_a_slot_from_looking() -> None:
    looks = Looks(100)
    assert looks.look(1_000) == 1_100
    assert looks.look(1_050) == 1_100
    assert looks.look(500) == 600


@dataclass
class Told:
    """An input that says when it has something, as one that is read ahead does."""

    blocks: list[Any] = field(default_factory=list)
    polls: int = 0
    wakes: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True

    def describe(self) -> str:
        return "told"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> Told:
        return self

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        self.polls += 1
        return self.blocks.pop(0) if self.blocks else None

    def close(self) -> None:
        pass

    def __deepcopy__(self, memo: Any) -> Told:
        return self


def test_an_input_that_wakes_its_slot_is_not_asked_before_it_has() -> None:
    told = Told()
    flow = sw.Dataflow("told")
    flow.source("rows", told, event_time="ts", time_unit="ns").sink("out", sw.collect_sink())
    slot = slot_of(flow)
    polled = slot.step(0)
    assert polled is not None
    assert polled.has_read
    asked = told.polls
    for now_ns in range(1, 100):
        assert slot.step(now_ns) is None
        assert slot.rest(now_ns).until_ns is None, "nothing is due by the clock"
    assert told.polls == asked
    told.blocks.append(pa.record_batch({"ts": pa.array([5], pa.int64())}))
    assert slot.step(200) is None
    slot.woken(200)
    done = slot.step(201)
    assert done is not None
    assert done.stage == "rows"
    told.blocks.append(END_OF_INPUT)
    slot.woken(300)
    while slot.step(300) is not None:
        pass
    assert slot.is_finished


def test_rows_of_a_live_input_wait_for_no_backlog_of_another() -> None:
    """Its event times are newer than those of the backlog, which must not decide."""
    backlog, tick = Told(), Told()
    flow = sw.Dataflow("both")
    for name, told in (("backlog", backlog), ("tick", tick)):
        rows = flow.source(name, told, event_time="ts", time_unit="ns")
        rows.filter(sw.col("ts") >= 0).sink(f"out-{name}", sw.collect_sink())
    slot = slot_of(flow, Limits(max_slice_rows=100))
    while slot.step(0) is not None:
        pass
    backlog.blocks.append(pa.record_batch({"ts": pa.array(range(50_000), pa.int64())}))
    slot.woken(1)
    now_ns, seen = 1, list[str]()
    for turn in range(40):
        if turn in (10, 20):
            tick.blocks.append(pa.record_batch({"ts": pa.array([10**9 + turn], pa.int64())}))
            slot.woken(now_ns)
        done = slot.step(now_ns)
        assert done is not None, "a backlog is there"
        slot.charge(done, 1_000)
        seen.append("" if done.has_read else done.stage)
        now_ns += 1_000
    assert seen.count("tick") == 2
    assert seen.index("tick") <= 12, "a slice or two of the backlog, at most"
    assert seen.index("out-tick") <= 16


def test_what_comes_to_a_quiet_stage_ends_its_quiet() -> None:
    flow = sw.Dataflow("both")
    sources = [
        flow.source(name, sw.table(pa.table({"ts": [1]})), event_time="ts", time_unit="ns")
        for name in ("left", "right")
    ]
    sources[0].merge(sources[1], name="both").sink("out", sw.collect_sink())
    plan = place("both", plan_stages(flow.graph), ["a", "b"], placement={"*": "b", "both": "a"})
    slot = Slot("a", plan.stages_of("a"), start_ns=0)
    slot.deliver("left→both", message_of(None, 5, 0), 1)
    assert slot.step(1) is not None
    assert slot.step(1) is None
    assert slot.stages["both"].next is None
    slot.deliver("right→both", message_of(None, 5, 0), 2)
    assert slot.step(2) is not None


def test_an_input_that_has_nothing_is_polled_again_after_an_eighth_of_its_silence() -> None:
    silent = Told()
    Told.wakes = False
    try:
        flow = sw.Dataflow("silent")
        flow.source("rows", silent, event_time="ts", time_unit="ns").sink("out", sw.collect_sink())
        slot = slot_of(flow)
        rests = []
        now_ns = 0
        for _ in range(40):
            while slot.step(now_ns) is not None:
                pass
            rest = slot.rest(now_ns)
            assert rest.is_guess
            assert rest.until_ns is not None
            rests.append(rest.until_ns - now_ns)
            now_ns = rest.until_ns
    finally:
        Told.wakes = True
    assert rests[0] == 1_000_000
    assert rests[-1] == 5_000_000
    assert sorted(rests) == rests


def test_polls_do_not_push_out_what_a_slot_was_given_last() -> None:
    told = Told()
    flow = sw.Dataflow("told")
    flow.source("rows", told, event_time="ts", time_unit="ns").sink("out", sw.collect_sink())
    slot = slot_of(flow)
    told.blocks.append(pa.record_batch({"ts": pa.array([5], pa.int64())}))
    while slot.step(1) is not None:
        pass
    before = slot.recent()
    for now_ns in range(2, 100):
        slot.woken(now_ns)
        slot.step(now_ns)
    assert slot.recent() == before


def test_no_row_of_a_source_without_arrivals_comes_before_the_start() -> None:
    flow = sw.Dataflow("numbered")
    rows = pa.table({"ts": pa.array([1, 2], pa.int64()), "n": pa.array([1, 2], pa.int64())})
    order = sw.order.by_sequence(timeout="1s")
    source = flow.source(
        "rows", sw.table(rows), event_time="ts", time_unit="ns", sequence="n", out_of_order=order
    )
    source.sink("out", sw.collect_sink())
    plan = place("numbered", plan_stages(flow.graph), ["a"], placement={"*": "a"})
    slot = Slot("a", plan.stages_of("a"), start_ns=1_000)
    slot.open(10)
    assert slot.step(1_000) is not None
    assert slot.stages["out"].next == Wakeup(START_NS, 1_000), "its stimulus is the start"
