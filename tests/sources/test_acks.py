"""Inputs are told which rows no restore will ask for again: none of a checkpoint that stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import IngestError
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import Slot, make_slot
from slackwater.runtime.schedule.cut import STAYING
from slackwater.runtime.simulate import Checkpoints, Simulation, SlotRaises

BLOCK, BLOCKS = 10, 6
MS = 1_000_000


@dataclass
class Retained:
    """Numbers of one or two partitions, in blocks; it notes what it is told."""

    parts: tuple[str, ...] = ("",)
    replay: ClassVar[str] = "retained"
    reads_inline: ClassVar[bool] = True
    acked: list[tuple[str, bytes]] = field(default_factory=list)
    raises: bool = False

    def describe(self) -> str:
        return "numbers that are retained"

    def schema(self) -> pa.Schema:
        return pa.schema([("t", pa.int64())])

    def open(self, name: str, at: bytes | None) -> Any:
        return Reader(self, name, int(at or b"0"))


@dataclass
class Parted(Retained):
    parts: tuple[str, ...] = ("a", "b")

    def partitions(self) -> list[sw.connectors.Partition]:
        return [sw.connectors.Partition(name) for name in self.parts]


@dataclass
class Reader:
    given: Retained
    name: str
    next: int

    def poll(self) -> Any:
        if self.next == BLOCKS:
            return sw.connectors.END_OF_INPUT
        at, first = b"%d" % self.next, self.next * BLOCK
        self.next += 1
        rows = pa.record_batch({"t": pa.array(range(first, first + BLOCK))})
        return sw.connectors.Block(rows, at)

    def ack(self, at: bytes) -> None:
        if self.given.raises:
            raise OSError("the origin is away")
        self.given.acked.append((self.name, at))

    def close(self) -> None:
        self.next = BLOCKS


def slot_of(given: Any) -> Slot:
    flow = sw.Dataflow("acks")
    flow.source("rows", given, event_time="t").sink("out", sw.collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["a"])
    return make_slot(slot_plan(plan, "a"), start_ns=0)


def step(slot: Slot, times: int) -> None:
    for now_ns in range(times):
        if (done := slot.step(now_ns)) is not None:
            slot.charge(done, 10)


def told(slot: Slot, first: int) -> None:
    """Let as many checkpoints be complete as stay."""
    for number in range(first, first + STAYING):
        slot.mark(number)
        slot.complete(number)


def test_an_input_is_told_the_position_of_the_oldest_checkpoint_that_stays() -> None:
    given = Retained()
    slot = slot_of(given)
    step(slot, 2)
    slot.mark(1)
    at = slot.stages["rows"].source.positions  # type: ignore[union-attr]
    assert set(at) == {""}
    slot.complete(1)
    step(slot, 3)
    slot.mark(2)
    slot.complete(2)
    slot.mark(3)
    assert given.acked == []
    slot.complete(3)
    assert given.acked == [("", at[""])]
    slot.complete(3)
    assert len(given.acked) == 1


def test_checkpoints_that_are_given_up_do_not_count() -> None:
    given = Retained()
    slot = slot_of(given)
    for number in range(1, 2 * STAYING):
        step(slot, 1)
        slot.mark(number)
        if number % 2 == 0:
            slot.complete(number)
    slot.complete(1)
    assert given.acked == []
    assert len(slot._to_ack) == STAYING


def test_each_partition_is_told_its_own_position_and_after_the_end_none_is() -> None:
    given = Parted()
    slot = slot_of(given)
    step(slot, 8)
    told(slot, 1)
    assert [name for name, _ in given.acked] == ["a", "b"]
    step(slot, 40)
    assert slot.stages["rows"].is_finished
    told(slot, STAYING + 1)
    assert len(given.acked) == 2


def test_an_ack_that_raises_names_the_source_and_the_method() -> None:
    slot = slot_of(Retained(raises=True))
    step(slot, 2)
    with pytest.raises(IngestError, match=r"source 'rows': Reader\.ack raised OSError"):
        told(slot, 1)


@dataclass
class Dropping(Retained):
    """An origin that drops what is acknowledged."""

    def open(self, name: str, at: bytes | None) -> Any:
        dropped = max((int(own) for _, own in self.acked), default=0)
        assert int(at or b"0") >= dropped, "its rows are gone"
        return super().open(name, at)


def test_a_job_that_goes_back_to_the_checkpoint_before_still_gets_its_rows() -> None:
    flow = sw.Dataflow("acks")
    given = Dropping()
    rows = flow.source("rows", given, event_time="t", time_unit="ms", speed=0.005)
    rows.sink("out", sw.collect_sink())
    run = Simulation(
        place(flow.name, plan_stages(flow.graph), ["a"]),
        egress=lambda *_: None,
        checkpoints=Checkpoints(every_ns=1_000 * MS, is_repeatable=True),
        faults=[SlotRaises(at_ns=at * MS, slot="a") for at in (4_500, 4_800, 6_100)],
    )
    report = run.run()
    assert report.state == "done"
    assert [own.checkpoint for own in report.recoveries] == [4, 4, 3]
    assert given.acked
