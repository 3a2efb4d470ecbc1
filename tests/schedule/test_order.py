"""Which stage of a slot goes next: by stimulus, or as the user says; results do not change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from runtime.config import Limits
from runtime.errors import SettingError
from runtime.model import START_NS, Message, batch_of
from runtime.placement.place import place
from runtime.plan.plan import Plan, plan_stages
from runtime.schedule import Slot, StageView, StimulusOrder

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
        slot.deliver(f"{source}→out-{source}", Message(batch, 60, stimulus_ns), 70)
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
            StageView("out-one", "sink", 50, START_NS, 1),
            StageView("out-two", "sink", 40, START_NS, 3),
        ]
    ], "of one alone nothing is to be chosen"


def test_what_cannot_choose_or_chooses_what_it_was_not_shown_is_an_error() -> None:
    with pytest.raises(SettingError, match=r"order=7 is a int without first\("):
        Limits(order=7)

    class Wrong:
        def first(self, stages: Sequence[StageView], now_ns: int) -> StageView:
            del now_ns
            return stages[0]._replace(name="elsewhere")

    with pytest.raises(
        SettingError, match=r"chose StageView\(name='elsewhere'.*shown \(out-one, out-two\)"
    ):
        slot_of(Wrong()).step(100)


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
