"""What a slot keeps of its stages' next work does not grow with its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.schedule import Slot
from tests.support.orders import ORDERS

ROWS = 400


@pytest.mark.parametrize("order", [None, ORDERS[1]])
def test_heaps_are_bounded_by_the_number_of_stages(order: object) -> None:
    flow = sw.Dataflow("paced")
    table = pa.table({"ts": [n * 10_000_000 for n in range(ROWS)]})
    rows = flow.source("rows", sw.table(table), event_time="ts", time_unit="ns", speed=1.0)
    rows.sink("out", sw.collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["slot"])
    slot = Slot("slot", plan.stages_of("slot"), start_ns=0, limits=sw.Limits(order=order))
    slot.open(0)
    now_ns = slices = 0
    while not slot.is_finished:
        if slot.step(now_ns) is None:
            until_ns = slot.rest(now_ns).until_ns
            assert until_ns is not None
            now_ns = until_ns
        else:
            slices += 1
        ready = slot._ready
        heaps = (ready._ranked, ready._unranked, ready._timed, ready._paced, ready._guesses)
        assert max(len(heap._entries) for heap in heaps) + len(ready._newly_due) < 100
        assert len(ready._looked_at) + len(ready._newly_due) < 100
    assert slices >= ROWS
