"""A tuner among actors that answer as slots do: nothing is lost, doubled or out of order."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import ray

import actors.tuner
import slackwater as sw
from actors.slot_report import SlotSamples
from actors.tuner import Tuner, graph_of
from runtime.flow.plan import Plan
from runtime.measure.samples import StageSample
from runtime.model import NS_PER_SECOND
from runtime.tune import SetSlack
from tests.support.flows import late_pair
from tests.support.waiting import until

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]

SECONDS = 4
SOON_S = 10.0
MS = 10**6


class PlayedSlot:
    """Has samples to give, once, and keeps what it is told."""

    def __init__(self, samples: list[StageSample]) -> None:
        self._samples = samples
        self._told: list[tuple[Any, ...]] = []

    def call(self, method: str, *args: Any) -> Any:
        if method == "set_slack":
            self._told.append(args)
            return None
        given, self._samples = self._samples, []
        return SlotSamples(given, NS_PER_SECOND)

    def told(self) -> list[tuple[Any, ...]]:
        return self._told


@pytest.fixture(scope="module")
def plan() -> Plan:
    with sw.Simulation(1) as nodes:
        return graph_of(nodes.plan(late_pair("late", seconds=1, deadline="1s")))


def slots_of(plan: Plan) -> dict[str, Any]:
    (slot,) = plan.slot_names
    samples = [
        StageSample(stage=stage.name, second=second)
        for second in range(SECONDS)
        for stage in plan.stages
    ]
    slots = {slot: ray.remote(PlayedSlot).options(num_cpus=0).remote(samples)}
    assert told(slots) == []  # it is up
    return slots


def told(slots: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    (slot,) = slots.values()
    found: list[tuple[Any, ...]] = ray.get(slot.told.remote(), timeout=SOON_S)
    return found


class CountingPolicy:
    """Sets another slack after each second, or waits to be let go on."""

    name = "counting"

    def __init__(self, may_decide: threading.Event) -> None:
        self._may_decide = may_decide

    def begin(self) -> Sequence[SetSlack]:
        return [SetSlack("gate", 100 * MS)]

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetSlack]:
        del samples
        assert self._may_decide.wait(SOON_S)
        return [SetSlack("gate", second * MS)]


@pytest.fixture
def may_decide(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    event = threading.Event()
    monkeypatch.setattr(actors.tuner, "make_policy", lambda *_, **__: CountingPolicy(event))
    return event


def test_a_finish_that_overtakes_the_start_still_hears_every_slot(plan: Plan) -> None:
    slots = slots_of(plan)
    tuner = Tuner(plan, sw.Tuning(policy="500ms"))
    state = tuner.finish(slots)
    tuner.start(slots)
    assert state.report.seconds == SECONDS
    assert told(slots) == []  # the job has ended


def test_what_slots_have_done_is_heard_though_a_decision_is_under_way(
    plan: Plan, may_decide: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors.tuner, "LAST_S", 0.1)
    slots, later = slots_of(plan), slots_of(plan)  # the same seconds again: as more of them
    tuner = Tuner(plan, sw.Tuning())
    tuner.start(slots)
    until(lambda: tuner.state(0).heard, within_s=SOON_S, what="samples")
    (slot,) = slots
    tuner._slots[slot] = later[slot]
    heard = tuner.finish(slots).heard
    may_decide.set()
    assert heard == 2 * SECONDS * len(plan.stages)


def test_of_a_burst_of_settings_the_last_is_sent_with_a_number_that_ascends(
    plan: Plan, may_decide: threading.Event
) -> None:
    slots = slots_of(plan)
    may_decide.set()
    tuner = Tuner(plan, sw.Tuning(), turn=3)
    tuner.start(slots)
    until(lambda: len(told(slots)) > 1, within_s=SOON_S, what="slacks")
    assert told(slots) == [
        ("gate", (100 * MS, None, False), (3, 1)),
        ("gate", ((SECONDS - 1) * MS, None, False), (3, 2)),
    ]
    assert tuner.finish(slots).report.gates[0].slack_ns == (SECONDS - 1) * MS
