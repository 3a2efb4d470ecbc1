"""Operators that go by the clock, too; and what each step of a stage takes in and gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import END_NS, START_NS, GateRead
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.machine import AggregateMachine
from slackwater.runtime.operators.aggregate.segments import ByWatermark, Segment
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.traits import StepTraits
from slackwater.runtime.registry.operators import MACHINES
from slackwater.runtime.simulate import Simulation

S = 10**9
HOLD_NS = 2 * S


class AfterAWhile(ByWatermark):
    """Closes all that is open so long after the first row since, by the clock."""

    STATE = Fields("until_ns", "since_ns", "newest_ns")

    def __init__(self) -> None:
        self.until_ns = START_NS
        self.since_ns: int | None = None
        self.newest_ns = START_NS

    def segments(self, released: GateRead, now_ns: int) -> Iterator[Segment]:
        for batch in released.batches:
            self.newest_ns = max(self.newest_ns, int(batch.event_time_ns.max()))
            self.since_ns = now_ns if self.since_ns is None else self.since_ns
        is_over = self.since_ns is not None and now_ns - self.since_ns >= HOLD_NS
        if is_over or released.watermark_ns == END_NS:
            self.since_ns = None
            end_ns = self.newest_ns + 10 * S  # the end of its window, and a little more
            at_end = released.watermark_ns == END_NS
            self.until_ns = END_NS if at_end else max(self.until_ns, end_ns)
        (segment,) = super().segments(released, now_ns)
        yield segment._replace(until_ns=self.until_ns)

    def sure_ns(self, frontier_ns: int) -> int:
        return min(frontier_ns, self.until_ns)

    def due_ns(self) -> int | None:
        return None if self.since_ns is None else self.since_ns + HOLD_NS


@dataclass(frozen=True, kw_only=True)
class TimedStep(AggregateStep):
    @cached_property
    def traits(self) -> StepTraits:
        return replace(super().traits, uses_clock=True)


def timed(step: TimedStep, *, most_kept_rows: int) -> AggregateMachine:
    return AggregateMachine(step, most_kept_rows=most_kept_rows, closer=AfterAWhile())


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MACHINES, TimedStep, timed)


def counted(*, is_timed: bool, sink: Any = None) -> sw.Dataflow:
    """Rows at 1 s and 2 s, then none for a minute; a window is ten seconds."""
    flow = sw.Dataflow("timed")
    rows = sw.table(pa.table({"ts": [1, 2, 62], "key": [7, 7, 7]}))
    stream = flow.source("rows", rows, event_time="ts", time_unit="s", arrival="ts", speed=1.0)
    counts = stream.aggregate(by="key", window=sw.tumbling("10s"), n=sw.count(), name="counts")
    if is_timed:
        step = flow.steps["counts"]
        made = {one.name: getattr(step, one.name) for one in fields(step)}
        flow._steps[-1] = TimedStep(**made)
    counts.sink("out", sink or sw.collect_sink())
    return flow


def left_at(flow: sw.Dataflow) -> list[tuple[float, list[int]]]:
    """Return when what left: [(seconds from the start, counts)]."""
    plan = place(flow.name, plan_stages(flow.graph), ["node-1"])
    found: list[tuple[float, list[int]]] = []

    def egress(_stage: str, batch: Any, _is_end: bool) -> None:
        if batch is not None:
            found.append((round(run.now_ns / S, 1), batch.columns["n"].tolist()))

    run = Simulation(plan, egress=egress)
    run.run()
    return found


def test_an_operator_with_time_is_called_when_it_is_due_though_nothing_comes() -> None:
    by_time = left_at(counted(is_timed=True))
    by_watermark = left_at(counted(is_timed=False))
    assert [n for _, n in by_time] == [n for _, n in by_watermark] == [[2], [1]]
    first = by_time[0][0]
    assert by_watermark[0][0] - first > 50
    assert first == pytest.approx(2.0, abs=0.2)  # the first row comes as the run begins


def test_what_goes_by_the_clock_can_not_be_resumed() -> None:
    sink = sw.jsonl_sink("/nowhere/counts", resume=True)
    counted(is_timed=False, sink=sink)
    with pytest.raises(FlowError, match="'counts' uses the clock"):
        counted(is_timed=True, sink=sink)


def test_each_step_of_a_stage_counts_its_own_rows_by_port() -> None:
    flow = sw.Dataflow("steps")
    rows = sw.table(pa.table({"ts": range(100), "key": [n % 10 for n in range(100)]}))
    one, other = (flow.source(name, rows, event_time="ts") for name in "ab")
    low = one.filter(sw.col("key") < 5, name="low").filter(sw.col("key") < 1, name="lowest")
    pairs = low.join(other, on="key", within="1ns", name="pairs")
    pairs.filter(sw.col("key") > 0, name="none").sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=2).submit(flow)
    job.wait()
    report = JobReport.from_json(job.report().to_json())
    steps = {step.name: step for stage in report.stages for step in stage.steps}
    assert {name: (one.kind, one.rows_in, one.rows_out) for name, one in steps.items()} == {
        "a": ("source", [], 100),
        "low": ("filter", [100], 50),
        "lowest": ("filter", [50], 10),
        "b": ("source", [], 100),
        "pairs": ("join", [10, 100], 10),
        "none": ("filter", [10], 0),
        "out": ("sink", [0], 0),
    }
    assert [steps[name].selectivity for name in ("low", "lowest")] == [0.5, 0.2]
    plain = job.report().to_json()["stages"][0]["steps"][1]
    assert plain == {
        "name": "low", "kind": "filter", "rows_in": [100], "rows_out": 50, "selectivity": 0.5
    }  # fmt: skip
