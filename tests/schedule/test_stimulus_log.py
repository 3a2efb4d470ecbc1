"""A slot's log: what replays, and what is refused; that all do: tests/contract/test_slots.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import OperatorError, SettingError
from slackwater.runtime.model import END_NS
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.plan.slot_plan import SlotPlan, slot_plan
from slackwater.runtime.schedule import LoggedSlot, Slot, make_slot, replay, replaying
from slackwater.runtime.schedule.stimuli import RECENT
from tests.support.any_flow import MS
from tests.support.told import message_of

MANY = 10**6


def halved(row: Any) -> dict[str, Any]:
    if row["n"] == 3:
        raise ValueError("no three")
    return {"n": row["n"]}


def failing() -> Plan:
    flow = sw.Dataflow("fails")
    data = sw.table(pa.table({"ts": [1, 2, 3, 4], "n": [1, 2, 3, 4]}), batch_rows=1)
    numbers = flow.source("numbers", data, event_time="ts", time_unit="ms")
    numbers.map_rows(halved, {"n": "int64"}, name="halved").sink("out", sw.collect_sink())
    return place(flow.name, plan_stages(flow.graph), ["a"])


def part_of(plan: Plan, slot: str, *, log: int) -> SlotPlan:
    return replace(slot_plan(plan, slot), limits=Limits(log=log))


def worked_off(slot: Slot) -> None:
    for now_ns in range(100):
        if (done := slot.step(now_ns)) is not None:
            slot.charge(done, 10)


def test_a_log_of_a_slot_that_failed_fails_again_in_the_same_words() -> None:
    plan = failing()
    slot = make_slot(part_of(plan, "a", log=MANY), start_ns=0)
    assert isinstance(slot, LoggedSlot)
    with pytest.raises(OperatorError) as first:
        worked_off(slot)
    log = slot.log()
    with pytest.raises(OperatorError) as again:
        replay(Slot("a", replaying(plan.stages, log), start_ns=0), log)
    assert str(again.value).splitlines()[0] == str(first.value).splitlines()[0]
    assert slot.recent()[-1].startswith("0.000 slot 'a': stage 'numbers' began a slice of about ")


def test_a_log_that_lacks_its_beginning_or_is_of_another_version_is_refused() -> None:
    plan = failing()
    slot = make_slot(part_of(plan, "a", log=2), start_ns=0)
    assert isinstance(slot, LoggedSlot)
    slot.step(0)
    log = slot.log()
    assert len(log["stimuli"]) == 2
    slot.step(0)
    with pytest.raises(SettingError, match=r"lacks its first \d+ stimuli.*Limits\(log=…\) above"):
        replaying(plan.stages, slot.log())
    with pytest.raises(SettingError, match="is of version 0, and this release"):
        replaying(plan.stages, {**log, "version": 0})


def test_without_a_log_a_slot_is_a_plain_one_and_keeps_its_last_stimuli_in_words() -> None:
    flow = sw.Dataflow("two")
    data = sw.table(pa.table({"ts": [1]}))
    flow.source("numbers", data, event_time="ts", time_unit="ms").sink("out", sw.collect_sink())
    where = {"numbers": "a", "out": "b"}
    plan = place(flow.name, plan_stages(flow.graph), ["a", "b"], placement=where)
    slot = make_slot(slot_plan(plan, "b"), start_ns=0)
    assert type(slot) is Slot
    for n in range(RECENT):
        slot.deliver("numbers→out", message_of(None, n, 0), n * MS)
    slot.deliver("numbers→out", message_of(None, END_NS, 0), 25 * MS)
    slot.step(26 * MS)
    said = slot.recent()
    assert len(said) == RECENT
    assert said[0] == "0.002 slot 'b': 0 rows came on channel 'numbers→out'"
    assert said[-2] == "0.025 slot 'b': the end of channel 'numbers→out' came"
    assert said[-1].startswith("0.026 slot 'b': stage 'out' began a slice of about 64 rows at most")
