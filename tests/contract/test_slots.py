"""What every slot promises: its log replays it; restored between any two stimuli it goes on alike.

So do the stages in it, with their sources, gates, replicas and operators: flows at random have all.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import cycle
from random import Random
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.espice.rivals import random_shedding
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.plain import to_plain
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import (
    Egress,
    Grant,
    LoggedSlot,
    Send,
    Slice,
    Slot,
    make_slot,
    replay,
    replaying,
)
from slackwater.runtime.schedule.stimulus_log import give
from slackwater.runtime.shedding.wrapper.words import espice
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.tune import Paths
from tests.support.any_flow import MS, AnyHolds, any_flow
from tests.support.orders import ORDERS
from tests.support.readers import JitterInput
from tests.support.restoring import outcomes, renewed, some
from tests.support.states import canonical, differences

MANY = int(os.environ.get("RESTART_FLOWS", "0"))
"""Some hundred find what is rare; else a few that have, together, all that flows can have."""
SEEDS = range(MANY) if MANY else (0, 10, 11, 13, 22, 24, 26, 28, 37)
PARTS, RESTARTS, LOOKS = 3, 4, 2
LOOKS_A_SLICE = 0.04


class Kept(LoggedSlot):
    """A slot that keeps what came of its steps and of questions for samples, too."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.came: list[Any] = []
        super().__init__(*args, **options)

    def step(self, now_ns: int) -> Slice | None:
        self.came.append(super().step(now_ns))
        return self.came[-1]

    def samples(self, now_ns: int) -> list[StageSample]:
        self.came.append(super().samples(now_ns))
        return self.came[-1]


class Looking(Simulation):
    """A run whose slots are compared with restored ones, now and then, attribute by attribute."""

    looks = 0

    def __init__(self, plan: Plan, *, seed: int, **options: Any) -> None:
        self._chance = Random(seed)  # noqa: S311 - a draw, not a secret
        super().__init__(plan, seed=seed, **options)

    def _complete(self, name: str, done: Slice) -> None:
        super()._complete(name, done)
        if self._chance.random() < LOOKS_A_SLICE:
            self.looks += 1
            slot = self._slots[name]
            found = differences(slot, renewed(slot, lambda: self._new_slot(name)))
            assert found == [], f"slot {name!r} at {self.now_ns} of seed {self._seed}"


class Keeping(Simulation):
    """A run of such slots."""

    def _new_slot(self, name: str) -> Slot:
        part = replace(slot_plan(self._plan, name), interval_ns=self._sampled_ns)
        return Kept.of(part, start_ns=self._start_ns)


S = TypeVar("S", bound=Simulation)


def run_of(kind: type[S], plan: Plan, seed: int) -> S:
    is_tuned = plan.deadline_ns is not None
    return kind(
        plan,
        egress=lambda *_: None,
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=20 * MS),
        policy=AnyHolds(Paths.of(FlowGraph.of(plan)).tuned, seed) if is_tuned else None,
    )


def ran(seed: int, order: Any = None) -> tuple[Plan, dict[str, Any]]:
    """Run a flow at random; return its slots."""
    plan = any_flow(seed)
    plan = replace(plan, limits=replace(plan.limits, order=order))
    one = run_of(Keeping, replace(plan, limits=replace(plan.limits, log=10**6)), seed)
    assert imbalances(one.run()) == []
    assert one.logs().keys() == one._slots.keys()
    return plan, one._slots


def plainly(came: Any) -> Any:
    """Return what came of a stimulus as plain values."""
    match came:
        case Slice(stage, rows, actions, began_ns, comparisons):
            return [stage, rows, [plainly(one) for one in actions], began_ns, comparisons]
        case Send(channel, message):
            return ["send", channel.name, to_plain(message)]
        case Grant(channel, rows):
            return ["grant", channel.name, rows]
        case Egress(stage, batch, is_end):
            return ["egress", stage, to_plain(batch), is_end]
        case tuple() | list():
            return [plainly(one) for one in came]
    return came if came is None or isinstance(came, int) else repr(came)


def anew(plan: Plan, name: str, log: Any) -> Slot:
    """Return a slot to give a log to."""
    stages = tuple(replaying(plan.stages_of(name), log))
    sampled_ns = plan.interval_ns if plan.is_sampled or plan.deadline_ns is not None else None
    return Slot.of(
        replace(slot_plan(plan, name), stages=stages, interval_ns=sampled_ns), start_ns=0
    )


def check(plan: Plan, slot: Any, chance: Random, *, who: str) -> None:
    """Replay a slot, restored in between; what comes of it is what came of the slot itself."""
    log = slot.log()
    canonical(log)  # nothing but plain values

    def make() -> Slot:
        return anew(plan, slot.name, log)

    def giving(stimulus: Any) -> Any:
        return lambda again: plainly(give(again, stimulus))

    count = len(log["stimuli"])
    *found, state = outcomes(
        make,
        list(map(giving, log["stimuli"])),
        restarts=some(chance, RESTARTS, of=count),
        looks=some(chance, LOOKS, of=count),
    )
    pairs = zip(log["stimuli"], found, strict=True)
    told = [came for (what, *_), came in pairs if what in ("step", "samples")]
    assert told == [canonical(plainly(came)) for came in slot.came], who
    assert state == canonical(slot.snapshot()), who


