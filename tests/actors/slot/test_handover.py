"""What a slot goes on with once stages have moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot.handover import TakeOver, take_over
from slackwater.runtime.model.state import save
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.schedule import SlotResults
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
