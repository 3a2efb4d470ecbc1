"""Origins that drop rows: what was acknowledged is never missed, what was not ends the job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import RetentionError
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.simulate import Checkpoints, CostModel, Simulation, SlotDies
from slackwater.runtime.simulate.ordinal_sinks import OrdinalSinks
from tests.support.any_flow import MS

ROWS, BLOCK = 4_000, 10


@dataclass(eq=False)
class Log:
    """Numbers in blocks, of which only the newest `most` stay, and none that was acknowledged."""

    most: int = ROWS
    oldest: int = 0
    newest: int = 0
    opened: list[int] = field(default_factory=list)
    replay: ClassVar[str] = "retained"
    reads_inline: ClassVar[bool] = True

    def describe(self) -> str:
        return "a log"

    def schema(self) -> pa.Schema:
        return pa.schema([("t", pa.int64())])

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        del name
        first = int(at or b"0")
        self.opened.append(first)
        oldest = max(self.oldest, self.newest - self.most)
        if first < oldest:
            raise sw.connectors.RowsGone(f"offset {oldest}", oldest - first)
        return LogReader(self, first)


@dataclass
class LogReader:
    log: Log
    next: int

    def poll(self) -> Any:
        if self.next == ROWS:
            return sw.connectors.END_OF_INPUT
        at, first = b"%d" % self.next, self.next
        self.next += BLOCK
        self.log.newest = max(self.log.newest, self.next)
        rows = pa.record_batch({"t": pa.array(range(first, self.next))})
        return sw.connectors.Block(rows, at)

    def ack(self, at: bytes) -> None:
        self.log.oldest = max(self.log.oldest, int(at))

    def close(self) -> None:
        """Nothing is open."""


def plan_of(log: Log) -> Plan:
    flow = sw.Dataflow("log")
    rows = flow.source("rows", log, event_time="t", time_unit="ms")
    rows.filter(sw.col("t") >= 0).sink("out", sw.collect_sink())
    return place(flow.name, plan_stages(flow.graph), ["a", "b"])


def job_of(log: Log) -> tuple[Simulation, OrdinalSinks]:
    plan, sinks = plan_of(log), OrdinalSinks(["out"])
    simulation = Simulation(
        plan,
        egress=sinks,
        cost=CostModel(per_row_ns=500_000),
        faults=tuple(SlotDies(at_ns=n * MS, slot=plan.slots["rows"]) for n in (800, 2_800, 4_800)),
        checkpoints=Checkpoints(every_ns=100 * MS, is_repeatable=True),
    )
    return simulation, sinks


def test_no_row_that_was_acknowledged_is_asked_for_again() -> None:
    log = Log()
    simulation, sinks = job_of(log)
    report = simulation.run()
    assert report.state == "done"
    assert len(report.recoveries) == len(log.opened) - 1 == 3
    assert log.oldest > 0, "else the origin has dropped nothing"
    assert len(sinks.rows["out"]) == ROWS


def test_a_retention_that_is_shorter_than_the_outage_ends_the_job_with_the_numbers() -> None:
    log = Log(most=5)
    simulation, _ = job_of(log)
    with pytest.raises(RetentionError) as caught:
        simulation.run()
    text = str(caught.value)
    asked, oldest = log.opened[-1], log.newest - log.most
    assert len(log.opened) == 2, "no other try, which would go back further"
    assert simulation.recovery is not None
    (recovery,) = simulation.recovery.attempts.recoveries
    assert recovery.checkpoint == simulation.recovery.attempts.checkpoint, "the newest stays"
    assert f"source 'rows': its input (a log) cannot be read on at position b'{asked}'" in text
    assert f"{oldest - asked:,} rows are gone from its origin, whose oldest are at " in text
    assert f"offset {oldest}; let the origin keep rows for longer than an outage lasts" in text
    assert "or give another checkpoint folder" in text
    assert "RowsGone" not in text
    assert "Traceback" not in text