def test_every_attribute_of_a_restored_slot_is_that_of_the_slot() -> None:
    looks = 0
    for seed in SEEDS:
        one = run_of(Looking, any_flow(seed), seed)
        one.run()
        looks += one.looks
    assert looks > 150


@pytest.mark.parametrize("part", range(PARTS))
def test_a_log_replays_a_slot_also_one_that_is_restored_between_any_two_stimuli(part: int) -> None:
    for seed in SEEDS[part::PARTS]:
        plan, slots = ran(seed)
        chance = Random(seed)  # noqa: S311 - a draw, not a secret
        for name, slot in slots.items():
            check(plan, slot, chance, who=f"{name} of seed {seed}")


@pytest.mark.parametrize(
    ("order", "seed"), list(zip(ORDERS, cycle((11, 24)), strict=False)), ids=repr
)
def test_a_log_replays_a_slot_in_any_order_restarted_or_not(order: Any, seed: int) -> None:
    """What an order goes by is in the snapshot, whatever it is: so one flow for each will do."""
    plan, slots = ran(seed, order)
    chance = Random(seed)  # noqa: S311 - a draw, not a secret
    for name, slot in slots.items():
        check(plan, slot, chance, who=f"{name} of seed {seed}")


def test_a_log_replays_a_slot_without_a_restart_too() -> None:
    plan, slots = ran(3)
    for name, slot in slots.items():
        log = slot.log()
        again = anew(plan, name, log)
        assert list(map(plainly, replay(again, log))) or not log["stimuli"]
        assert canonical(again.snapshot()) == canonical(slot.snapshot())


@pytest.mark.parametrize("drops", ["pairs", "events"])
@pytest.mark.parametrize(
    "kind", [espice, partial(espice, feature=sw.col("kind") % 2, first=8), random_shedding]
)
def test_a_log_replays_what_was_shed_and_when(kind: Any, drops: str) -> None:
    """Also of a slot that is put away in between: load is a matter of time, and time is logged."""
    flow = sw.Dataflow("sheds")
    rows = pa.table({"ts": np.arange(800) * MS, "kind": np.arange(800) % 7})
    events = flow.source("events", sw.table(rows), event_time="ts", time_unit="ns", speed=1.0)
    steps = [sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(3)]
    window = sw.patterns.count_window(40, every=20)
    shed = kind("60ms", seed=5, drops=drops)
    found = events.pattern(
        sw.patterns.seq(*steps), type="kind", window=window, matches=1, shed=shed
    )
    found.sink("out", sw.collect_sink())
    plan = sw.Simulation(nodes=2).plan(flow, limits=sw.Limits(log=10**6))
    each_ms = 0.7 if drops == "pairs" else 7.0
    cost = CostModel(per_row_ns=0, per_comparison_ns=each_ms * MS, jitter=0.5)
    one = Keeping(plan, egress=lambda *_: None, seed=2, cost=cost)
    report = one.run()
    (counts,) = [each.shedding for each in report.stages if each.shedding is not None]
    assert counts.spells
    assert counts.shed > 0
    chance = Random(2)  # noqa: S311 - a draw, not a secret
    for name, slot in one._slots.items():
        check(plan, slot, chance, who=name)


@pytest.mark.parametrize("seed", range(3))
def test_a_log_replays_a_slot_whose_input_has_nothing_for_a_while(seed: int) -> None:
    rows = pa.table({"ts": pa.array(range(200), pa.timestamp("ms")), "n": range(200)})
    flow = sw.Dataflow("stutters")
    numbers = flow.source("numbers", JitterInput(sw.table(rows), seed, 0.7), event_time="ts")
    numbers.merge(name="gate").sink("out", sw.collect_sink())
    plan = sw.Simulation(nodes=1).plan(flow, limits=sw.Limits(log=10**6))
    one = Keeping(plan, egress=lambda *_: None, seed=seed)
    one.run()
    ((name, slot),) = one._slots.items()
    assert isinstance(slot, Kept)
    assert any(isinstance(one, Slice) and one.has_read for one in slot.came), "polls for nothing"
    again = anew(plan, name, slot.log())
    came = [canonical(plainly(one)) for one in replay(again, slot.log())]
    steps = [one for one in slot.came if one is None or isinstance(one, Slice)]
    assert came == [canonical(plainly(one)) for one in steps]
    assert canonical(again.snapshot()) == canonical(slot.snapshot())


def test_a_log_that_begins_behind_a_restore_is_refused() -> None:
    plan, slots = ran(0)
    name, slot = next(iter(slots.items()))
    restored = make_slot(
        replace(slot_plan(plan, name), limits=replace(plan.limits, log=10)), start_ns=0
    )
    restored.restore(slot.snapshot())
    assert isinstance(restored, LoggedSlot)
    with pytest.raises(SettingError, match="begins after a restore, and a log replays from the"):
        replaying(plan.stages_of(name), restored.log())
