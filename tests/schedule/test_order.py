"""Which stage of a slot goes next: by stimulus, or as the user says; results do not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import OperatorError, SettingError
from slackwater.runtime.model import START_NS, batch_of
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.progress import Wakeup
from slackwater.runtime.schedule import Egress, PathView, Slot, StageView, StimulusOrder
from slackwater.runtime.schedule.queues import path_queues
from tests.support.told import message_of

ROWS = pa.table({"ts": pa.array(range(1, 401), pa.int64()), "key": pa.array([1, 2] * 200)})


def lines() -> Plan:
    """Two sources, each with a sink of its own; the sinks share a slot."""
    flow = sw.Dataflow("lines")
    for name in ("one", "two"):
        flow.source(name, sw.table(ROWS), event_time="ts").sink(f"out-{name}", sw.collect_sink())
    where = {"*": "a", "out-one": "b", "out-two": "b"}
    return place(flow.name, plan_stages(flow.graph), ["a", "b"], placement=where)


def slot_of(order: Any) -> Slot:
    slot = Slot("b", lines().stages_of("b"), start_ns=0, limits=Limits(order=order))
    for source, stimulus_ns, rows in (("one", 50, [1]), ("two", 40, [1, 2, 3])):
        batch = batch_of(rows, {"ts": rows, "key": rows}, stimulus_ns)
        slot.deliver(f"{source}→out-{source}", message_of(batch, 60, stimulus_ns), 70)
    return slot


def ran(slot: Slot) -> list[str]:
    found: list[str] = []
    while (done := slot.step(100)) is not None:
        slot.charge(done, 1)
        found.append(done.stage)
    return found


class Recorded:
    """Fewest rows first, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Sequence[StageView]] = []

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        assert now_ns == 100
        self.shown.append(stages)
        return min(stages, key=lambda one: one.rows)


class Latest:
    """The newest stimulus first: as far from ours as can be."""

    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        del now_ns
        return max(stages, key=lambda one: (one.stimulus_ns, one.progress_ns))


@pytest.mark.parametrize("order", [None, StimulusOrder()])
def test_the_earliest_stimulus_goes_first_unless_another_order_is_given(order: Any) -> None:
    assert ran(slot_of(order)) == ["out-two", "out-one"]


def test_an_order_of_the_users_sees_what_could_run_and_chooses() -> None:
    order = Recorded()
    assert ran(slot_of(order)) == ["out-one", "out-two"]
    assert order.shown == [
        [
            StageView(Subject("out-one"), "sink", 50, START_NS, 1, 70, 0),
            StageView(Subject("out-two"), "sink", 40, START_NS, 3, 70, 0),
        ]
    ], "of one alone nothing is to be chosen"


def test_what_cannot_choose_or_chooses_what_it_was_not_shown_is_an_error() -> None:
    with pytest.raises(SettingError, match=r"order=7 is an int without first\("):
        Limits(order=7)

    class Wrong:
        def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
            del now_ns
            return stages[0]._replace(subject=Subject("elsewhere"))

    with pytest.raises(
        SettingError,
        match=r"chose StageView\(subject=Subject\(step='elsewhere'.*shown \(out-one, out-two\)",
    ):
        slot_of(Wrong()).step(100)


class Raises:
    def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
        del stages, now_ns
        raise ValueError("order trouble")

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        del now_ns
        raise KeyError(paths[0].source.name)


def test_an_order_that_raises_is_named_with_its_place_and_its_own_traceback() -> None:
    with pytest.raises(OperatorError, match="order trouble") as caught:
        slot_of(Raises()).step(100)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("slot 'b': first() of order=Raises raised ValueError: order trouble")
    assert lines[0].endswith("; mend it, or leave out Limits(order=…)")
    assert [line for line in lines if line.startswith("  File")] == [lines[2]], "no frame of ours"


def test_an_order_of_paths_that_raises_is_named_with_its_stage() -> None:
    flow = sw.Dataflow("both")
    one, two = (flow.source(name, sw.table(ROWS), event_time="ts") for name in ("one", "two"))
    one.merge(two, name="both").sink("out", sw.collect_sink())
    (both,) = [stage for stage in plan_stages(flow.graph) if stage.name == "both"]
    queues = path_queues(both.inputs, Raises())
    for channel in both.inputs:
        queues.push(channel.name, message_of(None, 60, 50), 0)
    with pytest.raises(
        OperatorError, match=r"^stage 'both': first_path\(\) of order=Raises raised Key"
    ):
        queues.pop(1)


def test_slices_of_more_rows_than_they_may_have_are_refused() -> None:
    with pytest.raises(SettingError, match="min_slice_rows=100 is above max_slice_rows=1; give"):
        Limits(min_slice_rows=100, max_slice_rows=1)
    assert Limits(max_slice_rows=1).max_slice_rows == 1


