"""What is said of a slot whose loop does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from slackwater.actors.slot.report import SlotReport, stuck
from tests.support.reports import stage

S = 10**9


def test_the_last_report_of_a_slot_that_hangs_grows_old_and_names_the_stage_at_work() -> None:
    report = SlotReport(
        "node-1", "running", [stage("m", "stateless", 1, 1), stage("out", "sink", 1, 1)]
    )
    report.at_ns, report.stages[0].still_ns = 10 * S, 2 * S
    slot: Any = SimpleNamespace(at_work="out")
    told = stuck(report, slot, 50 * S)
    assert [(one.still_ns, one.is_stuck) for one in told.stages] == [(42 * S, False), (None, True)]
    assert not report.stages[1].is_stuck
