"""A gate's slot and a replica's: what they send each other, and go on with after a restore."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import END_NS, Message, batch_of
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.traits import Keep
from slackwater.runtime.schedule import Egress, Send, Slot
from tests.support.told import message_of

ROWS = pa.table({"ts": [1, 2], "key": [1, 1]})
SLOTS = {"l": "far", "r": "far", "pairs.gate": "gate", "pairs.1": "one", "pairs.2": "two"}


def slots(
    slack: str | None = None, keep: Keep = "promise", *, is_backwards: bool = False
) -> dict[str, Slot]:
    flow = sw.Dataflow("f", slack=slack, keep=keep)
    left, right = (flow.source(name, sw.table(ROWS), event_time="ts") for name in "lr")
    pairs = left.join(right, on="key", within="9ns", replicas=2, share="all", name="pairs")
    pairs.sink("out", sw.collect_sink())
    plan = place(
        "f",
        plan_stages(flow.graph),
        sorted({*SLOTS.values(), "out"}),
        placement={**SLOTS, "out": "out"},
    )
    limits = Limits(max_slice_rows=3, min_slice_rows=1)
    turn = -1 if is_backwards else 1
    return {
        name: Slot(
            name,
            [replace(one, outputs=one.outputs[::turn]) for one in plan.stages_of(name)],
            start_ns=0,
            limits=limits,
        )
        for name in ("gate", "one", "two", "out")
    }


def message(times: list[int], promise_ns: int) -> Message:
    return message_of(batch_of(times, {"ts": times, "key": [1] * len(times)}), promise_ns, 0)


def run(made: dict[str, Slot], *, most: int = 10_000) -> list[tuple[int, ...]]:
    """Run all slots to rest, or so many slices; return the times of the pairs that left."""
    found: list[tuple[int, ...]] = []
    targets = {"pairs.1": "one", "pairs.2": "two", "out": "out"}
    while most > 0:
        steps: list[Any] = [made[name].step(10) for name in made]
        if not any(steps):
            return found
        most -= len(steps)
        for action in [action for step in steps if step for action in step.actions]:
            if isinstance(action, Send):
                made[targets[action.channel.target]].deliver(
                    action.channel.name, action.message, 10
                )
            elif isinstance(action, Egress) and action.batch is not None:
                columns = [action.batch.columns[name].tolist() for name in ("ts", "ts_right")]
                found += zip(*columns, strict=True)
    return found


FIRST = {"l→pairs.gate": message([1, 5, 30], 0), "r→pairs.gate": message([2, 3, 31], 0)}
SECOND = {"l→pairs.gate": message([4, 32], END_NS), "r→pairs.gate": message([33], END_NS)}
PAIRS = [(l, r) for l in (1, 4, 5, 30, 32) for r in (2, 3, 31, 33) if abs(l - r) <= 9]  # noqa: E741


def insert(made: dict[str, Slot], messages: dict[str, Message]) -> None:
    for channel, one in messages.items():
        made["gate"].deliver(channel, one, 10)


def test_every_replica_drops_what_is_too_late_and_the_counts_of_each_stage_add_up() -> None:
    made = slots("0s", keep="slack")
    insert(made, FIRST)
    found = run(made)
    insert(made, SECOND)
    found += run(made)
    # The left 30 was read first, so the right 2 and 3 and the left 4 are more than 9 behind.
    assert sorted(found) == sorted(pair for pair in PAIRS if min(pair) >= 30)
    reports = {stage.name: stage for slot in made.values() for stage in slot.reports(10)[0]}
    assert reports["pairs.gate"].late == 3
    assert [reports[f"pairs.{n}"].late_dropped for n in (1, 2)] == [3, 3]
    assert all(stage.is_balanced for stage in reports.values())
    assert all(slot.is_finished for slot in made.values())


def test_replicas_that_keep_by_the_promise_find_every_pair_though_the_rows_come_late() -> None:
    made = slots("0s")
    insert(made, FIRST)
    found = run(made)
    insert(made, SECOND)
    found += run(made)
    assert sorted(found) == sorted(PAIRS)
    reports = {stage.name: stage for slot in made.values() for stage in slot.reports(10)[0]}
    assert reports["pairs.gate"].late == 3
    assert [reports[f"pairs.{n}"].late_dropped for n in (1, 2)] == [0, 0]


def test_what_a_gate_deals_goes_where_its_channels_say_in_whatever_order_they_stand() -> None:
    found = []
    for is_backwards in (False, True):
        made = slots(is_backwards=is_backwards)
        insert(made, FIRST)
        insert(made, SECOND)
        found.append(run(made))
        carried = {c.name: c.rows_sent for c in made["gate"].reports(10)[1]}
        assert carried["pairs.gate→pairs.1:1"] == 5  # all of the left
        assert carried["pairs.gate→pairs.2:2"] == 4
    assert sorted(found[0]) == sorted(found[1]) == sorted(PAIRS)
