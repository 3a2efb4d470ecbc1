"""What a slot goes on with once stages have moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slackwater as sw
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot.handover import TakeOver, take_over
from slackwater.runtime.model import Batch
from slackwater.runtime.model.state import save
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.schedule import Egress, SlotResults, carry_out
from slackwater.runtime.schedule.results import Abort, Commit


@pytest.mark.parametrize(("has_checkpoints", "verb"), [(False, Commit), (True, Abort)])
def test_a_move_keeps_whether_the_job_goes_on_after_a_stop(
    tmp_path: Path, *, has_checkpoints: bool, verb: type
) -> None:
    flow = sw.Dataflow("moved")
    rows = flow.source("rows", sw.table({"ts": [1]}), event_time="ts", time_unit="s")
    rows.sink("out", sw.csv_sink(tmp_path / "out.csv"))
    plan = slot_plan(replace(prepare(flow, ["a"]), has_checkpoints=has_checkpoints), "a")
    order = TakeOver(start_ns=0, results=save(SlotResults.of(plan)))
    sinks = SlotSinks()
    _, results, _ = take_over(plan, order, None, sinks, wake=lambda: None, folder="")
    assert verb in map(type, results.ends("stopped"))
    sinks.leave()


def test_a_collect_sink_goes_on_with_its_rows_in_a_slot_that_begins() -> None:
    flow = sw.Dataflow("moved")
    rows = flow.source("rows", sw.table({"ts": [1]}), event_time="ts", time_unit="s")
    rows.sink("out", sw.collect_sink())
    plan = slot_plan(prepare(flow, ["a"]), "a")
    first, own = SlotResults.of(plan), SlotSinks()
    own.open(plan.stages, folder="", runs={})
    first.resumes(own.begin())
    times = np.array([5, 6])
    batch = Batch(event_time_ns=times, stimulus_time_ns=times, columns={"ts": times})
    carry_out(first.leaves(Egress("out", batch, False)), first, own, lambda: 9)
    order = TakeOver(start_ns=0, results=save(first), positions={"out": own.hand_over("out")})
    sinks = SlotSinks()
    _, results, _ = take_over(plan, order, None, sinks, wake=lambda: None, folder="")
    results.resumes(sinks.begin())
    carry_out(results.leaves(Egress("out", batch, False)), results, sinks, lambda: 9)
    assert sinks.collected("out").table()["ts"].to_pylist() == [5, 6, 5, 6]
