"""The cut of a slot's loop, and what is told of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import slackwater as sw
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot import cutting
from slackwater.actors.slot.cutting import CuttingSlot
from slackwater.runtime.model import Mark
from slackwater.runtime.plan.slot_plan import SlotPlan, slot_plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.schedule import SlotResults, make_slot

CUT_NS = 20_000_000


class CutAlone(CuttingSlot):
    """A slot without a loop: its calls are carried out at once."""

    def __init__(self, plan: SlotPlan) -> None:
        super().__init__()
        self._slot, self._results = make_slot(plan, start_ns=0), SlotResults.of(plan)
        self._sinks = SlotSinks()
        self._ends: Any = SimpleNamespace(mark=lambda *_: None)
        self._mailbox: Any = SimpleNamespace(call=lambda do, **_: do())


def test_a_part_tells_how_long_its_cut_took_though_the_mark_came_before_the_job_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = sw.Dataflow("cut")
    rows = flow.source("rows", sw.table({"ts": [1]}), event_time="ts", time_unit="s")
    rows.sink("out", sw.collect_sink())
    plan = prepare(flow, ["a", "b"], placement={"rows": "a", "out": "b"})
    clock = SimpleNamespace(now_ns=0)

    def cut_slowly(*_: object) -> dict[str, Any]:
        clock.now_ns += CUT_NS
        return {}

    times = SimpleNamespace(monotonic_ns=lambda: clock.now_ns, thread_time_ns=lambda: clock.now_ns)
    monkeypatch.setattr(cutting, "time", times)
    monkeypatch.setattr(cutting, "queued_ns", lambda: 0)
    monkeypatch.setattr(cutting, "saved_results", cut_slowly)
    slot = CutAlone(slot_plan(plan, "b"))
    (channel,) = plan.channels
    for number in (1, 2):
        slot._mark_came(channel.name, Mark(number))
        written = slot.write_part(number, str(tmp_path))
        assert (written.cut_ns, written.cost.cpu_ns) == (CUT_NS, CUT_NS)