def test_the_order_changes_when_results_come_and_not_which_as_long_as_gates_are_ready_only() -> (
    None
):
    def result(order: Any) -> pa.Table:
        flow = sw.Dataflow("pairs")
        left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
        left.join(right, on="key", within="5ns", name="pairs").sink("out", sw.collect_sink())
        with sw.Simulation(1, seed=3) as nodes:
            job = nodes.submit(
                flow, limits=Limits(order=order, max_slice_rows=20, min_slice_rows=1)
            )
            report = job.wait()
            assert report.ledger.is_balanced
            return job.result("out")

    plain = result(None)
    assert plain.num_rows
    assert result(StimulusOrder()).equals(plain)
    assert result(Latest()).equals(plain)


def union_slot(order: Any) -> Slot:
    """A slot whose only stage, behind two replicas, has messages waiting on both paths."""
    flow = sw.Dataflow("union")
    left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
    pairs = left.join(right, on="key", within="5ns", name="pairs", replicas=2, share="all")
    pairs.sink("out", sw.collect_sink())
    placed = place(flow.name, plan_stages(flow.graph), ["a", "b"], placement={"*": "a", "out": "b"})
    slot = Slot("b", placed.stages_of("b"), start_ns=0, limits=Limits(order=order))
    (out,) = placed.stages_of("b")
    one, other = (channel.name for channel in out.inputs)
    columns = [field.name for field in out.inputs[0].schema]

    def deliver(channel: str, rows: list[int], stimulus_ns: int, now_ns: int) -> None:
        batch = batch_of(rows, dict.fromkeys(columns, rows), stimulus_ns)
        slot.deliver(channel, message_of(batch, rows[-1], stimulus_ns), now_ns)

    deliver(one, [1], 50, 70)
    deliver(one, [2], 51, 71)
    deliver(other, [1, 2, 3], 40, 72)
    return slot


def left(slot: Slot) -> list[int]:
    """The stimuli of the rows that leave, in their order."""
    found: list[int] = []
    while (done := slot.step(100)) is not None:
        slot.charge(done, 1)
        for action in done.actions:
            if isinstance(action, Egress) and action.batch is not None:
                found += action.batch.stimulus_time_ns.tolist()
    return found


class Fewest(Latest):
    """Also within a stage: fewest rows first; keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Sequence[PathView]] = []

    def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
        assert now_ns == 100
        self.shown.append(paths)
        return min(paths, key=lambda one: one.rows)


@pytest.mark.parametrize("order", [None, StimulusOrder(), Latest()])
def test_within_a_stage_the_earliest_stimulus_goes_first_unless_the_order_says_so(
    order: Any,
) -> None:
    assert left(union_slot(order)) == [40, 40, 40, 50, 51]


def test_an_order_that_has_a_word_for_paths_is_asked_while_there_are_two() -> None:
    order = Fewest()
    slot = union_slot(order)
    assert slot.stages["out"].next == Wakeup(START_NS, 40), "the stage is as urgent as before"
    assert left(slot) == [50, 51, 40, 40, 40]
    assert [[(one.source.name, *one[2:]) for one in paths] for paths in order.shown] == [
        [("pairs.1", 50, 70, 1, 2), ("pairs.2", 40, 72, 3, 1)],
        [("pairs.1", 51, 71, 1, 1), ("pairs.2", 40, 72, 3, 1)],
    ], "of one alone nothing is to be chosen"


def test_a_path_that_was_not_shown_is_an_error_that_names_those_that_were() -> None:
    class Wrong(Fewest):
        def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
            return super().first_path(paths, now_ns)._replace(name="elsewhere")

    with pytest.raises(
        SettingError, match=r"chose PathView\(name='elsewhere'.*first_path\(\) return one of them"
    ):
        union_slot(Wrong()).step(100)


def test_in_whole_flows_paths_in_any_order_give_the_same_results_behind_ready_only_gates() -> None:
    class LastPath(Latest):
        def first_path(self, paths: Sequence[PathView], now_ns: int) -> PathView:
            del now_ns
            return max(paths, key=lambda one: one.stimulus_ns)

    def result(order: Any) -> list[dict[str, Any]]:
        flow = sw.Dataflow("pairs")
        left, right = (flow.source(n, sw.table(ROWS), event_time="ts") for n in ("left", "right"))
        pairs = left.join(right, on="key", within="5ns", name="pairs", replicas=2)
        pairs.aggregate(by="key", window=sw.tumbling("50ns"), name="counts", n=sw.count()).sink(
            "out", sw.collect_sink()
        )
        with sw.Simulation(2, seed=3) as nodes:
            job = nodes.submit(
                flow, limits=Limits(order=order, max_slice_rows=20, min_slice_rows=1)
            )
            assert job.wait().ledger.is_balanced
            return job.result("out").to_pylist()

    plain = result(None)
    assert plain
    assert result(LastPath()) == plain
